package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// noteLeft finds the starts that the manager ended before it had agreed with their servers on a version, and those of them that it
// ended because others needed their places: it published that the machine is exhausted, which a process that runs cannot suffer from.
func (c *checker) noteLeft(g *gateRecord) {
	for _, s := range g.starts {
		stays := c.phaseSpans(s.server)
		for i := range stays {
			p := &stays[i]
			if p.T <= s.from || p.Step == messages.Dialing || p.Step == messages.Handshaking {
				continue
			}
			// The manager has accepted the answer, or nothing is left of the attempt.
			if p.T > s.toAtMost || p.Phase == messages.Connected || p.Step == messages.Listing {
				break
			}
			s.leftAt = p.T
			if p.Phase == messages.Failed && p.Class == messages.ClassExhausted && s.lastConn().Opened >= 0 {
				s.displacedAt, s.displacedBy = p.T, p.event
			}
			break
		}
	}
}

// noteSpared finds the starts that must not be ended for others, because the start before them was.
func (c *checker) noteSpared(g *gateRecord) {
	before := map[string]*gateStart{}
	for _, s := range g.starts {
		last := before[s.server]
		before[s.server] = s
		switch {
		case last == nil:
		case last.displacedAt > 0:
			s.spared = yes
			// The owner may have changed the server meanwhile.
			for _, o := range c.ownerCommands(s.server) {
				if o.begin >= last.from && o.begin <= s.from {
					s.spared = maybe
				}
			}
		// One that timed out may have been chosen in the same instant.
		case last.answered != yes && (last.spared != no || last.leftAt >= last.heldAtMost):
			s.spared = maybe
		}
	}
}

// checkDisplaced judges that a start is ended for others only if it must be: its slot was held for as long as it may be, it is
// not spared, no further process may be started before one ends, none has been silent for longer, and there is a slot and a server
// that waits for each start that is being ended.
func (c *checker) checkDisplaced(g *gateRecord) {
	limits := c.plan.Limits
	for _, s := range g.starts {
		t := s.displacedAt
		if t == 0 {
			continue
		}
		c.judged++
		report := func(format string, args ...any) {
			c.reportViolation(s.server, s.displacedBy, []int{s.open}, "The server was started at %s and ended at %s to make room for others, "+format,
				append([]any{timeText(s.from), timeText(t)}, args...)...)
		}
		unanswered, held, ending, longer := 0, 0, 1, (*gateStart)(nil)
		for _, o := range g.starts {
			if o.from > t || o.toAtMost < t {
				continue
			}
			unanswered++
			if o == s || o.to <= t {
				continue
			}
			if o.heldAtLeast > t && o.from < t {
				held++
			}
			if o.displacedAt > 0 && o.displacedAt <= t {
				ending++
			} else if o.spared == no && o.heldAtMost < s.heldAtLeast {
				longer = o
			}
		}
		waiting := c.waitingServers(g, t)
		free := g.widthAt(t).most - held
		switch {
		case t < s.heldAtLeast:
			report("though its slot was its own until %s.", timeText(s.heldAtLeast))
		case s.spared == yes:
			report("though the attempt before it had been ended so already.")
		case unanswered < limits.Processes*limits.UnansweredFactor:
			report("though only %d processes had not answered, and %d may.", unanswered, limits.Processes*limits.UnansweredFactor)
		case ending > max(free, 0):
			report("as one of %d at that time, and the gate had %d free slots.", ending, max(free, 0))
		case ending > waiting:
			report("as one of %d at that time, and %d servers waited for their starts.", ending, waiting)
		case longer != nil:
			report("though %s was silent since %s.", longer.server, timeText(longer.from))
		}
	}
}

// waitingServers counts the processes that waited for their starts at a time, or may have.
func (c *checker) waitingServers(g *gateRecord, t time.Duration) (n int) {
	for _, server := range c.x.Servers() {
		// A server whose process is still there does not wait for a slot, but for the end of that process.
		if poolOf(c.serverSpec(server).Kind) != processes ||
			slices.ContainsFunc(g.starts, func(s *gateStart) bool { return s.server == server && s.from < t && s.to > t }) {
			continue
		}
		if slices.ContainsFunc(c.phaseSpans(server), func(s phaseSpan) bool {
			return s.T <= t && (s.to >= t || s.endEvent < 0) && s.Phase != messages.Connected && s.Step != messages.Handshaking && s.Step != messages.Listing
		}) {
			n++
		}
	}
	return n
}

// occupiedPlaces returns when a server that may take the place of a silent one had to wait all the same: every slot was held, or one
// start was being ended already, or too many processes had not answered and none of them could be ended.
func (c *checker) occupiedPlaces() *fullness {
	if c.occupiedCache != nil {
		return c.occupiedCache
	}
	g := c.gateOf(processes)
	most := c.plan.Limits.Processes * c.plan.Limits.UnansweredFactor
	var times []time.Duration
	for _, s := range g.starts {
		times = append(times, s.from, s.to, s.toAtMost, s.heldAtMost)
		if s.leftAt > 0 {
			times = append(times, s.leftAt)
		}
	}
	for _, w := range g.widths {
		times = append(times, w.at)
	}
	slices.Sort(times)
	f := &fullness{}
	wasFull := false
	for _, t := range slices.Compact(times) {
		held, unanswered, ending, silent := 0, 0, 0, 0
		for _, s := range g.starts {
			if s.from > t || s.toAtMost <= t {
				continue
			}
			unanswered++
			switch {
			case s.to <= t && s.heldAtMost <= t: // it may count among the processes, and is not silent
			// One that is ended for another reason may have been chosen in the same instant.
			case s.leftAt > 0 && s.leftAt <= t:
				ending++
			case s.heldAtMost > t:
				held++
			case s.spared == no:
				silent++
			}
		}
		isFull := held >= g.widthFrom(t).least || ending > 0 || unanswered >= most && silent == 0
		switch {
		case isFull && !wasFull:
			f.from, f.to = append(f.from, t), append(f.to, c.endTime()+1)
		case !isFull && wasFull:
			f.to[len(f.to)-1] = t
		}
		wasFull = isFull
	}
	c.occupiedCache = f
	return f
}
