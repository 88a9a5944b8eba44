package invariant

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// recoveryReserve is the part of the bound of I11 for everything that is not counted separately.
const recoveryReserve = 5 * time.Second

// I11: once every fault has ended, every server is connected again within what the policy and the gate allow:
//
//	the cap of the interval, or the probe interval with its jitter if it was parked, or the server's own Retry-After
//	+ the connect timeout × ⌈servers / gate⌉
//	+ how long a remote server's silence may go unnoticed, if a lasting fault can have silenced one
//	+ 5 s
//
// It is not required of servers that the owner has disabled or removed, that need credentials or are never retried, and of lazy
// servers at rest.
var healCheck = newCheck("I11", "connected after the heal",
	"Every healed server is connected within (60 s cap, or the probe interval and its jitter if parked) + connect timeout × "+
		"⌈N/gate⌉ + 5 s.",
	"The world was not healed in this run, or the run ended too soon after it.",
	func(c *checker) {
		heal, ok := c.healTime()
		if !ok {
			return
		}
		for _, server := range c.x.Servers() {
			if c.spec[server] == nil {
				continue
			}
			c.checkRecovery(server, heal)
		}
	})

// checkRecovery judges one server after the end of the faults.
func (c *checker) checkRecovery(server string, heal time.Duration) {
	end := c.closeTime()
	stays := c.phaseSpans(server)
	if len(stays) == 0 {
		return
	}
	commands := c.ownerCommands(server)
	if w, _ := wantedThroughout(c.wantedStates(server), heal, end); w != wantConnected {
		// The server is disabled or removed, or a command to it came after the faults.
		return
	}
	from := heal
	// A command after the end of the faults starts the time anew.
	for _, a := range commands {
		if a.begin > heal && a.action != "refresh" && a.action != "configure" {
			from = a.begin
		}
	}
	bound, why := c.recoveryBound(server, stays, from)
	deadline := from + bound
	// Once connected after the faults, the server must stay connected until the manager closes, because nothing breaks any
	// more.
	at, since := -1, time.Duration(0)
	for i := range stays {
		s := &stays[i]
		if s.to < heal && s.endEvent >= 0 {
			continue
		}
		switch {
		case s.Phase == messages.NeedsAuth, s.Retry == messages.RetryNever:
			if s.to >= end || s.endEvent < 0 {
				// Only a person can help this server.
				return
			}
		case s.Step == messages.Idle && c.isLazy(server, max(s.T, heal), s.to):
			return
		}
		if s.T > deadline+c.slack && at < 0 {
			break
		}
		if s.Phase == messages.Connected {
			if at < 0 {
				at, since = s.event, s.T
			}
		}
	}
	// A run that is too short for the bound says nothing of a server that is still on its way.
	if deadline > end {
		if at < 0 {
			c.reportUndecided("The run ended at %s; %s has until %s to be connected.", timeText(end), server, timeText(deadline))
		} else {
			c.judged++
		}
		return
	}
	c.judged++
	// Phases that the manager publishes while it closes do not count.
	last := -1
	for i := range stays {
		if stays[i].T < end {
			last = i
		}
	}
	if last < 0 {
		return
	}
	switch {
	case at < 0 || since > deadline+c.slack:
		// The phase at the end of the allowed time.
		then := max(last, 0)
		for then > 0 && stays[then].T > deadline {
			then--
		}
		after := fmt.Sprintf("It had not connected when the manager was closed at %s", timeText(end))
		if at >= 0 {
			after = fmt.Sprintf("It connected only at %s", timeText(since))
		} else if last != then {
			after += fmt.Sprintf("; it was %s then", describePhase(stays[last].Event))
		}
		c.reportViolationAt(deadline, server, stays[then].event, []int{c.healEvent(), at}, "Every fault had ended at %s, and %s was to be connected by %s (%s). "+
			"At %s it was %s. %s.", timeText(heal), server, timeText(deadline), why, timeText(deadline), c.describeSpan(&stays[then]), after)
	case stays[last].Phase != messages.Connected:
		c.reportViolation(server, stays[last].event, []int{c.healEvent(), at}, "Every fault had ended at %s, and %s was connected at %s. It did not stay so, "+
			"though nothing broke any more: when the manager was closed at %s it was %s.", timeText(heal), server, timeText(max(since, heal)), timeText(end),
			c.describeSpan(&stays[last]))
	}
}

// healEvent returns the event at which every fault had ended, -1 if there is none.
func (c *checker) healEvent() int {
	for _, i := range c.x.ServerEvents("") {
		if c.x.Event(i).Kind == history.Heal {
			return i
		}
	}
	return -1
}

// describeSpan describes a phase: since when, why, and the next attempt.
func (c *checker) describeSpan(s *phaseSpan) string {
	text := fmt.Sprintf("%s since %s", describePhase(s.Event), timeText(s.T))
	if s.Attempts > 0 {
		text += fmt.Sprintf(", after %d failed attempts", s.Attempts)
		if s.Attempts == 1 {
			text = strings.TrimSuffix(text, "s")
		}
	}
	if s.Text != "" {
		text += fmt.Sprintf(" (%s)", messages.Line(s.Text, 120))
	}
	if s.Next > 0 {
		text += ", and its next attempt was due at " + timeText(s.Next)
	}
	return text
}

// recoveryBound returns how long a server may take after the faults, and why.
func (c *checker) recoveryBound(server string, stays []phaseSpan, heal time.Duration) (bound time.Duration, why string) {
	spec, policy := c.serverSpec(server), c.plan.Policy
	bound, why = policy.Cap, "the cap of the interval, "+timeText(policy.Cap)
	parked := scaleDuration(policy.Probe, 1+policy.ProbeJitter)
	// An attempt under way at that time may be the one that parks the server.
	soon := heal + spec.ConnectTimeout + stopLadder + c.slack
	for i := range stays {
		s := &stays[i]
		if s.Retry == messages.RetryParked && s.T <= soon && (s.to >= heal || s.endEvent < 0) {
			bound, why = max(bound, parked), "it was parked: the interval of the probes, "+timeText(parked)
		}
	}
	for _, a := range c.attemptsOf(server) {
		if t, ok := c.x.Time(a.refusedBy); ok && a.retryAfter > 0 && t <= soon {
			if own := t + a.retryAfter + min(scaleDuration(a.retryAfter, policy.RetryAfterJitter), policy.Cap) - heal; own > bound {
				bound, why = own, "it had asked for "+timeText(a.retryAfter)
			}
		}
	}
	// All servers may come back at once: the last one waits until the others have had their turn at the gate.
	slots := map[string]int{processes: c.plan.Limits.Processes, network: min(c.plan.Limits.Network, c.plan.Limits.PerOrigin),
		inProcess: c.plan.Limits.InProcess}[poolOf(spec.Kind)]
	rounds := (len(c.plan.Servers) + max(slots, 1) - 1) / max(slots, 1)
	attempts := spec.ConnectTimeout*time.Duration(max(rounds, 1)) + recoveryReserve
	bound += attempts
	why += ", and " + timeText(attempts) + " for the attempts"
	if poolOf(spec.Kind) == network && slices.ContainsFunc(c.plan.Faults, func(f scenario.PlannedFault) bool { return f.End > f.Begin }) {
		bound += c.livenessBound()
		why += ", and " + timeText(c.livenessBound()) + " in which its silence may go unnoticed"
	}
	return bound, why
}
