package seeds

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

var (
	wellFormedID   = regexp.MustCompile(`^[0-9]{3}\.[a-z0-9]+\.[a-z0-9]+(-[a-z0-9]+)*$`)
	wellFormedLine = regexp.MustCompile(`^[0-9]+(-[0-9]+)?$`)
)

// Check returns what is wrong with the list, with what the tests say, and between the two.
func Check(list []Feature, s *Sources) []string {
	bad := slices.Clone(s.Problems)
	report := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	known := map[string]bool{}
	stale := false
	for _, f := range list {
		if known[f.ID] {
			report("%s stands in the list twice", f.ID)
		}
		known[f.ID] = true
		if !wellFormedID.MatchString(f.ID) || !wellFormedLine.MatchString(f.Line) || f.Text == "" {
			report("%q needs an id like 000.4.connect, a line like 26 or 26-28, and a text", f.ID)
		}
		if f.Waits != "" && !slices.Contains(Waits, f.Waits) {
			report("%s waits for %q, which is none of: %s", f.ID, f.Waits, strings.Join(Waits, ", "))
		}
		shown := Tests(s, f.ID)
		switch {
		case f.Waits != "" && len(shown)+len(f.Test) > 0:
			report("%s waits for %q, and %s shows it: remove one of them", f.ID, f.Waits, strings.Join(append(shown, f.Test...), ", "))
		case f.Waits == "" && len(shown) == 0:
			report("%s is shown by no test (%s)", f.ID, f.Text)
		case f.Waits == "" && !slices.Equal(shown, f.Test):
			stale = true
		}
		for _, t := range f.Test {
			if !s.Tests[t] {
				report("%s names %s, and there is no such test", f.ID, t)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.Shown)) {
		if !known[id] {
			report("%s shows %q, which is not in the list", strings.Join(s.Shown[id], ", "), id)
		}
	}
	if stale {
		report("the list does not name the tests that say they show its features: run 'go run ./test/seeds/report -bind'")
	}
	return bad
}

// Tests are the tests that show a feature, sorted.
func Tests(s *Sources, id string) []string {
	tests := slices.Sorted(slices.Values(s.Shown[id]))
	return slices.Compact(tests)
}

// Bind returns the text of a file of the list with the names of the tests in it. It keeps everything else as it is.
func Bind(file string, s *Sources) string {
	var out []string
	id := ""
	flush := func() {
		if tests := Tests(s, id); len(tests) > 0 {
			// Blank lines and comments before the next feature belong to that one.
			end := len(out)
			for end > 0 && (out[end-1] == "" || strings.HasPrefix(out[end-1], "#")) {
				end--
			}
			lines := []string{"  test:"}
			for _, t := range tests {
				lines = append(lines, "    - "+t)
			}
			out = slices.Insert(out, end, lines...)
		}
		id = ""
	}
	inTests := false
	for line := range strings.Lines(file) {
		line = strings.TrimRight(line, "\r\n")
		if inTests && strings.HasPrefix(line, "    - ") {
			continue
		}
		inTests = line == "  test:"
		if inTests {
			continue
		}
		if next, ok := strings.CutPrefix(line, "- id: "); ok {
			flush()
			id = next
		}
		out = append(out, line)
	}
	flush()
	return strings.Join(out, "\n") + "\n"
}
