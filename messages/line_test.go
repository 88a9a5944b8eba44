package messages

import "testing"

// FuzzLineLeavesPlainTextAlone: the short way gives what the long way gives.
func FuzzLineLeavesPlainTextAlone(f *testing.F) {
	for _, s := range []string{"", " ", "a", "a b", " a", "a ", "a  b", "a\tb", "é", "\x7f", "long enough to be cut"} {
		f.Add(s, 10)
		f.Add(s, 0)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		if limit < 0 || !isPlainLine(s, limit) {
			return
		}
		if got := Line("  "+s, limit); got != s { // what begins with white space is not plain
			t.Errorf("%q is plain, and becomes %q", s, got)
		}
	})
}
