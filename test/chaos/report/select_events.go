package report

import (
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

const (
	// Cap is how many events of one server the page holds at most, and CapOfAll how many of all servers together; with both
	// a page of 1,000 servers stays below 10 MB. What is left out is said, and stands in history.jsonl.
	Cap, CapOfAll = 4000, 160_000
	// around is how many events before and after a piece of evidence are kept, whatever they are.
	around = 12
)

// capOf is how many events of each server are kept.
func capOf(servers int) int { return max(min(Cap, CapOfAll/max(servers, 1)), 50) }

// selectEvents chooses which events of one server the page holds: the evidence and what is around it, then by rank. If a rank does
// not fit, its first and its last events are kept: how it began and how it ended. The order is that of the events.
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

const ranks = 5

// rankOf says how much an event tells about what went wrong; 0 is most.
func rankOf(e *history.Event) int {
	switch e.Kind {
	case history.Phase, history.Removed, history.Auth, history.Command, history.Done, history.FaultOn, history.FaultOff,
		history.Heal, history.Closing, history.Closed, history.Resources, history.Violation, history.Canary, history.Log:
		return 0
	case history.Open, history.Refused, history.Down, history.Released, history.Changed, history.Fired:
		return 1
	case history.End:
		if e.Outcome != messages.OutcomeResult {
			return 2
		}
	case history.GivenUp, history.Opened, history.Executed, history.Listed, history.Notified, history.Status, history.Snapshot:
		return 3
	case history.Answered:
		if e.Code != 0 {
			return 2
		}
	case history.Received, history.Call, history.CallReported, history.Updated, history.Offered, history.Reading, history.ReadEnd:
	}
	return 4
}
