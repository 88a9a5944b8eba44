package invariant

import (
	"slices"
	"time"
)

// fullness holds the stretches of time in which a pool of the gate let no start through, as the servers saw it: every slot was
// held, or too many processes had neither answered nor ended.
type fullness struct{ from, to []time.Duration }

// poolFullness computes when a pool was full, or may have been. The result is cached for the checker.
func (c *checker) poolFullness(pool string) *fullness {
	if known := c.fullnessCache[pool]; known != nil {
		return known
	}
	maxUnanswered := 0
	if pool == processes {
		maxUnanswered = c.plan.Limits.Processes * c.plan.Limits.UnansweredFactor
	}
	gate := c.gateOf(pool)
	var changes []change
	for _, s := range gate.starts {
		changes = append(changes, change{s.from, +1, 0}, change{min(s.toAtMost, s.heldAtMost), -1, 0}, change{s.from, +1, 1}, change{s.toAtMost, -1, 1})
	}
	for _, w := range gate.widths[1:] {
		changes = append(changes, change{w.at, 0, 0})
	}
	slices.SortFunc(changes, func(a, b change) int { return int(a.t - b.t) })
	f := &fullness{}
	var heldSlots, unanswered int
	open := false
	for i, ch := range changes {
		if ch.event == 0 {
			heldSlots += ch.delta
		} else {
			unanswered += ch.delta
		}
		if i+1 < len(changes) && changes[i+1].t == ch.t {
			continue
		}
		slots := gate.widthFrom(ch.t).least
		isFull := slots > 0 && heldSlots >= slots || maxUnanswered > 0 && unanswered >= maxUnanswered
		switch {
		case isFull && !open:
			f.from, f.to = append(f.from, ch.t), append(f.to, c.endTime()+1)
		case !isFull && open:
			f.to[len(f.to)-1] = ch.t
		}
		open = isFull
	}
	if c.fullnessCache == nil {
		c.fullnessCache = map[string]*fullness{}
	}
	c.fullnessCache[pool] = f
	return f
}

// firstFree returns the first time between from and to from which the pool stays free for longer than slack; ok is false if
// there is none. A start that waits is let through then.
func (f *fullness) firstFree(from, to, slack time.Duration) (at time.Duration, ok bool) {
	// The first stretch that does not end before from.
	i, _ := slices.BinarySearch(f.to, from)
	for ; i < len(f.from) && f.from[i] < to; i++ {
		if f.from[i]-from > slack {
			return from, true
		}
		from = max(from, f.to[i])
	}
	return from, to-from > slack
}
