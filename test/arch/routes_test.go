package arch_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/arch"
)

// TestTheRoutesAreWhereTheyAreSaidToBe checks the routes in the comment of package supervisor, which a newcomer follows.
func TestTheRoutesAreWhereTheyAreSaidToBe(t *testing.T) {
	top := root(t)
	doc, err := parser.ParseFile(token.NewFileSet(), filepath.Join(top, "supervisor", "doc.go"), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	routes := arch.Routes(doc.Doc.Text())
	if len(routes) != 2 {
		t.Fatalf("%d routes, not those of a tool call and of a change of tools: %v", len(routes), routes)
	}
	for _, route := range routes {
		for _, problem := range arch.RouteProblems(top, route) {
			t.Error(problem)
		}
	}
	// A route with a file too many, without a function, and without a file is noticed.
	planted := append(routes[0], arch.RouteStop{File: "supervisor/call.go", Functions: []string{"FlyAway"}}, arch.RouteStop{File: "supervisor/gone.go"})
	if got := arch.RouteProblems(top, planted); len(got) != 3 {
		t.Errorf("three faults, and it finds %q", got)
	}
}
