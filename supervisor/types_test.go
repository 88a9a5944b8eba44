package supervisor_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/supervisor"
)

// TestAliasesShowTheirMethods: go doc shows no methods of an alias, so the comments name them with their signatures. Each is one that the type has.
func TestAliasesShowTheirMethods(t *testing.T) {
	types := map[string]reflect.Type{
		"Error":    reflect.TypeFor[*supervisor.Error](),
		"Snapshot": reflect.TypeFor[*supervisor.Snapshot](),
		"Watcher":  reflect.TypeFor[*supervisor.Watcher](),
	}
	f, err := parser.ParseFile(token.NewFileSet(), "types.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]int{}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || types[spec.Name.Name] == nil {
			return true
		}
		for line := range strings.Lines(spec.Doc.Text()) {
			signature, ok := strings.CutPrefix(line, "\t")
			if !ok {
				continue
			}
			shown[spec.Name.Name]++
			name, _, _ := strings.Cut(signature, "(")
			m, ok := types[spec.Name.Name].MethodByName(name)
			if !ok {
				t.Errorf("%s has no method %s", spec.Name.Name, name)
				continue
			}
			// A method's type names its receiver first, and no parameters.
			has := strings.NewReplacer("messages.", "", "actors.", "", "catalog.", "").Replace(strings.Replace(shortNames(m.Type.String()), types[spec.Name.Name].String(), "", 1))
			has = strings.Replace(strings.TrimPrefix(has, "func"), "(, ", "(", 1)
			if says := withoutParameterNames(strings.TrimSpace(signature[len(name):])); says != has {
				t.Errorf("%s.%s is shown as %s and is %s", spec.Name.Name, name, says, has)
			}
		}
		return true
	})
	for name := range types {
		if shown[name] == 0 {
			t.Errorf("the comment of %s shows no method", name)
		}
	}
}

var pathOf = regexp.MustCompile(`[\w.\-]+/(?:[\w.\-]+/)*`)

// shortNames takes the paths of the packages out of the names of types.
func shortNames(signature string) string { return pathOf.ReplaceAllString(signature, "") }

// withoutParameterNames writes a signature as reflect does.
func withoutParameterNames(signature string) string {
	e, err := parser.ParseExpr("func" + signature)
	if err != nil {
		return err.Error()
	}
	list := func(fields *ast.FieldList) (types []string) {
		if fields == nil {
			return nil
		}
		for _, field := range fields.List {
			for range max(len(field.Names), 1) {
				types = append(types, signatureText(signature, field.Type))
			}
		}
		return types
	}
	f := e.(*ast.FuncType)
	results := list(f.Results)
	out := "(" + strings.Join(list(f.Params), ", ") + ")"
	switch len(results) {
	case 0:
		return out
	case 1:
		return out + " " + results[0]
	}
	return out + " (" + strings.Join(results, ", ") + ")"
}

// signatureText returns the text of a type in a signature that was parsed behind "func".
func signatureText(signature string, e ast.Expr) string {
	return ("func" + signature)[e.Pos()-1 : e.End()-1]
}
