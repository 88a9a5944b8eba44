package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// A heardPeer counts what a server hears about one resource.
type heardPeer struct {
	inprocess.Peer
	uri   string
	heard *atomic.Int32
}

func (p heardPeer) Read(ctx context.Context) ([]byte, error) {
	b, err := p.Peer.Read(ctx)
	if strings.Contains(string(b), `"`+p.uri) {
		p.heard.Add(1)
	}
	return b, err
}

// A server that is away keeps its resources: neither a read, nor a watch, nor a completion goes to the one that is connected, which is
// another one. What nobody knows is refused, with the servers that might have it.
func TestResourcesStayWithTheirServerWhileItIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		var astray atomic.Int32
		crash := make(chan struct{}, 1)
		cfg := supervisor.Config{Servers: map[string]supervisor.Spec{"alpha": {Type: messages.SDK}, "beta": {Type: messages.SDK}},
			InProcess: map[string]func(context.Context, inprocess.Peer) error{
				"alpha": crashAt(offerServer("alpha").serveConnection, &away, crash),
				"beta": func(ctx context.Context, peer inprocess.Peer) error {
					return offerServer("beta").serveConnection(ctx, heardPeer{peer, "alpha://", &astray})
				}}}
		e, _ := startEndpoint(t, cfg, nil, map[string]serve.Principal{"a": {Name: "a"}})
		a := e.agent("a", "/mcp", "{}")
		read := func(uri string) string { return a.ask("resources/read", `{"uri":"`+uri+`"}`) }
		contains(t, "the list", a.ask("resources/list", "{}"), "alpha://x", "beta://x")
		contains(t, "a watch", a.ask("resources/subscribe", `{"uri":"alpha://x"}`), `"result":{}`)
		contains(t, "what fits a template", read("alpha://t/1"), "the secret of alpha")
		contains(t, "what none of two lists", read("alpha://unlisted"), `"code":-32002`, `"message":"Resource not found"`)
		away.Store(true)
		crash <- struct{}{}
		for _, wait := range []time.Duration{time.Second, time.Minute} { // lost, and then withdrawn
			time.Sleep(wait)
			for _, uri := range []string{"alpha://x", "alpha://t/1"} {
				contains(t, uri, read(uri), `"error"`, `"mcpvisor/server":"alpha"`, `"mcpvisor/outcome":"not-sent"`)
			}
			contains(t, "a new watch", a.ask("resources/subscribe", `{"uri":"alpha://t/1"}`), `"mcpvisor/server":"alpha"`)
			contains(t, "what nobody knows", read("alpha://unlisted"), `"code":-32002`, "these are not connected: alpha")
			contains(t, "a watch of what nobody knows", a.ask("resources/subscribe", `{"uri":"alpha://unlisted"}`), `"code":-32002`, "alpha")
			contains(t, "a completion", a.ask("completion/complete", `{"ref":{"type":"ref/resource","uri":"alpha://u/{x}"},"argument":{"name":"x","value":""}}`),
				`"code":-32602`, "alpha")
			contains(t, "the other server", read("beta://x"), "the secret of beta")
		}
		contains(t, "the end of the watch", a.ask("resources/unsubscribe", `{"uri":"alpha://x"}`), `"result":{}`)
		away.Store(false)
		time.Sleep(10 * time.Minute)
		contains(t, "after the return", read("alpha://x"), "the secret of alpha")
		if n := astray.Load(); n != 0 {
			t.Errorf("the other server heard %d requests", n)
		}
	})
}

// A resource in no list goes to the only server that has resources, although others are away that are known to have none.
func TestUnlistedResourceOfTheOnlyServerThatHasAny(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plain := supervisortest.NewServer("plain", text("read"))
		cfg := supervisor.Config{Servers: map[string]supervisor.Spec{"alpha": {Type: messages.SDK}},
			InProcess: map[string]func(context.Context, inprocess.Peer) error{"alpha": offerServer("alpha").serveConnection}}
		e, _ := startEndpoint(t, cfg, nil, map[string]serve.Principal{"a": {Name: "a"}}, plain)
		a := e.agent("a", "/mcp", "{}")
		contains(t, "both connected", a.ask("resources/read", `{"uri":"alpha://1"}`), "the secret of alpha")
		plain.Refuse(errors.New("down"))
		plain.Crash()
		time.Sleep(time.Second)
		contains(t, "the other one away", a.ask("resources/read", `{"uri":"alpha://2"}`), "the secret of alpha")
	})
}

