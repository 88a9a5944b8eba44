package planted

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"

	"github.com/mcpvisor/mcpvisor/test/chaos/planted/bugs"
)

// A codeForm is a syntactic kind of code that a bug replaces.
type codeForm struct {
	name          string
	before, after string // text that makes it a function body
	// nodes returns the nodes that stand between before and after in the parsed body.
	nodes func(body []ast.Stmt) []ast.Node
}

// codeForms are tried in this order. The first form in which both Old and New can be parsed is used: an expression is a
// statement too, so the narrower form comes first.
var codeForms = []codeForm{
	{"expression", "_ = (", ")", func(body []ast.Stmt) []ast.Node {
		if a, ok := body[0].(*ast.AssignStmt); ok && len(body) == 1 && len(a.Rhs) == 1 {
			if p, ok := a.Rhs[0].(*ast.ParenExpr); ok {
				return []ast.Node{p.X}
			}
		}
		return nil
	}},
	{"field", "_ = t{\n", ",\n}", func(body []ast.Stmt) []ast.Node {
		return toNodes(body[0].(*ast.AssignStmt).Rhs[0].(*ast.CompositeLit).Elts)
	}},
	{"statements", "", "", func(body []ast.Stmt) []ast.Node { return toNodes(body) }},
	{"clauses", "switch {\n", "\n}", func(body []ast.Stmt) []ast.Node {
		return toNodes(body[0].(*ast.SwitchStmt).Body.List)
	}},
}

// toNodes converts a list of syntax nodes of one type.
func toNodes[N ast.Node](list []N) []ast.Node {
	out := make([]ast.Node, len(list))
	for i, n := range list {
		out[i] = n
	}
	return out
}

// parseCode parses code in this form. It returns false if the code is not of this form; empty code is valid as statements and
// clauses, with no nodes.
func (f codeForm) parseCode(code string) ([]ast.Node, bool) {
	if code == "" && (f.name == "expression" || f.name == "field") {
		return nil, false
	}
	// The parser reads whole files only, so the code is wrapped in a function.
	file, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc _() {\n"+f.before+code+f.after+"\n}\n", parser.SkipObjectResolution)
	if err != nil || len(file.Decls) != 1 {
		return nil, false
	}
	body := file.Decls[0].(*ast.FuncDecl).Body.List
	if len(body) == 0 {
		return nil, true
	}
	found := f.nodes(body)
	return found, len(found) > 0 || code == ""
}

// parseOld returns the form of a bug and the nodes that it replaces. Its error means that the row of the table is wrong, not
// that the source has moved.
func parseOld(b bugs.Bug) (codeForm, []ast.Node, error) {
	for _, f := range codeForms {
		wanted, ok := f.parseCode(b.Old)
		if !ok || len(wanted) == 0 {
			continue
		}
		if _, ok := f.parseCode(b.New); ok {
			return f, wanted, nil
		}
	}
	return codeForm{}, nil, fmt.Errorf("bug %s: what it replaces, or what replaces it, is no Go code of one kind: expressions, statements, "+
		"clauses of a switch, or a field of a literal", b.Name)
}

// isSameCode reports whether two pieces of code are equal but for their format and their comments.
func isSameCode(a, b ast.Node) bool { return isEqualValue(reflect.ValueOf(a), reflect.ValueOf(b)) }

var (
	positionType = reflect.TypeFor[token.Pos]()
	commentsType = reflect.TypeFor[*ast.CommentGroup]()
)

// isEqualValue compares syntax nodes field by field. It terminates because the parser skips object resolution: the tree then
// has no cycles.
func isEqualValue(a, b reflect.Value) bool {
	if !a.IsValid() || !b.IsValid() {
		return a.IsValid() == b.IsValid()
	}
	if a.Type() != b.Type() {
		return false
	}
	// Positions and comments differ with the format.
	if t := a.Type(); t == positionType || t == commentsType {
		return true
	}
	switch a.Kind() { //nolint:exhaustive // all others are values
	case reflect.Interface, reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return isEqualValue(a.Elem(), b.Elem())
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !isEqualValue(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Struct:
		if call, ok := a.Interface().(ast.CallExpr); ok && call.Ellipsis.IsValid() != b.Interface().(ast.CallExpr).Ellipsis.IsValid() {
			return false // the only position that has a meaning: f(x...) or f(x)
		}
		for i := range a.NumField() {
			if !isEqualValue(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	}
	return a.Equal(b)
}
