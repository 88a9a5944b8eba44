package supervisortest_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
)

// A test of an agent's code with a server that dies: in a _test.go file, t is that of the test.
func ExampleStart() {
	testAgent := func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			files := supervisortest.NewServer("files", supervisortest.Text("read", "hello"))
			m := supervisortest.Start(t, files)
			files.Crash()
			time.Sleep(time.Minute) // of virtual time: the manager connects it again
			out, err := m.CallTool(t.Context(), "mcp__files__read", nil)
			fmt.Println(out.Text(), err, files.Connections())
		})
	}
	passed := testing.RunTests(func(string, string) (bool, error) { return true, nil },
		[]testing.InternalTest{{Name: "TestAgent", F: testAgent}})
	fmt.Println(passed)
	// Output:
	// hello <nil> 2
	// true
}
