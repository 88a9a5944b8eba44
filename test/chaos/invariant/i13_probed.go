package invariant

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// I13: parked is not dead. A parked server is probed for as long as the manager runs, and when it is well again a probe connects it.
var probed = check("I13", "parked servers are probed for ever",
	"Parked probes resumed: a parked server goes on being probed, and is connected by a probe after the heal.",
	"No server was parked.",
	func(c *court) {
		heal, healed := c.healed()
		closing := c.closing()
		for _, server := range c.x.Servers() {
			wishes := c.wishes(server)
			ends := c.endings(server)
			for i := range ends {
				e := &ends[i]
				said := e.verdict != nil && e.verdict.Retry == messages.RetryParked
				if !e.parked && !said || e.never {
					continue
				}
				due := e.t + scaled(c.plan.Policy.Probe, 1+c.plan.Policy.ProbeJitter)
				if e.retryAfter > 0 {
					due = max(due, e.t+e.latest)
				}
				if e.wakes {
					due = max(due, e.woken+c.plan.Policy.WakeSpread)
				}
				slack := c.late + time.Second
				until := closing
				if e.next != nil {
					until = c.x.Event(e.next.open).T
				}
				if w, _ := wished(wishes, e.t, min(until, due+slack)); w != on {
					continue
				}
				if e.next == nil && closing <= due+slack {
					continue // it was not due before the end
				}
				c.looked++
				if until > due+slack {
					if at, free := c.full(poolOf(c.server(server).Kind)).free(due, until, slack); free {
						evidence := []int{e.open, e.end}
						if said {
							evidence = append(evidence, e.verdict.at)
						}
						c.violatedAt(at, server, e.end, evidence, "The server was parked at %s and had to be probed by %s. No probe came, though "+
							"the gate had a slot for it at %s: the manager has given it up.", clock(e.t), clock(due), clock(at))
					}
				}
			}
			if healed && len(ends) > 0 {
				c.unparked(server, heal, closing)
			}
		}
	})

// unparked judges that a server that was parked at the heal is connected by a probe.
func (c *court) unparked(server string, heal, closing time.Duration) {
	stays := c.stays(server)
	parked := -1
	for i := range stays {
		s := &stays[i]
		if s.Retry == messages.RetryParked && s.T <= heal && (s.to > heal || s.next < 0) {
			parked = s.at
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
	if w, _ := wished(c.wishes(server), heal, closing); w != on {
		return
	}
	bound, _ := c.recovery(server, stays, heal)
	if closing <= heal+bound+c.late {
		return
	}
	c.looked++
	c.violatedAt(heal+bound, server, parked, nil, "The server was parked when every fault had ended, at %s, and no probe had connected it by "+
		"%s.", clock(heal), clock(heal+bound))
}
