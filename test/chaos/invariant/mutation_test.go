package invariant_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/sim"
)

// goodDay is a recorded day on which the manager made no mistake: drops, a park and its probes, changed lists, calls all along.
func goodDay(t *testing.T) *history.History {
	t.Helper()
	at := func(d time.Duration) messages.Duration { return messages.Duration(d) }
	s := scenario.Scenario{
		Name: "good-day", Duration: at(5 * time.Minute),
		Servers: []scenario.Group{{Name: "drops", Count: 2}, {Name: "parks"}, {Name: "changes"}, {Name: "well"}, {Name: "asked"}, {Name: "offers", Offers: true},
			{Name: "lazy", Connect: messages.Lazy, IdleTimeout: at(5 * time.Second)}},
		Faults: []scenario.Fault{
			{Fault: "crash", On: scenario.Selector{"drops"}, At: at(70 * time.Second), Every: at(20 * time.Second), Times: 3},
			{Fault: "crash-loop", On: scenario.Selector{"parks"}, At: at(70 * time.Second), For: at(4 * time.Minute)},
			{Fault: "list-changed", On: scenario.Selector{"changes"}, At: at(80 * time.Second), Every: at(30 * time.Second), Times: 4},
			{Fault: "hang-call", On: scenario.Selector{"changes"}, At: at(2 * time.Minute), For: at(20 * time.Second)},
		},
		Commands: []scenario.Command{
			{Do: "disable", On: scenario.Selector{"asked"}, At: at(250 * time.Second)}, {Do: "enable", On: scenario.Selector{"asked"}, At: at(251 * time.Second)},
			{Do: "reconnect", On: scenario.Selector{"asked"}, At: at(252 * time.Second)}, {Do: "configure", At: at(253 * time.Second)},
		},
		Load: []scenario.Load{
			{On: scenario.Selector{"well"}, Tool: "write", Rate: 5}, {On: scenario.Selector{"drops", "changes"}, Tool: "write", Rate: 0.3,
				Timeout: at(10 * time.Second)},
			{On: scenario.Selector{"lazy"}, Tool: "read", Rate: 0.1}, {On: scenario.Selector{"offers"}, Read: "prompt", Rate: 0.3},
			{On: scenario.Selector{"asked"}, Tool: "write", Rate: 1, Cancel: 0.3},
		},
		Agents: []scenario.Agents{
			{As: "anna", For: at(time.Minute)}, {As: "ben", Over: scenario.OverHTTP, For: at(time.Minute)},
			{As: "ben", Era: messages.EraModern, View: "changes", From: at(time.Minute), For: at(2 * time.Minute)},
		},
		Manager: scenario.Manager{Probe: at(30 * time.Second), StdioPark: 3},
	}
	p, err := s.Plan(7, scenario.Sim)
	if err != nil {
		t.Fatal(err)
	}
	h, err := sim.Run(t.Context(), p, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &history.History{Plan: h.Plan, Events: h.Canonical()}
}

// placesOf is the places of the events that fit.
func placesOf(events []history.Event, fits func(e *history.Event) bool) (at []int) {
	for i := range events {
		if fits(&events[i]) {
			at = append(at, i)
		}
	}
	return at
}

func ofKind(k history.Kind) func(*history.Event) bool {
	return func(e *history.Event) bool { return e.Kind == k }
}

// mutation is one way in which a record would differ if the manager had made a mistake.
type mutation struct {
	id, name string
	// where are the events at which it can be made; make makes it at one of them.
	where func(e *history.Event) bool
	make  func(events []history.Event, at int) []history.Event
}

func dropEvent(events []history.Event, at int) []history.Event {
	return slices.Delete(events, at, at+1)
}

func doubleEvent(change func(e *history.Event)) func([]history.Event, int) []history.Event {
	return func(events []history.Event, at int) []history.Event {
		e := events[at]
		change(&e)
		return slices.Insert(events, at+1, e)
	}
}

func changeEvent(change func(e *history.Event)) func([]history.Event, int) []history.Event {
	return func(events []history.Event, at int) []history.Event {
		change(&events[at])
		return events
	}
}

// dropFollowing drops every event that fits from a place on.
func dropFollowing(fits func(e *history.Event) bool) func([]history.Event, int) []history.Event {
	return func(events []history.Event, at int) []history.Event {
		rest := slices.DeleteFunc(slices.Clone(events[at:]), func(e history.Event) bool { return fits(&e) })
		return append(events[:at:at], rest...)
	}
}

func allMutations() []mutation {
	eventOf := func(server string) func(e *history.Event) bool {
		return func(e *history.Event) bool { return e.Server == server }
	}
	state := func(e *history.Event, phase string) bool {
		return e.Kind == history.Snapshot && slices.ContainsFunc(e.Entries, func(x history.Entries) bool { return x.State == phase })
	}
	call := func(e *history.Event) bool { return e.Kind == history.Received && e.Method == "tools/call" }
	agentCall := func(e *history.Event) bool {
		return e.Kind == history.Replied && e.Method == "tools/call" && e.About != ""
	}
	return []mutation{
		{"I1", "what is lost is shown as live", func(e *history.Event) bool { return state(e, "lost") }, changeEvent(func(e *history.Event) {
			e.Entries = slices.Clone(e.Entries)
			for i := range e.Entries {
				if e.Entries[i].State == "lost" {
					e.Entries[i].State = "live"
				}
			}
		})},
		{"I1", "live entries of another epoch", func(e *history.Event) bool { return state(e, "live") }, changeEvent(func(e *history.Event) {
			e.Entries = slices.Clone(e.Entries)
			e.Entries[0].Epoch += 1000
		})},
		{"I2", "a call has no end", ofKind(history.End), dropEvent},
		{"I2", "a call ends twice", ofKind(history.End), doubleEvent(func(e *history.Event) { e.T += time.Second })},
		{"I2", "a call ends a minute late", ofKind(history.End), changeEvent(func(e *history.Event) { e.T += 2 * time.Minute })},
		{"I2", "who gives up waits on", func(e *history.Event) bool { return e.Kind == history.End && e.Class == messages.ClassCanceled }, changeEvent(func(e *history.Event) {
			e.T += time.Second
		})},
		{"I3", "a call is executed twice", ofKind(history.Executed), doubleEvent(func(e *history.Event) { e.T++; e.Value++ })},
		{"I3", "an execution is called not sent", func(e *history.Event) bool { return e.Kind == history.End && e.Outcome == messages.OutcomeResult },
			changeEvent(func(e *history.Event) { e.Outcome, e.Class = messages.OutcomeNotSent, messages.ClassNetwork })},
		{"I3", "a result out of nothing", ofKind(history.Executed), dropEvent},
		{"I3", "a result of another count", func(e *history.Event) bool { return e.Kind == history.End && e.Value > 0 },
			changeEvent(func(e *history.Event) { e.Value += 7000 })},
		{"I4", "a request is written after its end", call, changeEvent(func(e *history.Event) { e.T += 2 * time.Minute })},
		{"I4", "no cancellation is sent", func(e *history.Event) bool {
			return e.Kind == history.Received && e.Method == "notifications/cancelled" && e.Server != "asked" // where some are given up with their answer
		}, dropEvent},
		{"I5", "a generation falls", func(e *history.Event) bool { return e.Kind == history.Snapshot && e.Generation > 3 },
			changeEvent(func(e *history.Event) { e.Generation -= 2 })},
		{"I5", "a generation stands", func(e *history.Event) bool {
			return e.Kind == history.Snapshot && e.Generation > 3 && len(e.Entries) > 0
		},
			doubleEvent(func(*history.Event) {})},
		{"I6", "a connection is not released before the next", func(e *history.Event) bool {
			return e.Kind == history.Released && strings.HasPrefix(e.Server, "drops") && e.T < 2*time.Minute
		}, dropEvent},
		{"I7", "a dial comes too early", func(e *history.Event) bool { return e.Kind == history.Open && e.Conn > 4 && e.Server == "parks" },
			changeEvent(func(e *history.Event) { e.T -= 5 * time.Second })},
		{"I7", "a park counts as a retry", func(e *history.Event) bool { return e.Kind == history.Phase && e.Retry == messages.RetryParked },
			changeEvent(func(e *history.Event) { e.Retry = messages.RetryAt })},
		{"I7", "the published time is another", func(e *history.Event) bool { return e.Kind == history.Phase && e.Next > 0 },
			changeEvent(func(e *history.Event) { e.Next += 10 * time.Minute })},
		{"I8", "a phase that cannot follow", func(e *history.Event) bool { return e.Kind == history.Phase && e.Step == messages.Dialing },
			changeEvent(func(e *history.Event) { e.Step = messages.Listing })},
		{"I8", "disabled by nobody", func(e *history.Event) bool {
			return e.Phase == messages.Connected && e.Kind == history.Phase && e.Server != "asked"
		},
			doubleEvent(func(e *history.Event) { e.Phase = messages.Disabled })},
		{"I9", "a list without a reason", func(e *history.Event) bool { return e.Kind == history.Listed && e.Server == "well" },
			doubleEvent(func(e *history.Event) {
				e.Kind, e.Method, e.ID, e.T = history.Received, "tools/list", "77", e.T+3*time.Second
			})},
		{"I10", "a secret comes out", ofKind(history.Heal), doubleEvent(func(e *history.Event) { e.Kind, e.Text = history.Canary, "status" })},
		{"I11", "not connected after the heal", ofKind(history.Heal), dropFollowing(func(e *history.Event) bool {
			return e.Server == "parks" && e.Kind == history.Phase
		})},
		{"I12", "a goroutine is left", func(e *history.Event) bool { return e.House != nil && e.Text == "after close" },
			changeEvent(func(e *history.Event) {
				house := *e.House
				house.Goroutines += 100
				e.House = &house
			})},
		{"I12", "a connection is never released", func(e *history.Event) bool { return e.Kind == history.Released && e.Server == "well" }, dropEvent},
		{"I13", "no probe of what is parked", func(e *history.Event) bool { return e.Kind == history.Phase && e.Retry == messages.RetryParked }, dropFollowing(eventOf("parks"))},
		{"I14", "a change is not shown", func(e *history.Event) bool {
			return e.Kind == history.Snapshot && e.T > 80*time.Second && len(e.Entries) == 1 && e.Entries[0].Server == "changes" && e.Entries[0].State == "live"
		}, dropEvent},
		{"I15", "a call to a healthy server fails", func(e *history.Event) bool {
			return e.Kind == history.End && e.Server == "well" && e.T > 90*time.Second && e.T < 4*time.Minute
		}, changeEvent(func(e *history.Event) { e.Outcome = messages.OutcomeUnknown })},
		{"I17", "a lazy server rests too soon", func(e *history.Event) bool { return e.Kind == history.Phase && e.Step == messages.Idle },
			changeEvent(func(e *history.Event) { e.T -= 3 * time.Second })},
		{"I18", "a server does not stand in the status", func(e *history.Event) bool { return e.Kind == history.Status && e.Text != "now and then" }, dropEvent},
		{"I19", "a call is not told to have ended", func(e *history.Event) bool { return e.Kind == history.CallReported && e.Outcome != "" }, dropEvent},
		{"I20", "an old state is read", func(e *history.Event) bool { return e.Kind == history.ReadEnd && e.Rev > 2 },
			changeEvent(func(e *history.Event) { e.Rev -= 2 })},
		{"I21", "a call is sent late", func(e *history.Event) bool { return call(e) && e.Server == "well" && e.T > 20*time.Second }, changeEvent(func(e *history.Event) {
			e.T += 2 * time.Millisecond
		})},
		{"I22", "who asks hears of another phase", ofKind(history.Status), changeEvent(func(e *history.Event) { e.Since -= time.Second })},
		{"I22", "a restart is counted twice", func(e *history.Event) bool { return e.Kind == history.Phase && e.Restarts > 0 },
			changeEvent(func(e *history.Event) { e.Restarts += 20 })},
		{"I23", "a server saw what no client may send", ofKind(history.Received), doubleEvent(func(e *history.Event) {
			e.Side, e.Kind, e.Name, e.Text = history.Harness, history.Violation, "I23", "it was sent initialize again"
		})},
		{"I16", "a command has no answer", ofKind(history.Done), dropEvent},
		{"I16", "a command is refused", ofKind(history.Done), changeEvent(func(e *history.Event) { e.Class, e.Text = messages.ClassInvalid, "no" })},
		{"I24", "the answer to another call", agentCall, changeEvent(func(e *history.Event) { e.About = "a9-9" })},
		{"I24", "a question about the call of another agent", agentCall, doubleEvent(func(e *history.Event) {
			e.Kind, e.Method, e.About, e.Code, e.Outcome = history.Questioned, "elicitation/create", "a9-9", 0, ""
		})},
		{"I24", "an update of what nobody watches", agentCall, doubleEvent(func(e *history.Event) {
			e.Kind, e.Method, e.About, e.ID = history.Noticed, "notifications/resources/updated", "chaos://well/one", ""
		})},
		{"I24", "a session of another principal is open", func(e *history.Event) bool { return e.Kind == history.Replied && e.Code == 401 },
			changeEvent(func(e *history.Event) { e.Code = 200 })},
		{"I25", "an answer twice", ofKind(history.Replied), doubleEvent(func(*history.Event) {})},
		{"I25", "an answer to nothing", ofKind(history.Replied), changeEvent(func(e *history.Event) { e.ID = "4711" })},
		{"I25", "another error than that of the protocol", func(e *history.Event) bool { return e.Name == "unknown-method" && e.Kind == history.Replied },
			changeEvent(func(e *history.Event) { e.Code = 0 })},
		{"I26", "a list lacks a server", func(e *history.Event) bool { return e.Kind == history.Replied && len(e.Entries) > 0 },
			changeEvent(func(e *history.Event) { e.Entries = e.Entries[1:] })},
		{"I26", "a list has what no server has", func(e *history.Event) bool { return e.Kind == history.Replied && len(e.Entries) > 0 },
			changeEvent(func(e *history.Event) {
				e.Entries = slices.Clone(e.Entries)
				e.Entries[0].Hash = "ffff"
			})},
		{"I26", "an agent is told of no change", func(e *history.Event) bool { return agentCall(e) && e.T > 10*time.Second && e.T < 55*time.Second },
			doubleEvent(func(e *history.Event) {
				e.Kind, e.Method, e.About, e.ID, e.Code = history.Noticed, "notifications/tools/list_changed", "", "", 0
			})},
		{"I26", "an agent is not told of a change", ofKind(history.Joined), dropFollowing(func(e *history.Event) bool {
			return e.Kind == history.Noticed && e.Method == "notifications/tools/list_changed" || e.Kind == history.Replied && e.Method == "tools/list" && e.T > 70*time.Second
		})},
		{"I27", "the text says that it is safe", func(e *history.Event) bool { return e.Kind == history.End && e.Agent != "" }, changeEvent(func(e *history.Event) {
			e.Outcome, e.Text = messages.OutcomeUnknown, "it is gone. Nothing was sent to the server, so calling again cannot run it twice."
		})},
		{"I27", "a result is told as not sent", func(e *history.Event) bool {
			return e.Kind == history.End && e.Agent != "" && e.Outcome == messages.OutcomeResult
		},
			changeEvent(func(e *history.Event) { e.Outcome = messages.OutcomeNotSent })},
		{"I27", "another server has the call", func(e *history.Event) bool { return e.Kind == history.Executed && strings.HasPrefix(e.Call, "a") },
			changeEvent(func(e *history.Event) { e.Tool += "x" })},
		{"I28", "a server is asked twice to watch", func(e *history.Event) bool { return e.Kind == history.Opened && e.Server == "offers" },
			func(events []history.Event, at int) []history.Event {
				asked := events[at]
				asked.Kind, asked.Method = history.Received, "resources/subscribe"
				answered := asked
				answered.Kind = history.Answered
				second := asked
				second.T += time.Second
				return slices.Insert(events, at+1, asked, answered, second)
			}},
		{"I28", "something is kept", ofKind(history.Closing), doubleEvent(func(e *history.Event) {
			e.Side, e.Kind, e.Name, e.Text = history.Harness, history.Violation, "I28", "the gateway keeps a session"
		})},
		{"I29", "a counter is wrong", ofKind(history.Closing), doubleEvent(func(e *history.Event) {
			e.Side, e.Kind, e.Name, e.Text = history.Harness, history.Violation, "I29", "a restart.Gate contradicts itself"
		})},
	}
}

// TestMutationsOfAGoodDay makes each mistake at several places of a record without mistakes; the right check sees each.
func TestMutationsOfAGoodDay(t *testing.T) {
	good := goodDay(t)
	for _, v := range invariant.Judge(good) {
		if v.Answer == invariant.Violated {
			t.Fatalf("the good day violates %s: %s", v.ID, v.Why)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	caught := map[string]bool{}
	for _, m := range allMutations() {
		check, ok := invariant.Find(m.id)
		places := placesOf(good.Events, m.where)
		if !ok || len(places) == 0 {
			t.Errorf("%s: %s: the day has no place for it", m.id, m.name)
			continue
		}
		for range min(len(places), 5) {
			at := places[r.IntN(len(places))]
			bad := &history.History{Plan: good.Plan, Events: m.make(slices.Clone(good.Events), at)}
			if v := check.Judge(bad); v.Answer != invariant.Violated {
				t.Errorf("%s: %s (event %d: %+v): %s %s", m.id, m.name, at, good.Events[at], v.Answer, v.Why)
				break
			}
			caught[m.id] = true
		}
	}
	for _, id := range scenario.Invariants {
		if !caught[id] {
			t.Errorf("no mutation is caught by %s: a check that cannot fail", id)
		}
	}
}