// A resource that was in no list and went to the only server that has resources belongs to the server that lists it afterwards, also while the other
// one is away, and one that is still in no list belongs to none of two. An agent whose view got another server later was told once that the first one
// is not connected, and its subscription went to the first one.
func TestAResourceIsNotKeptByTheOnlyServerThatMightHaveIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		crash := make(chan struct{})
		cfg := supervisor.Config{Servers: map[string]supervisor.Spec{"alpha": {Type: messages.SDK}},
			InProcess: map[string]func(context.Context, inprocess.Peer) error{
				"alpha": crashAt(offerServer("alpha").serveConnection, &away, crash),
				"beta":  offerServer("beta").serveConnection}}
		e, _ := startEndpoint(t, cfg, nil, map[string]serve.Principal{"a": {Name: "a"}})
		a := e.agent("a", "/mcp", "{}")
		read := func() string { return a.ask("resources/read", `{"uri":"beta://x"}`) }
		contains(t, "alone", read(), "the secret of alpha")
		contains(t, "alone, unlisted", a.ask("resources/subscribe", `{"uri":"alpha://unlisted"}`), `"result":{}`)
		if err := e.m.Connect(t.Context(), "beta", supervisor.Spec{Type: messages.SDK}); err != nil {
			t.Fatal(err)
		}
		if err := e.m.Ready(t.Context(), "beta"); err != nil {
			t.Fatal(err)
		}
		contains(t, "one of two, unlisted", a.ask("resources/subscribe", `{"uri":"alpha://unlisted"}`), `"code":-32002`)
		contains(t, "the end of the watch", a.ask("resources/unsubscribe", `{"uri":"alpha://unlisted"}`), `"result":{}`)
		away.Store(true)
		crash <- struct{}{}
		time.Sleep(time.Second)
		contains(t, "beside the one that lists it", read(), "the secret of beta")
	})
}

// A prompt that agents know by a bare name stays with its server while that is away, although the name leads to another server's prompt in a
// list of that time. A name that nobody knows is refused, with the servers that might have it. It went to the only connected server once.
func TestPromptsStayWithTheirServerWhileItIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		crash := make(chan struct{})
		cfg := supervisor.Config{Servers: map[string]supervisor.Spec{"alpha": {Type: messages.SDK}, "beta": {Type: messages.SDK}},
			InProcess: map[string]func(context.Context, inprocess.Peer) error{
				"alpha": crashAt(offerServer("alpha").serveConnection, &away, crash),
				"beta":  offerServer("beta").serveConnection}}
		e, _ := startEndpoint(t, cfg, map[string]config.View{"bare": {Prefix: "never"}}, map[string]serve.Principal{"a": {Name: "a"}})
		a := e.agent("a", "/mcp/v/bare", "{}")
		get := func(name string) string { return a.ask("prompts/get", `{"name":"`+name+`"}`) }
		contains(t, "the list", a.ask("prompts/list", "{}"), `"greet"`, `"beta__greet"`)
		contains(t, "both connected", get("greet"), "the greeting of alpha")
		contains(t, "what neither lists", get("hello"), `"code":-32602`, `"message":"Unknown prompt: hello"`)
		away.Store(true)
		crash <- struct{}{}
		for _, wait := range []time.Duration{time.Second, time.Minute} { // lost, and then withdrawn
			time.Sleep(wait)
			contains(t, "the known name", get("greet"), `"error"`, `"mcpvisor/server":"alpha"`, `"mcpvisor/outcome":"not-sent"`)
			contains(t, "the other list", a.ask("prompts/list", "{}"), `"greet"`)
			contains(t, "after it", get("greet"), `"mcpvisor/server":"alpha"`)
			contains(t, "what nobody knows", get("hello"), `"code":-32602`, "these are not connected: alpha")
			contains(t, "a completion", a.ask("completion/complete", `{"ref":{"type":"ref/prompt","name":"hello"},"argument":{"name":"x","value":""}}`), `"code":-32602`, "alpha")
			contains(t, "the other prompt", get("beta__greet"), "the greeting of beta")
		}
		away.Store(false)
		time.Sleep(10 * time.Minute)
		contains(t, "after the return", get("greet"), "the greeting of alpha")
	})
}

