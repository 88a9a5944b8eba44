package planted_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/planted"
	"github.com/mcpvisor/mcpvisor/test/chaos/planted/bugs"
)

// ours is a package with every form of code that a bug can replace: an expression, statements, clauses, in methods of generic
// types and in variadic functions.
const ours = `package p

import "strings"

type box[T any] struct{ items []T }

func (b *box[T]) put(item T, _ int) (n int) {
	if len(b.items) >= 3 && cap(b.items) > 0 {
		return len(b.items)
	}
	b.items = append(b.items, item)
	return len(b.items)
}

func join(_ string, parts ...string) string { return strings.Join(parts, ",") }

func twice() int {
	n := 1
	n++
	n++
	return n
}

func which(n int) string {
	switch {
	case n > 2:
		return "many"
	default:
		return "few"
	}
}

var Said = join("", "a", "b") + which(twice()) + string(rune('0'+(&box[int]{}).put(1, 2)))
`

// writeModule writes a module with a main package and package p of these files, and returns its folder.
func writeModule(t *testing.T, files ...string) (root string) {
	t.Helper()
	root = t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.com/m\n\ngo 1.26\n")
	write("main.go", "package main\n\nimport \"example.com/m/p\"\n\nfunc main() { print(p.Said) }\n")
	for i, text := range files {
		write("p/"+string(rune('a'+i))+".go", text)
	}
	return root
}

// newBug returns a bug in package p with the fields that these tests do not look at filled in.
func newBug(in, old, new string) bugs.Bug {
	return bugs.Bug{Name: "some-bug", Package: "p", In: in, Old: old, New: new, Finds: []string{"I1"}, Why: "it hurts"}
}

// validBugs can all be planted into ours, some with other formatting than there.
var validBugs = []bugs.Bug{
	newBug("box.put", "len(b.items) >= 3", "len(b.items) >= 0"),
	newBug("box.put", "len(b.items)>=3&&cap(b.items)>0", "true"),
	newBug("box.put", "b.items = append(b.items, item)", ""),
	newBug("join", "strings.Join(parts, \",\")", "strings.Join(parts, \";\")"),
	newBug("twice", "n := 1\nn++", "n := 5"),
	newBug("which", "case n > 2: return \"many\"", "case n > 3:\nreturn \"many\""),
}

// A formatter, a comment or a move to another file must not make a bug lose its place.
func TestPlacesAreFoundBySyntax(t *testing.T) {
	elsewhere := strings.SplitAfter(ours, "type box[T any] struct{ items []T }\n")
	moved := "package p\n" + strings.ReplaceAll(strings.NewReplacer(
		"{\n\tif", "{\n\n\t// Full?\n\tif", " && cap", " &&\n\t\t// It has room.\n\t\tcap", ">= 3", ">=   3",
	).Replace(elsewhere[1]), "strings.Join", "strings.Join")
	moved = strings.Replace(moved, "package p\n", "package p\n\nimport \"strings\"\n", 1)
	stays := strings.Replace(elsewhere[0], "import \"strings\"\n", "", 1)
	for name, root := range map[string]string{"as it was": writeModule(t, ours), "moved and formatted": writeModule(t, stays, moved)} {
		for _, b := range validBugs {
			if err := planted.NewSource(root).Compiles([]bugs.Bug{b}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// The engineer who moved the code has not seen the table, so the error must name the bug and the likely place.
func TestAPlaceThatIsGoneIsNamed(t *testing.T) {
	root := writeModule(t, ours)
	for _, c := range []struct {
		bug  bugs.Bug
		says []string
	}{
		{newBug("box.put", "len(b.items) >= 4", "true"), []string{`nearest to it is "len(b.items) >= 3`, "box.put", "a.go:8", "it hurts"}},
		{newBug("box.add", "len(b.items) >= 3", "true"), []string{"no box.add", "stands in box.put (a.go)"}},
		{newBug("twice", "n++", "n--"), []string{"2 times"}},
		{newBug("join", "n := 1", "n := 2"), []string{"stands in twice"}},
		{newBug("twice", "n := := 1", "n := 2"), []string{"no Go code"}},
		{newBug("twice", "return n", "return m"), []string{"does not compile", "undefined: m"}},
		{bugs.Bug{Name: "some-bug", Package: "q", In: "f", Old: "x", New: "y"}, []string{"package q cannot be read"}},
	} {
		err := planted.NewSource(root).Compiles([]bugs.Bug{c.bug})
		if err == nil {
			t.Errorf("%+v: no error", c.bug)
			continue
		}
		for _, text := range append(c.says, "some-bug") {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%+v: the error does not say %q: %v", c.bug, text, err)
			}
		}
	}
}

// The program has all bugs and shows the one that the environment variable names when it starts.
func TestOneProgramHasAllBugs(t *testing.T) {
	root, dir := writeModule(t, ours), t.TempDir()
	all := make([]bugs.Bug, len(validBugs))
	for i, b := range validBugs {
		all[i] = b
		all[i].Name = string(rune('a' + i))
	}
	overlay, err := planted.NewSource(root).Overlay(all, dir)
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-overlay", overlay, "-o", filepath.Join(dir, "program"), ".")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// The output without a bug is "a,bmany1"; bugs a and e change no result here.
	for name, want := range map[string]string{
		"": "a,bmany1", "a": "a,bmany1", "b": "a,bmany0", "c": "a,bmany0", "d": "a;bmany1", "e": "a,bmany1", "f": "a,bfew1",
	} {
		run := exec.Command(filepath.Join(dir, "program"))
		run.Env = append(os.Environ(), "MCPVISOR_PLANTED="+name)
		out, err := run.CombinedOutput()
		if err != nil || string(out) != want {
			t.Errorf("with bug %q it says %s, %v; want %s", name, out, err, want)
		}
	}
	if text, err := os.ReadFile(overlay); err != nil || !json.Valid(text) {
		t.Errorf("the overlay is %q, %v", text, err)
	}
}
