package supervisor_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// TestEveryOptionIsInAGroup: the groups in the comment of Config name each of its fields once, and nothing else.
func TestEveryOptionIsInAGroup(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "config.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var fields, named []string
	ast.Inspect(file, func(n ast.Node) bool {
		d, ok := n.(*ast.GenDecl)
		if !ok || d.Tok != token.TYPE || d.Specs[0].(*ast.TypeSpec).Name.Name != "Config" {
			return true
		}
		for _, f := range d.Specs[0].(*ast.TypeSpec).Type.(*ast.StructType).Fields.List {
			for _, name := range f.Names {
				fields = append(fields, name.Name)
			}
		}
		for line := range strings.Lines(d.Doc.Text()) {
			if _, list, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && strings.Contains(line, "  - ") {
				named = append(named, strings.Split(list, ", ")...)
			}
		}
		return false
	})
	slices.Sort(fields)
	slices.Sort(named)
	if !slices.Equal(fields, named) || len(fields) < 40 {
		t.Errorf("the fields\n%v\nand the groups\n%v", fields, named)
	}
}
