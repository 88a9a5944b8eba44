package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/sim"
)

// The answer whose stream breaks in the middle comes on the stream that is resumed, if the server numbers its events; if it does not, the call
// has no answer. So the days try what the program's own HTTP client does about broken streams.
func TestBrokenStreamsAreResumed(t *testing.T) {
	results := map[string]int{}
	for _, word := range []string{scenario.WebPlain, scenario.WebNumbered} {
		h := run(t, planScenario(t, 1, scenario.Scenario{
			Name: "broken", Duration: messages.Duration(30 * time.Second), Settle: messages.Duration(time.Minute),
			Servers: []scenario.Group{{Name: "s", Kind: messages.HTTP, Web: word}},
			Load:    []scenario.Load{{Rate: 2, From: messages.Duration(5 * time.Second), For: messages.Duration(10 * time.Second)}},
			Faults: []scenario.Fault{{
				Fault: "truncate", With: map[string]string{"chance": "1"}, At: messages.Duration(4 * time.Second), For: messages.Duration(12 * time.Second),
			}},
		}), sim.Options{})
		calls := 0
		for _, e := range h.Events {
			if e.T > 16*time.Second {
				break // the harness calls once more at the end of the day
			}
			if e.Kind == history.Call {
				calls++
			}
			if e.Kind == history.End && e.Outcome == "result" {
				results[word]++
			}
		}
		if calls == 0 {
			t.Fatal("nothing was called")
		}
		if word == scenario.WebNumbered && results[word] < calls/2 {
			t.Errorf("%d of %d calls have the result whose stream broke", results[word], calls)
		}
	}
	if results[scenario.WebPlain] > 0 {
		t.Errorf("%d calls have a result whose stream broke and cannot be resumed", results[scenario.WebPlain])
	}
}

// A server that refuses the credentials of one caller is well for the others, and stays connected: the refused one alone is told so.
func TestOneCallerIsRefused(t *testing.T) {
	h := run(t, planScenario(t, 1, scenario.Scenario{
		Name: "personal", Duration: messages.Duration(30 * time.Second), Settle: messages.Duration(time.Minute),
		Servers: []scenario.Group{{Name: "s", Kind: messages.HTTP, Web: scenario.WebPlain, Personal: true}},
		Load:    []scenario.Load{{Rate: 2, Callers: 3, From: messages.Duration(5 * time.Second), For: messages.Duration(10 * time.Second)}},
	}), sim.Options{})
	caller, ends := map[string]string{}, map[bool]map[messages.Class]int{false: {}, true: {}}
	for _, e := range h.Events {
		switch e.Kind {
		case history.Call:
			caller[e.Call] = e.By
		case history.End:
			ends[strings.HasSuffix(caller[e.Call], "-2")][e.Class]++
		case history.Received:
			if strings.HasSuffix(caller[e.Call], "-2") {
				t.Errorf("the server got the call %s of %s", e.Call, caller[e.Call])
			}
		case history.Phase:
			if e.Phase == messages.NeedsAuth {
				t.Errorf("the server needs other credentials at %s", e.T)
			}
		default:
		}
	}
	if refused, others := ends[true], ends[false]; len(refused) != 1 || refused[messages.ClassUnauthorized] < 5 || len(others) != 1 || others[messages.ClassNone] < 10 {
		t.Errorf("the calls of the refused caller ended with %v, those of the others with %v", refused, others)
	}
}
