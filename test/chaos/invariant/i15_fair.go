package invariant

import (
	"maps"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// enough is how many calls a 99th percentile needs at least, before and during the faults.
const enough = 200

// patience is what a caller must give a server beyond twice the mean of its answers to count on one.
const patience = 100 * time.Millisecond

// I15: who is well is served as before while others are not. Latencies count from when a call was planned (open loop), so that
// one slow answer cannot hide behind the calls that it kept from being made. The baseline is the same servers' time before
// the first fault. In a run of real processes everybody has the same processors: what is above the bound by no more than the
// machine's own lateness, once on the way there and once on the way back, is not judged.
var fairness = check("I15", "healthy servers are served as before",
	"With F faulty servers, the healthy ones' p99 call latency stays within 1.5 × baseline + 5 ms, open loop, and all their "+
		"calls succeed.",
	"There were too few calls to healthy servers before and during the faults: a 99th percentile needs 200 of each.",
	func(c *court) {
		first, last, any := c.troubled()
		if !any {
			c.nothing = "No server was faulty."
			return
		}
		healthy := map[string]bool{}
		for _, s := range c.plan.Servers {
			// A lazy server is started by its calls, and what a start takes is no latency; nor is waiting for one's turn.
			healthy[s.Name] = !s.Disabled && s.MaxInFlight == 0 && s.Tasks == "" && !s.Offers && s.Connect != messages.Lazy && len(c.faults(s.Name)) == 0 && !slices.ContainsFunc(c.commands(s.Name),
				func(a asked) bool { return a.do != "configure" })
		}
		// By how long their servers take for an answer: a burst of calls to a slower server is no sign of anything.
		before, during := map[time.Duration][]timed{}, map[time.Duration][]timed{}
		for _, call := range c.x.Calls() {
			if call.Begin < 0 || !healthy[call.Server] || len(call.Ends) == 0 || c.gaveUp(call, c.x.Event(call.Ends[0]).T) {
				continue
			}
			alike := c.server(call.Server).Latency
			begin, end := c.x.Event(call.Begin), c.x.Event(call.Ends[0])
			took := end.Took
			if took == 0 {
				took = end.T - begin.T
			}
			switch {
			case begin.T < c.ready(call.Server):
			case end.T < first:
				before[alike] = append(before[alike], timed{took, call.Ends[0]})
			case begin.T >= first && begin.T < last:
				during[alike] = append(during[alike], timed{took, call.Ends[0]})
				// A caller who gives less time than a well server needs does not succeed at the best of times.
				hasty := begin.Deadline > 0 && begin.Deadline-begin.T < 2*c.server(call.Server).Latency+patience
				if !hasty && end.Outcome != messages.OutcomeResult && end.Outcome != messages.OutcomeToolError {
					c.looked++
					c.violated(call.Server, call.Ends[0], []int{call.Begin}, "Call %s to %s, which was well, ended with %s (%s) at %s while others "+
						"were faulty.", call.ID, call.Server, end.Outcome, end.Class, clock(end.T))
				}
			}
		}
		for _, alike := range slices.Sorted(maps.Keys(before)) {
			if len(before[alike]) < enough || len(during[alike]) < enough {
				continue
			}
			was, is := percentile(before[alike]), percentile(during[alike])
			limit := was.took*3/2 + 5*time.Millisecond
			if is.took > limit && is.took <= limit+c.crossing {
				c.undecided("The 99th percentile of the calls to healthy servers was %s before the faults and %s while others were faulty, and "+
					"at most %s is fair; but this machine was so busy that whoever only wanted to sleep was late by %s. Run it when there is less "+
					"to do.", ms(was.took), ms(is.took), ms(limit), ms(c.crossing/2))
				continue
			}
			c.looked += len(during[alike])
			if is.took > limit {
				c.violated(c.x.Event(is.at).Server, is.at, []int{was.at}, "The 99th percentile of the calls to healthy servers was %s before the "+
					"faults and %s while others were faulty; at most %s is fair. The call that it is ended at %s.", ms(was.took), ms(is.took),
					ms(limit), clock(c.x.Event(is.at).T))
			}
		}
	})

type timed struct {
	took time.Duration
	at   int
}

// ms is a latency as a person reads it.
func ms(d time.Duration) string { return d.Round(10 * time.Microsecond).String() }

// percentile is the 99th, by the nearest rank.
func percentile(all []timed) timed {
	slices.SortStableFunc(all, func(a, b timed) int { return int(a.took - b.took) })
	return all[(len(all)*99+99)/100-1]
}

// troubled is when the first fault began and the last one ended.
func (c *court) troubled() (first, last time.Duration, any bool) {
	take := func(all []window) {
		for _, w := range all {
			if !any {
				first, last, any = w.from, w.to, true
			}
			first, last = min(first, w.from), max(last, w.to)
		}
	}
	c.faults("")
	take(c.machine)
	for _, s := range c.plan.Servers {
		take(c.faults(s.Name))
	}
	return first, last, any
}

// ready is when a server was first published as connected: what is called before cannot succeed.
func (c *court) ready(server string) time.Duration {
	if c.readyAt == nil {
		c.readyAt = map[string]time.Duration{}
		for _, i := range c.x.Order() {
			if e := c.x.Event(i); e.Kind == history.Phase && e.Phase == messages.Connected {
				if _, known := c.readyAt[e.Server]; !known {
					c.readyAt[e.Server] = e.T
				}
			}
		}
	}
	if t, known := c.readyAt[server]; known {
		return t
	}
	return c.end()
}
