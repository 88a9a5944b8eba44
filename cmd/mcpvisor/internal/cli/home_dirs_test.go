package cli

import (
	"bytes"
	"os"
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
