package supervisortest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
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

// TestTenMinutesCostNothing shows virtual time: the server is down for ten minutes, the manager tries it again and again and parks it,
// and the test takes milliseconds. Every run sees the same times.
func TestTenMinutesCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := supervisortest.NewServer("files", supervisortest.Text("read", "hello"))
		m := supervisortest.Start(t, files)
		files.Refuse(errors.New("down"))
		files.Crash()
		time.Sleep(10 * time.Minute)
		files.Refuse(nil)
		if err := m.Ready(t.Context(), "files"); err != nil {
			t.Fatal(err)
		}
		if out, err := m.CallTool(t.Context(), "mcp__files__read", nil); err != nil || out.Text() != "hello" {
			t.Errorf("%v, %v", out, err)
		}
	})
}
