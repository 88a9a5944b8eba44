package discover_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

func ExampleLoad() {
	dir, err := os.MkdirTemp("", "project")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	data := []byte(`{"mcpServers": {"files": {"command": "npx", "args": ["-y", "@example/server-files", "."]}}}`)
	if err := os.WriteFile(filepath.Join(dir, ".mcp.json"), data, 0o600); err != nil {
		panic(err)
	}
	// A program leaves Paths empty and gets the person's own places.
	options := discover.Options{Dir: dir, Paths: discover.Paths{Approvals: filepath.Join(dir, "approvals.json")}}

	found, err := discover.Load(options)
	fmt.Println(found.Specs["files"].Command, discover.AwaitingApproval(found.Set), err)

	err = found.Approvals.Approve(found.Set, "files") // what `mcpvisor approve files` does
	found, _ = discover.Load(options)
	fmt.Println(found.Specs["files"].Command, discover.AwaitingApproval(found.Set), err)
	// Output:
	// npx [files] <nil>
	// npx [] <nil>
}
