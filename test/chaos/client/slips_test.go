package client_test

import (
	"slices"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/client"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// slips are what engineers do wrong in a client, each with the check that sees it.
var slips = []struct {
	name, check string
	kinds       []messages.TransportKind
}{
	{"repeats", "C3", nil},
	{"id reuse", "C10", nil},
	{"never reconnects", "C4", nil},
	{"gives up", "C4", nil},
	{"list not refreshed", "C6", nil},
	{"list of an old connection", "C6", nil},
	{"first page", "C6", nil},
	{"late answer", "C2", []messages.TransportKind{messages.Stdio}},
	{"goroutine", "C5", nil},
	{"does not close", "C5", []messages.TransportKind{messages.Stdio}},
	{"no cancel", "C9", nil},
	{"cancel of a text", "C9", nil},
	{"foreign progress", "C11", nil},
	{"storm", "C7", nil},
	{"no deadline", "C1", nil},
	{"no initialized", "C10", nil},
	{"one lock", "C8", nil},
	{"says not sent", "C2", []messages.TransportKind{messages.Stdio}},
	{"wrong Accept", "C10", []messages.TransportKind{messages.HTTP}},
	{"ignores 404", "C10", []messages.TransportKind{messages.HTTP}},
	{"no session header", "C10", []messages.TransportKind{messages.HTTP}},
	{"no version header", "C10", []messages.TransportKind{messages.HTTP}},
}

// playSeed plays the random day of a seed and returns what is violated.
func playSeed(t *testing.T, seed uint64, kind messages.TransportKind, dial client.Dial) (h *history.History, bad []invariant.Verdict) {
	t.Helper()
	plan, err := client.RandomDay(seed, kind, messages.EraLegacy, client.Limits{}).Plan(0, scenario.Sim)
	if err != nil {
		t.Fatal(err)
	}
	h, err = client.Run(t.Context(), plan, dial)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return h, violated(client.Judge(h, client.Limits{}))
}

// slipDays is within how many random days each slip is found; nearly all are on the first ones.
const slipDays = 100

// TestTheSlipsAreFound: random days find each slip, by the check that is about it.
func TestTheSlipsAreFound(t *testing.T) {
	for _, s := range slips {
		t.Run(s.name, func(t *testing.T) {
			kinds := s.kinds
			if kinds == nil {
				kinds = []messages.TransportKind{messages.Stdio, messages.HTTP}
			}
			for i := range slipDays {
				_, bad := playSeed(t, uint64(i/len(kinds)+1), kinds[i%len(kinds)], dialPlain(s.name))
				if slices.ContainsFunc(bad, func(v invariant.Verdict) bool { return v.ID == s.check }) {
					return
				}
			}
			t.Errorf("%s is not found by %s within %d days", s.name, s.check, slipDays)
		})
	}
}

// TestAClientWithoutSlipsPasses: no check finds what is not there.
func TestAClientWithoutSlipsPasses(t *testing.T) {
	for _, kind := range []messages.TransportKind{messages.Stdio, messages.HTTP} {
		for seed := range uint64(15) {
			if h, bad := playSeed(t, seed+1, kind, dialPlain("")); len(bad) > 0 {
				t.Errorf("%s, seed %d: %s %s\n%s", kind, seed+1, bad[0].ID, bad[0].Why, client.Exchange(h, bad[0]))
			}
		}
		for _, c := range client.Cases(kind, messages.EraLegacy) {
			if c.Name == "huge-line" {
				continue // seconds of a processor, and nothing of the client's own
			}
			if h, verdicts := play(t, c.Day(client.Limits{}), dialPlain("")); len(violated(verdicts)) > 0 {
				bad := violated(verdicts)[0]
				t.Errorf("%s, %s: %s %s\n%s", kind, c.Name, bad.ID, bad.Why, client.Exchange(h, bad))
			}
		}
	}
}

func violated(all []invariant.Verdict) []invariant.Verdict {
	return slices.DeleteFunc(all, func(v invariant.Verdict) bool { return v.Answer != invariant.Violated })
}
