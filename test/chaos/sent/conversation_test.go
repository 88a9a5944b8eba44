package sent

import (
	"strings"
	"testing"
)

// An answer may have 17 MiB: its members are parts of it (seed 970312 took 10 s to copy them).
func TestAnswersAreReadWithoutACopy(t *testing.T) {
	body := []byte(`{"jsonrpc":"2.0","id":7,"result":{"content":[{"text":"` + strings.Repeat("x", 1<<10) + `"}],"task":{}}}`)
	result := membersOf(body)["result"]
	if len(result) == 0 || &result[0] != &body[33] || string(membersOf(result)["task"]) != "{}" {
		t.Errorf("%q", result)
	}
	for _, bad := range []string{"", "[]", "7", `{"a":1`, `{"a":}`, `{"a":1]`} {
		if m := membersOf([]byte(bad)); m != nil {
			t.Errorf("%s has the members %v", bad, m)
		}
	}
}

// listsInSession is a request in the session 42.
const listsInSession = "> INIT\nsession 42\n< INIT\n" + `
			> Mcp-Protocol-Version=2025-11-25 Mcp-Session-Id=42 {"jsonrpc":"2.0","method":"notifications/initialized"}
			> Mcp-Protocol-Version=2025-11-25 Mcp-Session-Id=42 {"jsonrpc":"2.0","id":2,"method":"tools/list"}
`
