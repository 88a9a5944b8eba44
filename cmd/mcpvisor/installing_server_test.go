package main

import (
	"os"
	"path/filepath"
	"time"

	"github.com/mcpvisor/mcpvisor/test/servers"
)

// uvx does what the program of this name does the first time: it writes files for as long as its first argument says, and
// becomes the server then. It leaves a file behind if it came so far.
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
