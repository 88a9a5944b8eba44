package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/test/chaos/agents"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// principalAgents is a gateway before the manager of the callers' instances. Each caller with a name has an agent of the modern era, that
// comes over HTTP in memory and does by the endpoint what the caller does by the facade: the judges of the caller's calls, questions
// and watches judge both. Only the loop starts what agents do.
type principalAgents struct {
	p        *principals
	gateway  *gateway.Gateway
	handler  *serve.Handler
	client   http.RoundTripper
	running  sync.WaitGroup
	lifetime context.Context //nolint:containedctx // it is that of all agents
	cut      context.CancelFunc

	// mu guards the subscription that each agent has, by the name of its caller.
	mu      sync.Mutex
	listens map[string]*principalListen
}

// principalListen is the subscription of an agent to the lists and to the resource of its caller's instance.
type principalListen struct {
	// since is when the endpoint acknowledged it with the resource, -1 before. updated is when it told of an update last.
	since, updated time.Duration
}

// startAgents puts the gateway before the manager.
func (p *principals) startAgents() {
	g := &principalAgents{p: p, listens: map[string]*principalListen{}}
	g.gateway = gateway.New(gateway.Config{Manager: p.manager})
	tokens := map[string]serve.Principal{}
	for _, name := range principalNames {
		if name != "" {
			tokens[agents.TokenMark+name] = serve.Principal{Name: name}
		}
	}
	g.handler = serve.NewHandler(serve.Options{Service: g.gateway, Authenticate: serve.NewTokens(tokens).Authenticate})
	g.client = &agents.MemoryTransport{Handler: g.handler, Running: &g.running, Report: func(text string) { p.reportViolation("I28", "", text) }}
	g.lifetime, g.cut = context.WithCancel(context.Background())
	p.agents = g
}

// takeStep lets the agent of a caller do one thing.
func (g *principalAgents) takeStep(server, caller string) {
	switch n := g.p.rng.IntN(10); {
	case n < 5:
		g.startCall(server, caller)
	case n < 6:
		g.startList(caller)
	case n < 7:
		g.startResources(caller)
	case n < 8:
		g.startRead(caller, principalNames[1+g.p.rng.IntN(len(principalNames)-1)])
	default:
		g.startListen(caller)
		for range g.p.rng.IntN(4) { // every second read makes a new state
			g.startRead(caller, caller)
		}
	}
}

// startCall has an agent call a tool.
func (g *principalAgents) startCall(server, caller string) {
	p := g.p
	p.callCount++
	c := principalCall{server, caller, []string{"read", "put", "write"}[p.rng.IntN(3)]}
	id, end := fmt.Sprintf("p-%d", p.callCount), p.beginUse(server, caller)
	p.mu.Lock()
	p.calls[id] = c
	p.mu.Unlock()
	p.world.users.runAsUser(func() {
		defer end()
		ctx, cancel := context.WithTimeout(g.lifetime, 45*time.Second)
		defer cancel()
		name := server + "__" + c.tool
		result, err := g.ask(ctx, caller, "tools/call", name, `"name":"`+name+`","arguments":{"call":"`+id+`","size":0}`)
		p.checkEnd(id, c, server, result, err)
	})
}

// startRead has an agent read the resource of a caller's instance, its own or another one's, and judges that it gets only its own.
func (g *principalAgents) startRead(caller, whose string) {
	p := g.p
	end, uri := p.beginUse("mail", caller), resourceOf(nameFor("mail", whose))
	p.world.users.runAsUser(func() {
		defer end()
		ctx, cancel := context.WithTimeout(g.lifetime, 30*time.Second)
		defer cancel()
		result, err := g.ask(ctx, caller, "resources/read", uri, `"uri":"`+uri+`"`)
		if err == nil && whose != caller {
			p.reportViolation("I3", nameFor("mail", whose), fmt.Sprintf("the agent of %q asked for %s, which is another's, and got %s", caller, uri,
				messages.Line(string(result), 200)))
		}
	})
}

