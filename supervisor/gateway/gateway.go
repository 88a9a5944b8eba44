package gateway

import (
	"cmp"
	"context"
	"crypto/cipher"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/joined"
	"github.com/mcpvisor/mcpvisor/transports/budget"
	"github.com/mcpvisor/mcpvisor/transports/serve"
	wire "github.com/mcpvisor/mcpvisor/transports/session"
)

// Config says what a gateway offers. Manager must be set.
type Config struct {
	Manager *supervisor.Manager
	// Shared are further managers, whose servers the gateway offers beside those of Manager, and which other gateways share. The rules
	// of Manager count for their servers, too. Their owner closes them after the gateway.
	Shared []*supervisor.Manager
	// Prefix says which names carry the id of their server; PrefixAlways if empty. A view of one server has none.
	Prefix Prefix
	// Views are what paths and credentials may be bound to, by name; SetViews replaces them.
	Views map[string]config.View
	// Questions are those that PassQuestions returned for the managers: with them a question of a principal's own instance reaches that
	// principal.
	Questions []*Questions
	// Name is how agents name the gateway in their configuration: most put mcp__{name}__ before the names of tools, and the model
	// takes 64 characters of both together. It is also the name in the handshake, with Version; "mcpvisor" if empty.
	Name, Version string
	// MaySignIn says which principals get the address of a sign-in, when a server needs one: what they sign in with is used for all.
	// nil: only those without a name. The browser must be on this machine.
	MaySignIn func(principal string) bool
}

// Gateway serves agents from its managers. Safe for concurrent use.
type Gateway struct {
	all      joined.Managers
	cfg      Config
	naming   messages.Naming
	watching []*supervisor.Watcher
	work     sync.WaitGroup
	// lifetime ends with the gateway.
	lifetime  context.Context //nolint:containedctx // it is that of the gateway
	stop      context.CancelFunc
	states    cipher.AEAD
	began     time.Time
	watches   watches
	suspended suspendedCalls
	tasks     tasks
	sizes     expectedSizes
	windows   atomic.Int64 // those in use
	shared    int64        // the size of those that the agents of a principal share
	signIns   signIns
	arrivals  atomic.Uint64 // numbers sessions and subscriptions as they begin
	// agents are those of the modern era, by their principals.
	agents sync.Map // string to *modernAgents
	kept   *budget.Budget
	// declared is what each server that was seen connected has said of itself.
	declared sync.Map // string to *wire.Capabilities

	// changed gets a value when said, which saidMu guards, has something for agents.
	changed chan struct{}
	saidMu  sync.Mutex
	said    saidChanges

	// levels are the levels of log messages that servers were asked for.
	levels askedLevels

	// memory has the tools of servers on their way, as they were in an earlier run; nil when there are none.
	memory atomic.Pointer[memory]

	mu      sync.Mutex
	views   map[viewKey]*view
	filters map[string]*filter
	// scopes are those of the filters, by the views of path and credential.
	scopes map[[2]string]*scope
}

var _ serve.Service = (*Gateway)(nil)

// CallWait is the Config.CallWait that suits a manager behind a gateway: an agent calls as soon as it has a list, and that list may be of
// an earlier run. A call whose server is on its way waits so long at most; one whose server cannot come in that time ends at once, with
// the reason.
const CallWait = 20 * time.Second

// New makes a gateway and begins to watch the manager. The caller closes it before the manager.
func New(cfg Config) *Gateway {
	if cfg.Name == "" {
		cfg.Name = "mcpvisor"
	}
	if cfg.Version == "" {
		cfg.Version = supervisor.Version()
	}
	if cfg.Prefix == "" {
		cfg.Prefix = PrefixAlways
	}
	ctx, stop := context.WithCancel(context.Background())
	g := &Gateway{all: append(joined.Managers{cfg.Manager}, cfg.Shared...), cfg: cfg, naming: namingFor(cfg.Name), lifetime: ctx, stop: stop,
		views: map[viewKey]*view{}, states: newStateCipher(), began: time.Now(), shared: principalBytes, kept: budget.New(keptBytes), changed: make(chan struct{}, 1)} // capacity 1: a change that comes during a comparison causes one more
	g.watches.g = g
	g.SetViews(cfg.Views)
	for _, m := range g.all {
		g.watching = append(g.watching, m.Watch(4096).WithoutCalls())
	}
	g.memory.Store(g.recallTools())
	g.startWatching(ctx)
	for _, name := range g.all.Servers() {
		g.readLazily(name)
	}
	for _, q := range cfg.Questions {
		q.addGateway(g)
	}
	return g
}

// Close ends the watching, and the calls that wait for answers of their agents. Requests that run are ended by their endpoint.
func (g *Gateway) Close() {
	for _, q := range g.cfg.Questions {
		q.removeGateway(g)
	}
	g.stop()
	g.suspended.closeSuspended()
	g.tasks.closeTasks()
	for _, w := range g.watching {
		w.Close()
	}
	g.work.Wait()
}

