package history

import (
	"cmp"
	"slices"
	"strings"
)

// Canonical is the events in an order that does not depend on which of two goroutines was faster within one instant of
// virtual time: by time, server, place in the instant (see rank), and then by what the event says. Two runs of one plan
// that did the same have the same canonical events, byte for byte.
//
// What the manager publishes of one server keeps the order in which it was recorded: it has one source, and the same phase can
// be left and entered again in one instant.
//
// Seq is renumbered, from 1 for each server; Order is left as it was.
func (h *History) Canonical() []Event {
	out := make([]Event, 0, len(h.Events))
	seq := map[string]int{}
	for _, i := range h.Index().order {
		e := h.Events[i]
		seq[e.Server]++
		e.Seq = seq[e.Server]
		out = append(out, e)
	}
	return out
}

// canonicalOrder is the canonical permutation of the events.
func canonicalOrder(events []Event) []int {
	at := make([]int, len(events))
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(i, j int) int { return compareEvents(&events[i], &events[j]) })
	return at
}

// eventRank is where an event stands among those of one instant and one server: what was asked, what was done to the servers, the
// calls, what the servers saw of them, what the manager says now, how the calls ended, the answers. So causes stand before
// effects as far as one order can have it.
func eventRank(e *Event) int {
	switch e.Side {
	case Owner:
		if e.Kind == Done {
			return 60
		}
		return 0
	case Caller:
		if e.Kind == End {
			return 50
		}
		return 20
	case World:
		return 30
	case Manager:
		if e.Kind == CallReported { // of several callers in one instant, who is first is chance
			return 45
		}
		return 40
	case Harness:
		switch e.Kind {
		case FaultOn, FaultOff, Heal, Closing:
			return 10
		case Fired:
			return 35
		default:
			return 70
		}
	}
	return 80
}

// worldRank orders what one connection saw in one instant.
var worldRank = map[Kind]int{
	Changed: 1, Open: 2, Opened: 3, Received: 4, Executed: 5, Answered: 6, Listed: 7, Notified: 8, Refused: 9, Down: 10,
	Released: 11,
}

func compareEvents(a, b *Event) int {
	if a.T != b.T {
		return cmp.Compare(a.T, b.T)
	}
	if a.Server != b.Server {
		return strings.Compare(a.Server, b.Server)
	}
	if c := cmp.Compare(eventRank(a), eventRank(b)); c != 0 {
		return c
	}
	switch a.Side {
	case Manager:
		if a.Kind != CallReported {
			return cmp.Compare(a.Order, b.Order)
		}
	case Owner:
		return cmp.Or(cmp.Compare(a.Command, b.Command), cmp.Compare(a.Order, b.Order))
	case Harness:
		switch a.Kind {
		case Resources, Status, Heal, Closing, Closed:
			return cmp.Compare(a.Order, b.Order)
		default:
		}
	case World:
		if c := cmp.Or(cmp.Compare(a.Conn, b.Conn), cmp.Compare(worldRank[a.Kind], worldRank[b.Kind])); c != 0 {
			return c
		}
	case Caller:
	}
	return compareContent(a, b)
}

// compareContent compares everything that an event of the world, of a caller or of a fault can say.
func compareContent(a, b *Event) int {
	return cmp.Or(
		cmp.Compare(a.Kind, b.Kind),
		compareNatural(a.Call, b.Call), compareNatural(a.ID, b.ID), cmp.Compare(a.Method, b.Method), cmp.Compare(a.Fault, b.Fault),
		cmp.Compare(a.Name, b.Name), cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Conn, b.Conn),
		cmp.Compare(a.Value, b.Value), cmp.Compare(a.Rev, b.Rev), cmp.Compare(a.Hash, b.Hash), cmp.Compare(a.Code, b.Code),
		cmp.Compare(a.Class, b.Class), cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.RetryAfter, b.RetryAfter),
		cmp.Compare(a.Deadline, b.Deadline), cmp.Compare(a.Took, b.Took), cmp.Compare(a.Size, b.Size),
		cmp.Compare(a.Text, b.Text), slices.Compare(a.Names, b.Names),
	)
}

// compareNatural compares words that end in numbers as people do: c2 stands before c10.
func compareNatural(a, b string) int {
	if len(a) != len(b) && strings.TrimRight(a, "0123456789") == strings.TrimRight(b, "0123456789") {
		return cmp.Compare(len(a), len(b))
	}
	return strings.Compare(a, b)
}
