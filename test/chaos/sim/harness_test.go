package sim_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/sim"
	"github.com/mcpvisor/mcpvisor/transports"
	faults "github.com/mcpvisor/mcpvisor/transports/fault"
)

// These tests break the manager on purpose, to see that the simulation says so.

// minutePlan is a minute with two servers and some calls.
func minutePlan(t testing.TB) scenario.Plan {
	t.Helper()
	return planScenario(t, 1, scenario.Scenario{
		Name: "minute", Duration: messages.Duration(30 * time.Second), Settle: messages.Duration(30 * time.Second),
		Servers: []scenario.Group{{Name: "a"}, {Name: "b"}}, Load: []scenario.Load{{Rate: 1}},
	})
}

// violationTexts are the texts of what only the harness sees.
func violationTexts(h *history.History) (texts []string) {
	for _, e := range h.Events {
		if e.Kind == history.Violation {
			texts = append(texts, e.Server+": "+e.Text)
		}
	}
	return texts
}

// leftGoroutines are the goroutines that were left after Close.
func leftGoroutines(h *history.History) (all []string) {
	for _, e := range h.Events {
		if e.House != nil {
			all = append(all, e.House.Left...)
		}
	}
	return all
}

// withMiddleware puts something in front of every message of the actors of that name.
func withMiddleware(name string, do func(c actor.ReceiverContext, message any)) sim.Options {
	return withMiddlewareOf(func(actorName string) bool { return actorName == name }, do)
}

// withMiddlewareOf is withMiddleware for all actors whose names are chosen.
func withMiddlewareOf(chosen func(actorName string) bool, do func(c actor.ReceiverContext, message any)) sim.Options {
	return sim.Options{Config: func(cfg *supervisor.Config) {
		own := cfg.ActorOptions
		cfg.ActorOptions = func(actorName string) []actor.PropsOption {
			options := own(actorName)
			if !chosen(actorName) {
				return options
			}
			return append(options, actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
				return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
					do(c, envelope.Message)
					next(c, envelope)
				}
			}))
		}
	}}
}

func TestGoodMinute(t *testing.T) {
	h := run(t, minutePlan(t), sim.Options{})
	if v, l := violationTexts(h), leftGoroutines(h); len(v)+len(l) > 0 {
		t.Errorf("%q %q", v, l)
	}
}

func TestBlockedActorIsFound(t *testing.T) {
	once := true
	h := run(t, minutePlan(t), withMiddleware("server/b", func(actor.ReceiverContext, any) {
		if once {
			once = false
			time.Sleep(3 * time.Second)
		}
	}))
	v := violationTexts(h)
	if len(v) != 1 || !strings.HasPrefix(v[0], "b: the actor server/b blocks while it handles *actor.Started") {
		t.Errorf("%q", v)
	}
	if n := count(h, history.Event{Kind: history.Phase, Phase: messages.Connected}); n != 2 {
		t.Errorf("%d servers were connected all the same, not 2", n)
	}
}

// TestEachBlockedActorIsFoundAtItsPlace: several actors block at one place, and each violation names it.
func TestEachBlockedActorIsFoundAtItsPlace(t *testing.T) {
	blocked := map[string]bool{}
	h := run(t, minutePlan(t), withMiddlewareOf(func(name string) bool { return strings.HasPrefix(name, "server/") }, func(c actor.ReceiverContext, message any) {
		if _, started := message.(*actor.Started); started && !blocked[c.Self().Id] {
			blocked[c.Self().Id] = true
			time.Sleep(3 * time.Second)
		}
	}))
	v := violationTexts(h)
	if len(v) != 2 {
		t.Errorf("%q", v)
	}
	for _, text := range v {
		if !strings.Contains(text, "and its mailbox waits: it sleeps in test/chaos/sim_test.") {
			t.Errorf("%s", text)
		}
	}
}

func TestEndlessTalkEndsTheRun(t *testing.T) {
	type repeated struct{}
	h := run(t, minutePlan(t), withMiddleware("entry", func(c actor.ReceiverContext, message any) {
		switch message.(type) {
		case *actor.Started, repeated:
			c.ActorSystem().Root.Send(c.Self(), repeated{})
		}
	}))
	if v := violationTexts(h); len(v) != 1 || !strings.Contains(v[0], "the actor entry handled") {
		t.Errorf("%q", v)
	}
}

func TestPanicOfAnActorIsFound(t *testing.T) {
	once := true
	h := run(t, minutePlan(t), withMiddleware("server/a", func(_ actor.ReceiverContext, message any) {
		if _, started := message.(*actor.Started); !started && once {
			once = false
			panic("told to")
		}
	}))
	if v := violationTexts(h); len(v) == 0 || !strings.Contains(v[0], "told to") {
		t.Errorf("%q", v)
	}
}

func TestLeftGoroutineIsFound(t *testing.T) {
	h := run(t, minutePlan(t), sim.Options{Config: func(cfg *supervisor.Config) {
		once := true
		cfg.Sanitize = func(_ *supervisor.Tool, result json.RawMessage) json.RawMessage {
			if once {
				once = false
				go leftBehind(make(chan int))
			}
			return result
		}
	}})
	if l := leftGoroutines(h); len(l) != 1 || !strings.Contains(l[0], "waits for something to receive in") || !strings.Contains(l[0], "leftBehind") {
		t.Errorf("%q", l)
	}
}

