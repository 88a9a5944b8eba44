package guardian

import "testing"

// TestEveryRunHidesItselfUnlessItHoldsNothing checks mustHide: only the plain name of a public command is exempt.
func TestEveryRunHidesItselfUnlessItHoldsNothing(t *testing.T) {
	for _, c := range []struct {
		args     []string
		dumpable string
		want     bool
	}{
		{nil, "", false}, {[]string{"version"}, "", false}, {[]string{"--help"}, "", false}, {[]string{"help", "up"}, "", false},
		{[]string{"up"}, "", true}, {[]string{"call", "version"}, "", true}, {[]string{"--dir", "version", "up"}, "", true},
		{[]string{Command}, "", true}, {[]string{"nonsense"}, "", true}, {[]string{"__complete", "up"}, "", true},
		{[]string{"up"}, "1", false}, {[]string{"up"}, "true", false}, {[]string{"up"}, "0", true}, {[]string{"up"}, "x", true},
	} {
		if got := mustHide(c.args, c.dumpable); got != c.want {
			t.Errorf("%q with %q: %v", c.args, c.dumpable, got)
		}
	}
}
