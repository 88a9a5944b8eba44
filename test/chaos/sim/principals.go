package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// principals is a second manager beside that of the plan, if the scenario wants one (manager: principals). Its two servers have an
// instance for each of several callers, who call by turns; its owner gives commands, and its servers break. It is a manager of
// its own so that the judges of the plan's servers, who know one connection for each, see none of it. What is promised of instances is
// judged by principals_judge.go while the day goes on, and recorded as violations.
type principals struct {
	world *simulation
	rng   *rand.Rand
	// servers are the two of the plan of this manager, by name.
	servers map[string]scenario.Server
	// longCalls is the one whose calls take longer than its instances may be idle, if any.
	longCalls string
	// limits are those of both managers together, on half of the days with the second one; nil otherwise. Its servers are then in the
	// program, of which more may start at once than there are, so that no other server waits for them.
	limits *supervisor.SharedLimits
	// started holds the manager once it has started, which takes turns of its actors.
	started chan *supervisor.Manager
	manager *supervisor.Manager
	// agents come to the manager through a gateway, from its start on.
	agents *principalAgents
	// off and removed are the servers that the owner has disabled or removed, since when.
	off, removed map[string]time.Duration
	// commanded says when the owner gave the last command about each server.
	commanded map[string]time.Duration
	callCount int
	// closing is set when the end of every instance is due.
	closing atomic.Bool

	mu sync.Mutex
	// hosts are the servers' ends, one for each instance, by its name.
	hosts map[string]*simServer
	// calls says of each call who made it. use says of each instance, and of each server, when it was used.
	calls map[string]principalCall
	use   map[string]*instanceUse
	specs map[string]messages.Spec
	// watches says of each instance whether its resource is watched. watcher has the manager's events.
	watches map[string]*instanceWatch
	watcher *supervisor.Watcher
	// story holds the last things that happened, for a violation's text.
	story []string
}

// principalCall is a call of one caller.
type principalCall struct{ server, caller, tool string }

// instanceUse is what the harness knows of the use of an instance.
type instanceUse struct {
	running int
	last    time.Duration
	// reached is the last time at which a call of its caller came to the server, or was answered by it: those that are refused before are no use.
	reached    time.Duration
	subscribed bool
	// disturbed is the last time at which something else than idleness may have ended it: a fault, or a command of the owner.
	disturbed time.Duration
}

// The callers: one without a name, and one whose name cannot stand in an instance's.
var principalNames = []string{"", "anna", "ben", "carl", "dora d'Arc"}

const (
	// refusedCaller may not call refusedPut, by Config.Allow; deniedTool is denied of the server notes, by a rule.
	refusedCaller, refusedPut = "ben", "put"
	rulesServer, deniedTool   = "notes", "write"
)

// makeServers makes the servers of the second manager, if the scenario wants it.
func (p *principals) makeServers(w *simulation) error {
	p.world = w
	if !w.plan.Scenario.Manager.Principals {
		return nil
	}
	p.rng = rand.New(rand.NewPCG(w.plan.Seed, seedOf("principals")))
	kinds := []messages.TransportKind{messages.Stdio, messages.HTTP, messages.SDK, messages.WebSocket}
	eras := []messages.Era{messages.EraLegacy, messages.EraModern}
	if w.program.drawOne("shared limits", 2) {
		p.limits = supervisor.NewSharedLimits(w.plan.Limits, 0)
		kinds = slices.Repeat([]messages.TransportKind{messages.SDK}, 4)
	}
	plan, err := scenario.Scenario{Name: "principals", Servers: []scenario.Group{
		{Name: "mail", Kind: kinds[p.rng.IntN(4)], Era: eras[p.rng.IntN(2)], Offers: true},
		{Name: rulesServer, Kind: kinds[p.rng.IntN(4)], Era: eras[p.rng.IntN(2)]},
	}}.Plan(w.plan.Seed, scenario.Sim)
	if err != nil {
		return err
	}
	// A call that takes longer than an instance may be idle uses it until its end.
	if w.program.drawOne("calls longer than idleness", 2) {
		long := p.rng.IntN(len(plan.Servers))
		plan.Servers[long].Latency, p.longCalls = 4*time.Second, plan.Servers[long].Name
	}
	p.servers, p.specs = map[string]scenario.Server{}, map[string]messages.Spec{}
	for _, s := range plan.Servers {
		canary := canaryOf(w.plan.Seed, "principals "+s.Name)
		w.secrets.canaries[canary] = s.Kind != messages.SDK
		spec := specOf(s, canary)
		spec.Share, spec.MaxInstances = messages.SharePrincipal, 2+p.rng.IntN(3)
		spec.InstanceIdle = p.drawIdle(s.Name)
		p.servers[s.Name], p.specs[s.Name] = s, spec
	}
	p.hosts, p.calls, p.use = map[string]*simServer{}, map[string]principalCall{}, map[string]*instanceUse{}
	p.off, p.removed, p.started = map[string]time.Duration{}, map[string]time.Duration{}, make(chan *supervisor.Manager, 1)
	p.commanded = map[string]time.Duration{}
	return nil
}

// drawIdle draws the time after which an unused instance of a server ends.
func (p *principals) drawIdle(server string) messages.Duration {
	idle := 20 + p.rng.IntN(100)
	if server == p.longCalls {
		idle = 1 + idle%3
	}
	return messages.Duration(idle) * messages.Duration(time.Second)
}

