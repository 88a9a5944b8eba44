//go:build unix

package control_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor/control"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
)

// TestAControlSocketOutlivesItsFolder removes the folder of a control socket while it is served, as a cleaning of the runtime directory
// does: it is found again a moment later, nobody else can take the place, and after the end nothing is left.
func TestAControlSocketOutlivesItsFolder(t *testing.T) {
	location := daemonLocation(t)
	place, err := control.LocationOf(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(place.Socket) != filepath.Dir(location.Socket) {
		t.Fatalf("%s lies elsewhere than %s", place.Socket, location.Socket)
	}
	m := supervisortest.Start(t)
	s, err := control.Serve(place, control.Local(m, control.LocalConfig{}))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := os.RemoveAll(filepath.Dir(place.Socket)); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		c, err := control.Dial(t.Context(), place)
		if err == nil {
			_ = c.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if _, err := control.Serve(place, control.Local(m, control.LocalConfig{})); err == nil {
		t.Error("another one serves the place")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, path := range []string{place.Socket, place.Lock} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is left", path)
		}
	}
}

// A daemon whose socket cannot be opened anew, because something else stands in its place or there are no more descriptors, opens it at a
// later look: until then it accepts nothing, and it does not end.
func TestASocketThatCannotBeRestoredIsTriedAgain(t *testing.T) {
	location := daemonLocation(t)
	l, err := control.ListenDaemon(location)
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan error, 1)
	go func() {
		conn, _, err := l.AcceptPeer()
		if err == nil {
			_ = conn.Close()
		}
		accepted <- err
	}()
	if err := os.Remove(location.Socket); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(location.Socket, "something else"), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Restore(); err == nil {
			t.Fatal("the socket was restored in the place of a directory")
		}
	}
	if err := os.RemoveAll(location.Socket); err != nil {
		t.Fatal(err)
	}
	if err := l.Restore(); err != nil {
		t.Fatal(err)
	}
	conn, err := control.DialDaemon(t.Context(), location)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if err := <-accepted; err != nil {
		t.Errorf("accepting ended with %v", err)
	}
	l.StopListening()
}
