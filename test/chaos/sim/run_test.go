package sim_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/sim"
	"github.com/mcpvisor/mcpvisor/transports"
)

// planScenario is a scenario resolved for the simulation.
func planScenario(t testing.TB, seed uint64, s scenario.Scenario) scenario.Plan {
	t.Helper()
	p, err := s.Plan(seed, scenario.Sim)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func run(t testing.TB, p scenario.Plan, o sim.Options) *history.History {
	t.Helper()
	h, err := sim.Run(t.Context(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	if testing.Verbose() {
		t.Log(historyText(t, h))
	}
	return h
}

func historyText(t testing.TB, h *history.History) string {
	t.Helper()
	var b bytes.Buffer
	if err := h.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// count counts the events that are like one: of its kind, and of its server, phase and method if it says so.
func count(h *history.History, like history.Event) (n int) {
	for _, e := range h.Events {
		if e.Kind == like.Kind && (like.Server == "" || e.Server == like.Server) && (like.Phase == "" || e.Phase == like.Phase) &&
			(like.Method == "" || e.Method == like.Method) && (like.Outcome == "" || e.Outcome == like.Outcome) {
			n++
		}
	}
	return n
}

func TestOneGoodServer(t *testing.T) {
	for _, kind := range []messages.TransportKind{messages.Stdio, messages.HTTP, messages.SSE, messages.WebSocket, messages.SDK} {
		for _, era := range []messages.Era{messages.EraLegacy, messages.EraModern} {
			if kind == messages.SSE && era == messages.EraModern {
				continue // the modern era has no such transport
			}
			t.Run(string(kind)+" "+string(era), func(t *testing.T) {
				h := run(t, planScenario(t, 1, scenario.Scenario{
					Name: "one", Duration: messages.Duration(time.Minute), Settle: messages.Duration(time.Minute),
					Servers: []scenario.Group{{Name: "s", Kind: kind, Era: era}},
					Load:    []scenario.Load{{Rate: 1}},
				}), sim.Options{})
				if n := count(h, history.Event{Kind: history.Phase, Phase: messages.Connected}); n != 1 {
					t.Errorf("connected %d times", n)
				}
				calls, ends := count(h, history.Event{Kind: history.Call}), count(h, history.Event{Kind: history.End, Outcome: messages.OutcomeResult})
				if calls < 60 || calls != ends || count(h, history.Event{Kind: history.Executed}) != calls {
					t.Errorf("%d calls, %d results, %d executions", calls, ends, count(h, history.Event{Kind: history.Executed}))
				}
				if n := count(h, history.Event{Kind: history.Released}); n != 1 {
					t.Errorf("released %d times", n)
				}
				for _, e := range h.Events {
					if e.Kind == history.Violation || e.Kind == history.Canary || e.House != nil && len(e.House.Left) > 0 {
						t.Errorf("%+v %+v", e, e.House)
					}
				}
				if !strings.Contains(historyText(t, h), `"after close"`) {
					t.Error("the house was not looked at after Close")
				}
			})
		}
	}
}

// A goroutine that the manager leaves behind is a violation of I12, and no failure of the harness.
// A verdict names its evidence by the places of events, and a report reads them from the written history.
func TestARunIsInTheOrderInWhichItIsWritten(t *testing.T) {
	h := run(t, planScenario(t, 7, scenario.Scenario{
		Name: "order", Duration: messages.Duration(5 * time.Second), Servers: []scenario.Group{{Name: "s1", Count: 3}},
		Faults: []scenario.Fault{{Fault: "crash", On: []string{"*"}, At: messages.Duration(time.Second)}},
	}), sim.Options{})
	read, err := history.Read(strings.NewReader(historyText(t, h)))
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range h.Events {
		if got := read.Events[i]; got.T != e.T || got.Server != e.Server || got.Kind != e.Kind {
			t.Fatalf("event %d of the run is %s of %q at %s, and in its file %s of %q at %s", i, e.Kind, e.Server, e.T, got.Kind, got.Server, got.T)
		}
	}
}

func TestAGoroutineThatIsLeftIsFound(t *testing.T) {
	s := scenario.Scenario{Name: "leak", Servers: []scenario.Group{{Name: "s"}}, Duration: messages.Duration(time.Second)}
	plan, err := s.Plan(1, scenario.Sim)
	if err != nil {
		t.Fatal(err)
	}
	h, err := sim.Run(t.Context(), plan, sim.Options{Config: func(c *supervisor.Config) {
		open := c.Transport
		c.Transport = func(name string, spec supervisor.Spec) (transports.Transport, error) {
			go func() { select {} }()
			return open(name, spec)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range invariant.Judge(h) {
		if v.ID == "I12" && (v.Answer != invariant.Violated || !strings.Contains(v.Why, "waits for ever in")) {
			t.Errorf("I12 %s: %s", v.Answer, v.Why)
		}
	}
}