// Ready implements serve.Service: no server is in its first attempt any more.
func (g *Gateway) Ready() bool {
	for _, s := range g.all.Status() {
		if isFirstAttempt(&s) {
			return false
		}
	}
	return true
}

const (
	// startWait is how long an agent that comes while servers start waits for them: many agents list once. The wait begins when that of
	// the agent does, see serve.Session.Began, and ends when the newest server has had as long: one that is silent delays the agents
	// that come with it, and none that come later.
	startWait = 300 * time.Millisecond
	// leastStartWait is what an agent waits at least, also if starting the daemon took all of startWait. A program of this machine has
	// started and listed its tools in that time, a person does not notice it, and an agent that lists once keeps an empty list for good.
	leastStartWait = 50 * time.Millisecond
	// aroundWait is the part of startWait that an agent whose beginning is known needs before and after the wait: for the program that
	// it has started to begin, which takes longer on a busy machine, and for the list to reach it.
	aroundWait = 60 * time.Millisecond
)

// firstListWait returns how long an agent waits now that began to wait at some time, zero if that is not known, for servers of which the
// newest began its first attempt at newest.
func firstListWait(began, newest, now time.Time) time.Duration {
	wait := startWait
	if !began.IsZero() {
		wait = min(max(startWait-aroundWait-now.Sub(began), leastStartWait), startWait)
	}
	return min(wait, startWait-now.Sub(newest))
}

// awaitFirstList waits for servers that start, unless their tools are remembered. What is not there by then comes with a notice.
func (g *Gateway) awaitFirstList(ctx context.Context, began time.Time) {
	newest := g.newestUnknown()
	if newest.IsZero() {
		return
	}
	wait := firstListWait(began, newest, time.Now())
	if wait <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	_ = g.all.Settled(ctx) // its error is that the time has passed
}

// firstAttemptsWait bounds the wait for servers that start, where one of them may have what an agent names: one that is silent delays no
// more than this.
const firstAttemptsWait = 5 * time.Second

// awaitFirstAttempts waits until no server is in its first attempt; false if none is. An agent that has just started its gateway may
// name what it knows from before.
func (g *Gateway) awaitFirstAttempts(ctx context.Context) bool {
	if g.Ready() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, firstAttemptsWait)
	defer cancel()
	_ = g.all.Settled(ctx) // what is not there by then is not found
	return true
}

// Describe implements serve.Service.
func (g *Gateway) Describe(s *serve.Session) (serve.Description, *serve.Error) {
	v, e := g.viewOf(s)
	if e != nil {
		return serve.Description{}, e
	}
	g.awaitFirstList(context.Background(), s.Began)
	if !s.Modern {
		v.addSession(s)
	}
	info := rawjson.AppendText([]byte(`{"name":`), g.cfg.Name)
	info = append(rawjson.AppendText(append(info, `,"version":`...), g.cfg.Version), '}')
	return serve.Description{Capabilities: g.capabilities(v, s), ServerInfo: info, Instructions: g.instructions(v), CacheHints: noCache}, nil
}

// noCache are the hints of what must be asked for again: whether it is the same for all is not known.
const noCache = `"ttlMs":0,"cacheScope":"private"`

// capabilities returns what can be asked for. A server that is not connected may turn out to have everything, and a legacy agent is
// told once only.
func (g *Gateway) capabilities(v *view, s *serve.Session) []byte {
	var resources, subscribe, prompts, completions, logging, tasks bool
	for _, name := range v.servers() {
		c := g.all.Of(name).Capabilities(name)
		if c == nil {
			resources, subscribe, prompts, completions, logging, tasks = true, true, true, true, true, true
			break
		}
		resources, subscribe = resources || c.Resources, subscribe || c.ResourcesSubscribe
		prompts, completions, logging = prompts || c.Prompts, completions || c.Completions, logging || c.Logging
		// A server of the modern era makes tasks for agents of its own era only: those of the other one are asked what they wish.
		tasks = tasks || c.ToolTasks && (s.Modern || g.all.Of(name).EraOf(name) != messages.EraModern)
	}
	b := []byte(`{"tools":{"listChanged":true}`)
	if resources {
		b = append(b, `,"resources":{"listChanged":true`...)
		if subscribe {
			b = append(b, `,"subscribe":true`...)
		}
		b = append(b, '}')
	}
	if prompts {
		b = append(b, `,"prompts":{"listChanged":true}`...)
	}
	if completions {
		b = append(b, `,"completions":{}`...)
	}
	if logging {
		b = append(b, `,"logging":{}`...)
	}
	switch {
	case !tasks || !s.Modern && s.Version < tasksSince:
	case s.Modern:
		b = append(b, `,"extensions":{"`+wire.TasksExtension+`":{}}`...)
	default:
		b = append(b, `,"tasks":{`...)
		if s.Principal.Name != "" {
			b = append(b, `"list":{},`...)
		}
		b = append(b, `"cancel":{},"requests":{"tools":{"call":{}}}}`...)
	}
	return append(b, '}')
}

