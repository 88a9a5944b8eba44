package messages_test

import (
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
