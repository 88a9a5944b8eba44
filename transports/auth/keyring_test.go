//go:build linux

package auth_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// sessionVariable is set for the tests that need a session bus with a secret service. They are run by the first test
// here, in a bus of their own.
const sessionVariable = "AUTH_TEST_SESSION"

// TestUnderASecretService runs the tests below in a private D-Bus session, with and without a keyring.
func TestUnderASecretService(t *testing.T) {
	for _, program := range []string{"dbus-run-session", "gnome-keyring-daemon"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("NOT TESTED: the keyring. %s is not installed; on Debian: apt install dbus-daemon gnome-keyring", program)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ run, daemon string }{
		{"^TestKeyring", `printf 'a password' | gnome-keyring-daemon --unlock --components=secrets >/dev/null; `},
		{"^TestNoKeyring", ""},
	} {
		home := t.TempDir()
		runtime := filepath.Join(home, "run")
		if err := os.Mkdir(runtime, 0o700); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "dbus-run-session", "--", "sh", "-c",
			c.daemon+`"$0" -test.run="$1" -test.v -test.count=1`, exe, c.run)
		cmd.Env = append(os.Environ(), sessionVariable+"=1", "HOME="+home, "XDG_RUNTIME_DIR="+runtime,
			"XDG_DATA_HOME="+filepath.Join(home, "data"), "XDG_CONFIG_HOME="+filepath.Join(home, "config"), "DISPLAY=")
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		if err != nil || !strings.Contains(string(out), "--- PASS: ") {
			t.Errorf("%s: %v", c.run, err)
		}
	}
}

func inSession(t *testing.T) {
	if os.Getenv(sessionVariable) == "" {
		t.Skip("run by TestUnderASecretService")
	}
}

// withKeyring waits for the daemon: it says that it is ready a moment before it is on the bus.
func withKeyring(t *testing.T) {
	inSession(t)
	var err error
	for deadline := time.Now().Add(bound); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if _, err = auth.OpenKeyring(t.Context(), auth.Options{}); err == nil {
			return
		}
	}
	t.Fatal(err)
}

func TestKeyringIsAStore(t *testing.T) {
	withKeyring(t)
	checkContract(t, func() auth.Store {
		s, err := auth.OpenKeyring(t.Context(), auth.Options{Service: "mcpvisor-test"})
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

func TestKeyringAndFiles(t *testing.T) {
	withKeyring(t)
	var warnings []string
	o := auth.Options{Dir: filepath.Join(t.TempDir(), "s"), Passphrase: passphrase(canary), Service: "mcpvisor-auto",
		Warn: func(text string) { warnings = append(warnings, text) }}
	open := func() auth.Store {
		s, err := auth.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	checkContract(t, open)
	s := open()
	if err := s.Put(t.Context(), "k", []byte("in the keyring "+canary)); err != nil {
		t.Fatal(err)
	}
	if s.Where() != "keyring" || s.(auth.LocatedStore).Location("k") != "keyring" || len(warnings) > 0 {
		t.Errorf("%s, %q", s.Where(), warnings)
	}
	// The same directory without the bus: the secret is out of reach, and not absent.
	bus := os.Getenv("DBUS_SESSION_BUS_ADDRESS")
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
	far := open()
	_, err := far.Get(t.Context(), "k")
	if e := boundaryError(t, err); e.Class != messages.ClassUnauthorized || !strings.Contains(e.Text, "out of reach") {
		t.Error(err)
	}
	// Who signs in there again has the newer one, also back on the desktop.
	if err := far.Put(t.Context(), "k", []byte("newer "+canary)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", bus)
	back := open()
	if secret, err := back.Get(t.Context(), "k"); err != nil || string(secret) != "newer "+canary {
		t.Errorf("%q, %v", secret, err)
	}
	if place := back.(auth.LocatedStore).Location("k"); !strings.HasPrefix(place, "encrypted files") {
		t.Error(place)
	}
	// The next one moves it back.
	if err := back.Put(t.Context(), "k", []byte("newest")); err != nil {
		t.Fatal(err)
	}
	list, _ := filepath.Glob(filepath.Join(o.Dir, "k-*.secret"))
	if place := back.(auth.LocatedStore).Location("k"); len(list) != 0 || place != "keyring" {
		t.Errorf("in %s; files are left: %v", place, list)
	}
	if err := back.Delete(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	if _, err := back.Get(t.Context(), "k"); !errors.Is(err, auth.ErrNotFound) {
		t.Error(err)
	}
}

// TestNoKeyringOnTheBus looks for a keyring on a bus on which no program keeps secrets.
func TestNoKeyringOnTheBus(t *testing.T) {
	inSession(t)
	noKeyring(t)
}

// TestWithoutABus: no bus is started to find out that there is none.
func TestWithoutABus(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+filepath.Join(t.TempDir(), "none"))
	noKeyring(t)
}

func noKeyring(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	_, err := auth.OpenKeyring(ctx, auth.Options{})
	if e := boundaryError(t, err); e.Class != messages.ClassNetwork {
		t.Error(err)
	}
	t.Setenv("MCPVISOR_PASSPHRASE", "")
	o := auth.Options{Dir: filepath.Join(t.TempDir(), "s")}
	_, err = auth.Open(o)
	if e := boundaryError(t, err); e.Class != messages.ClassConfig || !strings.Contains(e.Error(), "no keyring") ||
		!strings.Contains(e.Error(), "MCPVISOR_PASSPHRASE") {
		t.Error(err)
	}
	o.KeyFile = filepath.Join(t.TempDir(), "key")
	checkContract(t, func() auth.Store {
		s, err := auth.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(s.Where(), "encrypted files") {
			t.Error(s.Where())
		}
		return s
	})
}
