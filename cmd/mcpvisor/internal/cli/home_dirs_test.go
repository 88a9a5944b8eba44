package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
)

// TestPlacesAreWholePaths checks that relative paths in HOME and XDG variables are refused or ignored: files of the person must
// not lie in the directory in which mcpvisor is started.
func TestPlacesAreWholePaths(t *testing.T) {
	home := "HOME"
	if runtime.GOOS == "windows" {
		home = "USERPROFILE"
	}
	var said bytes.Buffer
	t.Setenv(home, "rel")
	if err := checkHomeDirs(&said); err == nil || exit.CodeOf(err) != exit.Usage || !strings.Contains(err.Error(), home+" is rel") {
		t.Error(err)
	}
	t.Setenv(home, t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "rel")
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	if err := checkHomeDirs(&said); err != nil || os.Getenv("XDG_CONFIG_HOME") != "" || os.Getenv("XDG_STATE_HOME") == "" ||
		!strings.Contains(said.String(), "XDG_CONFIG_HOME is rel") {
		t.Error(err, said.String())
	}
}

// su and sudo -E hand on XDG_RUNTIME_DIR of the user before: a directory that belongs to another user is left out. The user's own
// directory, and one that does not exist yet, stay.
func TestTheRuntimeDirectoryOfAnotherUserIsLeftOut(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // owners mean nothing there
	}
	const name = "XDG_RUNTIME_DIR"
	foreign := string(filepath.Separator) // it is root's
	if os.Geteuid() == 0 {
		foreign = t.TempDir()
		if err := os.Chown(foreign, 1000, 1000); err != nil {
			t.Fatal(err)
		}
	}
	own := t.TempDir()
	for dir, left := range map[string]bool{foreign: true, own: false, filepath.Join(own, "later"): false} {
		var said bytes.Buffer
		t.Setenv(name, dir)
		if err := checkHomeDirs(&said); err != nil {
			t.Error(err)
		}
		if got := os.Getenv(name); (got == "") != left || strings.Contains(said.String(), "belongs to another user") != left {
			t.Errorf("%s is %q, and said is %q", dir, got, said.String())
		}
	}
}
