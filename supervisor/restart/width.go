package restart

import "time"

// The numbers of the width.
const (
	// starving times its time on a processor is how long a start must have waited for one to count as starved: 7. As many starts as
	// Limits.Processes allows, alone on the machine and in want of nothing but processors, wait for 3 times.
	starving = 7
	// leastWidth is the least width of a narrowed gate: with one slot a single silent server would hold up all others.
	leastWidth = 2
	// longestHold times Limits.Hold bounds how long a slot is held, however long its process waits for a processor: 10.
	longestHold = 10
)

// width is the number of a pool's slots that may be used now. It is halved when a start is starved, and grows by one with each start
// that is not, as the congestion window of TCP does.
type width struct {
	now, most int
	// generation counts how often the gate was narrowed. A start that began before the last time suffers from those that began with
	// it, and says nothing about the narrower gate.
	generation int
}

func newWidth(most int) width { return width{now: most, most: most} }

// narrow halves the width because a start of this generation is starved, while so many have not answered.
func (w *width) narrow(generation, unanswered int) {
	if generation != w.generation {
		return
	}
	w.generation++
	w.now = max(min(w.now, unanswered)/2, min(leastWidth, w.most))
}

// widen adds a slot because a start of this generation is not starved.
func (w *width) widen(generation int) {
	if generation == w.generation {
		w.now = min(w.now+1, w.most)
	}
}

// widenOnce widens the gate, at most once for each grant: a grant is reported every second.
func (g *grant) widenOnce() {
	if !g.easedOnce {
		g.easedOnce = true
		g.pool.width.widen(g.generation)
	}
}

// Waited records what the processes of a grant that has not answered have done since they began: how long they were on a
// processor, and how long they wanted one and had none. The slot is held for longer by the time that they waited, up to ten
// times Hold in all, unless it was lost already: a process that waits for a processor is not silent. It does nothing for
// other kinds than processes, and for a grant that has answered or installs.
//
// If they waited for 7 times as long as they ran, and for at least half of Hold, the machine is starved, and the gate is
// narrowed. If they ran for at least as long as they waited it is not, and the gate is widened, as by an answer within Hold.
func (g *Gate) Waited(now time.Time, server string, ran, waited time.Duration) {
	now = g.advanceClock(now)
	o := g.open[server]
	if o == nil || o.pool.maxUnanswered == 0 || o.installing {
		return
	}
	waited = min(waited, now.Sub(o.startedAt))
	switch {
	case waited >= starving*ran && waited >= g.limits.Hold/2:
		o.pool.width.narrow(o.generation, o.pool.unanswered)
	case ran > 0 && waited <= ran:
		o.widenOnce()
	}
	if until := o.startedAt.Add(min(g.limits.Hold+waited, longestHold*g.limits.Hold)); o.holding && until.After(o.expires) {
		o.expires = until
		o.pool.holds.fix(o.index)
	}
}
