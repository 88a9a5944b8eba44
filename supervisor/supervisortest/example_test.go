package supervisortest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
)

// A program that starts its manager itself. In a test, Start does all of it but the call.
func ExampleAddTo() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	files := supervisortest.NewServer("files", supervisortest.Text("read", "hello"))
	m, err := supervisor.Start(ctx, supervisortest.AddTo(supervisor.Config{}, files))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Ready(ctx, "files"))
	out, err := m.CallTool(ctx, "mcp__files__read", nil)
	fmt.Println(out.Text(), err, len(files.Calls()), files.Connections())
	_ = m.Close(ctx)
	// Output:
	// <nil>
	// hello <nil> 1 1
}