// startResources has an agent list the resources: they are those of its caller's instance, or of the server where the caller has none.
func (g *principalAgents) startResources(caller string) {
	p, own := g.p, nameFor("mail", caller)
	p.world.users.runAsUser(func() {
		ctx, cancel := context.WithTimeout(g.lifetime, 2*time.Minute)
		defer cancel()
		result, _ := g.ask(ctx, caller, "resources/list", "", "")
		var list struct{ Resources []struct{ URI string } }
		_ = json.Unmarshal(result, &list)
		for _, r := range list.Resources {
			if whose, _, _ := strings.Cut(strings.TrimPrefix(r.URI, "chaos://"), "/"); whose != own && whose != "mail" {
				p.reportViolation("I3", whose, fmt.Sprintf("the agent of %q is shown %s, which is another's", caller, r.URI))
			}
		}
	})
}

// startList has an agent list the tools. If what its caller is offered has not changed for a while, it gets just that.
func (g *principalAgents) startList(caller string) {
	p := g.p
	m := p.manager
	p.world.users.runAsUser(func() {
		ctx, cancel := context.WithTimeout(supervisor.WithCaller(g.lifetime, caller), 30*time.Second)
		defer cancel()
		before := m.Tools().Generation()
		if waitUntil(ctx, viewTime) != nil {
			return
		}
		result, err := g.ask(ctx, caller, "tools/list", "", "")
		offered := m.ToolsFor(ctx)
		if err != nil || m.Tools().Generation() != before {
			return
		}
		var list struct{ Tools []struct{ Name string } }
		_ = json.Unmarshal(result, &list)
		var shown []string
		for _, t := range list.Tools {
			shown = append(shown, t.Name)
		}
		slices.Sort(shown)
		want := namesForAgents(offered)
		if !slices.Equal(shown, want) {
			p.reportViolation("I24", "", fmt.Sprintf("the agent of %q is shown the tools %q, and its caller is offered %q for %s", caller, shown, want, viewTime))
		}
	})
}

// namesForAgents returns the names of the tools that the agent of a caller is shown, sorted: what the caller is offered, without the tools of a
// connection that was lost. A program can wait for these, and an agent would call them.
func namesForAgents(offered []*supervisor.Entry) (names []string) {
	for _, e := range offered {
		if e.State != catalog.Lost {
			names = append(names, e.Tool.Server+"__"+e.Tool.Name)
		}
	}
	slices.Sort(names)
	return names
}

// viewTime is the time in which a list that agents get follows what their callers are offered.
const viewTime = 2 * time.Second

