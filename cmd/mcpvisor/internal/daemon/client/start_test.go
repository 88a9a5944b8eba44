//go:build unix

package client

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// TestDaemonsThatEndWhileTheyGreetAreNoStorm has a socket on which every connection ends at once: pauses grow, so that a bridge does not start
// one daemon after the other without pause.
func TestDaemonsThatEndWhileTheyGreetAreNoStorm(t *testing.T) {
	dir, err := os.MkdirTemp("", "d") // the test's own directory is too deep for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	if err := os.Mkdir(filepath.Join(dir, "mcpvisor"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "mcpvisor", "daemon.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var greeted atomic.Int64
	go func() { // it ends with the listener
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			greeted.Add(1)
			_ = conn.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, _, _, err := Dial(ctx, Wish{Dir: "/", Lookup: os.LookupEnv}); err == nil {
		t.Error("there is a daemon")
	}
	if n := greeted.Load(); n < 2 || n > 12 { // 7 pauses fit into the time
		t.Errorf("%d greetings in two seconds", n)
	}
}
