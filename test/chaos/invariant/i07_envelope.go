package invariant

import (
	"math"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// I7: how long a server is left alone after its end. The envelope is computed from what the servers saw and from the numbers
// of the policy; then what the manager published must agree with it, and the next dial with both.
//
//   - Nothing begins earlier than the policy lets it, unless somebody asked; nothing later than the policy and the gate.
//   - Failures in a row are counted by ends, whatever was connected in between for less than Stable: so a server that
//     connects and drops is parked like one that never connects.
//   - Classes that only a person can do something about are not tried again.
//   - The jitter is jitter: the delays of many fill their envelopes evenly, and those who died together do not come back
//     together.
var envelope = check("I7", "the gaps between attempts",
	"The gaps between attempts lie inside the policy's envelope; Retry-After is respected.",
	"No attempt or connection ended.",
	func(c *court) {
		var drawn []sample
		for _, server := range c.x.Servers() {
			wishes := c.wishes(server)
			ends := c.endings(server)
			for i := range ends {
				e := &ends[i]
				if e.asked != "" {
					continue
				}
				if w, _ := wished(wishes, e.t, e.t+c.moment); w == off || w == gone {
					continue // I8
				}
				c.looked++
				if e.never {
					c.tired(e)
					continue
				}
				c.tooEarly(e)
				c.tooLate(e, wishes)
				c.published(e, &drawn)
			}
		}
		c.even(drawn)
	})

// tired judges that what only a person can mend is left alone.
func (c *court) tired(e *ending) {
	if e.next == nil || e.wakes {
		return
	}
	c.violated(e.server, e.next.open, []int{e.open, e.end}, "The server ended at %s with %s, which is never tried again by itself, and was "+
		"dialled at %s.", clock(e.t), e.class, clock(c.x.Event(e.next.open).T))
}

// exact is how far from the policy's bounds a time may lie.
func (c *court) exact() time.Duration {
	if c.real {
		return c.moment
	}
	return time.Millisecond
}

func (c *court) tooEarly(e *ending) {
	if e.next == nil {
		return
	}
	open := c.x.Event(e.next.open).T
	if open-e.t >= e.earliest-c.exact() || e.wakes && open >= e.woken-c.exact() {
		return
	}
	evidence := []int{e.open, e.end}
	switch {
	case e.retryAfter > 0 && e.earliest >= e.retryAfter:
		c.violated(e.server, e.next.open, append(evidence, e.refusedBy), "The server asked to be left alone for %s at %s (Retry-After). The "+
			"manager dialled it at %s, after %s.", e.retryAfter, clock(c.x.Event(e.refusedBy).T), clock(open), clock(open-e.t))
	case e.parked:
		c.violated(e.server, e.next.open, evidence, "The server failed at %s, failure %d in a row at least. It is parked then and probed "+
			"after %s at the earliest. The manager dialled it at %s, after %s.", clock(e.t), e.low, clock(e.earliest), clock(open), clock(open-e.t))
	default:
		c.violated(e.server, e.next.open, evidence, "The server ended at %s (%s, failure %d in a row). The manager dialled it again at %s, "+
			"after %s; the restart policy lets it do so after %s at the earliest.", clock(e.t), e.class, e.high, clock(open), clock(open-e.t),
			clock(e.earliest))
	}
}

// tooLate judges that what is due begins as soon as the gate lets it.
func (c *court) tooLate(e *ending, wishes []since) {
	due := e.t + e.latest
	if e.verdict != nil && e.verdict.Next > 0 && !e.wakes {
		due = min(due, e.verdict.Next)
	}
	if e.wakes {
		due = max(due, e.woken+c.plan.Policy.WakeSpread)
	}
	slack := c.late + time.Second
	if c.real {
		slack += 5 * time.Second
	}
	until := c.closing()
	if e.next != nil {
		until = c.x.Event(e.next.open).T
	}
	if until <= due+slack {
		return
	}
	for _, w := range append(slices.Clone(c.faults(e.server)), c.machine...) {
		if c.real && w.fault == "exhausted" && w.from <= due && due <= w.to {
			return // a real start without descriptors fails before there is a process that could see it
		}
	}
	if w, _ := wished(wishes, e.t, until); w != on {
		return
	}
	if e.next == nil && e.mayPark {
		return // I13
	}
	at, free := c.full(poolOf(c.server(e.server).Kind)).free(due, until, slack)
	if !free {
		return
	}
	evidence := []int{e.open, e.end}
	if e.verdict != nil {
		evidence = append(evidence, e.verdict.at)
	}
	if e.next == nil {
		c.violated(e.server, e.end, evidence, "The server ended at %s and was due at %s at the latest. It was never dialled again, though the "+
			"gate had a slot at %s.", clock(e.t), clock(due), clock(at))
		return
	}
	c.violated(e.server, e.next.open, evidence, "The server ended at %s and was due at %s at the latest. It was dialled at %s, though the gate "+
		"had a slot at %s.", clock(e.t), clock(due), clock(until), clock(at))
}

// sample is one delay, as a part of its envelope.
type sample struct {
	part float64
	at   int
}

// published compares what the manager said with what follows from what the server saw.
func (c *court) published(e *ending, drawn *[]sample) {
	v := e.verdict
	if v == nil {
		return
	}
	evidence := []int{e.open, e.end}
	if v.Retry == messages.RetryNever {
		c.violated(e.server, v.at, evidence, "The server ended at %s with %s, which is tried again, and the manager said that nothing follows.",
			clock(e.t), e.class)
		return
	}
	switch {
	case e.parked && v.Retry != messages.RetryParked:
		c.violated(e.server, v.at, evidence, "The server had failed %d times in a row at %s and was not parked.", e.low, clock(e.t))
		return
	case !e.mayPark && v.Retry == messages.RetryParked:
		c.violated(e.server, v.at, evidence, "The server was parked at %s after %d failures in a row.", clock(v.T), e.high)
		return
	}
	certain := e.low == e.high && e.parked == e.mayPark && (e.stable || !e.perhaps) && !e.wakes
	if certain && classes[e.class] == counted && v.Attempts != e.low {
		c.violated(e.server, v.at, evidence, "The manager counts %d failures in a row at %s, and the server saw %d.", v.Attempts, clock(v.T), e.low)
	}
	if v.Next == 0 {
		return
	}
	delay := v.Next - v.T
	if delay < e.earliest-c.exact() && v.Next < e.t+e.earliest-c.exact() || delay > e.latest+c.exact()+c.slower() {
		c.violated(e.server, v.at, evidence, "The server ended at %s (%s, failure %d in a row). The manager planned the next attempt after %s; the restart "+
			"policy asks for %s "+
			"to %s.", clock(e.t), e.class, e.high, clock(delay), clock(e.earliest), clock(e.latest))
		return
	}
	if e.next != nil && !e.wakes {
		if open := c.x.Event(e.next.open).T; open < v.Next-c.exact() {
			c.violated(e.server, e.next.open, []int{v.at}, "The manager said at %s that the next attempt is due at %s, and dialled at %s.",
				clock(v.T), clock(v.Next), clock(open))
		}
	}
	if width := e.latest - e.earliest; certain && width >= 100*time.Millisecond {
		*drawn = append(*drawn, sample{float64(delay-e.earliest) / float64(width), v.at})
	}
}

const (
	// fewest is how many delays must be there before their distribution is judged.
	fewest = 12
	// blunder is the probability of calling an even distribution uneven, per history.
	blunder = 1e-10
)

// even judges the jitter. The parts of their envelopes that delays take are even between 0 and 1 (Kolmogorov and Smirnov), and no
// two of them are equal.
func (c *court) even(drawn []sample) {
	if len(drawn) < fewest {
		return
	}
	slices.SortStableFunc(drawn, func(a, b sample) int {
		switch {
		case a.part < b.part:
			return -1
		case a.part > b.part:
			return 1
		}
		return 0
	})
	n := float64(len(drawn))
	same, worst, at := 1, 0.0, drawn[0].at
	for i, s := range drawn {
		if d := math.Max(math.Abs(s.part-float64(i)/n), math.Abs(s.part-float64(i+1)/n)); d > worst {
			worst, at = d, s.at
		}
		if i > 0 && s.part-drawn[i-1].part < 1e-9 {
			same++
		}
	}
	e := c.x.Event(at)
	if same*4 >= len(drawn) {
		c.violated(e.Server, at, nil, "%d of %d delays before an attempt, the first at %s, are the same part of what the restart policy allows: they have no "+
			"jitter, and servers that die together come back together.", same, len(drawn), clock(e.T))
		return
	}
	if limit := math.Sqrt(math.Log(2/blunder) / (2 * n)); worst > limit {
		c.violated(e.Server, at, nil, "The %d delays before an attempt, the first at %s, are not spread evenly over what the restart policy allows (they differ from an even distribution by %.2f, "+
			"and %.2f is what chance explains): the first of them is at %.2f, the middle one at %.2f, the last at %.2f.", len(drawn), clock(e.T), worst,
			limit, drawn[0].part, drawn[len(drawn)/2].part, drawn[len(drawn)-1].part)
	}
}
