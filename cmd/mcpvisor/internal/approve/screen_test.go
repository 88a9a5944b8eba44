package approve

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// TestEntryText checks that an entry which import writes is read as the same spec.
func TestEntryText(t *testing.T) {
	for _, spec := range []messages.Spec{
		{Type: messages.Stdio, Command: "x", Args: []string{"<a>", "${A}"}, Env: map[string]string{"K": "v\nw"}},
		{Type: messages.HTTP, URL: "https://h.example/mcp?a=b&c", FallbackSSE: true, AllowedTools: []string{}},
		{Type: messages.HTTP, URL: "https://h.example/mcp", CallTimeout: 5e9, ConnectTimeout: 15e8, Disabled: true},
		{Type: messages.SSE, URL: "https://h.example/sse", Auth: &messages.Auth{Type: messages.AuthOAuth, Scopes: []string{"a"}}},
		{Type: messages.WebSocket, URL: "wss://h.example", Headers: map[string]string{"A": "b"}, DeniedTools: []string{"x_*"}},
	} {
		text := append(append([]byte(`{"mcpServers": {"a": `), EntryText(spec)...), "}}"...)
		got := config.Parse(config.File{Path: "f", Scope: messages.ScopeUser, Data: text})
		if e := got.Servers["a"]; len(got.Problems) > 0 || !e.Spec.Equal(spec) {
			t.Errorf("%s became %+v, %v", text, e.Spec, got.Problems)
		}
	}
}
