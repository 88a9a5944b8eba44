package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/arch"
)

// maxOneWord is the share of unexported functions and methods whose name may be one word, in percent.
const maxOneWord = 30

// Names are words that a Go engineer knows, and say their object: the contributing page has the dictionary.
func TestNamesAreWordsOfTheField(t *testing.T) {
	type count struct{ oneWord, all int }
	packages, whole := map[string]count{}, count{}
	eachGoFile(t, func(name string, f *ast.File, fset *token.FileSet) {
		if strings.HasSuffix(name, ".pb.go") {
			return
		}
		for _, bad := range arch.Words(fset, f) {
			t.Error(bad)
		}
		if strings.HasSuffix(name, "_test.go") {
			return
		}
		oneWord, all := arch.CountWords(f)
		c := packages[path.Dir(name)]
		packages[path.Dir(name)] = count{c.oneWord + oneWord, c.all + all}
		whole = count{whole.oneWord + oneWord, whole.all + all}
	})
	if whole.all < 1000 {
		t.Fatalf("only %d functions: the source was not read", whole.all)
	}
	for name, c := range packages {
		if c.all >= 10 && c.oneWord*100 > c.all*maxOneWord {
			t.Errorf("%s: %d of %d unexported functions have a name of one word (more than %d %%): say what they act on", name, c.oneWord, c.all, maxOneWord)
		}
	}
	t.Logf("%d of %d unexported functions have a name of one word", whole.oneWord, whole.all)
}

func TestPlantedWordsAreFound(t *testing.T) {
	for _, c := range []struct {
		source string
		want   string // a part of the one finding; empty for none
	}{
		{`func f() { told := 1; _ = told }`, "told says nothing"},
		{`func told() {}`, "told says nothing"},
		{`func f(by string) {}`, "by says nothing"},
		{`func f() (wrong error) { return nil }`, "wrong says nothing"},
		{`type t struct { of int }`, "of says nothing"},
		{`type t interface { is() bool }`, "is says nothing"},
		{`var again = 1`, "again says nothing"},
		{`func f() { for _, is := range []int{} { _ = is } }`, "is says nothing"},
		{`type requestDesk struct{}`, "requestDesk is a metaphor"},
		{`func newDoorman() {}`, "newDoorman is a metaphor"},
		{`var URLSeat int`, "URLSeat is a metaphor"},
		{`func (t T) openLobby() {}; type T int`, "openLobby is a metaphor"},
		{`func f(seats int) { told, x := 1, 2; _, _ = told, x }`, "told says nothing"},
		{`func isRemote(settled bool) (ofServer int) { retold := 1; return retold }`, ""},
		{`func f() { x.told = 1; x.by() }; var x = t{}`, ""}, // a use: the declaration is what is named
	} {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, "x.go", "package x; "+c.source, 0)
		if err != nil {
			t.Fatal(err)
		}
		bad := arch.Words(fset, f)
		switch {
		case c.want == "" && len(bad) > 0:
			t.Errorf("%s: found %q, want nothing", c.source, bad)
		case c.want != "" && (len(bad) != 1 || !strings.Contains(bad[0], c.want)):
			t.Errorf("%s: found %q, want %q", c.source, bad, c.want)
		}
	}
}

func TestOneWordNamesAreCounted(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
func main() {}
func init() {}
func Exported() {}
func end() {}
func endTask() {}
func (t T) fly() {}
func (t T) readURL() {}
func f_g() {}
type T int`, 0)
	if err != nil {
		t.Fatal(err)
	}
	if oneWord, all := arch.CountWords(f); oneWord != 2 || all != 5 {
		t.Errorf("%d of %d, want 2 of 5", oneWord, all)
	}
}

// eachGoFile visits every file of the module, tests and harness too, but for what stands below testdata.
func eachGoFile(t *testing.T, visit func(name string, f *ast.File, fset *token.FileSet)) {
	t.Helper()
	eachGoFileWith(t, 0, visit)
}

func eachGoFileWith(t *testing.T, mode parser.Mode, visit func(name string, f *ast.File, fset *token.FileSet)) {
	t.Helper()
	top := root(t)
	err := filepath.WalkDir(top, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(top, file)
		name = filepath.ToSlash(name)
		switch {
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && name != "." || d.Name() == "testdata" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case d.IsDir(), !strings.HasSuffix(name, ".go"):
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, nil, mode|parser.SkipObjectResolution)
		if err == nil {
			visit(name, f, fset)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
