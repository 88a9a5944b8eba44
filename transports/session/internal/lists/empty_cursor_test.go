package lists

import (
	"testing"
	"time"
)

// An empty cursor is a cursor, and is followed. Only one that leads to the first page again, byte for byte and with the same empty cursor, is
// that of a server which means the end; every other list goes on, or repeats a cursor, which is said.
func TestWhereAnEmptyCursorIsTheEnd(t *testing.T) {
	page := func(tool, cursor string) string {
		if cursor != "" {
			cursor = `,"nextCursor":` + cursor
		}
		return `{"tools":[{"name":"` + tool + `"}]` + cursor + `}`
	}
	const repeats = "has pages that repeat: a cursor came twice"
	for what, c := range map[string]struct {
		pages   []string
		next    []string // the cursor after each page
		problem string   // of the last page
		tools   int
	}{
		"no cursor":                         {[]string{page("a", "")}, []string{""}, "", 1},
		"null":                              {[]string{page("a", "null")}, []string{""}, "", 1},
		"the end, said by an empty one":     {[]string{page("a", `""`), page("a", `""`)}, []string{`""`, ""}, "", 1},
		"a second page behind an empty one": {[]string{page("a", `""`), page("b", "")}, []string{`""`, ""}, "", 2},
		"two empty ones, other pages":       {[]string{page("a", `""`), page("b", `""`)}, []string{`""`, ""}, repeats, 1},
		"the first page with another cursor": {[]string{page("a", `""`), page("a", `"x"`), page("b", "")},
			[]string{`""`, `"x"`, ""}, "", 3},
		"the same page behind a cursor": {[]string{page("a", `"x"`), page("a", `""`), page("b", "")}, []string{`"x"`, `""`, ""}, "", 3},
		"the same page behind two":      {[]string{page("a", `"x"`), page("b", `""`), page("a", `""`)}, []string{`"x"`, `""`, ""}, repeats, 2},
		"a cursor that comes twice":     {[]string{page("a", `"x"`), page("b", `"x"`)}, []string{`"x"`, ""}, repeats, 1},
		"a cursor that is none":         {[]string{page("a", `5`)}, []string{""}, "has a cursor that is not a string", 0},
	} {
		l := NewCollector(&Tools, Limits{MaxEntries: 10})
		for i, p := range c.pages {
			next, problem := l.addPage([]byte(p), time.Time{})
			want := ""
			if i == len(c.pages)-1 {
				want = c.problem
			}
			if string(next) != c.next[i] || problem != want {
				t.Errorf("%s: after page %d comes %s, %q", what, i, next, problem)
			}
		}
		if got := len(l.Entries) + len(l.Quarantined); got != c.tools {
			t.Errorf("%s: %d tools, not %d", what, got, c.tools)
		}
	}
}
