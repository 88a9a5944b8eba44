//go:build unix

package client

import (
	"bufio"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// listenAsDaemon opens the socket of the daemon in directories of the test.
func listenAsDaemon(t *testing.T) net.Listener {
	t.Helper()
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
	return l
}

// TestADaemonThatStartsIsAwaited has bridges come after a daemon has opened its socket and before it accepts anybody, as while its guardian
// starts. They wait for it, and none of them starts another one.
func TestADaemonThatStartsIsAwaited(t *testing.T) {
	l := listenAsDaemon(t)
	var served sync.WaitGroup
	for range 16 {
		served.Go(func() {
			d := dialer{dir: "/", lookup: os.LookupEnv, mayStart: true}
			conn, _, _, err := d.dial(t.Context())
			if err != nil || d.started {
				t.Errorf("a bridge: started another daemon %v, %v", d.started, err)
				return
			}
			_ = conn.Close()
		})
	}
	time.Sleep(100 * time.Millisecond) // it decides nothing: a bridge that comes later than the first greeting is served as well
	for range 16 {
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		go func() { // it ends with the bridge
			defer conn.Close()
			r := bufio.NewReader(conn)
			for _, answer := range []Welcome{{Protocol: Protocol}, {Protocol: Protocol, Ready: true}} {
				var line map[string]any
				if ReadLine(r, &line) != nil || WriteLine(conn, answer) != nil {
					return
				}
			}
		}()
	}
	served.Wait()
	starting, err := filepath.Glob(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "mcpvisor", "starting.lock"))
	if err != nil || len(starting) > 0 {
		t.Errorf("somebody has begun to start a daemon: %v, %v", starting, err)
	}
}

// TestDaemonsThatEndWhileTheyGreetAreNoStorm has a socket on which every connection ends at once: pauses grow, so that a bridge does not start
// one daemon after the other without pause.
func TestDaemonsThatEndWhileTheyGreetAreNoStorm(t *testing.T) {
	l := listenAsDaemon(t)
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

// TestALockThatCannotBeOpenedIsSaid has a directory in the place of the lock under which a daemon is started; a full disk ends in the same way. It was
// said that another process had been starting the daemon for too long.
func TestALockThatCannotBeOpenedIsSaid(t *testing.T) {
	l := listenAsDaemon(t)
	_ = l.Close()
	if err := os.Mkdir(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "mcpvisor", "starting.lock"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, _, _, err := (&dialer{dir: "/", lookup: os.LookupEnv, mayStart: true}).dial(t.Context())
	if err == nil || strings.Contains(err.Error(), "another process") || !strings.Contains(err.Error(), "for the socket of the daemon cannot be used") {
		t.Errorf("the error is %v", err)
	}
}
