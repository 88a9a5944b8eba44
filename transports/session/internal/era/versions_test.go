package era

import "testing"

// Of the versions that both sides know, FirstCommon takes the one that comes first in our order, not in the server's.
func TestOurOrderOfVersionsCounts(t *testing.T) {
	for _, c := range []struct {
		ours, theirs []string
		want         string
	}{
		{[]string{"c", "b", "a"}, []string{"a", "b"}, "b"}, {[]string{"c", "b", "a"}, []string{"b", "a", "c"}, "c"},
		{[]string{"c"}, []string{"a"}, ""}, {nil, []string{"a"}, ""}, {[]string{"a"}, nil, ""},
	} {
		if got := FirstCommon(c.ours, c.theirs); got != c.want {
			t.Errorf("of %q and %q: %q, want %q", c.ours, c.theirs, got, c.want)
		}
	}
}
