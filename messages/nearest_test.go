package messages_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

func TestNearest(t *testing.T) {
	names := []string{"github", "filesystem", "my_server", "a"}
	for word, want := range map[string]string{
		"github": "github", "gihtub": "github", "git-hub": "github", "GITHUB": "github", "filesytem": "filesystem",
		"file": "filesystem", "my-server": "my_server", "b": "", "": "", "githu": "github", "gitub-x": "github", "fles": "",
		"githubus": "github", "xyz": "", "postgres": "",
	} {
		if got := messages.Nearest(word, names); got != want {
			t.Errorf("%q: %q, not %q", word, got, want)
		}
	}
}

// Names of strangers cost a bounded amount of work: before, one name of a megabyte was compared letter by letter, and each of thousands
// of names to its end.
func TestNearest_hostileCandidates(t *testing.T) {
	word := strings.Repeat("ab", 40)
	huge := make([]string, 0, 5_001)
	for range 5_000 {
		huge = append(huge, strings.Repeat("ba", 1<<17))
	}
	if got := messages.Nearest(word, append(huge, word[:70])); got != word[:70] {
		t.Errorf("behind names that are too long: %q", messages.Line(got, 100))
	}
	// Every name is as long as the word, and every one differs from it only near its end.
	alike := make([]string, 0, 5_000)
	for i := range cap(alike) {
		alike = append(alike, fmt.Sprintf("%s%024d", word[:56], i))
	}
	allocated := testing.AllocsPerRun(1, func() {
		if got := messages.Nearest(word[:56]+"xxxxxxxxxxxxxxxxxxxxxxxx", alike); got != alike[0] {
			t.Errorf("of names that look alike: %q", got)
		}
	})
	if allocated > 2*5_000+100 {
		t.Errorf("%v allocations for 5,000 names", allocated)
	}
	// Real names are all compared, in a large catalog too.
	real := make([]string, 0, 5_000)
	for i := range cap(real) {
		real = append(real, fmt.Sprintf("files%04d__read_the_file", i))
	}
	if got := messages.Nearest("files4999__raed_the_file", real); got != real[4999] {
		t.Errorf("in a large catalog: %q", got)
	}
}