func TestSecretInTheLogIsFound(t *testing.T) {
	h := run(t, minutePlan(t), sim.Options{Config: func(cfg *supervisor.Config) {
		own := cfg.Transport
		cfg.Transport = func(name string, spec supervisor.Spec) (transports.Transport, error) {
			if name == "a" {
				cfg.Logger.Info("starting with " + spec.Env["API_TOKEN"])
				cfg.Logger.Info("starting \x1b[2J")
			}
			return own(name, spec)
		}
	}})
	var texts []string
	for _, e := range h.Events {
		if e.Kind == history.Canary {
			texts = append(texts, e.Text)
		}
	}
	if len(texts) != 2 || !strings.Contains(texts[0], "a control character") || !strings.Contains(texts[1], "a secret") { // in one instant
		t.Errorf("%q", texts)
	}
}

// TestCommands: each command is asked of the manager, and answered.
func TestCommands(t *testing.T) {
	s := scenario.Scenario{Name: "owner", Duration: messages.Duration(time.Minute), Settle: messages.Duration(time.Minute),
		Servers: []scenario.Group{{Name: "s", Count: 3}, {Name: "h", Kind: messages.HTTP}, {Name: "sdk", Kind: messages.SDK}}}
	order := []string{"disable", "enable", "reconnect", "refresh", "disconnect", "enable", "respec", "remove", "add", "configure", "wake",
		scenario.DisconnectAll, scenario.ConnectAll}
	for i, do := range order {
		s.Commands = append(s.Commands, scenario.Command{Do: do, At: messages.Duration(time.Duration(i+1) * 3 * time.Second)})
	}
	h := run(t, planScenario(t, 1, s), sim.Options{})
	for _, do := range order {
		// A command to all servers is one event for each that it does something about.
		recorded := scenario.ActionOf(do, messages.Disabled, "")
		if do != scenario.ConnectAll && do != scenario.DisconnectAll {
			recorded = do
		}
		commanded, done := count(h, history.Event{Kind: history.Command, Method: recorded}), count(h, history.Event{Kind: history.Done, Method: recorded})
		if commanded == 0 || commanded != done {
			t.Errorf("%s: asked %d times, answered %d times", do, commanded, done)
		}
	}
	for _, e := range h.Events {
		if e.Kind == history.Done && e.Class != "" {
			t.Errorf("%s %s: %s %s", e.Method, e.Server, e.Class, e.Text)
		}
	}
	if v, l := violationTexts(h), leftGoroutines(h); len(v)+len(l) > 0 {
		t.Errorf("%q %q", v, l)
	}
}

// TestEveryFault: each fault of the catalogue, on every kind of server that it belongs to, comes to an end with everybody
// home again.
func TestEveryFault(t *testing.T) {
	fired := map[string]bool{}
	tried := map[string]bool{}
	for _, f := range faults.Kinds() {
		if !f.Where.Has(faults.Sim) {
			continue
		}
		s := scenario.Scenario{Name: "fault", Duration: messages.Duration(time.Minute), Settle: messages.Duration(2 * time.Minute),
			Load: []scenario.Load{{Rate: 0.2}}}
		for _, kind := range scenario.Kinds {
			for _, era := range scenario.Eras {
				if f.Applies(kind, era) && (kind != messages.SSE || era == messages.EraLegacy) {
					s.Servers = append(s.Servers, scenario.Group{Name: string(kind) + "-" + string(era), Kind: kind, Era: era})
				}
			}
		}
		if len(s.Servers) == 0 {
			s.Servers = []scenario.Group{{Name: "s"}, {Name: "h", Kind: messages.HTTP}}
		}
		s.Faults = []scenario.Fault{{Fault: f.Name, At: messages.Duration(20 * time.Second), For: messages.Duration(40 * time.Second)},
			{Fault: "crash", At: messages.Duration(30 * time.Second)}}
		tried[f.Name] = true
		p, err := s.Plan(1, scenario.Sim)
		if err != nil {
			t.Errorf("%s cannot be planned: %v", f.Name, err)
			continue
		}
		h, err := sim.Run(context.Background(), p, sim.Options{})
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		for _, e := range h.Events {
			if e.Kind == history.Fired {
				fired[e.Name] = true
			}
		}
		if v, l := violationTexts(h), leftGoroutines(h); len(v)+len(l) > 0 {
			t.Errorf("%s: %q %q", f.Name, v, l)
		}
	}
	if len(fired) < len(tried)/2 { // some need a cancelled call, or a stop ladder: package peer tries them
		t.Errorf("only %d of %d faults had an effect", len(fired), len(tried))
	}
}

func TestPlanOfTheOtherTier(t *testing.T) {
	p := minutePlan(t)
	p.Tier = scenario.Real
	if _, err := sim.Run(t.Context(), p, sim.Options{}); err == nil {
		t.Error("a plan for real processes was simulated")
	}
	p.Tier, p.Faults = scenario.Sim, []scenario.PlannedFault{{ID: 1, Fault: "crash", Server: "nobody"}}
	if _, err := sim.Run(t.Context(), p, sim.Options{}); err == nil {
		t.Error("a fault on a server that is not there is no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sim.Run(ctx, minutePlan(t), sim.Options{}); err == nil {
		t.Error("a run with an ended context is no error")
	}
}
