package invariant

import (
	"cmp"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// The numbers of the width, as package supervisor/restart documents them.
const (
	// starvedTimes is the wait for a processor, in multiples of the time that the processes of a start ran, from which on the start
	// was starved.
	starvedTimes = 7
	// leastWidth is the least width of a narrowed gate.
	leastWidth = 2
	// longestHold times Limits.Hold is the longest time for a slot.
	longestHold = 10
)

// certainty says how sure the record makes something. Several things may happen in one instant, and their order is then the
// manager's secret.
type certainty int

const (
	no certainty = iota
	maybe
	yes
)

// A gateStart is one start of a pool: a slot is taken when it is dialled, and given back when the handshake is answered, when
// nothing is left of the attempt, or when it was held for long enough.
type gateStart struct {
	*attempt
	server   string
	from, to time.Duration
	// toAtMost is later than to where the manager waited on for the answer about the era, and where it may have made nothing of the answer: the
	// process counts until nothing is left of it.
	toAtMost time.Duration
	// answered says that the start ended by the answer to its handshake. heard is the time of the server's first message, noisy that of the first
	// line that is none.
	answered     certainty
	heard, noisy time.Duration
	// The slot is held until heldAtLeast, and no longer than until heldAtMost.
	heldAtLeast, heldAtMost time.Duration
	// current says that the gate has not been narrowed since the start began, and widened that the start has widened it.
	current, widened certainty
	// leftAt is the time at which the manager ended the start, 0 if it did not; displacedAt is the same if it did so for others,
	// and displacedBy the event that says it. spared starts must not be ended so.
	leftAt, displacedAt time.Duration
	displacedBy         int
	spared              certainty
}

// A widthStep is the width of the gate from a time on: as far as the record tells, between least and most. In the instant in which
// it begins, the gate may have been as wide as peak, because one start widened it before another one narrowed it.
type widthStep struct {
	at                time.Duration
	least, most, peak int
}

// gateRecord holds the starts of a pool's servers, by which the gate shows.
type gateRecord struct {
	starts []*gateStart // by the time of their dials
	widths []widthStep  // by time; the first holds from the beginning
}

// gateOf computes how wide a pool's gate was, and how long each slot was held. The width changes only by measurements, of which
// a history without starved servers has none.
func (c *checker) gateOf(pool string) *gateRecord {
	if known := c.gateCache[pool]; known != nil {
		return known
	}
	g := &gateRecord{}
	for _, server := range c.x.Servers() {
		if poolOf(c.serverSpec(server).Kind) != pool {
			continue
		}
		noise := c.firstNoise(server)
		for _, a := range c.attemptsOf(server) {
			g.starts = append(g.starts, c.gateStartOf(server, a, noise))
		}
	}
	slices.SortStableFunc(g.starts, func(a, b *gateStart) int { return cmp.Compare(a.from, b.from) })
	most := map[string]int{
		processes: c.plan.Limits.Processes, network: min(c.plan.Limits.Network, c.plan.Limits.PerOrigin), inProcess: c.plan.Limits.InProcess,
	}[pool]
	g.widths = []widthStep{{0, most, most, most}}
	if pool == processes && most > 0 {
		c.noteLeft(g)
		c.followWidth(g)
		c.noteSpared(g)
	}
	if c.gateCache == nil {
		c.gateCache = map[string]*gateRecord{}
	}
	c.gateCache[pool] = g
	return g
}

// firstNoise returns when each connection of a server has brought its first line that is no message, by the number of the connection.
func (c *checker) firstNoise(server string) map[int]time.Duration {
	first := map[int]time.Duration{}
	for _, i := range c.x.ServerEvents(server) {
		if e := c.x.Event(i); e.Kind == history.Fired && e.Name == "noise" {
			if _, found := first[e.Conn]; !found {
				first[e.Conn] = e.T
			}
		}
	}
	return first
}

// gateStartOf reads one start from the record of its attempt; noise has the first line that is no message of each connection.
func (c *checker) gateStartOf(server string, a *attempt, noise map[int]time.Duration) *gateStart {
	s := &gateStart{attempt: a, server: server, from: c.x.Event(a.open).T, to: c.handshakeEnd(a), heard: c.endTime() + 1, noisy: c.endTime() + 1, current: yes}
	s.heldAtLeast = s.from + c.plan.Limits.Hold
	s.heldAtMost = s.heldAtLeast
	if t, ok := c.x.Time(a.initialized); ok && t == s.to {
		// An answer of which the manager makes nothing, because it agrees on no version, ends the attempt and widens nothing.
		s.answered = maybe
	}
	for _, conn := range a.conns {
		if t, found := noise[conn.Conn]; found {
			s.noisy = min(s.noisy, t)
		}
	}
	agreed := s.to // when the manager went on: before that it may wait for another answer, about the era
	for _, conn := range a.conns {
		for _, i := range conn.Events {
			e := c.x.Event(i)
			switch e.Kind {
			case history.Answered, history.Notified:
				s.heard = min(s.heard, e.T)
			case history.Received:
				if s.answered == maybe && e.T >= s.to && !isOfHandshake(e.Method) {
					s.answered, agreed = yes, e.T
				}
			default:
			}
		}
	}
	s.toAtMost = agreed
	if s.answered == maybe {
		s.toAtMost = c.endTime() + 1
		if t, ok := c.x.Time(a.end); ok {
			s.toAtMost = max(s.to, t)
		}
	}
	return s
}

// isOfHandshake reports whether a client sends a message before it has agreed with the server on a version. It looks by ping whether a
// server that leaves the question about its era unanswered is alive.
func isOfHandshake(method string) bool {
	return method == "initialize" || method == "server/discover" || method == "ping"
}

// An instant holds what happened to the starts of a pool at one time.
type instant struct {
	began, ended []*gateStart
	measured     []measurement
}

// A measurement is a Measured event of a start.
type measurement struct {
	start       *gateStart
	ran, waited time.Duration
}

// followWidth follows the width from instant to instant.
func (c *checker) followWidth(g *gateRecord) {
	instants := map[time.Duration]*instant{}
	at := func(t time.Duration) *instant {
		if instants[t] == nil {
			instants[t] = &instant{}
		}
		return instants[t]
	}
	found := false
	for _, s := range g.starts {
		at(s.from).began = append(at(s.from).began, s)
		at(s.to).ended = append(at(s.to).ended, s)
		for _, conn := range s.conns {
			for _, i := range conn.Events {
				if e := c.x.Event(i); e.Kind == history.Measured {
					found = true
					at(e.T).measured = append(at(e.T).measured, measurement{s, e.Ran, min(e.Waited, e.T-s.from)})
				}
			}
		}
	}
	if !found {
		return
	}
	times := make([]time.Duration, 0, len(instants))
	for t := range instants {
		times = append(times, t)
	}
	slices.Sort(times)
	var open []*gateStart
	for _, t := range times {
		w := g.widths[len(g.widths)-1]
		next := c.widthAfter(w, t, instants[t], open)
		open = append(open, instants[t].began...)
		open = slices.DeleteFunc(open, func(s *gateStart) bool { return s.to <= t })
		if next != w {
			next.at = t
			g.widths = append(g.widths, next)
		}
	}
}

// widthAfter returns the width after an instant, and notes what it did to the starts that are open.
func (c *checker) widthAfter(w widthStep, t time.Duration, in *instant, open []*gateStart) widthStep {
	hold, top := c.plan.Limits.Hold, c.plan.Limits.Processes
	narrows := no
	var widening []*gateStart
	sure := map[*gateStart]certainty{}
	for _, m := range in.measured {
		s := m.start
		// A server that has said something is not measured for the gate, and neither is one whose attempt is over: the manager reads what
		// it has used before it gives the attempt up. One that answers or is given up in this instant may not be.
		known, first := yes, min(s.heard, s.to)
		if s.leftAt > 0 {
			first = min(first, s.leftAt)
		}
		switch {
		case first < t:
			continue
		case first == t || s.noisy <= t:
			// The manager may take a line that is no message for one, because it shows that the process runs.
			known = maybe
		}
		s.extendHold(t, s.from+min(hold+m.waited, longestHold*hold), known)
		switch {
		case m.waited >= starvedTimes*m.ran && m.waited >= hold/2:
			narrows = max(narrows, min(s.current, known))
		case m.ran > 0 && m.waited <= m.ran:
			widening, sure[s] = append(widening, s), known
		}
	}
	for _, s := range in.ended {
		if s.answered != no && t-s.from <= hold && sure[s] == no {
			widening, sure[s] = append(widening, s), s.answered
		}
	}
	// Within the instant the starts that begin or end may or may not count.
	fewest, many := len(open)-len(in.ended), len(open)+len(in.began)
	out := w
	for _, s := range widening {
		switch known := min(s.current, sure[s]); {
		case known == no || s.widened == yes:
		case known == yes && narrows == no:
			if s.widened == no {
				out.most = min(out.most+1, top)
			}
			out.least, s.widened = min(out.least+1, top), yes
		case s.widened == no:
			out.most, s.widened = min(out.most+1, top), maybe
		}
	}
	out.peak = out.most
	if narrows == no {
		return out
	}
	narrowed := func(width, unanswered int) int { return max(min(width, unanswered)/2, min(leastWidth, top)) }
	out.least = narrowed(w.least, max(fewest, 0))
	if narrows == yes {
		out.most = narrowed(out.most, many)
	}
	// Only starts that begin from now on may change the width again.
	for _, s := range open {
		s.current = min(s.current, yes-narrows)
	}
	for _, s := range in.began {
		s.current = maybe
	}
	return out
}

// extendHold lets a start keep its slot until a later time, unless it has lost it.
func (s *gateStart) extendHold(t, until time.Duration, known certainty) {
	if known == yes && t < s.heldAtLeast {
		s.heldAtLeast = max(s.heldAtLeast, until)
	}
	if t <= s.heldAtMost {
		s.heldAtMost = max(s.heldAtMost, until)
	}
}

// widthFrom returns the width from a time on.
func (g *gateRecord) widthFrom(t time.Duration) widthStep {
	i, found := slices.BinarySearchFunc(g.widths, t, func(s widthStep, t time.Duration) int { return cmp.Compare(s.at, t) })
	if found {
		return g.widths[i]
	}
	return g.widths[max(i-1, 0)]
}

// widthAt returns the width at a time. In the instant of a change the widths before, within and after it may all be in force.
func (g *gateRecord) widthAt(t time.Duration) widthStep {
	before, after := g.widthFrom(t-1), g.widthFrom(t)
	most := max(before.most, after.most)
	if after.at == t {
		most = max(most, after.peak)
	}
	return widthStep{t, min(before.least, after.least), most, most}
}
