//go:build unix

package control_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// daemonLocation returns the paths of a daemon of its own.
func daemonLocation(t *testing.T) control.DaemonLocation {
	dir, err := os.MkdirTemp("", "d") // the test's own directory is too deep for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	location, err := control.DaemonLocationOf()
	if err != nil {
		t.Fatal(err)
	}
	return location
}

// TestThereIsOneDaemon checks that a second daemon is refused by name, that a process of the user gets in, and that the place is
// free after the end.
func TestThereIsOneDaemon(t *testing.T) {
	location, ctx := daemonLocation(t), context.Background()
	if _, err := control.DialDaemon(ctx, location); !errors.Is(err, control.ErrNotRunning) {
		t.Errorf("without a daemon: %v", err)
	}
	d, err := control.ListenDaemon(location)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := control.ListenDaemon(location); !errors.Is(err, control.ErrRunning) || !strings.Contains(err.Error(), "is the daemon") {
		t.Errorf("a second one: %v", err)
	}
	if info, err := os.Stat(location.Socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info, err)
	}
	meet(t, d, location)
	d.StopListening()
	d.StopListening()
	if _, _, err := d.AcceptPeer(); err == nil {
		t.Error("it accepts after its end")
	}
	second, err := control.ListenDaemon(location)
	if err != nil {
		t.Fatal(err)
	}
	second.StopListening()
}

// meet connects to a daemon, which must let this process in.
func meet(t *testing.T, d *control.DaemonListener, location control.DaemonLocation) {
	t.Helper()
	conn, err := control.DialDaemon(context.Background(), location)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	accepted, examine, err := d.AcceptPeer()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	if _, err := examine(context.Background()); err != nil {
		t.Errorf("a process of the person: %v", err)
	}
}

// TestADaemonOutlivesItsFolder removes the runtime directory of a daemon: it is found again after Restore, and if another daemon has
// begun meanwhile, it says so.
func TestADaemonOutlivesItsFolder(t *testing.T) {
	location := daemonLocation(t)
	d, err := control.ListenDaemon(location)
	if err != nil {
		t.Fatal(err)
	}
	defer d.StopListening()
	if err := d.Restore(); err != nil {
		t.Errorf("nothing was removed: %v", err)
	}
	meet(t, d, location)
	for _, removed := range []string{filepath.Dir(location.Socket), location.Socket, location.Lock} {
		if err := os.RemoveAll(removed); err != nil {
			t.Fatal(err)
		}
		if err := d.Restore(); err != nil {
			t.Errorf("%s was removed: %v", filepath.Base(removed), err)
		}
		meet(t, d, location)
		if _, err := control.ListenDaemon(location); !errors.Is(err, control.ErrRunning) {
			t.Errorf("%s was removed: a second daemon: %v", filepath.Base(removed), err)
		}
	}
	if err := os.RemoveAll(filepath.Dir(location.Socket)); err != nil {
		t.Fatal(err)
	}
	other, err := control.ListenDaemon(location)
	if err != nil {
		t.Fatal(err)
	}
	defer other.StopListening()
	if err := d.Restore(); !errors.Is(err, control.ErrRunning) {
		t.Errorf("another daemon has begun: %v", err)
	}
	d.StopListening() // the files of the other one stay
	meet(t, other, location)
	if _, err := control.ListenDaemon(location); !errors.Is(err, control.ErrRunning) {
		t.Errorf("a third daemon: %v", err)
	}
}

// TestTheFolderOfTheDaemonIsPrivate checks that a socket in a directory of others is not used.
func TestTheFolderOfTheDaemonIsPrivate(t *testing.T) {
	location := daemonLocation(t)
	if err := os.MkdirAll(filepath.Dir(location.Socket), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(location.Socket), 0o777); err != nil {
		t.Fatal(err)
	}
	var e *messages.Error
	if _, err := control.DialDaemon(context.Background(), location); !errors.As(err, &e) || e.Class != messages.ClassDenied {
		t.Errorf("dial: %v", err)
	}
	if _, err := control.ListenDaemon(location); !errors.As(err, &e) || e.Class != messages.ClassDenied {
		t.Errorf("listen: %v", err)
	}
}
