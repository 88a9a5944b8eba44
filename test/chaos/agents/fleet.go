package agents

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// Options say for which plan the agents play, before which manager. All but Dial must be set.
type Options struct {
	Plan    scenario.Plan
	Manager *supervisor.Manager
	// Record writes an event; its time is set. Now is the time since the start of the run.
	Record func(history.Event)
	Now    func() time.Duration
	// Check looks for what must not be shown in a text of a server that agents see, and reports it.
	Check func(server, where, text string)
	// Dial makes the way to the endpoint over HTTP: its client and its address, and its end. nil carries requests in memory.
	Dial func(h http.Handler) (client http.RoundTripper, address string, end func(), err error)
}

// Fleet is all agents of a run, with the gateway that they use.
type Fleet struct {
	Options
	gateway  *gateway.Gateway
	handler  *serve.Handler
	service  *observedService
	serve    serve.Options
	client   http.RoundTripper
	address  string
	hangUp   func()
	agents   []*agent
	running  sync.WaitGroup
	lifetime context.Context //nolint:containedctx // it is that of all agents
	cut      context.CancelFunc
	tasks    allTasks

	// mu guards the times at which agents left sessions of the legacy era over HTTP without a word.
	mu        sync.Mutex
	abandoned []time.Duration
}

// Start makes the gateway, and agents that have done nothing yet.
func Start(o Options) (*Fleet, error) {
	f := &Fleet{Options: o, tasks: allTasks{byID: map[string]*agentTask{}}}
	f.gateway = gateway.New(gateway.Config{Manager: o.Manager, Views: viewsAt(o.Plan, 0)})
	f.service = &observedService{Service: f.gateway, orphans: map[string]*agent{}, done: map[string]served{}, begun: map[string]bool{}, callers: map[string]string{}, now: o.Now, noteTask: f.noteTask, noteRefused: f.checkTaskRefused, making: map[string]int{}}
	tokens := map[string]serve.Principal{}
	for _, p := range o.Plan.Agents {
		token, principal := tokenFor(&p)
		tokens[token] = principal
	}
	tokens[tokenOf(crowdName)] = serve.Principal{Name: crowdName, MaxSessions: crowdSessions}
	f.serve = serve.Options{Service: f.service, Authenticate: serve.NewTokens(tokens).Authenticate, SessionIdle: sessionIdle(o),
		ExpectHost: func(host string) bool { return host == expectedHost }}
	f.handler = serve.NewHandler(f.serve)
	f.client, f.address, f.hangUp = f.memoryTransport(f.handler), "http://localhost", func() {}
	if o.Dial != nil {
		var err error
		if f.client, f.address, f.hangUp, err = o.Dial(f.handler); err != nil {
			f.gateway.Close()
			return nil, err
		}
	}
	f.lifetime, f.cut = context.WithCancel(context.Background())
	for i, p := range o.Plan.Agents {
		f.agents = append(f.agents, newAgent(f, p, i+1))
	}
	return f, nil
}

// memoryTransport carries requests to a handler in memory.
func (f *Fleet) memoryTransport(h http.Handler) *MemoryTransport {
	return &MemoryTransport{Handler: h, Running: &f.running, Report: func(text string) { f.reportFinding("I28", "", text) }}
}

// expectedHost is a name of the endpoint beside those of the loopback, under which every third agent reaches it.
const expectedHost = "gateway.sim"

// shortIdle is the time after which the endpoint forgets a session that nobody uses, on the days on which that happens at all: a day is over
// before the hour that it has otherwise.
const shortIdle = 15 * time.Second

// sessionIdle returns that time of a run, 0 for the endpoint's own.
func sessionIdle(o Options) time.Duration {
	if o.Dial == nil && o.Plan.Seed%2 == 0 {
		return shortIdle
	}
	return 0
}

// noteAbandoned notes a session that was left without a word.
func (f *Fleet) noteAbandoned() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.abandoned = append(f.abandoned, f.Now())
}

