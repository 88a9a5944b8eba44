package session_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// TestAToolOfTheListBeforeNeedsItsTask: the owner goes on with the list of an earlier connection when the first list of this one fails;
// a tool that requires a task was called without one then (seed 4006050).
func TestAToolOfTheListBeforeNeedsItsTask(t *testing.T) {
	var body string
	w := &wire{}
	w.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
		switch m.Method {
		case "initialize":
			w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},`+
				`"tasks":{"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"s","version":"1"}}}`, m.ID))
		case "tools/call":
			body = string(m.Body)
			w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32603,"message":"not today"}}`, m.ID))
		}
		return transports.Written, nil
	}
	before := session.ToolList{Tools: []messages.Tool{{Name: "slow", TaskSupport: "required"}, {Name: "quick"}}}
	s := connected(t, w, session.Config{Listed: &before})
	for tool, want := range map[string]bool{"slow": true, "quick": false} {
		_, _ = s.OpenGate().Call(t.Context(), tool, []byte(`{}`))
		if got := strings.Contains(body, `"task":{`); got != want || !strings.Contains(body, tool) {
			t.Errorf("%s: %s", tool, body)
		}
	}
}

// TestAToolOfTheListBeforeHasItsHeaders: the same for arguments that are repeated in headers.
func TestAToolOfTheListBeforeHasItsHeaders(t *testing.T) {
	before := session.ToolList{Tools: []messages.Tool{{Name: "good",
		InputSchema: []byte(`{"properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`)}, {Name: "plain"}}}
	var got map[string]string
	s := dialHeaderServer(t, overHTTP, session.Config{Era: messages.EraModern, Listed: &before}, func() string { return good },
		func(m transports.Message) string {
			got = m.Header
			return `"result":{"content":[]}`
		})
	for tool, want := range map[string]map[string]string{"good": {"Mcp-Param-Region": "us-west1"}, "plain": nil} {
		if _, err := s.OpenGate().Call(t.Context(), tool, []byte(`{"region":"us-west1"}`)); err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: headers %q, %v", tool, got, err)
		}
	}
}