// startManager starts the manager and plans the first step. Only the loop calls it.
func (p *principals) startManager() {
	if p.servers == nil {
		return
	}
	cfg, specs := p.managerConfig(), p.currentSpecs()
	p.world.users.runAsUser(func() {
		m, err := supervisor.Start(context.Background(), cfg)
		if err != nil {
			p.reportViolation("I20", "", "the manager of the callers' instances cannot be started: "+err.Error())
			return
		}
		if res, err := m.SetServers(context.Background(), specs); err != nil || len(res.Errors) > 0 {
			p.reportViolation("I20", "", fmt.Sprintf("the servers with instances are refused: %v, %v", res.Errors, err))
		}
		p.started <- m
	})
	p.world.timeline.planAction(p.world.virtualNow+time.Second, "", p.takeStep)
	p.world.timeline.planAction(p.world.virtualNow+glanceEvery/3, "", p.glance)
}

// managerConfig is the manager's configuration: its own two servers, a rule, and a hook that refuses one caller.
func (p *principals) managerConfig() supervisor.Config {
	plan := &p.world.plan
	return supervisor.Config{
		Logger: p.world.secrets.newLogger(p.world), AuthStore: auth.NewMemory(), ActorOptions: p.world.turns.actorOptions,
		Restart: plan.Policy, Gate: plan.Limits, SharedLimits: p.limits, WithdrawAfter: plan.WithdrawAfter, CallWait: plan.CallWait,
		Rand:   rand.New(rand.NewPCG(plan.Seed, seedOf("principals restart"))).Float64,
		Access: access.Rules{Own: access.Set{Rules: []access.Rule{access.MustParse(access.Deny, "mcp__"+rulesServer+"__"+deniedTool)}}},
		Allow: func(ctx context.Context, tool *supervisor.Tool, _ json.RawMessage) error {
			if _, own := p.servers[tool.Server]; !own {
				p.reportViolation("I1", tool.Server, "Config.Allow was asked about a tool of "+tool.Server+", which no entry names")
			}
			if supervisor.CallerOf(ctx) == refusedCaller && tool.Name == refusedPut {
				return errors.New("not for this caller")
			}
			return nil
		},
		Elicit: func(ctx context.Context, r supervisor.ElicitRequest) (supervisor.ElicitResult, error) {
			return supervisor.ElicitResult{Action: messages.ElicitAccept, Content: answerFor(supervisor.CallerOf(ctx))}, waitThinking(ctx, r.Message)
		},
		Sample: func(ctx context.Context, r supervisor.SampleRequest) (json.RawMessage, error) {
			return replyFor("sampling/createMessage", supervisor.CallerOf(ctx)), waitThinking(ctx, string(r.Params))
		},
		Roots: func(ctx context.Context, _ string) ([]supervisor.Root, error) {
			return []supervisor.Root{{URI: "file:///" + supervisor.CallerOf(ctx), Name: "work"}}, nil
		},
		Transport: p.makeTransport,
	}
}

// currentSpecs returns a copy of the specs of the servers that are not removed.
func (p *principals) currentSpecs() map[string]messages.Spec {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]messages.Spec{}
	for name, spec := range p.specs {
		if _, gone := p.removed[name]; !gone {
			all[name] = spec
		}
	}
	return all
}

// makeTransport makes the transport of a server or an instance, with a server's end of its own.
func (p *principals) makeTransport(server string, spec messages.Spec) (transports.Transport, error) {
	planned, known := p.servers[server]
	if !known || spec.InstanceOf != "" && spec.InstanceOf != server {
		return nil, fmt.Errorf("there is no server %q", server)
	}
	name := nameFor(server, spec.Principal)
	p.mu.Lock()
	h := p.hosts[name]
	if h == nil {
		planned.Name = name
		canary := canaryOf(p.world.plan.Seed, "principals "+server)
		machine := p.world.options.Machine(peer.Config{Server: planned, Seed: seedOf(fmt.Sprint(p.world.plan.Seed), "peer", name), Canaries: []string{canary}})
		h = newSimServer(p.world, planned, machine, canary)
		h.record = func(e history.Event) { p.recordHost(name, spec.Principal, e) }
		p.hosts[name] = h
	}
	p.mu.Unlock()
	t := newTransport(h.server.Kind, h.serverLabel(), spec, h)
	if t.Emulated == messages.HTTP || t.Emulated == messages.SSE {
		t.token = &h.token
	}
	t.onDial = func(ctx context.Context) {
		p.checkCaller(name, spec.Principal, messages.CallerOf(ctx), "dial")
	}
	return t, nil
}

// useOf returns what is known of the use of an instance. The caller holds mu.
func (p *principals) useOf(name string) *instanceUse {
	u := p.use[name]
	if u == nil {
		u = &instanceUse{}
		p.use[name] = u
	}
	return u
}

// nameFor returns the name of a caller's instance of a server; the server's own for a caller without a name.
func nameFor(server, caller string) string {
	if caller == "" {
		return server
	}
	return messages.InstanceName(server, caller)
}

// reportViolation records a violation, with what happened last.
func (p *principals) reportViolation(invariant, server, text string) {
	p.mu.Lock()
	story := slices.Clone(p.story[max(0, len(p.story)-6):])
	p.mu.Unlock()
	p.reportWith(invariant, server, text, story)
}

func (p *principals) reportWith(invariant, server, text string, story []string) {
	if len(story) > 0 {
		text += "; before it: " + fmt.Sprint(story)
	}
	p.world.rec.Add(history.Event{T: p.world.elapsedTime(), Side: history.Harness, Kind: history.Violation, Name: invariant, Server: server, Text: text})
}

// tellStory adds to the story.
func (p *principals) tellStory(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tellLocked(format, args...)
}

func (p *principals) tellLocked(format string, args ...any) {
	if len(p.story) > 40 {
		p.story = slices.Delete(p.story, 0, 20)
	}
	p.story = append(p.story, fmt.Sprintf("%s ", p.world.elapsedTime().Round(time.Millisecond))+fmt.Sprintf(format, args...))
}
