package report

import (
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

const (
	// Cap bounds the events of one server on the page, and CapOfAll those of all servers together; with both a page of
	// 1,000 servers stays below 10 MB. The page says how many are left out, and history.jsonl has them all.
	Cap, CapOfAll = 4000, 160_000
	// around is the number of events of any kind that are kept before and after a piece of evidence.
	around = 12
)

// capOf returns the bound for each server.
func capOf(servers int) int { return max(min(Cap, CapOfAll/max(servers, 1)), 50) }

// selectEvents chooses the events of one server for the page, in their order: the evidence and the events around it,
// then the others by rank. If a rank does not fit, its first and its last events are kept, which show how it began and
// ended.
func selectEvents(h *history.History, events []int, evidence map[int]bool, room int) []int {
	if len(events) <= room {
		return events
	}
	chosen := make([]bool, len(events))
	n := 0
	choose := func(i int) {
		if i >= 0 && i < len(events) && !chosen[i] && n < room {
			chosen[i] = true
			n++
		}
	}
	// Evidence comes first, so that no bound can drop it for less important events.
	for i, e := range events {
		if evidence[e] {
			for j := i - around; j <= i+around; j++ {
				choose(j)
			}
		}
	}
	byRank := make([][]int, ranks)
	for i, e := range events {
		if !chosen[i] {
			r := rankOf(&h.Events[e])
			byRank[r] = append(byRank[r], i)
		}
	}
	for _, ranked := range byRank {
		for first, last := 0, len(ranked)-1; first <= last && n < room; first, last = first+1, last-1 {
			choose(ranked[first])
			choose(ranked[last])
		}
	}
	out := make([]int, 0, n)
	for i, yes := range chosen {
		if yes {
			out = append(out, events[i])
		}
	}
	return out
}

// ranks is the number of ranks of rankOf.
const ranks = 5

// rankOf returns how much an event says about a failure; 0 is most.
func rankOf(e *history.Event) int {
	switch e.Kind {
	case history.Phase, history.Removed, history.Auth, history.Command, history.Done, history.FaultOn, history.FaultOff,
		history.Heal, history.Closing, history.Closed, history.Resources, history.Violation, history.Canary, history.Log:
		return 0
	// Rank 0 tells the story by itself: states, commands, faults. Rank 1 has the connections that it is about.
	case history.Open, history.Refused, history.Down, history.Released, history.Changed, history.Fired:
		return 1
	case history.End:
		if e.Outcome != messages.OutcomeResult {
			return 2
		}
	case history.GivenUp, history.Opened, history.Executed, history.Listed, history.Notified, history.Status, history.Snapshot,
		history.Measured:
		return 3
	case history.Answered:
		if e.Code != 0 {
			return 2
		}
	// The traffic of a healthy day is most of every history, and explains least.
	case history.Received, history.Call, history.CallReported, history.Updated, history.ListTold, history.Offered, history.Reading, history.ReadEnd:
	default:
	}
	return 4
}
