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
)

// Source is the module's source, which is read as far as bugs are planted in it.
type Source struct {
	root     string
	fset     *token.FileSet
	packages map[string]*code
}

// code is one package.
type code struct {
	name  string
	files map[string][]byte // by path
	decls []decl
}

// decl is one function.
type decl struct {
	symbol, file string
	node         *ast.FuncDecl
}

// NewSource is that of the module whose folder root is.
func NewSource(root string) *Source {
	return &Source{root: root, fset: token.NewFileSet(), packages: map[string]*code{}}
}

// read parses a package as it is built here: without its tests and what is for other systems.
func (s *Source) read(folder string) (*code, error) {
	if c := s.packages[folder]; c != nil {
		return c, nil
	}
	dir := filepath.Join(s.root, filepath.FromSlash(folder))
	p, err := build.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	c := &code{name: p.Name, files: map[string][]byte{}}
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
				c.decls = append(c.decls, decl{symbolOf(f), path, f})
			}
		}
	}
	s.packages[folder] = c
	return c, nil
}

// symbolOf is "function", or "type.method" whatever the receiver is.
func symbolOf(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	t := d.Recv.List[0].Type
	for {
		switch of := t.(type) {
		case *ast.StarExpr:
			t = of.X
		case *ast.IndexExpr:
			t = of.X
		case *ast.IndexListExpr:
			t = of.X
		case *ast.Ident:
			return of.Name + "." + d.Name.Name
		default:
			return d.Name.Name
		}
	}
}

// edit is one bug in its place: the function, and what of its file is replaced by what.
type edit struct {
	bug      Bug
	in       decl
	from, to int
	by       string
}

// place finds where a bug belongs. It is an error, which names the bug and says what to look for, if its function is gone or if
// what it replaces does not stand there exactly once: the source has moved on, and the bug must follow it.
func (s *Source) place(b Bug) (edit, error) {
	form, wanted, err := b.pattern()
	if err != nil {
		return edit{}, err
	}
	c, err := s.read(b.Package)
	if err != nil {
		return edit{}, fmt.Errorf("bug %s: its package %s cannot be read: %w; %s", b.Name, b.Package, err, b.advice())
	}
	within := slices.DeleteFunc(slices.Clone(c.decls), func(d decl) bool { return d.symbol != b.In })
	e, found := edit{bug: b, by: b.New}, 0
	for _, d := range within {
		for _, at := range find(d.node, wanted) {
			e.in, e.from, e.to = d, s.offset(at[0].Pos()), s.offset(at[len(at)-1].End())
			found++
		}
	}
	if found != 1 {
		return edit{}, s.lost(b, c, within, wanted, found)
	}
	if by, _ := form.read(b.New); len(by) == 1 {
		if _, ok := by[0].(*ast.BinaryExpr); ok {
			e.by = "(" + e.by + ")" // whatever stands around it
		}
	}
	return e, nil
}

func (s *Source) offset(p token.Pos) int { return s.fset.Position(p).Offset }

// find gives every place in root where the nodes stand, one after the other.
func find(root ast.Node, wanted []ast.Node) (places [][]ast.Node) {
	ast.Inspect(root, func(n ast.Node) bool {
		if len(wanted) == 1 {
			if n != nil && same(n, wanted[0]) {
				places = append(places, []ast.Node{n})
			}
			return true
		}
		list := listOf(n)
		for i := 0; i+len(wanted) <= len(list); i++ {
			if slices.EqualFunc(list[i:i+len(wanted)], wanted, same) {
				places = append(places, list[i:i+len(wanted)])
			}
		}
		return true
	})
	return places
}

// listOf is what stands one after the other in n.
func listOf(n ast.Node) []ast.Node {
	switch n := n.(type) {
	case *ast.BlockStmt:
		return nodes(n.List)
	case *ast.CaseClause:
		return nodes(n.Body)
	case *ast.CommClause:
		return nodes(n.Body)
	case *ast.CompositeLit:
		return nodes(n.Elts)
	}
	return nil
}
