package config

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcpvisor/mcpvisor/messages"
)

// A place in a long line costs a bounded number of bytes, and is the one that counting gives.
func TestPlacesInALongLineAreCheap(t *testing.T) {
	src := newText([]byte(`["` + strings.Repeat(`a","ä€😀","`, 40_000) + "\n" + strings.Repeat("ü", 3000) + `"]`))
	calls := 0
	for i := 0; i < len(src.data); i += 7 {
		if !utf8.RuneStart(src.data[i]) {
			continue
		}
		calls++
		got := src.posAt(i)
		if back := src.offsetOf(got); back != i {
			t.Fatalf("the byte %d stands at %v, which is the byte %d", i, got, back)
		}
		if i%101 == 0 {
			if want := utf8.RuneCount(src.data[src.starts[got.Line-1]:i]) + 1; got.Col != want {
				t.Fatalf("the byte %d stands at %v, not in column %d", i, got, want)
			}
		}
	}
	if most := calls * 5 * stride; src.scanned > most {
		t.Errorf("%d places cost %d bytes", calls, src.scanned)
	}
	if end := src.posAt(len(src.data)); end.Line != 2 || end.Col != 3003 {
		t.Errorf("the end stands at %v", end)
	}
}

// What a file may hold is bounded, and the bound is said.
func TestFilesAreBounded(t *testing.T) {
	parse := func(text string) Parsed {
		return Parse(File{Path: "f", Scope: messages.ScopeProject, Data: []byte(`{"mcpServers": {` + text + `}}`)})
	}
	args := func(n int) Parsed { return parse(`"s": {"command": "x", "args": [` + strings.Repeat(`"a",`, n) + `]}`) }
	if s := args(MaxList).Servers["s"].Spec; s.Invalid != "" || len(s.Args) != MaxList {
		t.Error(s.Invalid)
	}
	if s := args(MaxList + 1).Servers["s"].Spec; !strings.Contains(s.Invalid, "the list has 4097 values, and 4096 are read at most") {
		t.Error(s.Invalid)
	}
	var b strings.Builder
	for i := range MaxServers + 50 {
		b.WriteString(`"s` + strings.Repeat("x", i%9) + string(rune('a'+i%26)) + strings.Repeat("y", i/26) + `": {"command": "x"},`)
	}
	if p := parse(b.String()); len(p.Servers) != MaxServers || len(p.Problems) != 1 || p.Problems[0].Warning ||
		!strings.Contains(p.Problems[0].Text, "more than 1000 servers") {
		t.Errorf("%d servers, %v", len(p.Servers), p.Problems)
	}
	if p := parse(strings.Repeat(`"s": {"command": "x"},`, 5000)); len(p.Problems) > maxProblems || p.Servers["s"].Spec.Invalid == "" {
		t.Errorf("%d problems", len(p.Problems))
	}
	if p := parse(`"s": {"command": "x", "args": [` + strings.Repeat("1,", 1000) + `]}`); len(p.Problems) != maxProblems ||
		!strings.Contains(p.Problems[maxProblems-1].Text, "901 more problems") || p.Servers["s"].Spec.Invalid != "" {
		t.Errorf("%d problems", len(p.Problems))
	}
}
