package restart

import "time"

// Numbers of the width.
const (
	// starving times its time on a processor is what a start must have waited for one to be starved: 7. As many starts as
	// Limits.Processes allows, which want nothing but processors that nobody else uses, wait for 3 times.
	starving = 7
	// leastWidth is what the gate is never narrowed below: with one slot a single silent server would hold up all others.
	leastWidth = 2
	// longestHold times Limits.Hold is how long a slot is held at most, however long its process waits for a processor: 10.
	longestHold = 10
)

// width is how many of a pool's slots there are now. It is halved when a start is starved, and grows by one with each start
// that is not, as the windows of TCP do.
type width struct {
	now, most int
	// generation counts how often it was narrowed. What began before is starved still, by those that began with it, and says
	// nothing about what the narrower gate does.
	generation int
}

func newWidth(most int) width { return width{now: most, most: most} }

// narrow follows a start that is starved, of a generation, while so many have not answered.
func (w *width) narrow(generation, unanswered int) {
	if generation != w.generation {
		return
	}
	w.generation++
	w.now = max(min(w.now, unanswered)/2, min(leastWidth, w.most))
}

// widen follows a start that is not starved.
func (w *width) widen(generation int) {
	if generation == w.generation {
		w.now = min(w.now+1, w.most)
	}
}

// widenOnce widens the gate, once for each grant.
func (g *grant) widenOnce() {
	if !g.easedOnce {
		g.easedOnce = true
		g.pool.width.widen(g.generation)
	}
}

// Waited says what the processes of a grant that has not answered have done since they began: how long they were on a
// processor, and how long they wanted one and had none. The slot is held for longer by the time that they waited, up to ten
// times Hold in all, unless it was given up before this word: who waits for a processor is not silent. It does nothing for
// what is no process, has answered, or installs.
//
// Where they waited for 7 times as long as they ran, and for at least half of Hold, the machine is starved, and the gate is
// narrowed. Where they ran for as long as they waited it is not, and the gate is widened, as by an answer within Hold.
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
