package messages_test

import (
	"slices"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

func TestTransportKindsHaveTheirRows(t *testing.T) {
	for _, c := range []struct {
		kind           messages.TransportKind
		remote, paired bool
		firstScheme    string
	}{
		{messages.Stdio, false, false, ""}, {messages.SDK, false, false, ""}, {messages.HTTP, true, true, "http"},
		{messages.SSE, true, false, "http"}, {messages.WebSocket, true, false, "ws"}, {messages.ClaudeAIProxy, true, true, "http"},
	} {
		schemes := c.kind.URLSchemes()
		if c.kind.Remote() != c.remote || c.kind.PairsAnswers() != c.paired || c.remote && schemes[0] != c.firstScheme {
			t.Errorf("%s: remote %v, paired %v, %v", c.kind, c.kind.Remote(), c.kind.PairsAnswers(), schemes)
		}
		if !slices.Contains(messages.TransportKinds, c.kind) {
			t.Errorf("%s is not listed", c.kind)
		}
		// The error about a wrong URL names the first two.
		if c.remote && len(schemes) < 2 {
			t.Errorf("%s has the schemes %v", c.kind, schemes)
		}
	}
	for word, want := range map[string]messages.TransportKind{"stdio": messages.Stdio, "streamable-http": messages.HTTP, "ws": messages.WebSocket, "HTTP": ""} {
		if got, known := messages.TransportKindOf(word); got != want || known != (want != "") {
			t.Errorf("%s: %s, %v", word, got, known)
		}
	}
	for url, want := range map[string]messages.TransportKind{"WSS://a/b": messages.WebSocket, "ws://a": messages.WebSocket, "https://ws://": "", "wsx://a": "", "": ""} {
		if got := messages.TransportKindOfURL(url); got != want {
			t.Errorf("%s: %s", url, got)
		}
	}
	if words := messages.WebSocket.Words(); !slices.Equal(words, []string{"websocket", "ws"}) {
		t.Error(words)
	}
	if own := messages.TransportKind("carrier"); own.Remote() || own.PairsAnswers() {
		t.Error("a program's own kind is taken for one of ours")
	}
}
