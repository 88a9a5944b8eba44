package messages_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

func ExampleInstanceName() {
	fmt.Println(messages.InstanceName("github", "anna"))
	fmt.Println(messages.InstanceName("github", "anna@example.com"))
	fmt.Println(messages.InstanceName("github", "two words"))
	// Output:
	// github@anna
	// github@anna@example.com
	// github@two_words~42acb542a1eb46d57c162a7f6e0ba872
}

// plainInstance is what may follow a server's name: nothing that acts on a terminal, ends a line, or leads to another folder.
var plainInstance = regexp.MustCompile(`^@[A-Za-z0-9_.+@-]{0,64}(~[0-9a-f]{32})?$`)

// FuzzInstanceName: the name of an instance is bounded and printable whatever the principal is, and two pairs never share one.
func FuzzInstanceName(f *testing.F) {
	f.Add("github", "anna", "github", "ben")
	f.Add("a@b", "c", "a", "b@c")
	f.Add("s", strings.Repeat("x", 1<<16), "s", strings.Repeat("x", 1<<16+1))
	f.Add("s", "\x1b[31m\u202e../\n", "s", "_[31m_../_")
	f.Add("s", "é", "s", "e\u0301")
	f.Add("s", "a~"+strings.Repeat("0", 32), "s", "a")
	f.Fuzz(func(t *testing.T, server, principal, server2, principal2 string) {
		name := messages.InstanceName(server, principal)
		rest, ok := strings.CutPrefix(name, server)
		if !ok || !plainInstance.MatchString(rest) || len(rest) > 1+64+1+32 {
			t.Errorf("%q and %q give %q", server, principal, name)
		}
		if !messages.IsInstanceName(server, strings.TrimPrefix(rest, "@")) {
			t.Errorf("%q is no name of an instance of %q", name, server)
		}
		same := server == server2 && principal == principal2
		if other := messages.InstanceName(server2, principal2); (name == other) != same {
			t.Errorf("%q, %q and %q, %q give %q and %q", server, principal, server2, principal2, name, other)
		}
	})
}

// TestOtherNamesAreNoInstances: what follows the @ is a principal that can stand there, or what stands in the place of one that cannot.
func TestOtherNamesAreNoInstances(t *testing.T) {
	sum := strings.Repeat("0a", 16)
	for rest, want := range map[string]bool{
		"anna": true, "anna@example.com": true, "two_words~" + sum: true, "~" + sum: true, "": false, "two words": false, "a/b": false,
		"two words~" + sum: false, "a~" + sum[2:]: false, "a~" + strings.ToUpper(sum): false, "~": false, strings.Repeat("x", 65): false,
		strings.Repeat("x", 25) + "~" + sum: false, "a~b~" + sum: false, "a\n": false,
	} {
		if got := messages.IsInstanceName("github", rest); got != want {
			t.Errorf("%q: %v", rest, got)
		}
	}
}
