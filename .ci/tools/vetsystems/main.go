// Vetsystems does what go vet does, for systems that are not this one:
//
//	vetsystems darwin windows
//
// It reads the packages of the module in the working directory, with their tests, as they are built for each system named,
// and runs the checks of go vet on them. go vet itself compiles every dependency for each system, because it wants the files
// that the compiler writes; this program reads the declarations of a dependency from its source and skips its function
// bodies, which takes a tenth of the processor time. So it misses only what a check would learn from those bodies: which
// functions of other modules format as Printf does.
//
// It prints a line for each finding and exits with 1 if there is any, or if a package does not compile.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/passes/appends"
	"golang.org/x/tools/go/analysis/passes/asmdecl"
	"golang.org/x/tools/go/analysis/passes/assign"
	"golang.org/x/tools/go/analysis/passes/atomic"
	"golang.org/x/tools/go/analysis/passes/bools"
	"golang.org/x/tools/go/analysis/passes/buildtag"
	"golang.org/x/tools/go/analysis/passes/composite"
	"golang.org/x/tools/go/analysis/passes/copylock"
	"golang.org/x/tools/go/analysis/passes/defers"
	"golang.org/x/tools/go/analysis/passes/directive"
	"golang.org/x/tools/go/analysis/passes/errorsas"
	"golang.org/x/tools/go/analysis/passes/hostport"
	"golang.org/x/tools/go/analysis/passes/httpresponse"
	"golang.org/x/tools/go/analysis/passes/ifaceassert"
	"golang.org/x/tools/go/analysis/passes/loopclosure"
	"golang.org/x/tools/go/analysis/passes/lostcancel"
	"golang.org/x/tools/go/analysis/passes/nilfunc"
	"golang.org/x/tools/go/analysis/passes/printf"
	"golang.org/x/tools/go/analysis/passes/shift"
	"golang.org/x/tools/go/analysis/passes/sigchanyzer"
	"golang.org/x/tools/go/analysis/passes/slog"
	"golang.org/x/tools/go/analysis/passes/stdmethods"
	"golang.org/x/tools/go/analysis/passes/stdversion"
	"golang.org/x/tools/go/analysis/passes/stringintconv"
	"golang.org/x/tools/go/analysis/passes/structtag"
	"golang.org/x/tools/go/analysis/passes/testinggoroutine"
	"golang.org/x/tools/go/analysis/passes/tests"
	"golang.org/x/tools/go/analysis/passes/timeformat"
	"golang.org/x/tools/go/analysis/passes/unmarshal"
	"golang.org/x/tools/go/analysis/passes/unreachable"
	"golang.org/x/tools/go/analysis/passes/unsafeptr"
	"golang.org/x/tools/go/analysis/passes/unusedresult"
	"golang.org/x/tools/go/analysis/passes/waitgroup"
	"golang.org/x/tools/go/packages"
)

// analyzers are those of go vet in the Go version of this module, but for cgocall and framepointer: nothing here uses cgo or
// assembly.
var analyzers = []*analysis.Analyzer{
	appends.Analyzer, asmdecl.Analyzer, assign.Analyzer, atomic.Analyzer, bools.Analyzer, buildtag.Analyzer, composite.Analyzer,
	copylock.Analyzer, defers.Analyzer, directive.Analyzer, errorsas.Analyzer, hostport.Analyzer, httpresponse.Analyzer,
	ifaceassert.Analyzer, loopclosure.Analyzer, lostcancel.Analyzer, nilfunc.Analyzer, printf.Analyzer, shift.Analyzer,
	sigchanyzer.Analyzer, slog.Analyzer, stdmethods.Analyzer, stdversion.Analyzer, stringintconv.Analyzer, structtag.Analyzer,
	testinggoroutine.Analyzer, tests.Analyzer, timeformat.Analyzer, unmarshal.Analyzer, unreachable.Analyzer,
	unsafeptr.Analyzer, unusedresult.Analyzer, waitgroup.Analyzer,
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: vetsystems GOOS…")
		os.Exit(2)
	}
	found := false
	for _, system := range os.Args[1:] {
		bad, err := vetSystem(system)
		if err != nil {
			fmt.Fprintf(os.Stderr, "vetsystems: %s: %v\n", system, err)
			os.Exit(1)
		}
		for _, b := range bad {
			fmt.Printf("%s: %s\n", system, b)
		}
		found = found || len(bad) > 0
	}
	if found {
		os.Exit(1)
	}
}

// vetSystem returns what is wrong with the module's packages as they are built for a system, sorted and without doubles: a
// package and its test variant share files.
func vetSystem(system string) ([]string, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	config := &packages.Config{
		Mode:  packages.LoadAllSyntax | packages.NeedModule,
		Tests: true,
		Fset:  token.NewFileSet(),
		Env:   append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"),
		ParseFile: func(fset *token.FileSet, name string, source []byte) (*ast.File, error) {
			f, err := parser.ParseFile(fset, name, source, parser.ParseComments|parser.SkipObjectResolution)
			if f != nil && !strings.HasPrefix(name, root+string(os.PathSeparator)) {
				for _, d := range f.Decls {
					if fn, ok := d.(*ast.FuncDecl); ok {
						fn.Body = nil
					}
				}
			}
			return f, err
		},
	}
	all, err := packages.Load(config, "./...")
	if err != nil {
		return nil, err
	}
	// The main package that the go command writes for each test holds nothing of ours.
	all = slices.DeleteFunc(all, func(p *packages.Package) bool { return strings.HasSuffix(p.ID, ".test") })
	if len(all) == 0 {
		return nil, fmt.Errorf("no package in %s", root)
	}
	var bad []string
	for _, p := range all {
		for _, e := range p.Errors {
			bad = append(bad, e.Error())
		}
	}
	if len(bad) > 0 { // the checks want packages that compile
		return compact(bad), nil
	}
	// A dependency without its bodies has imports that nothing uses, for which the loader calls it, and what imports it, ill
	// typed. Its declarations are whole, and our packages had no error of their own.
	packages.Visit(all, nil, func(p *packages.Package) { p.IllTyped = false })
	graph, err := checker.Analyze(analyzers, all, nil)
	if err != nil {
		return nil, err
	}
	for action := range graph.All() {
		if !action.IsRoot {
			continue
		}
		if action.Err != nil {
			return nil, fmt.Errorf("%s: %w", action, action.Err)
		}
		for _, d := range action.Diagnostics {
			bad = append(bad, fmt.Sprintf("%s: %s", config.Fset.Position(d.Pos), d.Message))
		}
	}
	return compact(bad), nil
}

func compact(lines []string) []string {
	slices.Sort(lines)
	return slices.Compact(lines)
}
