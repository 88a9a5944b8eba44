package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// reserve is the part of the bound of I11 that covers everything that is not counted one by one.
const reserve = 5 * time.Second

// I11: once nothing is broken any more, every server is connected again, within what the policy and the gate allow:
//
//	the cap of the interval, or the probe interval with its jitter if it was parked, or what it asked for itself (Retry-After)
//	+ the connect timeout × ⌈servers / gate⌉
//	+ how long a remote server's silence may go unnoticed, if something lasted that can silence one
//	+ 5 s
//
// Not asked of: what its owner disabled or removed, what needs credentials, what is never tried again by itself, and a
// lazy server that rests.
var healing = check("I11", "connected after the heal",
	"Every healed server is connected within (60 s cap, or the probe interval and its jitter if parked) + connect timeout × "+
		"⌈N/gate⌉ + 5 s.",
	"The world was not healed in this run, or the run ended too soon after it.",
	func(c *court) {
		heal, ok := c.healed()
		if !ok {
			return
		}
		for _, server := range c.x.Servers() {
			if c.spec[server] == nil {
				continue
			}
			c.recovers(server, heal)
		}
	})

// recovers judges one server after the heal.
func (c *court) recovers(server string, heal time.Duration) {
	end := c.closing()
	stays := c.stays(server)
	if len(stays) == 0 {
		return
	}
	commands := c.commands(server)
	if w, _ := wished(c.wishes(server), heal, end); w != on {
		return // disabled or removed, or its owner was still at it
	}
	from := heal
	for _, a := range commands { // a command after the heal begins anew
		if a.begin > heal && a.do != "refresh" && a.do != "configure" {
			from = a.begin
		}
	}
	bound, why := c.recovery(server, stays, from)
	deadline := from + bound
	// Once connected after the heal, it stays so until the manager closes: nothing breaks any more.
	at, since := -1, time.Duration(0)
	for i := range stays {
		s := &stays[i]
		if s.to < heal && s.next >= 0 {
			continue
		}
		switch {
		case s.Phase == messages.NeedsAuth, s.Retry == messages.RetryNever:
			if s.to >= end || s.next < 0 {
				return // only a person can help
			}
		case s.Step == messages.Idle:
			return
		}
		if s.T > deadline+c.late && at < 0 {
			break
		}
		if s.Phase == messages.Connected {
			if at < 0 {
				at, since = s.at, s.T
			}
		}
	}
	if deadline > end {
		if at < 0 {
			c.undecided("The run ended at %s; %s has until %s to be connected.", clock(end), server, clock(deadline))
		} else {
			c.looked++
		}
		return
	}
	c.looked++
	last := &stays[len(stays)-1]
	for i := range stays {
		if s := &stays[i]; s.T <= end {
			last = s
		}
	}
	switch {
	case at < 0 || since > deadline+c.late:
		c.violated(server, last.at, []int{at}, "All was healed at %s and the server was to be connected by %s (%s). It is %s.", clock(heal),
			clock(deadline), why, describe(last.Event))
	case last.Phase != messages.Connected && last.T < end:
		c.violated(server, last.at, []int{at}, "All was healed at %s and the server was connected at %s, and is %s since %s.", clock(heal),
			clock(max(since, heal)), describe(last.Event), clock(last.T))
	}
}

// recovery is how long a server may take after the heal, and why.
func (c *court) recovery(server string, stays []stay, heal time.Duration) (bound time.Duration, why string) {
	spec, policy := c.server(server), c.plan.Policy
	bound, why = policy.Cap, "the cap of the interval, "+clock(policy.Cap)
	parked := scaled(policy.Probe, 1+policy.ProbeJitter)
	// An attempt that was under way may be the one that parks it.
	soon := heal + spec.ConnectTimeout + stopLadder + c.late
	for i := range stays {
		s := &stays[i]
		if s.Retry == messages.RetryParked && s.T <= soon && (s.to >= heal || s.next < 0) {
			bound, why = max(bound, parked), "it was parked: the interval of the probes, "+clock(parked)
		}
	}
	for _, a := range c.attempts(server) {
		if t, ok := c.x.Time(a.refusedBy); ok && a.retryAfter > 0 && t <= soon {
			if own := t + a.retryAfter + min(scaled(a.retryAfter, policy.RetryAfterJitter), policy.Cap) - heal; own > bound {
				bound, why = own, "it had asked for "+clock(a.retryAfter)
			}
		}
	}
	slots := map[string]int{processes: c.plan.Limits.Processes, network: min(c.plan.Limits.Network, c.plan.Limits.PerOrigin),
		inProcess: c.plan.Limits.InProcess}[poolOf(spec.Kind)]
	rounds := (len(c.plan.Servers) + max(slots, 1) - 1) / max(slots, 1)
	bound += spec.ConnectTimeout*time.Duration(max(rounds, 1)) + reserve
	if poolOf(spec.Kind) == network && slices.ContainsFunc(c.plan.Faults, func(f scenario.Planned) bool { return f.End > f.Begin }) {
		bound += c.liveness()
	}
	return bound, why
}