// startListen has an agent without a subscription subscribe to all that there is and to the resource of its caller's instance, for a while.
func (g *principalAgents) startListen(caller string) {
	p, l := g.p, &principalListen{since: -1, updated: -1}
	g.mu.Lock()
	has := g.listens[caller] != nil
	if !has {
		g.listens[caller] = l
	}
	g.mu.Unlock()
	if has {
		return
	}
	name := nameFor("mail", caller)
	uri, acknowledge := resourceOf(name), p.beginWatch(name, false)
	p.mu.Lock()
	p.useOf(name).subscribed = true
	p.mu.Unlock()
	ctx, end := context.WithCancel(g.lifetime)
	endWatch := func(bool) {}
	p.world.timeline.planAction(p.world.virtualNow+time.Duration(1+p.rng.Int64N(int64(4*time.Minute))), "", func() {
		endWatch = p.beginWatch(name, true)
		end()
	})
	p.world.users.runAsUser(func() {
		defer end()
		answered, began := false, p.world.elapsedTime()
		_, unread := g.ask(ctx, caller, "resources/read", uri, `"uri":"`+uri+`"`)
		_, _ = g.exchange(ctx, caller, "subscriptions/listen", "", `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["`+uri+`"]}`,
			func(method string, params []byte) {
				named, _ := rawjson.Text(rawjson.Member(params, "uri"))
				switch now := p.world.elapsedTime(); {
				case method == "notifications/subscriptions/acknowledged":
					answered = true
					agreed := bytes.Contains(params, []byte(`"`+uri+`"`))
					if acknowledge(agreed); agreed {
						g.mu.Lock()
						l.since = now
						g.mu.Unlock()
					} else if unread == nil && p.isCalm(name, began) {
						p.reportViolation("I24", name, fmt.Sprintf("the agent of %q had read %s, and may not watch it", caller, uri))
					}
				case method != "notifications/resources/updated":
				case scenario.WholeURI(named) != uri:
					p.reportViolation("I3", name, fmt.Sprintf("the agent of %q was told of an update of %s, and watches %s", caller, named, uri))
				default:
					g.mu.Lock()
					l.updated = now
					g.mu.Unlock()
				}
			})
		if !answered {
			acknowledge(false)
		}
		// The endpoint ends the watch of the server when its agent has gone.
		g.mu.Lock()
		delete(g.listens, caller)
		g.mu.Unlock()
		ended := p.world.elapsedTime()
		_ = waitUntil(g.lifetime, time.Minute)
		if endWatch(true); l.since >= 0 && g.lifetime.Err() == nil {
			g.noteUnwatched(name, ended)
		}
	})
}

// noteUnwatched notes that the resource of an instance is not watched any more: the endpoint has ended the watch, also that of others at the instance, and
// none has begun since the agent had gone. So the instance ends for idleness.
func (g *principalAgents) noteUnwatched(name string, ended time.Duration) {
	g.p.mu.Lock()
	defer g.p.mu.Unlock()
	if w := g.p.watchOf(name); w.askedAt < ended && w.asking == 0 && w.ending == 0 {
		u := g.p.useOf(name)
		u.subscribed, u.last = false, g.p.world.elapsedTime()
	}
}

// isUntold reports whether the agent of an instance's caller has watched its resource since before a time, and was told of no update since
// that time.
func (g *principalAgents) isUntold(caller string, at time.Duration) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.listens[caller]
	return l != nil && l.since >= 0 && l.since < at-time.Second && l.updated < at
}

// isCalm reports whether nothing has disturbed an instance since some time before a time.
func (p *principals) isCalm(name string, began time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.useOf(name).disturbed+disturbedFor < began
}

// waitUntil waits, or until ctx ends.
func waitUntil(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close ends the agents, their endpoint and the gateway, before the manager. It records a violation if the gateway keeps anything.
func (g *principalAgents) close() {
	if g == nil {
		return
	}
	g.cut()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = g.handler.Close(ctx)
	g.running.Wait()
	g.gateway.Close()
	if h := g.gateway.Held(); h.Listens > 0 || h.Watches > 0 || h.Requests > 0 || h.Sessions > 0 || h.Miscounted > 0 {
		g.p.reportViolation("I28", "", fmt.Sprintf("the agents of the callers have gone, and the gateway keeps %+v", h))
	}
}

// expectTold judges, a while after the server's end of an instance has sent an update, that the agent which watches it has heard of it.
func (g *principalAgents) expectTold(name, caller string, e history.Event) {
	if g == nil {
		return
	}
	p, at := g.p, g.p.world.virtualNow
	p.world.timeline.planAction(at+updateBound, "", func() {
		p.mu.Lock()
		stands := p.isWatched(name, at) && p.useOf(name).disturbed+disturbedFor < at && p.hosts[name].conns[e.Conn] != nil
		p.mu.Unlock()
		if stands && !p.closing.Load() && g.isUntold(caller, at) {
			p.reportViolation("I24", name, fmt.Sprintf("%s told of an update at %s, which the agent of %q watches, and that had heard nothing by %s", name, at, caller, at+updateBound))
		}
	})
}
