package planted_test

import (
	"os"
	"os/exec"
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
	for _, b := range planted.Bugs {
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
		if testing.Short() {
			continue
		}
		build := exec.Command("go", "build", "-overlay", overlay, "./"+filepath.ToSlash(filepath.Dir(b.File)))
		build.Dir = root
		if out, err := build.CombinedOutput(); err != nil {
			t.Errorf("%s does not compile: %v\n%s", b.Name, err, out)
		}
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
