package planted_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/arch"
	"github.com/mcpvisor/mcpvisor/test/chaos/planted"
)

// A bug that does not compile, or whose passage has moved, hunts nothing and would look like a clean core.
func TestEveryBugCanBePlanted(t *testing.T) {
	root, err := arch.Root()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	var rounds []round
	for _, b := range slices.Concat(planted.Bugs, planted.Unseen) {
		if names[b.Name] {
			t.Errorf("two bugs are called %s", b.Name)
		}
		names[b.Name] = true
		if len(b.Finds) == 0 || b.Why == "" {
			t.Errorf("%s: which invariant finds it, and what does it cost?", b.Name)
		}
		overlay, err := b.Overlay(root, t.TempDir())
		if err != nil {
			t.Error(err)
			continue
		}
		n := slices.IndexFunc(rounds, func(r round) bool { return !slices.Contains(r.packages, "./"+path.Dir(b.File)) })
		if n < 0 {
			n, rounds = len(rounds), append(rounds, round{replace: map[string]string{}})
		}
		rounds[n].add(t, b, overlay)
	}
	if testing.Short() {
		return
	}
	for _, r := range rounds {
		r.compile(t, root)
	}
}

// round is a bug of each of some packages, which are compiled together: the go command takes longer than the compiler.
type round struct {
	names, packages []string
	replace         map[string]string
}

func (r *round) add(t *testing.T, b planted.Bug, overlay string) {
	t.Helper()
	var read struct{ Replace map[string]string }
	text, err := os.ReadFile(overlay)
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(r.replace, read.Replace)
	r.names, r.packages = append(r.names, b.Name), append(r.packages, "./"+path.Dir(b.File))
}

func (r *round) compile(t *testing.T, root string) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"Replace": r.replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", slices.Concat([]string{"build", "-overlay", overlay}, r.packages)...)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("of %s, some do not compile: %v\n%s", strings.Join(r.names, ", "), err, out)
	}
}

func TestAPassageThatMovedIsAnError(t *testing.T) {
	root, err := arch.Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []planted.Bug{
		{Name: "nowhere", File: "messages/doc.go", Old: "a passage that nobody wrote"},
		{Name: "empty", File: "messages/doc.go"},
		{Name: "no-file", File: "messages/none.go", Old: "x"},
	} {
		dir := t.TempDir()
		if _, err := b.Overlay(root, dir); err == nil {
			t.Errorf("%s: no error", b.Name)
		} else if !strings.Contains(err.Error(), b.Name) {
			t.Errorf("the error does not name the bug: %v", err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: something was written: %v, %v", b.Name, left, err)
		}
	}
}

// The table claims to stand for the invariants that the core alone can break.
func TestTheBugsCoverTheInvariants(t *testing.T) {
	var found []string
	for _, b := range planted.Bugs {
		found = append(found, b.Finds...)
	}
	for _, id := range []string{"I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I10", "I11", "I12", "I13", "I14"} {
		if !slices.Contains(found, id) {
			t.Errorf("no planted bug is found by %s", id)
		}
	}
}
