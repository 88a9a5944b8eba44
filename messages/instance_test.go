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
		same := server == server2 && principal == principal2
		if other := messages.InstanceName(server2, principal2); (name == other) != same {
			t.Errorf("%q, %q and %q, %q give %q and %q", server, principal, server2, principal2, name, other)
		}
	})
}
