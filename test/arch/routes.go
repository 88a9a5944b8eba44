package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
)

// maxRoute is how many files a person reads at most to follow one thing from end to end.
const maxRoute = 7

// RouteStop is one line of a route: a file, and the functions to read in it.
type RouteStop struct {
	File      string
	Functions []string
}

// routeLine matches such a line: a path, then names with commas between them, and after a colon what they are about.
var routeLine = regexp.MustCompile(`^\t(\S+/\S+\.go) +([A-Za-z, ]+): `)

// Routes returns the routes of a package comment, each the neighbouring lines of one list.
func Routes(comment string) (routes [][]RouteStop) {
	inside := false
	for line := range strings.Lines(comment) {
		found := routeLine.FindStringSubmatch(line)
		if found == nil {
			inside = false
			continue
		}
		if !inside {
			routes, inside = append(routes, nil), true
		}
		last := &routes[len(routes)-1]
		*last = append(*last, RouteStop{found[1], strings.Split(found[2], ", ")})
	}
	return routes
}

// RouteProblems returns what is wrong with a route in the repository at root: too many files, or one without a function that it is
// said to have.
func RouteProblems(root string, route []RouteStop) (bad []string) {
	if len(route) > maxRoute {
		bad = append(bad, fmt.Sprintf("the route from %s has %d files, more than %d", route[0].File, len(route), maxRoute))
	}
	for _, stop := range route {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, filepath.FromSlash(stop.File)), nil, parser.SkipObjectResolution)
		if err != nil {
			bad = append(bad, err.Error())
			continue
		}
		declared := map[string]bool{}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				declared[fn.Name.Name] = true
			}
		}
		for _, name := range stop.Functions {
			if !declared[name] {
				bad = append(bad, stop.File+" does not declare "+name)
			}
		}
	}
	return bad
}