// checkSessions judges that the endpoint has no more sessions than are in use, and those that were left a short time ago: it looks for idle ones
// four times in their time. A session is in use while one of its requests is served, also of an agent that has gone.
func (f *Fleet) checkSessions() {
	if f.serve.SessionIdle == 0 {
		return
	}
	most := f.service.countUsed(f.serve.SessionIdle * 3 / 2)
	for _, a := range f.agents {
		if !a.modern() && a.plan.Over == scenario.OverHTTP {
			most++
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, at := range f.abandoned {
		if f.Now()-at < f.serve.SessionIdle*3/2 {
			most++
		}
	}
	if n := f.handler.Sessions(); n > most {
		f.reportFinding("I28", "", fmt.Sprintf("the endpoint has %d sessions at the end, and may have %d: those in use, and those that were left without a word less than %s ago, "+
			"for it forgets after %s what nobody uses", n, most, f.serve.SessionIdle*3/2, f.serve.SessionIdle))
	}
}

// suspendedTime bounds how long the gateway waits for the answer of an agent to a question, with some tolerance.
const suspendedTime = 5*time.Minute + 10*time.Second

// checkHeld judges, while agents have sessions, that the gateway counts no request as running which has ended, keeps no call that has asked
// its agent, was answered and has ended, and counts as much as there is.
func (f *Fleet) checkHeld() {
	handled, parked := f.service.underWay(f.Now() - suspendedTime)
	switch h := f.gateway.Held(); {
	case h.Miscounted > 0:
		f.reportFinding("I28", "", fmt.Sprintf("%d counters of the gateway, of places, levels, tasks or bytes, differ from what they count: what has ended counts on", h.Miscounted))
	case h.Requests > handled:
		f.reportFinding("I28", "", fmt.Sprintf("the gateway counts %d requests of sessions as running, and %d are: questions of servers go to those that have ended",
			h.Requests, handled))
	case h.Tasks > handled+f.countTasks():
		f.reportFinding("I28", "", fmt.Sprintf("the gateway keeps %d tasks of agents, and those are %d which it has given them and whose time to live has not passed, or which are about to be given",
			h.Tasks, handled+f.countTasks()))
	case h.Suspended > handled+parked:
		f.reportFinding("I28", "", fmt.Sprintf("the gateway keeps %d calls that have asked their agents, and %d may still be answered", h.Suspended, handled+parked))
	}
}

// tokenOf returns the bearer token of a principal. It is no canary, because it must reach the endpoint; TokenMark is how it is found
// where it must not be.
func tokenOf(principal string) string { return TokenMark + principal }

// TokenMark begins the bearer token of each agent. No server may ever get one.
const TokenMark = "agent-token-of-"

// Op is something that one agent does at a time of the run. Do returns when the agent has what it asked for.
type Op struct {
	At time.Duration
	Do func()
}

// Ops returns what all agents do, and the changes of their views, in order of time.
func (f *Fleet) Ops() (all []Op) {
	all = append(f.viewOps(), f.crowdOps()...)
	for _, a := range f.agents {
		for _, op := range drawOperations(f.Plan, a.plan) {
			all = append(all, Op{op.at, func() { a.perform(op) }})
		}
	}
	slices.SortStableFunc(all, func(x, y Op) int { return cmp.Compare(x.At, y.At) })
	return all
}

// Close ends every session, the endpoint and the gateway, and waits for all goroutines of the agents. It records what is left.
func (f *Fleet) Close() {
	f.checkSessions()
	f.checkHeld()
	for _, a := range f.agents {
		a.endAgent()
		// The endpoint ends a session before the next agent goes, and before all are cut off: chance would choose the order otherwise.
		time.Sleep(time.Microsecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	_ = f.handler.Close(ctx) // what it cut off is seen by the agents
	f.cut()
	f.hangUp()
	f.running.Wait()
	for call, a := range f.service.takeOrphans() {
		a.endUnsent(call)
	}
	// What the gateway asks servers for because the agents have gone is on its way before it ends, in each run of a seed.
	time.Sleep(time.Microsecond)
	f.gateway.Close()
	h := f.gateway.Held()
	// The goroutines of questions about calls that have ended with the gateway give back what they kept.
	for begin := time.Now(); h.Kept > 0 && time.Since(begin) < keptBound; h = f.gateway.Held() {
		time.Sleep(time.Millisecond)
	}
	if h.Suspended > 0 {
		h.Suspended, h.Kept = 0, 0 // an agent that has gone without an answer may come back for some minutes: checkHeld judges them
	}
	if h != (gateway.Held{}) {
		f.reportFinding("I28", "", "all agents have gone, and the gateway keeps "+heldText(h))
	}
	if n := f.handler.Sessions(); n > 0 {
		f.reportFinding("I28", "", "the endpoint has been closed, and still has sessions")
	}
	if n, bytes := f.handler.InFlight(); n != 0 || bytes != 0 {
		f.reportFinding("I28", "", fmt.Sprintf("the endpoint has been closed, and still counts %d exchanges and %d bytes against the bounds of its principals", n, bytes))
	}
}

// heldText names what a gateway keeps, and nothing of which it keeps none.
func heldText(h gateway.Held) string {
	var parts []string
	for _, part := range []struct {
		n    int64
		what string
	}{
		{int64(h.Sessions), "sessions"}, {int64(h.Listens), "subscriptions"}, {int64(h.Watches), "watched resources"}, {int64(h.Requests), "requests"},
		{int64(h.Tasks), "tasks"}, {int64(h.Windows), "windows"}, {int64(h.Suspended), "suspended calls"}, {h.Kept, "bytes of calls"},
		{int64(h.Miscounted), "counters that differ from what they count"},
	} {
		if part.n != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	return strings.Join(parts, ", ")
}

// keptBound is the time in which what a closed gateway has kept of its calls is given back.
const keptBound = time.Second

// closeTime is the time that requests under way have at the end.
const closeTime = 5 * time.Second

// recordEvent writes an event at the current time.
func (f *Fleet) recordEvent(e history.Event) {
	e.T = f.Now()
	f.Record(e)
}

// reportFinding writes down what no event can show.
func (f *Fleet) reportFinding(invariant, server, text string) {
	f.recordEvent(history.Event{Side: history.Harness, Kind: history.Violation, Name: invariant, Server: server, Text: text})
}

// serverOfTool returns the server and the own name of a tool by the name that agents of all servers see.
func (f *Fleet) serverOfTool(shown string) (server, tool string) {
	for _, s := range f.Plan.Servers {
		if tool, ok := strings.CutPrefix(shown, s.Name+"__"); ok && len(s.Name) > len(server) {
			server = s.Name
			_ = tool
		}
	}
	return server, strings.TrimPrefix(shown, server+"__")
}

// offers returns the plan's servers that have resources and prompts.
func (f *Fleet) offers() (names []string) {
	for _, s := range f.Plan.Servers {
		if s.Offers && s.Lacks == "" {
			names = append(names, s.Name)
		}
	}
	return names
}