// maxInstructions bounds the instructions of all servers together: an agent puts them into every conversation.
const maxInstructions = 16 << 10

// instructions returns those of the servers of a view, each below its name where there are several; of a server on its way those of an earlier
// run.
func (g *Gateway) instructions(v *view) string {
	var b strings.Builder
	remembered := g.memory.Load()
	for _, name := range v.servers() {
		s, err := g.all.Of(name).ServerStatus(name)
		text := s.Instructions
		if remembered != nil && remembered.entries[name] != nil {
			text = cmp.Or(text, remembered.instructions[name])
		}
		if err != nil || text == "" {
			continue
		}
		if v.server == "" {
			text = "# " + messages.Line(name, 60) + "\n" + text + "\n"
		}
		if b.Len()+len(text) > maxInstructions {
			break
		}
		b.WriteString(text)
	}
	return b.String()
}

// Handle implements serve.Service.
func (g *Gateway) Handle(ctx context.Context, r *serve.Request) ([]byte, *serve.Error) {
	v, e := g.viewOf(r.Session)
	if e != nil {
		return nil, e
	}
	// Everything that is asked for is asked in the name of the principal: of a server with share "principal" it has an instance.
	// At a server that bounds its calls an agent on lines has turns of its own: all agents of a person are one principal there.
	ctx = supervisor.WithCaller(ctx, r.Session.Principal.Name)
	if a := r.Session.Agent(); a != nil && r.Header == nil {
		ctx = actors.WithTurns(ctx, a.Name())
	}
	switch r.Method {
	case "tools/call":
		return g.callTool(ctx, v, r)
	case "tools/list":
		return v.answerList(ctx, toolList, r)
	case "resources/list":
		return v.answerList(ctx, resourceList, r)
	case "resources/templates/list":
		return v.answerList(ctx, templateList, r)
	case "resources/read":
		return g.readResource(ctx, v, r)
	case "prompts/list":
		return v.answerList(ctx, promptList, r)
	case "prompts/get":
		return g.getPrompt(ctx, v, r)
	case "completion/complete":
		return g.completeArgument(ctx, v, r)
	case "tasks/get", "tasks/result", "tasks/list", "tasks/update", "tasks/cancel":
		return g.handleTask(ctx, v, r)
	}
	if r.Modern() {
		if r.Method == "subscriptions/listen" {
			return g.serveListen(ctx, v, r)
		}
		return nil, serve.MethodNotFound(r.Method)
	}
	switch r.Method {
	case "ping":
		return []byte("{}"), nil
	case "logging/setLevel":
		return g.setLevel(ctx, v, r)
	case "resources/subscribe":
		return g.subscribeAgent(ctx, v, r)
	case "resources/unsubscribe":
		return g.unsubscribeAgent(ctx, v, r)
	}
	return nil, serve.MethodNotFound(r.Method)
}

// Notified implements serve.Service. That an agent is ready, or that its roots have changed, needs no action: servers ask for the
// roots of an agent with each of its requests.
func (g *Gateway) Notified(*serve.Session, string, []byte) {}

// Closed implements serve.Service.
func (g *Gateway) Closed(s *serve.Session) {
	if st, ok := s.State.(*session); ok {
		st.gone.Store(true)
		if st.view.removeSession(st) {
			g.askBehind(func(ctx context.Context) { g.askForLevels(ctx, st.view) })
		}
		g.watches.dropAll(st)
	}
}

// viewOf returns the view of a session. A server that does not exist, or is not shown to it, has none; nor has a path that leads to no
// configured view.
func (g *Gateway) viewOf(s *serve.Session) (*view, *serve.Error) {
	key := viewKey{server: s.Path.Server, path: s.Path.View, bound: s.Principal.View, principal: s.Principal.Name}
	g.mu.Lock()
	defer g.mu.Unlock()
	v := g.views[key]
	if v == nil {
		if key.path != "" && g.filters[key.path] == nil {
			return nil, &serve.Error{Code: serve.CodeInvalidParams, Message: "there is no view " + messages.Line(key.path, 100)}
		}
		v = g.addView(key)
	}
	if key.server != "" && (!g.all.Has(key.server) || !v.scope.Load().showsServer(key.server)) {
		// Agents that have it already are told when the server comes back.
		if !v.isUsed() {
			delete(g.views, key)
		}
		return nil, &serve.Error{Code: serve.CodeInvalidParams, Message: "there is no server " + messages.Line(key.server, 100)}
	}
	return v, nil
}

// addView makes a view. The caller holds mu.
func (g *Gateway) addView(key viewKey) *view {
	v := &view{g: g, viewKey: key, made: time.Now()}
	v.scope.Store(g.scopeOf(key))
	g.views[key] = v
	return v
}
