package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// impureImports are imports that a pure package has no use for, with the reason.
var impureImports = []struct{ path, why string }{
	{"os", "files, environment and processes are passed in"},
	{"io/ioutil", "files are passed in"},
	{"net", "addresses are text here; the network is a transport's"},
	{"syscall", "the system is somebody else's"},
	{"golang.org/x/sys", "the system is somebody else's"},
	{"crypto/rand", "randomness is passed in"},
	{"log", "a decision is returned, not logged"},
	{"go.uber.org/zap", "a decision is returned, not logged"},
	{protoactor, "actors are thin shells around this"},
	{"github.com/mark3labs/mcp-go", "what a server said arrives as values"},
	{"github.com/modelcontextprotocol/go-sdk", "what a server said arrives as values"},
	{"testing", "a pure package has nothing to test with"},
}

// harmless stand below an impure path and only compute.
var harmless = []string{"net/url", "net/netip", "net/textproto"}

// impureImport returns why a pure package may not import a path, empty if it may.
func impureImport(path string) string {
	if slices.Contains(harmless, path) {
		return ""
	}
	for _, i := range impureImports {
		if isWithin(i.path, path) {
			return i.why
		}
	}
	return ""
}

// impureCalls are functions of allowed packages that depend on more than their arguments. A star forbids all functions except
// those in built.
var impureCalls = map[string]struct {
	names []string
	why   string
}{
	"time": {
		[]string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
		"time is an argument, so that a test decides what time it is",
	},
	"math/rand":    {[]string{"*"}, "randomness is an argument, so that a test decides what falls"},
	"math/rand/v2": {[]string{"*"}, "randomness is an argument, so that a test decides what falls"},
	"path/filepath": {
		[]string{"Abs", "EvalSymlinks", "Glob", "Walk", "WalkDir"},
		"these ask the file system, which is passed in",
	},
}

// pureFunctions make a generator from a seed that is an argument, or name a type.
var pureFunctions = []string{
	"New", "NewSource", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "Source", "Source64", "PCG", "ChaCha8", "Zipf",
}

// Purity returns what a file of a pure package does that it must not: it reads the clock, draws from the global source,
// asks the file system, or starts a goroutine.
func Purity(fset *token.FileSet, f *ast.File) []string {
	var bad []string
	named := map[string]string{} // name in this file → import path
	for _, i := range f.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err != nil { // the parser accepted it
			panic(err)
		}
		// The last word of the path is the name, except for math/rand/v2, the one path with a version that is watched.
		name := path[strings.LastIndex(path, "/")+1:]
		if name == "v2" {
			name = "rand"
		}
		if i.Name != nil {
			name = i.Name.Name
		}
		if _, watched := impureCalls[path]; watched && name == "." {
			bad = append(bad, fmt.Sprintf("%s: imports %s with a dot: its use cannot be checked", fset.Position(i.Pos()), path))
		}
		named[name] = path
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			bad = append(bad, fmt.Sprintf("%s: starts a goroutine: a pure package returns before anything else happens",
				fset.Position(n.Pos())))
		case *ast.SelectorExpr:
			id, ok := n.X.(*ast.Ident)
			// An identifier that the parser resolved is a variable of this file that has the name of a package.
			if !ok || id.Obj != nil {
				return true
			}
			// Methods of a value are not looked at: a clock or a generator that was passed in is an argument.
			c, ok := impureCalls[named[id.Name]]
			if !ok {
				return true
			}
			name := n.Sel.Name
			if slices.Contains(c.names, name) || c.names[0] == "*" && !slices.Contains(pureFunctions, name) {
				bad = append(bad, fmt.Sprintf("%s: uses %s.%s: %s", fset.Position(n.Pos()), id.Name, name, c.why))
			}
		}
		return true
	})
	return bad
}
