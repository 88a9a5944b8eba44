package messages_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/seeds"
)

// declared reads from the source the values of all constants of one type, so that a list of "every" value cannot forget
// one that was added later.
func declared(t *testing.T, file, typ string) (values []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if id, ok := v.Type.(*ast.Ident); ok && id.Name == typ {
				text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				values = append(values, text)
			}
		}
	}
	if len(values) == 0 {
		t.Fatalf("%s declares no %s", file, typ)
	}
	return values
}

func texts[T ~string](list []T) (out []string) {
	for _, v := range list {
		out = append(out, string(v))
	}
	return out
}

func TestListsAreComplete(t *testing.T) {
	for _, c := range []struct {
		file, typ string
		list      []string
	}{
		{"phase.go", "Phase", texts(messages.Phases)},
		{"phase.go", "Class", texts(messages.Classes)},
		{"transport_kind.go", "TransportKind", texts(messages.TransportKinds)},
	} {
		if want := declared(t, c.file, c.typ); !slices.Equal(c.list, want) {
			t.Errorf("%s: the list has %q, the source %q", c.typ, c.list, want)
		}
	}
}

// The five words are those of Claude Code's status union; other programs compare them.
func TestPhasesOnTheWire(t *testing.T) {
	seeds.Shows(t, "000.3.status-connected", "000.3.status-failed", "000.3.status-needs-auth",
		"000.3.status-pending", "000.3.status-disabled")
	want := []string{"pending", "connected", "failed", "needs-auth", "disabled"}
	if got := texts(messages.Phases); !slices.Equal(got, want) {
		t.Errorf("phases are %q, want %q", got, want)
	}
}
