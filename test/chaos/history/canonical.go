package history

import (
	"cmp"
	"slices"
	"strings"
)

// Canonical returns the events in an order that does not depend on which of two goroutines ran first within one instant of
// virtual time: by time, server, rank in the instant (see eventRank), and then by content. Two runs of one plan in which the
// same happened have the same canonical events, byte for byte.
//
// Events that the manager publishes of one server keep the order in which they were recorded: they have one source, and a
// server can leave a phase and enter it again in one instant.
//
// Canonical numbers Seq anew, from 1 for each server; it leaves Order as it was.
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

// canonicalOrder returns the indices of the events in canonical order.
func canonicalOrder(events []Event) []int {
	at := make([]int, len(events))
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(i, j int) int { return compareEvents(&events[i], &events[j]) })
	orderStreams(events, at)
	return at
}

// orderStreams orders the notices and answers that an agent got one after the other in one instant by the requests that they belong to: each
// request, and so each subscription, has a stream of its own, the session has one for the news that belong to none, and chance decides which of two
// streams is read first.
func orderStreams(events []Event, at []int) {
	for from := 0; from < len(at); {
		first, to := &events[at[from]], from+1
		if comesInStream(first) {
			for to < len(at) && comesInStream(&events[at[to]]) && events[at[to]].T == first.T &&
				events[at[to]].Agent == first.Agent && events[at[to]].Server == first.Server {
				to++
			}
			slices.SortStableFunc(at[from:to], func(i, j int) int { return compareNatural(events[i].ID, events[j].ID) })
		}
		from = to
	}
}

// comesInStream reports whether an agent got an event in the stream of the request that it names, or in that of its session.
func comesInStream(e *Event) bool {
	switch e.Kind {
	case Replied:
		return true
	case Noticed:
		return e.ID != "" || strings.HasSuffix(e.Method, "/list_changed") || e.Method == "notifications/resources/updated" || e.Method == "notifications/tasks/status"
	default:
		return false
	}
}

// eventRank ranks the events of one instant and one server: the owner's commands, the faults, the calls, what the servers saw
// of them, what the manager publishes, how the calls ended, the answers to commands. So causes stand before effects as far as a
// fixed order allows.
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
	case Agent:
		return 55
	case Manager:
		switch e.Kind {
		// Chance decides which of several callers in one instant is reported first, so these are sorted by content after the
		// others.
		case CallReported:
			return 45
		// The goroutine that reads from the server publishes updates of resources beside all else.
		case Updated:
			return 46
		default:
			return 40
		}
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

// worldRank ranks what one connection saw in one instant.
var worldRank = map[Kind]int{
	Changed: 1, Open: 2, Opened: 3, Received: 4, Executed: 5, Answered: 6, Listed: 7, Notified: 8, Refused: 9, Down: 10,
	Released: 11, Measured: 12,
}

// compareEvents compares by time, server and rank, and then as far as possible by content: the order of recording counts only
// where one source wrote the events.
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
		if a.Kind != CallReported && a.Kind != Updated {
			return cmp.Compare(a.Order, b.Order)
		}
	case Owner:
		return cmp.Or(cmp.Compare(a.Command, b.Command), cmp.Compare(a.Order, b.Order))
	case Harness:
		// The last fault ends before all have ended.
		if inSequence(a) != inSequence(b) {
			return map[bool]int{true: 1, false: -1}[inSequence(a)]
		}
		if inSequence(a) {
			return cmp.Compare(a.Order, b.Order)
		}
	case World:
		if c := cmp.Or(cmp.Compare(a.Conn, b.Conn), cmp.Compare(worldRank[a.Kind], worldRank[b.Kind])); c != 0 {
			return c
		}
	case Agent:
		// The messages of one agent have one source, but for what orderStreams orders.
		return cmp.Or(compareNatural(a.Agent, b.Agent), cmp.Compare(a.Order, b.Order))
	case Caller:
	}
	return compareContent(a, b)
}

// inSequence reports whether an event of the harness has one source with others of its kind, so that their order of recording counts.
func inSequence(e *Event) bool {
	switch e.Kind {
	case Resources, Status, Heal, Closing, Closed:
		return true
	default:
		return false
	}
}

// compareContent compares the contents of events that several goroutines may have caused in one instant.
func compareContent(a, b *Event) int {
	return cmp.Or(
		cmp.Compare(a.Kind, b.Kind),
		compareNatural(a.Call, b.Call), compareNatural(a.ID, b.ID), cmp.Compare(a.Method, b.Method), cmp.Compare(a.Fault, b.Fault),
		cmp.Compare(a.Name, b.Name), cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Conn, b.Conn),
		cmp.Compare(a.Value, b.Value), cmp.Compare(a.Rev, b.Rev), cmp.Compare(a.Hash, b.Hash), cmp.Compare(a.Code, b.Code),
		cmp.Compare(a.Class, b.Class), cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.RetryAfter, b.RetryAfter),
		cmp.Compare(a.Deadline, b.Deadline), cmp.Compare(a.Took, b.Took), cmp.Compare(a.Size, b.Size),
		cmp.Compare(a.Text, b.Text), cmp.Compare(a.About, b.About), slices.Compare(a.Names, b.Names),
	)
}

// compareNatural compares words that end in numbers by those numbers: c2 comes before c10.
func compareNatural(a, b string) int {
	if len(a) != len(b) && strings.TrimRight(a, "0123456789") == strings.TrimRight(b, "0123456789") {
		return cmp.Compare(len(a), len(b))
	}
	return strings.Compare(a, b)
}
