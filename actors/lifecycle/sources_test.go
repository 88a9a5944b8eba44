package lifecycle

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

// implementers lists, from the source, the types that have the method: a type that is added cannot be forgotten here.
func implementers(t *testing.T, file, method string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil && fn.Name.Name == method {
			names = append(names, fn.Recv.List[0].Type.(*ast.Ident).Name)
		}
	}
	slices.Sort(names)
	return names
}

func TestNotationKnowsEveryKind(t *testing.T) {
	names := func(list []string) []string { slices.Sort(list); return list }
	var events, effects []string
	for _, e := range kinds {
		events = append(events, kindOf(e))
	}
	for _, e := range effectKinds {
		effects = append(effects, kindOf(e))
	}
	if got, want := names(events), implementers(t, "event.go", "isEvent"); !slices.Equal(got, want) {
		t.Errorf("events of the tests %v\nevents of the sources %v", got, want)
	}
	if got, want := names(effects), implementers(t, "effect.go", "isEffect"); !slices.Equal(got, want) {
		t.Errorf("effects of the tests %v\neffects of the sources %v", got, want)
	}
}

func TestNotationReadsWhatItWrites(t *testing.T) {
	for _, line := range []string{
		"Init enabled lazy cached blocked=config ticket=3", "Disable cold", "Respec", "Granted epoch=7",
		"Scheduled epoch=7 retry=parked at=5m0s", "Failed epoch=7 cause=network",
	} {
		if got := write(mustRead(t, line)); got != line {
			t.Errorf("read %q, wrote %q", line, got)
		}
	}
	for _, line := range []string{"", "Explode", "Granted rank=1", "Granted epoch=x", "Scheduled at=soon"} {
		if e, err := read(line); err == nil {
			t.Errorf("%q was read as %v", line, e)
		}
	}
}
