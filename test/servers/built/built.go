// Package built gives tests the fixtures of package servers as a program of its own. A test binary that re-executes itself
// is simpler and enough for a few servers; it is large, and several times slower to start under the race detector,
// which counts where a test wants hundreds.
package built

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
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
	return buildProgram(tb, folder)
}

// Changed builds a program of this module as it would be with another text in some of its files, as a later version of it is; the command
// without its harness, which takes less time.
func Changed(tb testing.TB, folder string, changes ...Change) string {
	tb.Helper()
	_, here, _, _ := runtime.Caller(0)
	root, dir := filepath.Join(filepath.Dir(here), "..", "..", ".."), tb.TempDir()
	replace := map[string]string{}
	for i, c := range changes {
		file := filepath.Join(root, filepath.FromSlash(c.File))
		text, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		if strings.Count(string(text), c.Before) != 1 {
			tb.Fatalf("%s does not have %q once", c.File, c.Before)
		}
		changed := filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(changed, []byte(strings.Replace(string(text), c.Before, c.After, 1)), 0o600); err != nil {
			tb.Fatal(err)
		}
		replace[file] = changed
	}
	overlay := filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(overlay, text, 0o600)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return buildProgram(tb, folder, "-overlay", overlay, "-tags", "nochaos", "-ldflags", "-s -w")
}

// A Change is another text in the place of one in a file of this module.
type Change struct{ File, Before, After string }

func buildProgram(tb testing.TB, folder string, flags ...string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), filepath.Base(folder))
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	args := append(append([]string{"build"}, flags...), "-o", path, "github.com/mcpvisor/mcpvisor/"+folder)
	if out, err := exec.CommandContext(tb.Context(), "go", args...).CombinedOutput(); err != nil {
		tb.Fatalf("building %s: %v\n%s", folder, err, out)
	}
	return path
}