// A view of one server shows a name that is too long for models shortened, and both names lead to the prompt.
func TestTheShortenedNameOfAPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("long", 30)
		one := &listServer{word: "a", extra: `{"name":"` + long + `"}`}
		_, g := startLists(t, nil, nil, "", map[string]*listServer{"one": one})
		path := serve.Path{Server: "one"}
		var got struct{ Prompts []struct{ Name string } }
		if b := askGateway(t, g, serve.Principal{}, path, "prompts/list", "{}"); json.Unmarshal(b, &got) != nil || len(got.Prompts) != 1 || len(got.Prompts[0].Name) >= len(long) {
			t.Fatalf("the list is %s", b)
		}
		for _, name := range []string{got.Prompts[0].Name, long} {
			contains(t, name, string(askGateway(t, g, serve.Principal{}, path, "prompts/get", `{"name":"`+name+`"}`)), `"`+long+`"`)
		}
	})
}

// A resource that moves from one connected server to another is read from the one that lists it now: what was known of its owner counts only while
// that server is away. A server without resources says so by the protocol's code.
func TestAResourceThatMovesIsReadFromItsNewServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var holder atomic.Pointer[string]
		alpha, beta := "alpha", "beta"
		holder.Store(&alpha)
		var peers [2]atomic.Pointer[inprocess.Peer]
		holding := func(name string, n int) func(context.Context, inprocess.Peer) error {
			return func(ctx context.Context, peer inprocess.Peer) error {
				peers[n].Store(&peer)
				return serveRequests(ctx, peer, func(r heardRequest) string {
					switch r.method {
					case "initialize":
						return `{"protocolVersion":"2025-11-25","serverInfo":{"name":"s","version":"1"},"capabilities":{"tools":{},"resources":{"listChanged":true}}}`
					case "tools/list":
						return `{"tools":[]}`
					case "resources/list":
						if *holder.Load() == name {
							return `{"resources":[{"uri":"moving://x","name":"x"}]}`
						}
						return `{"resources":[{"uri":"` + name + `://own","name":"own"}]}`
					case "resources/templates/list":
						return `{"resourceTemplates":[]}`
					case "resources/read":
						return `{"contents":[{"uri":"moving://x","text":"it is at ` + name + `"}]}`
					}
					return ""
				})
			}
		}
		cfg := supervisor.Config{Servers: map[string]supervisor.Spec{"alpha": {Type: messages.SDK}, "beta": {Type: messages.SDK}, "none": {Type: messages.SDK}},
			InProcess: map[string]func(context.Context, inprocess.Peer) error{"alpha": holding("alpha", 0), "beta": holding("beta", 1),
				"none": func(ctx context.Context, peer inprocess.Peer) error {
					return serveRequests(ctx, peer, func(r heardRequest) string {
						switch r.method {
						case "initialize":
							return `{"protocolVersion":"2025-11-25","serverInfo":{"name":"s","version":"1"},"capabilities":{"tools":{}}}`
						case "tools/list":
							return `{"tools":[]}`
						}
						return ""
					})
				}}}
		e, _ := startEndpoint(t, cfg, nil, map[string]serve.Principal{"a": {Name: "a"}})
		a := e.agent("a", "/mcp", "{}")
		read := func() string { return a.ask("resources/read", `{"uri":"moving://x"}`) }
		contains(t, "the first read", read(), "it is at alpha")
		holder.Store(&beta)
		for n := range peers {
			if err := (*peers[n].Load()).Write(t.Context(), []byte(`{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(5 * time.Second)
		contains(t, "the read after it has moved", read(), "it is at beta")

		one := e.agent("a", "/mcp/s/none", "{}")
		contains(t, "a read of a server without resources", one.ask("resources/read", `{"uri":"moving://x"}`), `"code":-32602`)
	})
}
