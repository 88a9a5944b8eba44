//go:build unix

package daemon

import (
	"fmt"
	"strings"
	"testing"
)

// TestThePathGrowsAtItsEnd checks that what was found stays found, and that nothing of a project or of a relative place is added.
func TestThePathGrowsAtItsEnd(t *testing.T) {
	for _, c := range []struct{ have, more, project, want string }{
		{"/bin", "/nvm/bin:/bin", "/p", "/bin:/nvm/bin"},
		{"/bin", "", "/p", "/bin"},
		{"", "/bin", "", "/bin"},
		{"/bin", "/p/node_modules/.bin:/p:/pp", "/p", "/bin:/pp"},
		{"/bin", ".:bin:../x:/a/../bin:/new/", "/p", "/bin:/new"},
		{"/bin:.", "/x", "/p", "/bin:.:/x"},
	} {
		if got := mergePath(c.have, c.more, c.project); got != c.want {
			t.Errorf("%q and %q in %q: %q", c.have, c.more, c.project, got)
		}
	}
	path := ""
	for i := range 10 * maxPath {
		path = mergePath(path, fmt.Sprintf("/%d", i), "/p")
	}
	if n := strings.Count(path, ":") + 1; n != maxPath {
		t.Errorf("%d directories", n)
	}
}
