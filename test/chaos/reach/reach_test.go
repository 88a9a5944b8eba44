package reach_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/reach"
)

// Each word of the language is said in some of a few thousand days, apart from those that no random day needs.
func TestDaysSayEverything(t *testing.T) {
	const seeds = 4000
	for _, w := range reach.Count(1, seeds) {
		if w.Days == 0 && !slices.Contains(unusedWords, w.Part+" "+w.Word) {
			t.Errorf("no day of %d says %s of %s: let package generate draw it", seeds, w.Word, w.Part)
		}
	}
}

// unusedWords are the words that no random day needs. A line that is longer than a huge one is no more work, and a shorter one is none.
var unusedWords = []string{"faults huge-line, size"}

func TestRead(t *testing.T) {
	p, err := reach.Read(strings.NewReader(`mode: set
github.com/mcpvisor/mcpvisor/a/b/c.go:1.2,3.4 2 0
github.com/mcpvisor/mcpvisor/a/b/c.go:5.2,6.4 3 1
github.com/mcpvisor/mcpvisor/a/b/c.go:7.2,7.9 1 0
github.com/mcpvisor/mcpvisor/a/b/c.go:8.2,9.9 1 0
github.com/mcpvisor/mcpvisor/a/b/c.go:1.2,3.4 2 1
github.com/mcpvisor/mcpvisor/a/d.go:1.1,2.2 4 0
github.com/mcpvisor/mcpvisor/a/a.go:1.1,2.2 1 1
`))
	if err != nil {
		t.Fatal(err)
	}
	got := p.Packages(nil)
	if want := []reach.Share{{Name: "a", Run: 1, Statements: 5}, {Name: "a/b", Run: 5, Statements: 7}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if lines, n := p.MissedLines("a/b/c.go"); lines != "7-9" || n != 2 {
		t.Errorf("missed %q, %d statements", lines, n)
	}
	if total := reach.Total(got); total.Run != 6 || total.Statements != 12 {
		t.Errorf("in all %+v", total)
	}
	if _, err := reach.Read(strings.NewReader("nothing\n")); err == nil {
		t.Error("what is no profile was read")
	}
}
