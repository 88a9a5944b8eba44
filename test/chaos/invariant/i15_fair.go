package invariant

import (
	"maps"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// minCalls is the number of calls that a 99th percentile needs at least, before and during the faults.
const minCalls = 200

// callerMargin is added to twice the mean latency of a healthy server. A caller with a shorter deadline than the sum may fail, and
// is not judged.
const callerMargin = 100 * time.Millisecond

// I15: healthy servers are served as before while others are not. Latencies count from the planned time of a call (open loop),
// so that one slow answer cannot hide behind the calls that it delayed. The baseline is the latency of the same servers before
// the first fault. In a run of real processes all share the processors: an excess that the machine's own lag explains, once on
// the way to the server and once on the way back, is not judged.
var fairnessCheck = newCheck("I15", "healthy servers are served as before",
	"With F faulty servers, the healthy ones' p99 call latency stays within 1.5 × baseline + 5 ms, open loop, and all their "+
		"calls succeed.",
	"There were too few calls to healthy servers before and during the faults: a 99th percentile needs 200 of each.",
	func(c *checker) {
		first, last, any := c.faultPeriod()
		if !any {
			c.emptyReason = "No server was faulty."
			return
		}
		healthy := map[string]bool{}
		for _, s := range c.plan.Servers {
			// The start of a lazy server and the wait for a slot are no latency of the server.
			healthy[s.Name] = !s.Disabled && s.MaxInFlight == 0 && s.Tasks == "" && !s.Offers && !s.Personal && s.Connect != messages.Lazy && len(c.faultWindows(s.Name)) == 0 &&
				!c.plan.Hides(s.Name) && !slices.ContainsFunc(c.ownerCommands(s.Name),
				func(a ownerCommand) bool { return a.action != "configure" })
		}
		// Grouped by the servers' mean latency, because a burst of calls to a slower server would shift a common percentile.
		before, during := map[time.Duration][]latencySample{}, map[time.Duration][]latencySample{}
		for _, call := range c.x.Calls() {
			if call.Begin < 0 || !healthy[call.Server] || len(call.Ends) == 0 || c.wasGivenUp(call, c.x.Event(call.Ends[0]).T) {
				continue
			}
			alike := c.serverSpec(call.Server).Latency
			begin, end := c.x.Event(call.Begin), c.x.Event(call.Ends[0])
			took := end.Took
			if took == 0 {
				took = end.T - begin.T
			}
			switch {
			case begin.T < c.firstConnected(call.Server):
			case end.T < first:
				before[alike] = append(before[alike], latencySample{took, call.Ends[0]})
			case begin.T >= first && begin.T < last:
				during[alike] = append(during[alike], latencySample{took, call.Ends[0]})
				// A caller with a shorter deadline than a healthy server needs fails at the best of times. The call of an agent has no
				// deadline of its own, and still the call timeout of its server.
				server := c.serverSpec(call.Server)
				needs := 2*server.Latency + callerMargin
				hasty := begin.Deadline > 0 && begin.Deadline-begin.T < needs || server.CallTimeout > 0 && server.CallTimeout < needs
				if !hasty && end.Outcome != messages.OutcomeResult && end.Outcome != messages.OutcomeToolError {
					c.judged++
					c.reportViolation(call.Server, call.Ends[0], []int{call.Begin}, "Call %s to %s, which was well, ended with %s (%s) at %s while others "+
						"were faulty.", call.ID, call.Server, end.Outcome, end.Class, timeText(end.T))
				}
			}
		}
		for _, alike := range slices.Sorted(maps.Keys(before)) {
			if len(before[alike]) < minCalls || len(during[alike]) < minCalls {
				continue
			}
			baseline, current := percentile99(before[alike]), percentile99(during[alike])
			limit := baseline.took*3/2 + 5*time.Millisecond
			if current.took > limit && current.took <= limit+c.busyLatency {
				c.reportUndecided("The 99th percentile of the calls to healthy servers was %s before the faults and %s while others were faulty, and "+
					"at most %s is fair; but this machine was so busy that whoever only wanted to sleep was late by %s. Run it when there is less "+
					"to do.", latencyText(baseline.took), latencyText(current.took), latencyText(limit), latencyText(c.busyLatency/2))
				continue
			}
			c.judged += len(during[alike])
			if current.took > limit {
				c.reportViolation(c.x.Event(current.event).Server, current.event, []int{baseline.event}, "The 99th percentile of the calls to healthy servers was %s before the "+
					"faults and %s while others were faulty; at most %s is fair. The call that it is ended at %s.", latencyText(baseline.took), latencyText(current.took),
					latencyText(limit), timeText(c.x.Event(current.event).T))
			}
		}
	})

// latencySample is the latency of one call with its end.
type latencySample struct {
	took  time.Duration
	event int
}

// latencyText formats a latency for people.
func latencyText(d time.Duration) string { return d.Round(10 * time.Microsecond).String() }

// percentile99 returns the 99th percentile by the nearest rank.
func percentile99(all []latencySample) latencySample {
	slices.SortStableFunc(all, func(a, b latencySample) int { return int(a.took - b.took) })
	return all[(len(all)*99+99)/100-1]
}

// faultPeriod returns when the first fault began and the last one ended.
func (c *checker) faultPeriod() (first, last time.Duration, any bool) {
	addWindows := func(all []faultWindow) {
		for _, w := range all {
			if !any {
				first, last, any = w.from, w.to, true
			}
			first, last = min(first, w.from), max(last, w.to)
		}
	}
	c.faultWindows("")
	addWindows(c.machineWindows)
	for _, s := range c.plan.Servers {
		addWindows(c.faultWindows(s.Name))
	}
	return first, last, any
}

// firstConnected returns when a server was first published as connected; earlier calls cannot succeed.
func (c *checker) firstConnected(server string) time.Duration {
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
	return c.endTime()
}
