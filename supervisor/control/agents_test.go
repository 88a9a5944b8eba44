package control_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// TestASocketForAgentsIsOpenedAnew deletes the file of a socket that is served, with its lock and without: agents find it again, and their
// connections stay. Before, no agent could connect until serve was started anew. A file or socket of another program in its place is left alone.
func TestASocketForAgentsIsOpenedAnew(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "a") // that of a test may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "sub", "s")
	l, err := control.ListenAgents(path)
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan net.Conn, 10)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	connect := func() net.Conn {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			conn, err := net.Dial("unix", path)
			if err == nil {
				return conn
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
		}
	}
	first := connect()
	defer first.Close()
	served := <-accepted
	defer served.Close()
	for _, gone := range []string{path, filepath.Dir(path), path} {
		if err := os.RemoveAll(gone); err != nil {
			t.Fatal(err)
		}
		conn := connect()
		conn.Close()
		(<-accepted).Close()
	}
	if _, err := served.Write([]byte("x")); err != nil {
		t.Errorf("a connection of before: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := control.RestoreAgents(l); err == nil || !strings.Contains(err.Error(), "is no socket") {
		t.Errorf("a file in the socket's place: %v", err)
	}
	if text, err := os.ReadFile(path); string(text) != "mine" {
		t.Errorf("the file is gone: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	connect().Close()
	(<-accepted).Close()
	l.Close()
	<-ended
	for _, left := range []string{path, path + ".lock"} {
		if _, err := os.Lstat(left); err == nil {
			t.Errorf("%s is left", left)
		}
	}
}
