package invariant

import (
	"math"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// I7: how long a server is left alone after its end. The envelope is computed from what the servers saw and from the numbers of
// the policy; the manager's published schedule must agree with it, and the next dial with both.
//
//   - No attempt begins earlier than the policy allows, unless the owner asked for it; none later than policy and gate allow.
//   - Failures in a row are counted by ends, whatever was connected in between for less than Stable: so a server that connects
//     and drops is parked like one that never connects.
//   - Classes that only a person can mend are not retried.
//   - An attempt is given up when connectTimeout has passed, and not before: see checkAttemptLengths.
//   - Servers that wait are tried again when the machine has woken up, over Policy.WakeSpread and not in one instant.
//   - The jitter is random: the delays of many servers fill their envelopes evenly, and servers that end together do not return
//     together.
var retryDelayCheck = newCheck("I7", "the gaps between attempts",
	"The gaps between attempts lie inside the policy's envelope; Retry-After is respected.",
	"No attempt or connection ended.",
	func(c *checker) {
		var drawn []delaySample
		for _, server := range c.x.Servers() {
			c.checkAttemptLengths(server)
			wishes := c.wantedStates(server)
			ends := c.attemptEnds(server)
			for i := range ends {
				e := &ends[i]
				// The owner ended this attempt, or asked for the next one, so that the policy does not speak.
				if e.command != "" || e.maybeRetried {
					continue
				}
				if w, _ := wantedThroughout(wishes, e.t, e.t+c.skew); w == wantDisabled || w == wantRemoved {
					// I8 judges what the owner does not want.
					continue
				}
				c.judged++
				if e.neverRetried {
					c.checkNeverRetried(e)
					continue
				}
				c.checkTooEarly(e)
				c.checkTooLate(e, wishes)
				c.checkSpread(e)
				c.checkHastened(e, wishes)
				c.checkPublished(e, &drawn)
			}
		}
		c.checkJitter(drawn)
	})

// checkNeverRetried judges that the manager leaves alone what only a person can mend.
func (c *checker) checkNeverRetried(e *attemptEnd) {
	if e.next == nil || e.machineWoke {
		return
	}
	c.reportViolation(e.server, e.next.open, []int{e.open, e.end}, "The server ended at %s with %s, which is never tried again by itself, and was "+
		"dialled at %s.", timeText(e.t), e.class, timeText(c.x.Event(e.next.open).T))
}

// timePrecision bounds how far outside of the policy's bounds a recorded time may lie.
func (c *checker) timePrecision() time.Duration {
	if c.real {
		return c.skew
	}
	return time.Millisecond
}

// checkTooEarly judges that the next attempt does not begin before the policy allows it.
func (c *checker) checkTooEarly(e *attemptEnd) {
	if e.next == nil {
		return
	}
	open := c.x.Event(e.next.open).T
	if open-e.t >= e.earliest-c.timePrecision() || e.machineWoke && open >= e.wokeAt-c.timePrecision() {
		return
	}
	evidence := []int{e.open, e.end}
	switch {
	case e.retryAfter > 0 && e.earliest >= e.retryAfter:
		c.reportViolation(e.server, e.next.open, append(evidence, e.refusedBy), "The server asked to be left alone for %s at %s (Retry-After). The "+
			"manager dialled it at %s, after %s.", e.retryAfter, timeText(c.x.Event(e.refusedBy).T), timeText(open), timeText(open-e.t))
	case e.parked:
		c.reportViolation(e.server, e.next.open, evidence, "The server failed at %s, failure %d in a row at least. It is parked then and probed "+
			"after %s at the earliest. The manager dialled it at %s, after %s.", timeText(e.t), e.minFailures, timeText(e.earliest), timeText(open), timeText(open-e.t))
	default:
		c.reportViolation(e.server, e.next.open, evidence, "The server ended at %s (%s, failure %d in a row). The manager dialled it again at %s, "+
			"after %s; the restart policy lets it do so after %s at the earliest.", timeText(e.t), e.class, e.maxFailures, timeText(open), timeText(open-e.t),
			timeText(e.earliest))
	}
}

// checkTooLate judges that a due attempt begins as soon as the gate has a slot.
func (c *checker) checkTooLate(e *attemptEnd, wishes []wantedSince) {
	due := e.t + e.latest
	if e.retryPhase != nil && e.retryPhase.Next > 0 && !e.machineWoke {
		due = min(due, e.retryPhase.Next)
	}
	if e.machineWoke {
		due = max(due, e.wokeLast+c.plan.Policy.WakeSpread)
	}
	slack := c.slack + time.Second
	if c.real {
		slack += 5 * time.Second
	}
	// Without a next attempt the server was left alone until the manager was closed.
	until := c.closeTime()
	if e.next != nil {
		until = c.x.Event(e.next.open).T
	}
	if until <= due+slack {
		return
	}
	for _, w := range append(slices.Clone(c.faultWindows(e.server)), c.machineWindows...) {
		if c.real && w.fault == "exhausted" && w.from <= due && due <= w.to {
			// A real start without descriptors fails before there is a process that could record it.
			return
		}
	}
	if w, _ := wantedThroughout(wishes, e.t, until); w != wantConnected {
		return
	}
	if e.next == nil && e.mayPark {
		// I13 judges parked servers.
		return
	}
	at, free := c.poolFullness(poolOf(c.serverSpec(e.server).Kind)).firstFree(due, until, slack)
	if !free && e.displaces && !c.real {
		at, free = c.occupiedPlaces().firstFree(due, until, slack)
	}
	if !free {
		return
	}
	evidence := []int{e.open, e.end}
	if e.retryPhase != nil {
		evidence = append(evidence, e.retryPhase.event)
	}
	if e.next == nil {
		c.reportViolation(e.server, e.end, evidence, "The server ended at %s and was due at %s at the latest. It was never dialled again, though the "+
			"gate had a slot at %s.", timeText(e.t), timeText(due), timeText(at))
		return
	}
	c.reportViolation(e.server, e.next.open, evidence, "The server ended at %s and was due at %s at the latest. It was dialled at %s, though the gate "+
		"had a slot at %s.", timeText(e.t), timeText(due), timeText(until), timeText(at))
}

// wakeInstant is so short a time that no draw from Policy.WakeSpread falls into it by chance.
const wakeInstant = time.Microsecond

// checkSpread judges that a server which waits is not dialled in the very instant in which the machine wakes up: all that wait would be dialled
// together.
func (c *checker) checkSpread(e *attemptEnd) {
	if c.real || e.next == nil || e.retryPhase == nil || c.plan.Policy.WakeSpread < time.Second {
		return
	}
	open := c.x.Event(e.next.open).T
	if e.retryPhase.T >= open || e.retryPhase.Next <= open+c.timePrecision() {
		return // it was due
	}
	for _, w := range e.wakes {
		if open >= w.begin && open < w.begin+wakeInstant {
			c.reportViolation(e.server, e.next.open, []int{e.retryPhase.event, w.event}, "The next attempt was due at %s. The machine woke up at %s, and the manager dialled the server in that "+
				"instant: servers that wait are to be tried again spread over %s.", timeText(e.retryPhase.Next), timeText(w.begin), c.plan.Policy.WakeSpread)
		}
	}
}

// delaySample is one delay, as a fraction of its envelope.
type delaySample struct {
	fraction float64
	event    int
}

// checkPublished compares the manager's published schedule with what follows from the servers' events.
func (c *checker) checkPublished(e *attemptEnd, drawn *[]delaySample) {
	v := e.retryPhase
	if v == nil {
		return
	}
	evidence := []int{e.open, e.end}
	if v.Retry == messages.RetryNever {
		c.reportViolation(e.server, v.event, evidence, "The server ended at %s with %s, which is tried again, and the manager said that nothing follows.",
			timeText(e.t), e.class)
		return
	}
	switch {
	case e.parked && v.Retry != messages.RetryParked:
		c.reportViolation(e.server, v.event, evidence, "The server had failed %d times in a row at %s and was not parked.", e.minFailures, timeText(e.t))
		return
	case !e.mayPark && v.Retry == messages.RetryParked:
		c.reportViolation(e.server, v.event, evidence, "The server was parked at %s after %d failures in a row.", timeText(v.T), e.maxFailures)
		return
	}
	// The servers' events leave open how the manager counts an end near a bound, such as a connection that lived for just
	// Stable.
	certain := e.minFailures == e.maxFailures && !e.exhaustedUnsure && e.parked == e.mayPark && (e.stable || !e.maybeStable) && !e.machineWoke
	if certain && retryRules[e.class] == counted && v.Attempts != e.minFailures {
		c.reportViolation(e.server, v.event, evidence, "The manager counts %d failures in a row at %s, and the server saw %d.", v.Attempts, timeText(v.T), e.minFailures)
	}
	if v.Next == 0 {
		return
	}
	delay := v.Next - v.T
	if delay < e.earliest-c.timePrecision() && v.Next < e.t+e.earliest-c.timePrecision() || delay > e.latest+c.timePrecision()+c.serverDelay() {
		c.reportViolation(e.server, v.event, evidence, "The server ended at %s (%s, failure %d in a row). The manager planned the next attempt after %s; the restart "+
			"policy asks for %s "+
			"to %s.", timeText(e.t), e.class, e.maxFailures, timeText(delay), timeText(e.earliest), timeText(e.latest))
		return
	}
	if e.next != nil && !e.machineWoke {
		if open := c.x.Event(e.next.open).T; open < v.Next-c.timePrecision() {
			c.reportViolation(e.server, e.next.open, []int{v.event}, "The manager said at %s that the next attempt is due at %s, and dialled at %s.",
				timeText(v.T), timeText(v.Next), timeText(open))
		}
	}
	// In a narrow envelope the precision of the times would look like a lack of jitter.
	if width := e.latest - e.earliest; certain && width >= 100*time.Millisecond {
		*drawn = append(*drawn, delaySample{float64(delay-e.earliest) / float64(width), v.event})
	}
}

const (
	// minSamples is the number of delays below which their distribution is not judged.
	minSamples = 12
	// falseAlarmRate is the probability per history of calling an even distribution uneven.
	falseAlarmRate = 1e-10
)

// checkJitter judges the jitter: the fractions of their envelopes that delays take are even between 0 and 1 (Kolmogorov–Smirnov
// test), and no quarter of them is equal.
func (c *checker) checkJitter(drawn []delaySample) {
	if len(drawn) < minSamples {
		return
	}
	slices.SortStableFunc(drawn, func(a, b delaySample) int {
		switch {
		case a.fraction < b.fraction:
			return -1
		case a.fraction > b.fraction:
			return 1
		}
		return 0
	})
	n := float64(len(drawn))
	same, worst, at := 1, 0.0, drawn[0].event
	for i, s := range drawn {
		if d := math.Max(math.Abs(s.fraction-float64(i)/n), math.Abs(s.fraction-float64(i+1)/n)); d > worst {
			worst, at = d, s.event
		}
		if i > 0 && s.fraction-drawn[i-1].fraction < 1e-9 {
			same++
		}
	}
	e := c.x.Event(at)
	if same*4 >= len(drawn) {
		c.reportViolation(e.Server, at, nil, "%d of %d delays before an attempt, the first at %s, are the same part of what the restart policy allows: they have no "+
			"jitter, and servers that die together come back together.", same, len(drawn), timeText(e.T))
		return
	}
	if limit := math.Sqrt(math.Log(2/falseAlarmRate) / (2 * n)); worst > limit {
		c.reportViolation(e.Server, at, nil, "The manager drew %d delays before an attempt, the most uneven at %s, and they are not spread evenly between the shortest and the longest "+
			"that the restart policy allows after so many failures: half of them lie in the first %.0f %% of that span, and the longest at %.0f %%. Chance does not explain "+
			"it (the distributions differ by %.2f, more than %.2f).", len(drawn), timeText(e.T), 100*drawn[len(drawn)/2].fraction, 100*drawn[len(drawn)-1].fraction, worst, limit)
	}
}
