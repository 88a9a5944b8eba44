package supervisor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
)

// A record of who called what, and how it ended; &audit.File{Path: …} in the place of the buffer keeps it in files. Records are written in
// the background: Close waits for the last one.
func ExampleConfig_audit() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var record bytes.Buffer
	files := supervisortest.NewServer("files", supervisortest.Text("read", "hello"))
	m, err := supervisor.Start(ctx, supervisortest.AddTo(supervisor.Config{Audit: &record}, files))
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = m.Ready(ctx, "files")
	_, _ = m.CallTool(supervisor.WithCaller(ctx, "anna"), "mcp__files__read", map[string]any{"path": "a"})
	_, _ = m.CallServerTool(supervisor.WithCaller(ctx, "bert"), "files", "write", nil)
	_ = m.Close(ctx)
	for lines := json.NewDecoder(&record); lines.More(); {
		var r audit.Record
		if err := lines.Decode(&r); err != nil {
			fmt.Println(err)
			return
		}
		if r.Kind == audit.KindCall {
			fmt.Println(r.Who, r.Server, r.Tool, r.Outcome)
		}
	}
	// Output:
	// anna files read result
	// bert files write not-sent
}
