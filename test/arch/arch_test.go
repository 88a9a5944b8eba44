package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/arch"
)

func root(t *testing.T) string {
	t.Helper()
	dir, err := arch.Root()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// loadOnce reads the graph of the module once for all tests: the go command lists it for three systems.
var loadOnce = sync.OnceValues(func() (map[string]arch.Package, error) {
	dir, err := arch.Root()
	if err != nil {
		return nil, err
	}
	return arch.Load(dir)
})

func loadGraph(t *testing.T) map[string]arch.Package {
	t.Helper()
	graph, err := loadOnce()
	if err != nil {
		t.Fatal(err)
	}
	return graph
}

func TestImportsGoDown(t *testing.T) {
	graph := loadGraph(t)
	if len(graph) < 5 {
		t.Fatalf("only %d packages: the graph was not read", len(graph))
	}
	for _, violation := range arch.Check(arch.Table, arch.ReachLimits, graph) {
		t.Error(violation)
	}
}

func TestFaultsAndJudgesShareNothingWithTheSession(t *testing.T) {
	graph := loadGraph(t)
	for _, problem := range arch.Reached(arch.NeverReached, graph) {
		t.Error(problem)
	}
	// A graph in which a judge reaches the session by another package must fail, and so must a row of nothing.
	const session = arch.Module + "/transports/session/internal/jsonrpc"
	planted := map[string]arch.Package{"judge": {Deps: []string{"fmt", session}}, "fault": {Deps: []string{arch.Module + "/transports/sessions"}}}
	got := arch.Reached([]arch.Separation{{Packages: []string{"judge", "fault", "gone"}, Never: "transports/session", Why: "why"}}, planted)
	if want := []string{"gone does not exist: take it out of NeverReached", "judge reaches " + session + ": why"}; !slices.Equal(got, want) {
		t.Errorf("of a planted graph it says %q, and should say %q", got, want)
	}
}

// A person who builds the command with -tags nochaos wants what keeps servers connected, and nothing of what tests it.
func TestTheLeanCommandLinksNoTestBench(t *testing.T) {
	deps, err := arch.LoadLean(root(t))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(deps, arch.Module+"/supervisor") {
		t.Fatalf("the list of packages was not read: %q", deps)
	}
	for _, d := range arch.Lean(deps) {
		t.Errorf("a build with -tags nochaos links %s; import it below cmd/mcpvisor/internal/harness only", d)
	}
	// The full command must have what is looked for, or the list of the lean one proves nothing.
	if full := arch.Lean(loadGraph(t)["cmd/mcpvisor"].Deps); len(full) < 10 {
		t.Errorf("the full command links only %q of the test bench", full)
	}
}

// A row of a package that has gone holds a height that no import is checked against, and misleads a reader of the map.
func TestTheTableNamesWhatThereIs(t *testing.T) {
	graph := loadGraph(t)
	for _, problem := range arch.Dead(arch.Table, arch.Planned, graph) {
		t.Error(problem)
	}
}

func TestPurePackagesAreDecidedByTheirArguments(t *testing.T) {
	top := root(t)
	files := 0
	for _, l := range arch.Table {
		if !l.Pure {
			continue
		}
		for _, p := range l.Packages {
			each(t, filepath.Join(top, filepath.FromSlash(p)), func(fset *token.FileSet, f *ast.File) {
				files++
				for _, violation := range arch.Purity(fset, f) {
					t.Error(strings.TrimPrefix(violation, top+string(filepath.Separator)))
				}
			})
		}
	}
	if files == 0 {
		t.Error("no file of a pure package was read")
	}
}

// each parses the files of one folder that are no tests. A folder that does not exist yet has none.
func each(t *testing.T, dir string, do func(*token.FileSet, *ast.File)) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, filepath.Join(dir, e.Name()), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		do(fset, f)
	}
}

func TestTheTopLevelIsFixed(t *testing.T) {
	extra, err := arch.TopLevel(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range extra {
		t.Errorf("%s stands at the top level, which is fixed: go.mod go.sum actors messages supervisor transports cmd test "+
			"Makefile README.md and dot-files", name)
	}
}

// Every test source is one that `go vet` for all systems sees; a file that no system builds is dead and hides.
func TestEveryFolderWithGoFilesIsAPackageOfTheGraph(t *testing.T) {
	top := root(t)
	graph := loadGraph(t)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != top && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		dir, err := filepath.Rel(top, filepath.Dir(path))
		if err != nil {
			return err
		}
		if _, ok := graph[filepath.ToSlash(dir)]; !ok {
			t.Errorf("%s: no system builds its package", filepath.Join(dir, name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
