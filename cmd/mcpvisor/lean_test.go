//go:build nochaos

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// fullBuild says that this build has the commands of chaos.
const fullBuild = false

// TestLeanCommand runs the script testdata/lean.txtar with the command as a person builds it with -tags nochaos. "lean" is that
// program; this test binary links the test bench whatever the tags are.
func TestLeanCommand(t *testing.T) {
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", "nochaos", "-o", filepath.Join(bin, "lean"), ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	testscript.Run(t, testscript.Params{
		Files:               []string{filepath.Join("testdata", "lean.txtar")},
		RequireExplicitExec: true,
		UpdateScripts:       *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(os.PathListSeparator)+env.Getenv("PATH"))
			return setUpScript(env)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": scriptExits, "gone": scriptGone},
	})
}
