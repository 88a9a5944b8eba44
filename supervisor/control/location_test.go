package control_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

func locationOf(t *testing.T, dir string) control.Location {
	t.Helper()
	p, err := control.LocationOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestOneDirectoryHasOnePlace(t *testing.T) {
	dir := t.TempDir()
	project, link := filepath.Join(dir, "project"), filepath.Join(dir, "link")
	if err := os.MkdirAll(filepath.Join(project, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(project, link); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	want := locationOf(t, project)
	t.Chdir(project)
	for _, other := range []string{link, ".", project + "/sub/.."} {
		if got := locationOf(t, other); got != want {
			t.Errorf("%s has %+v, not %+v", other, got, want)
		}
	}
	if got := locationOf(t, "sub"); got.Socket == want.Socket || got.Journal == want.Journal || got.Lock == want.Lock {
		t.Error("two directories share a place")
	}
}

// The path of a socket fits into 104 bytes on every system, with any values of the environment's variables.
func TestTheSocketsPathIsShort(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("XDG_RUNTIME_DIR is for other systems")
	}
	short := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", "/run/x")
	if p := locationOf(t, short); filepath.Dir(p.Socket) != "/run/x/mcpvisor" {
		t.Errorf("the socket is %s", p.Socket)
	}
	long := "/" + strings.Repeat("x", 90)
	t.Setenv("XDG_RUNTIME_DIR", long)
	if p := locationOf(t, short); strings.HasPrefix(p.Socket, long) || len(p.Socket) > 103 {
		t.Errorf("the socket is %s", p.Socket)
	}
	t.Setenv("HOME", long)
	t.Setenv("XDG_CACHE_HOME", long)
	if p := locationOf(t, short); strings.HasPrefix(p.Socket, long) || len(p.Socket) > 103 {
		t.Errorf("the socket is %s", p.Socket)
	}
	t.Setenv("TMPDIR", long)
	if p, err := control.LocationOf(short); err == nil {
		t.Errorf("the socket is %s", p.Socket)
	}
	t.Setenv("XDG_RUNTIME_DIR", "relative")
	t.Setenv("XDG_CACHE_HOME", "/c")
	if p := locationOf(t, short); runtime.GOOS == "linux" && filepath.Dir(p.Socket) != "/c/mcpvisor/run" {
		t.Errorf("the socket is %s", p.Socket)
	}
}
