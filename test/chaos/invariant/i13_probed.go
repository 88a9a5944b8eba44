package invariant

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// I13: parking is not the end. The manager probes a parked server for as long as it runs, and a probe connects the server once
// it is healthy.
var probeCheck = newCheck("I13", "parked servers are probed for ever",
	"Parked probes resumed: a parked server goes on being probed, and is connected by a probe after the heal.",
	"No server was parked.",
	func(c *checker) {
		heal, healed := c.healTime()
		closing := c.closeTime()
		for _, server := range c.x.Servers() {
			wishes := c.wantedStates(server)
			ends := c.attemptEnds(server)
			for i := range ends {
				e := &ends[i]
				parkedPublished := e.retryPhase != nil && e.retryPhase.Retry == messages.RetryParked
				if !e.parked && !parkedPublished || e.neverRetried || e.maybeRetried {
					continue
				}
				due := e.t + scaleDuration(c.plan.Policy.Probe, 1+c.plan.Policy.ProbeJitter)
				// A server that asked for more time than the probes' interval gets it.
				if e.retryAfter > 0 {
					due = max(due, e.t+e.latest)
				}
				if e.machineWoke {
					due = max(due, e.wokeLast+c.plan.Policy.WakeSpread)
				}
				slack := c.slack + time.Second
				until := closing
				if e.next != nil {
					until = c.x.Event(e.next.open).T
				}
				if w, _ := wantedThroughout(wishes, e.t, min(until, due+slack)); w != wantConnected {
					continue
				}
				if e.next == nil && closing <= due+slack {
					// The probe was not due before the end of the run.
					continue
				}
				c.judged++
				if until > due+slack {
					if at, free := c.poolFullness(poolOf(c.serverSpec(server).Kind)).firstFree(due, until, slack); free {
						// The owner may have taken the server away before the slot was free.
						if w, _ := wantedThroughout(wishes, e.t, at); w != wantConnected {
							continue
						}
						evidence := []int{e.open, e.end}
						if parkedPublished {
							evidence = append(evidence, e.retryPhase.event)
						}
						c.reportViolationAt(at, server, e.end, evidence, "The server was parked at %s and had to be probed by %s. No probe came, though "+
							"the gate had a slot for it at %s: the manager has given it up.", timeText(e.t), timeText(due), timeText(at))
					}
				}
			}
			if healed && len(ends) > 0 {
				c.checkUnparked(server, heal, closing)
			}
		}
	})

// checkUnparked judges that a probe connects a server that was parked when the faults ended.
func (c *checker) checkUnparked(server string, heal, closing time.Duration) {
	stays := c.phaseSpans(server)
	parked := -1
	for i := range stays {
		s := &stays[i]
		if s.Retry == messages.RetryParked && s.T <= heal && (s.to > heal || s.endEvent < 0) {
			parked = s.event
		}
		if parked >= 0 && s.Phase == messages.Connected && s.T >= heal {
			return
		}
		if parked >= 0 && s.T > heal && (s.Phase == messages.NeedsAuth || s.Phase == messages.Disabled || s.Retry == messages.RetryNever) {
			return
		}
	}
	if parked < 0 {
		return
	}
	if w, _ := wantedThroughout(c.wantedStates(server), heal, closing); w != wantConnected {
		return
	}
	bound, _ := c.recoveryBound(server, stays, heal)
	if closing <= heal+bound+c.slack {
		return
	}
	c.judged++
	c.reportViolationAt(heal+bound, server, parked, nil, "The server was parked when every fault had ended, at %s, and no probe had connected it by "+
		"%s.", timeText(heal), timeText(heal+bound))
}
