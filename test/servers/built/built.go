// Package built gives tests the fixtures of package servers as a program of its own. A test binary that re-executes itself
// is simpler and enough for a few servers; it is large, and several times slower to start under the race detector,
// which counts where a test wants hundreds.
package built

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// Fixture builds the program and returns its path; it is removed with tb's temporary folder. Start a fixture with
// servers.Args, or with the kind and its parameters alone. The go command's own cache makes every build but the first a
// matter of linking, a few hundred milliseconds.
func Fixture(tb testing.TB) string {
	tb.Helper()
	return Program(tb, "test/servers/fixture")
}

// Program builds a program of this module, in the same way.
func Program(tb testing.TB, folder string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), filepath.Base(folder))
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	cmd := exec.CommandContext(tb.Context(), "go", "build", "-o", path, "github.com/mcpvisor/mcpvisor/"+folder)
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("building %s: %v\n%s", folder, err, out)
	}
	return path
}
