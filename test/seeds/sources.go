package seeds

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Sources holds the facts that the test sources of the module state.
type Sources struct {
	// Tests holds every test function: folder.TestName.
	Tests map[string]bool
	// Shown maps the id of a feature to the tests that say they show it.
	Shown map[string][]string
	// Problems are calls of Shows that cannot be read.
	Problems []string
}

const self = "github.com/mcpvisor/mcpvisor/test/seeds"

// Read reads all test sources below root, for every system.
func Read(root string) (*Sources, error) {
	s := &Sources{Tests: map[string]bool{}, Shown: map[string][]string{}}
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || isModule(path)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		s.readTestFile(fset, filepath.ToSlash(folder), f)
		return nil
	})
	return s, err
}

// isModule reports whether a folder is a module of its own, whose tests are not ours.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// readTestFile notes the tests of a file and the features that each shows. A call of Shows outside of a test, or with a computed
// name, is a problem: the list could not name the test.
func (s *Sources) readTestFile(fset *token.FileSet, folder string, f *ast.File) {
	name := importName(f)
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		isTest := fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") && fn.Name.Name != "TestMain"
		test := folder + "." + fn.Name.Name
		if isTest {
			s.Tests[test] = true
		}
		if name == "" {
			continue
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !isShows(call, name) {
				return true
			}
			if !isTest {
				s.Problems = append(s.Problems, fmt.Sprintf("%s: Shows is called by %s, which is no test: call it in the test itself",
					fset.Position(call.Pos()), fn.Name.Name))
				return true
			}
			for _, arg := range call.Args[min(1, len(call.Args)):] {
				id, ok := stringLiteral(arg)
				if !ok {
					s.Problems = append(s.Problems, fmt.Sprintf("%s: an argument of Shows is no string literal", fset.Position(arg.Pos())))
					continue
				}
				s.Shown[id] = append(s.Shown[id], test)
			}
			return true
		})
	}
}

// importName returns the name by which a file refers to this package, empty if it does not import it.
func importName(f *ast.File) string {
	for _, i := range f.Imports {
		if i.Path.Value == strconv.Quote(self) {
			if i.Name != nil {
				return i.Name.Name
			}
			return "seeds"
		}
	}
	return ""
}

// isShows reports whether a call is one of Shows, by the name that this file has for the package.
func isShows(call *ast.CallExpr, name string) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "Shows" {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && id.Name == name
}

// stringLiteral returns the value of a literal; ok is false for any other expression.
func stringLiteral(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(l.Value)
	return s, err == nil
}
