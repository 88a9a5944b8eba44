package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
)

// callAgain makes a call again where it may succeed later and cannot run twice, until its own time has passed.
func callAgain(ctx context.Context, m *supervisor.Manager, tool string, args any) (*supervisor.Result, error) {
	for {
		out, err := m.CallTool(ctx, tool, args)
		e, _ := errors.AsType[*supervisor.Error](err)
		at, retry := e.MayRetry()
		if !retry || ctx.Err() != nil {
			return out, err
		}
		select {
		case <-time.After(time.Until(at)):
		case <-ctx.Done(): // the next call ends at once, and says so
		}
	}
}

// The loop of an agent. The server is down when the call is made, and comes back.
func ExampleError_MayRetry_loop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	files := supervisortest.NewServer("files", supervisortest.Text("read", "hello"))
	files.Refuse(errors.New("down"))
	m, err := supervisor.Start(ctx, supervisortest.AddTo(supervisor.Config{}, files))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = m.Close(ctx) }()
	time.AfterFunc(50*time.Millisecond, func() { files.Refuse(nil) })
	out, err := callAgain(ctx, m, "mcp__files__read", nil)
	fmt.Println(out.Text(), err)
	out, err = callAgain(ctx, m, "mcp__fils__read", nil)
	fmt.Println(out.Text(), err)
	// Output:
	// hello <nil>
	//  no tool is registered as "mcp__fils__read" (not sent); did you mean "mcp__files__read"?
}
