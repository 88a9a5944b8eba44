package report

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// opening is one connection attempt as its server saw it. Times of events that never came are after the end of the run.
type opening struct {
	server string
	conn   int
	at     time.Duration
	// answered is the time of the answer to the handshake, ended that at which nothing was left of the attempt.
	answered, ended time.Duration
}

// openingsOf returns the attempts of one server, in order of time. Every one after the first is a restart.
func openingsOf(h *history.History, server string, end time.Duration) []opening {
	x := h.Index()
	var out []opening
	for _, c := range x.Conns(server) {
		at, ok := x.Time(c.Open)
		if !ok {
			continue
		}
		o := opening{server: server, conn: c.Conn, at: at, answered: end + 1, ended: end + 1}
		// Either event may be missing, or come first: a refused dial may be released later, and a run may end before both.
		for _, i := range []int{c.Refused, c.Released} {
			if t, ok := x.Time(i); ok {
				o.ended = min(o.ended, t)
			}
		}
		for _, i := range c.Events {
			if e := x.Event(i); answersHandshake(e) {
				o.answered = min(o.answered, e.T)
			}
		}
		out = append(out, o)
	}
	slices.SortStableFunc(out, func(a, b opening) int { return int(a.at - b.at) })
	return out
}

// answersHandshake reports whether an event answers a handshake: initialize in any way, server/discover with a result.
// A legacy server answers server/discover with an error, and the client asks again.
func answersHandshake(e *history.Event) bool {
	return e.Kind == history.Answered && (e.Method == "initialize" || e.Method == "server/discover" && e.Code == 0)
}

// pool is a group of openings that the start gate counts together.
type pool int

const (
	processes pool = iota
	network
	inProcess
	// unanswered counts the processes whose handshake has no answer yet, with a slot or without.
	unanswered
	pools
)

// poolNames holds the names of the pools for people.
var poolNames = [pools]string{"process slots", "network slots", "in-process slots", "processes without a handshake"}

// poolOf returns the pool from which an opening of a server of this kind takes its slot.
func poolOf(kind messages.TransportKind) pool {
	switch kind {
	case messages.Stdio, "":
		return processes
	case messages.SDK:
		return inProcess
	default:
		return network
	}
}

// limitOf returns the limit of a pool in the plan, 0 if it has none.
func limitOf(p scenario.Plan, which pool) int {
	switch which {
	case processes:
		return p.Limits.Processes
	case network:
		return p.Limits.Network
	case inProcess:
		return p.Limits.InProcess
	case unanswered:
		return p.Limits.Processes * p.Limits.UnansweredFactor
	case pools:
	}
	return 0
}

// change is a step of a count over time.
type change struct {
	at    time.Duration
	delta int
}

// occupancy holds the changes of each pool as the gate must have counted them, computed from what the servers saw: a
// slot from the arrival of the dial until the handshake is answered, nothing is left of the attempt, or the plan's Hold
// has passed.
type occupancy [pools][]change

// addOpening adds the slot of one opening, and for a process its time without an answer.
func (o *occupancy) addOpening(p scenario.Plan, kind messages.TransportKind, a opening) {
	span := func(which pool, until time.Duration) {
		o[which] = append(o[which], change{a.at, 1}, change{max(until, a.at), -1})
	}
	until := min(a.answered, a.ended)
	// A silent server gives its slot back after Hold and goes on waiting for its answer, counted only as unanswered.
	hold := until
	if p.Limits.Hold > 0 {
		hold = min(hold, a.at+p.Limits.Hold)
	}
	which := poolOf(kind)
	span(which, hold)
	if which == processes {
		span(unanswered, until)
	}
}

// sortChanges sorts the changes by time. Within one instant the ends come first, because the gate frees a slot before
// it grants it again.
func sortChanges(changes []change) []change {
	slices.SortStableFunc(changes, func(a, b change) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return a.delta - b.delta
	})
	return changes
}

// highestCount returns the largest count of sorted changes, and the time at which it was reached.
func highestCount(changes []change) (int, time.Duration) {
	total, top, at := 0, 0, time.Duration(0)
	for _, c := range changes {
		if total += c.delta; total > top {
			top, at = total, c.at
		}
	}
	return top, at
}

// highestPerPart returns the highest count in each of n equal parts of the run.
func highestPerPart(changes []change, n int, end time.Duration) []int {
	out := make([]int, n)
	held, part := 0, 0
	for _, c := range changes {
		if c.at > end {
			break
		}
		// A count that stands over several parts is the highest of each of them.
		for target := partIndex(c.at, n, end); part < target; {
			part++
			out[part] = held
		}
		held += c.delta
		out[part] = max(out[part], held)
	}
	for part++; part < n; part++ {
		out[part] = held
	}
	return out
}

// partIndex returns the part of the run, of n, in which a time lies.
func partIndex(at time.Duration, n int, end time.Duration) int {
	if end <= 0 {
		return 0
	}
	return min(max(int(float64(at)/float64(end)*float64(n)), 0), n-1)
}
