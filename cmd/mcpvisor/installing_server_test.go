package main

import (
	"os"
	"path/filepath"
	"time"

	"github.com/mcpvisor/mcpvisor/test/servers"
)

// uvx is a program that does what the real uvx does at its first start: it writes files for the time in its first argument,
// leaves a file that says that it came to the end, and becomes the server.
func uvx() {
	long, err := time.ParseDuration(os.Args[1])
	if err != nil {
		panic(err)
	}
	wheel := make([]byte, 64<<10)
	for end := time.Now().Add(long); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err := os.WriteFile(filepath.Join(os.TempDir(), "package"), wheel, 0o600); err != nil {
			panic(err)
		}
	}
	if err := os.WriteFile(os.Args[2], []byte("installed"), 0o600); err != nil {
		panic(err)
	}
	servers.Main(os.Args[3:])
}
