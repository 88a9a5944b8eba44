// Package planted measures what the harness can find. It plants one bug after the other into the product, looks for it with
// random days in virtual time and with the unit tests of the bug's package, and reports which of them found it, by which
// invariant, and how small the scenario is that shows it.
//
//	make planted            # all bugs
//	make planted ONLY=park  # those whose name contains the word
//
// A bug is anchored to a function, or another declaration, and to code within it, by the syntax tree: formatting, comments and
// the file in which the function stands do not count. The compiler gets the changes as an overlay; nothing in the source tree
// changes. A bug whose code is gone fails the package's test by name, with advice where to look.
//
// # How it fits
//
//	bugs.All -> Source.Compiles, Source.Build -> Programs.Search, Programs.Test -> NewTable
//	            (overlay, go build)              (child processes)                 (report)
//
// The bugs stand in package bugs. Command run (make planted) drives this package and owns the directory for the programs.
// Programs.Search starts command search, which is built with the overlay and calls packages generate, campaign and shrink;
// Programs.Test starts the test programs of the product's packages. The environment variable MCPVISOR_PLANTED chooses the bug
// of each process.
//
// # Guarantees
//
// The source of the product is not changed: the copies of functions stand in files of a temporary folder, which the go command takes
// in place of the real ones (-overlay). A row whose code is not found, or found twice, is an error that shows the nearest code. With
// no bug chosen the program behaves as the product does.
//
// # Not promised
//
// That a harness which finds these bugs finds others. The table holds slips that engineers make; it is no proof.
package planted

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"

	"github.com/mcpvisor/mcpvisor/test/chaos/planted/bugs"
)

// A Source is the source of the module. It parses a package when the first bug in it is placed, and keeps it.
type Source struct {
	root string
	// fset is one for all packages, so that positions are unique.
	fset     *token.FileSet
	packages map[string]*packageCode
}

// A packageCode is one parsed package.
type packageCode struct {
	name  string
	files map[string][]byte // by path
	// decls holds functions and methods only.
	decls []function
}

// A function is one function or method with its symbol, as in [bugs.Bug], and the path of its file.
type function struct {
	symbol, file string
	node         *ast.FuncDecl
}

// NewSource returns the source of the module in the folder root. It reads nothing yet.
func NewSource(root string) *Source {
	return &Source{root: root, fset: token.NewFileSet(), packages: map[string]*packageCode{}}
}

// readPackage parses a package as it is built on this system: without its tests and without files for other systems.
func (s *Source) readPackage(folder string) (*packageCode, error) {
	if c := s.packages[folder]; c != nil {
		return c, nil
	}
	dir := filepath.Join(s.root, filepath.FromSlash(folder))
	p, err := build.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	c := &packageCode{name: p.Name, files: map[string][]byte{}}
	for _, name := range p.GoFiles {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(s.fset, path, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		c.files[path] = text
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				c.decls = append(c.decls, function{symbolOf(f), path, f})
			}
		}
	}
	s.packages[folder] = c
	return c, nil
}

// symbolOf returns "function", or "type.method" without stars and type parameters.
func symbolOf(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	t := d.Recv.List[0].Type
	for {
		switch typeExpr := t.(type) {
		case *ast.StarExpr:
			t = typeExpr.X
		case *ast.IndexExpr:
			t = typeExpr.X
		case *ast.IndexListExpr:
			t = typeExpr.X
		case *ast.Ident:
			return typeExpr.Name + "." + d.Name.Name
		default:
			return d.Name.Name
		}
	}
}

// A placedEdit is one bug in its place: the function, and the byte offsets in its file between which the replacement goes.
type placedEdit struct {
	bug         bugs.Bug
	function    function
	from, to    int
	replacement string
}

// placeBug finds the code that a bug replaces. It returns an error, which names the bug and advises where to look, if the
// function is gone or the code does not stand there exactly once: then the source has moved on, and the row of the bug must
// follow.
func (s *Source) placeBug(b bugs.Bug) (placedEdit, error) {
	form, wanted, err := parseOld(b)
	if err != nil {
		return placedEdit{}, err
	}
	c, err := s.readPackage(b.Package)
	if err != nil {
		return placedEdit{}, fmt.Errorf("bug %s: its package %s cannot be read: %w; %s", b.Name, b.Package, err, fixAdvice(b))
	}
	// Methods of one name may exist on several types or build variants, so every function with the symbol is searched.
	within := slices.DeleteFunc(slices.Clone(c.decls), func(d function) bool { return d.symbol != b.In })
	e, found := placedEdit{bug: b, replacement: b.New}, 0
	for _, d := range within {
		for _, at := range findNodes(d.node, wanted) {
			e.function, e.from, e.to = d, s.offset(at[0].Pos()), s.offset(at[len(at)-1].End())
			found++
		}
	}
	if found != 1 {
		return placedEdit{}, s.misplacedError(b, c, within, wanted, found)
	}
	if parsed, _ := form.parseCode(b.New); len(parsed) == 1 {
		if _, ok := parsed[0].(*ast.BinaryExpr); ok {
			e.replacement = "(" + e.replacement + ")" // the code around it may bind stronger than the operator
		}
	}
	return e, nil
}

// offset returns the byte offset of a position in its file.
func (s *Source) offset(p token.Pos) int { return s.fset.Position(p).Offset }

// findNodes returns every place in root where the wanted nodes stand next to each other.
func findNodes(root ast.Node, wanted []ast.Node) (matches [][]ast.Node) {
	ast.Inspect(root, func(n ast.Node) bool {
		// A single node may stand anywhere; several only in a list.
		if len(wanted) == 1 {
			if n != nil && isSameCode(n, wanted[0]) {
				matches = append(matches, []ast.Node{n})
			}
			return true
		}
		list := listOf(n)
		for i := 0; i+len(wanted) <= len(list); i++ {
			if slices.EqualFunc(list[i:i+len(wanted)], wanted, isSameCode) {
				matches = append(matches, list[i:i+len(wanted)])
			}
		}
		return true
	})
	return matches
}

// listOf returns the list of nodes that n holds, nil if it holds none.
func listOf(n ast.Node) []ast.Node {
	switch n := n.(type) {
	case *ast.BlockStmt:
		return toNodes(n.List)
	case *ast.CaseClause:
		return toNodes(n.Body)
	case *ast.CommClause:
		return toNodes(n.Body)
	case *ast.CompositeLit:
		return toNodes(n.Elts)
	}
	return nil
}
