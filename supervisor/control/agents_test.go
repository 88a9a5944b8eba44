package control_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// TestListenAgentsLeavesTheSocketOfAnotherProgram has the path of a socket on which another program listens, that of one that a dead process
// has left, and one that is too long: the first stays where it is, the second is replaced, and of the third the bound is told.
func TestListenAgentsLeavesTheSocketOfAnotherProgram(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "a") // that of a test may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	other, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l, err := control.ListenAgents(path)
	if err == nil {
		l.Close()
		t.Error("the socket of another program was taken away")
	} else if !strings.Contains(err.Error(), "another program listens there") {
		t.Errorf("the error is %v", err)
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatalf("the other program cannot be reached any more: %v", err)
	}
	conn.Close()

	other.(*net.UnixListener).SetUnlinkOnClose(false) // as a process that is killed
	other.Close()
	if l, err = control.ListenAgents(path); err != nil {
		t.Fatalf("a socket that a dead process has left: %v", err)
	}
	l.Close()

	long := filepath.Join(dir, strings.Repeat("x", 120))
	if l, err = control.ListenAgents(long); err == nil {
		l.Close()
		t.Fatal("a path that no system takes was taken")
	}
	if !strings.Contains(err.Error(), "bytes") || strings.Contains(err.Error(), "invalid argument") {
		t.Errorf("the error of a long path is %v", err)
	}
}
