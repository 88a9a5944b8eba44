package gateway_test

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// A slowLister is the connection of a server that takes its time for its lists of resources, templates included. asked counts them.
type slowLister struct {
	inprocess.Peer
	takes *atomic.Int64
	asked *atomic.Int32
}

func (p slowLister) Read(ctx context.Context) ([]byte, error) {
	b, err := p.Peer.Read(ctx)
	if bytes.Contains(b, []byte(`"resources/list"`)) {
		p.asked.Add(1)
	}
	return b, err
}

func (p slowLister) Write(ctx context.Context, b []byte) error {
	takes := time.Duration(p.takes.Load())
	if takes == 0 || !bytes.Contains(b, []byte(`"resources":[`)) && !bytes.Contains(b, []byte(`"resourceTemplates":[`)) {
		return p.Peer.Write(ctx, b)
	}
	go func() { // the other answers do not wait
		time.Sleep(takes)
		_ = p.Peer.Write(ctx, b)
	}()
	return nil
}

// startSlowLister serves an offerServer alpha, and beta, whose lists of resources take as long as takes says, and which announces their changes.
func startSlowLister(t *testing.T, takes time.Duration) (e *endpoint, beta slowLister) {
	beta = slowLister{nil, &atomic.Int64{}, &atomic.Int32{}}
	beta.takes.Store(int64(takes))
	cfg := supervisor.Config{Servers: map[string]supervisor.Spec{"alpha": {Type: messages.SDK}, "beta": {Type: messages.SDK}},
		InProcess: map[string]func(context.Context, inprocess.Peer) error{
			"alpha": offerServer("alpha").serveConnection,
			"beta": func(ctx context.Context, peer inprocess.Peer) error {
				return offerServer("beta").serveConnection(ctx, slowLister{peer, beta.takes, beta.asked})
			}}}
	e, _ = startEndpoint(t, cfg, nil, map[string]serve.Principal{"a": {Name: "a"}, "b": {Name: "b"}})
	return e, beta
}

// A list, and the search for the server of a resource, waited for up to a minute for a server that was silent about its lists (I25 of a random
// day, seed 20893924: four minutes for the end of a watch). They have what the others list after some seconds, and agents are notified when the
// silent one has answered.
func TestASilentListKeepsNobodyFromTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, beta := startSlowLister(t, 30*time.Second)
		defer time.Sleep(time.Minute) // until beta has answered
		a, b := e.agent("a", "/mcp", "{}"), e.agent("b", "/mcp", "{}")
		heard := a.readStream()
		within := func(most time.Duration, what string, do func()) {
			t.Helper()
			began := time.Now()
			if do(); time.Since(began) > most {
				t.Errorf("%s took %s of virtual time, and may take %s", what, time.Since(began), most)
			}
		}
		within(6*time.Second, "the first list", func() {
			list := a.ask("resources/list", "{}")
			contains(t, "the first list", list, "alpha://x")
			lacks(t, "the first list", list, "beta://x")
		})
		within(0, "a read of what is listed", func() { contains(t, "a read", a.ask("resources/read", `{"uri":"alpha://x"}`), "the secret of alpha") })
		within(10*time.Second, "the end of a watch that is none", func() { a.ask("resources/unsubscribe", `{"uri":"alpha://unlisted"}`) })
		within(6*time.Second, "the list of another agent", func() { contains(t, "the list of b", b.ask("resources/list", "{}"), "alpha://x") })
		if n := beta.asked.Load(); n != 1 {
			t.Errorf("the silent server was asked for its list %d times", n)
		}
		time.Sleep(time.Minute)
		if got := heard(); !strings.Contains(got, "notifications/resources/list_changed") {
			t.Errorf("the agent was not notified when the silent server had answered: %s", got)
		}
		within(6*time.Second, "the list afterwards", func() { contains(t, "the list afterwards", a.ask("resources/list", "{}"), "alpha://x", "beta://x") })
	})
}

// A server that falls silent stays in the lists with what it listed last, and its own resources are read meanwhile.
func TestASilentServerStaysListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, beta := startSlowLister(t, 0)
		a := e.agent("a", "/mcp", "{}")
		contains(t, "the list", a.ask("resources/list", "{}")+a.ask("resources/templates/list", "{}"), "alpha://x", "beta://x", "beta://t/{x}")
		contains(t, "what fits a template", a.ask("resources/read", `{"uri":"alpha://t/1"}`), "the secret of alpha")
		beta.takes.Store(int64(5 * time.Minute))
		time.Sleep(10 * time.Second) // a list of a server that announces no changes is fresh for five seconds
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave) // an agent that does not wait for its list takes nothing from that of the others
		e.post(ctx, "/mcp", map[string]string{"Authorization": "Bearer a", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "resources/list"},
			`{"jsonrpc":"2.0","id":1,"method":"resources/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
		began := time.Now()
		for range 3 {
			contains(t, "the list", a.ask("resources/list", "{}"), "alpha://x", "beta://x")
		}
		if took := time.Since(began); took > 18*time.Second {
			t.Errorf("three lists took %s", took)
		}
		began = time.Now()
		for range 100 {
			contains(t, "a read", a.ask("resources/read", `{"uri":"alpha://x"}`), "the secret of alpha")
			contains(t, "what fits a template", a.ask("resources/read", `{"uri":"alpha://t/1"}`), "the secret of alpha")
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("reads of alpha took %s of virtual time beside its silent neighbour", took)
		}
		time.Sleep(5 * time.Minute)
	})
}
