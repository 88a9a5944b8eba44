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
