package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/arch"
)

func TestWhatIsPublicIsPromisedOrSaysThatItIsNot(t *testing.T) {
	comments, exported := map[string]string{}, map[string]int{}
	eachGoFileWith(t, parser.ParseComments, func(name string, f *ast.File, _ *token.FileSet) {
		folder := path.Dir(name)
		if strings.HasPrefix(name, "test/") || strings.HasPrefix(name, "cmd/") || slices.Contains(strings.Split(folder, "/"), "internal") ||
			strings.HasSuffix(name, "_test.go") {
			return
		}
		comments[folder] += f.Doc.Text()
		if !strings.HasSuffix(name, ".pb.go") {
			exported[folder] += arch.CountExported(f)
		}
	})
	if len(comments) < 20 {
		t.Fatalf("only %d public packages: the source was not read", len(comments))
	}
	bad, total := arch.Surface(arch.Promised, comments, exported, arch.MaxPromised)
	slices.Sort(bad)
	for _, b := range bad {
		t.Error(b)
	}
	t.Logf("%d names are promised, by %d of %d public packages", total, len(arch.Promised), len(comments))
}

func TestAPlantedSurfaceIsFound(t *testing.T) {
	promised := map[string]string{"a": "the library"}
	for _, c := range []struct {
		what     string
		comments map[string]string
		exported int
		want     string // a part of the one finding; empty for none
	}{
		{"a promised one", map[string]string{"a": "Package a."}, 5, ""},
		{"one that is neither", map[string]string{"a": "Package a.", "b": "Package b."}, 5, "b is public and not promised"},
		{"one that says so, over two lines", map[string]string{"a": "Package a.", "b": "Public for the command:\nwhat it exports\nmay change without notice."}, 5, ""},
		{"one that is both", map[string]string{"a": "Public for fun: what it exports may change without notice."}, 5, "a is promised, and says"},
		{"one that is gone", map[string]string{"b": "what it exports may change without notice"}, 5, "a is promised and does not exist"},
		{"too many", map[string]string{"a": "Package a."}, 11, "promises 11 names"},
	} {
		bad, _ := arch.Surface(promised, c.comments, map[string]int{"a": c.exported, "b": 1000}, 10)
		switch {
		case c.want == "" && len(bad) > 0:
			t.Errorf("%s: found %q, want nothing", c.what, bad)
		case c.want != "" && (len(bad) != 1 || !strings.Contains(bad[0], c.want)):
			t.Errorf("%s: found %q, want %q", c.what, bad, c.want)
		}
	}
}

func TestExportedNamesAreCounted(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
import "fmt"
const A, b = 1, 2
var C, D int
type E struct{ F int }
func (E) G() {}
func H() { fmt.Println() }
func i() {}`, 0)
	if err != nil {
		t.Fatal(err)
	}
	if n := arch.CountExported(f); n != 5 {
		t.Errorf("%d, want A, C, D, E and H", n)
	}
}
