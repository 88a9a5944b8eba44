package gateway_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// A server announces a change while the gateway compares the lists because of another one. The gateway compares them again afterwards, and agents
// hear of the second change.
func TestAChangeDuringAComparisonIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changed := make(chan string)
		cfg := supervisor.Config{Servers: map[string]supervisor.Spec{"slow": {Type: messages.SDK}},
			InProcess: map[string]func(context.Context, inprocess.Peer) error{"slow": func(ctx context.Context, peer inprocess.Peer) error {
				go func() {
					for {
						select {
						case what := <-changed:
							_ = peer.Write(ctx, []byte(`{"jsonrpc":"2.0","method":"notifications/`+what+`/list_changed"}`))
						case <-ctx.Done():
							return
						}
					}
				}()
				return serveRequests(ctx, peer, func(r heardRequest) string {
					switch r.method {
					case "initialize":
						return `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{"listChanged":true},"prompts":{"listChanged":true}},"serverInfo":{"name":"n","version":"1"}}`
					case "tools/list":
						return `{"tools":[]}`
					case "resources/list", "resources/templates/list":
						time.Sleep(2 * time.Second)
					}
					return ""
				})
			}}}
		e, _ := startEndpoint(t, cfg, nil, map[string]serve.Principal{"a": {Name: "a"}})
		a := e.agent("a", "/mcp", "{}")
		heard := a.readStream()
		a.ask("resources/list", "{}") // it is known, so that a change of it is compared
		changed <- "resources"
		time.Sleep(time.Second) // the lists are being compared
		changed <- "prompts"    // which no agent has listed
		time.Sleep(time.Minute)
		if got := heard(); !strings.Contains(got, "notifications/prompts/list_changed") {
			t.Errorf("the agent did not hear of what changed during a comparison: %s", got)
		}
	})
}

// A server announces a change of prompts, which no agent has listed, and an agent lists them before the gateway compares: the other agent hears of the
// change all the same (seed 20982172).
func TestAChangeThatAnotherAgentHasListedIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		change := make(chan struct{})
		cfg := supervisor.Config{Servers: map[string]supervisor.Spec{"one": {Type: messages.SDK}},
			InProcess: map[string]func(context.Context, inprocess.Peer) error{"one": func(ctx context.Context, peer inprocess.Peer) error {
				go func() {
					select {
					case <-change:
						_ = peer.Write(ctx, []byte(`{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`))
					case <-ctx.Done():
					}
				}()
				return serveRequests(ctx, peer, func(r heardRequest) string {
					switch r.method {
					case "initialize":
						return `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{"listChanged":true}},"serverInfo":{"name":"n","version":"1"}}`
					case "tools/list":
						return `{"tools":[]}`
					}
					return ""
				})
			}}}
		e, _ := startEndpoint(t, cfg, nil, map[string]serve.Principal{"a": {Name: "a"}})
		listener, reader := e.agent("a", "/mcp", "{}"), e.agent("a", "/mcp", "{}")
		heard := listener.readStream()
		time.Sleep(time.Second)
		close(change)
		time.Sleep(20 * time.Millisecond) // the change waits for others, and the lists are not compared yet
		reader.ask("prompts/list", "{}")
		time.Sleep(time.Minute)
		if got := heard(); strings.Count(got, "notifications/prompts/list_changed") != 1 {
			t.Errorf("the agent that had listed nothing heard %s", got)
		}
	})
}

// A server is disabled and enabled again before the gateway compares the lists, and an agent has listed in between: it was given what is not there any
// more, and hears of that, although the list is as it was at the comparison before.
func TestAListThatIsAgainAsItWasIsToldToTheOneThatWasGivenAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := startViews(t, nil, map[string]serve.Principal{"a": {Name: "a"}}, supervisortest.NewServer("one", supervisortest.Text("read", "")))
		a := e.agent("a", "/mcp", "{}")
		heard := a.readStream()
		a.ask("tools/list", "{}")
		time.Sleep(time.Second)
		_ = e.m.Toggle(t.Context(), "one", false)
		if list := a.ask("tools/list", "{}"); strings.Contains(list, "one__read") {
			t.Fatalf("the tools of a disabled server are listed: %s", list)
		}
		_ = e.m.Toggle(t.Context(), "one", true)
		time.Sleep(time.Minute)
		if got := heard(); !strings.Contains(got, "notifications/tools/list_changed") {
			t.Errorf("the agent that was given an empty list is not told that there are tools: %s", got)
		}
	})
}
