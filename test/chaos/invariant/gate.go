package invariant

import (
	"slices"
	"time"
)

// fullness holds the stretches of time in which a pool of the gate let no start through, as the servers saw it: every slot was
// held, or too many processes had neither answered nor ended.
type fullness struct{ from, to []time.Duration }

// poolFullness computes when a pool was full. The result is cached for the checker.
func (c *checker) poolFullness(pool string) *fullness {
	if known := c.fullnessCache[pool]; known != nil {
		return known
	}
	limits := c.plan.Limits
	slots := map[string]int{processes: limits.Processes, network: min(limits.Network, limits.PerOrigin), inProcess: limits.InProcess}[pool]
	maxUnanswered := 0
	if pool == processes {
		maxUnanswered = limits.Processes * limits.UnansweredFactor
	}
	var changes []change
	for _, server := range c.x.Servers() {
		if poolOf(c.serverSpec(server).Kind) != pool {
			continue
		}
		for _, a := range c.attemptsOf(server) {
			from, to := c.x.Event(a.open).T, c.handshakeEnd(a)
			changes = append(changes, change{from, +1, 0}, change{min(to, from+limits.Hold), -1, 0}, change{from, +1, 1}, change{to, -1, 1})
		}
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
