package kinds_test

import (
	"context"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/kinds"
)

// TestEveryKindHasARow: a kind that messages knows makes a transport, and any other makes none.
func TestEveryKindHasARow(t *testing.T) {
	o := kinds.Options{Server: "a", InProcess: map[string]func(context.Context, inprocess.Peer) error{"a": func(context.Context, inprocess.Peer) error { return nil }}}
	for _, kind := range messages.TransportKinds {
		s := messages.Spec{Type: kind, Command: "server", URL: "https://mcp.example.com/mcp"}
		if kinds.New(&s, o) == nil {
			t.Errorf("%s has no row in transports/kinds", kind)
		}
	}
	if kinds.New(&messages.Spec{Type: "carrier-pigeon"}, o) != nil {
		t.Error("a kind without a row has a transport")
	}
	if kinds.New(&messages.Spec{Type: messages.SDK, Name: "other"}, o) != nil {
		t.Error("a server that is not in the program has a transport")
	}
}
