package invariant

import (
	"math"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// An attemptEnd is the end of one attempt or connection, with the delay that the documented policy allows after it. The check
// computes it from what the server saw and from the numbers of the plan, and never asks package restart.
type attemptEnd struct {
	server string
	*attempt
	next *attempt // nil if no other attempt followed
	t    time.Duration
	// class is the class that the server's answer has, or the manager's where the server gave no answer.
	class messages.Class
	// retryPhase is the phase that the manager published with the time of the next attempt; nil if it published none.
	retryPhase *phaseSpan

	// minFailures and maxFailures bound the number of failed attempts in a row, this one included. They differ where the count
	// may have been cleared.
	minFailures, maxFailures int
	stable                   bool // it lasted for Policy.Stable for sure: no failure
	maybeStable              bool // within the tolerance it may have lasted that long
	// exhaustedFailures are the failures in a row that this machine's own lack of resources caused, at most; exhaustedUnsure says
	// that a command may have cleared their count.
	exhaustedFailures int
	exhaustedUnsure   bool
	parked            bool // parked for every count between minFailures and maxFailures
	// mayPark: the server is parked for at least one of these counts.
	mayPark bool
	// displaces: the next start may take the place of a silent process, because the server was connected and lost.
	displaces    bool
	neverRetried bool // the class is never retried without a command
	// maybeRetried: the class is retried if the server was connected before, and its list was answered in the moment of its end.
	maybeRetried bool
	// command names the command or the change of credentials that came between this end and the next attempt; then the policy
	// bounds nothing.
	command string
	// machineWoke is set when the machine woke up, first at wokeAt and last at wokeLast: the manager retries waiting servers within
	// Policy.WakeSpread of each time.
	machineWoke      bool
	wokeAt, wokeLast time.Duration
	// wakes are when the owner's program said that the machine or the network is back.
	wakes []ownerCommand
	// earliest and latest bound the delay of the next attempt, counted from t.
	earliest, latest time.Duration
}

// A retryRule says how the policy treats a class of errors.
type retryRule uint8

const (
	counted retryRule = iota
	uncounted
	ifConnectedBefore
	notRetried
)

// retryRules repeats the table in the comments of package restart: "where only a person can help there is no timer". A class
// that is not in it is counted.
var retryRules = map[messages.Class]retryRule{
	messages.ClassConfig: notRetried, messages.ClassUnauthorized: notRetried, messages.ClassUnsupported: notRetried,
	messages.ClassDenied: notRetried, messages.ClassInvalid: notRetried, messages.ClassCanceled: notRetried,
	messages.ClassMissing: ifConnectedBefore, messages.ClassExhausted: uncounted,
}

// attemptEnds returns the end of every attempt of a server, in order. It leaves out attempts that the manager ended on command
// or for idleness, and those without an end.
func (c *checker) attemptEnds(server string) []attemptEnd {
	var out []attemptEnd
	attempts := c.attemptsOf(server)
	stays, commands := c.phaseSpans(server), c.ownerCommands(server)
	ups := connectedSpans(stays)
	auth := c.signInTimes(server)
	policy := c.plan.Policy
	spec := c.serverSpec(server)
	// low and high bound the failures in a row, and ever remembers whether the server was ever connected since its count began.
	// listed remembers the same of a list that was answered: the manager may have taken it before the connection ended, and a
	// server is shown as connected a moment later.
	low, high, exhausted, ever, listed := 0, 0, 0, false, false
	unsure := false // of exhausted
	at := 0         // the first stay that can matter
	for i, a := range attempts {
		open := c.x.Event(a.open).T
		if i > 0 { // what happened before it may have cleared the count
			from := c.x.Event(attempts[i-1].open).T
			if cleared, sure := c.clearsFailures(commands, ups, from, open); cleared {
				low, unsure = 0, exhausted > 0
				if sure {
					high, exhausted, unsure, ever, listed = 0, 0, false, false, false
				}
			}
		}
		for at < len(stays) && stays[at].to < open && stays[at].endEvent >= 0 {
			at++
		}
		until := c.endTime()
		e := attemptEnd{server: server, attempt: a}
		if i+1 < len(attempts) {
			e.next = attempts[i+1]
			until = c.x.Event(e.next.open).T
		}
		if wentIdle(stays[at:], open, until) { // it was let go, and its next use is a person's wish
			low, high, exhausted, unsure, ever = 0, 0, 0, false, true
			continue
		}
		// The loss of an attempt whose end is unknown may have counted or not.
		wasUp, from, to := c.connectedTime(a, ups, open, until)
		ever, listed = ever || wasUp, listed || c.answeredList(a)
		t, ended := c.x.Time(a.end)
		if !ended {
			low, high = 0, high+1
			continue
		}
		e.t = t
		e.retryPhase = retryPhaseIn(stays[at:], max(open, t-c.slack-stopLadder), until)
		e.class = c.classOf(a, stays[at:], until)
		e.stable = wasUp && to[1]-from[1] >= policy.Stable
		e.maybeStable = wasUp && to[0]-from[0] >= policy.Stable-c.slack
		kind := retryRules[e.class]
		// A missing binary or address is retried only if the server was there before.
		e.neverRetried = kind == notRetried || kind == ifConnectedBefore && !ever && !listed
		e.maybeRetried = kind == ifConnectedBefore && !ever && listed
		switch {
		case e.stable:
			low, high = 0, 0
		case e.maybeStable:
			low = 0
		}
		// A lack of resources is counted on its own; every other failure clears that count.
		switch {
		case kind == uncounted:
			exhausted++
		case e.stable:
		case e.maybeStable:
			high, exhausted, unsure = high+1, 0, false
		default:
			low, high, exhausted, unsure = low+1, high+1, 0, false
		}
		e.minFailures, e.maxFailures, e.exhaustedFailures, e.exhaustedUnsure = low, high, exhausted, unsure
		// Processes and network servers park after different numbers of failures.
		park := policy.NetworkPark
		if poolOf(spec.Kind) == processes {
			park = policy.StdioPark
		}
		e.mayPark = high >= park && !e.stable
		e.parked = low >= park && !e.stable && !e.maybeStable
		e.displaces = wasUp && kind == counted && !e.mayPark && poolOf(spec.Kind) == processes
		if wasUp && kind == uncounted {
			e.parked, e.mayPark = false, false // connected since it was parked, and no failure since
		}
		c.setDelayBounds(&e, kind)
		c.noteExcuse(&e, commands, ups, auth, until)
		out = append(out, e)
	}
	return out
}

// answeredList reports whether the server answered a list of tools in an attempt.
func (c *checker) answeredList(a *attempt) bool {
	return slices.ContainsFunc(a.lastConn().Events, func(i int) bool {
		e := c.x.Event(i)
		return e.Kind == history.Answered && e.Method == "tools/list" && e.Code == 0
	})
}

// stopLadder bounds the time between the server's end and its publication: the transport closes the server's standard input,
// then asks it to end, then kills it.
const stopLadder = 6 * time.Second

// connectedTime bounds how long an attempt was connected: from[0] and from[1] are the earliest and latest begin, to[0] and
// to[1] the latest and earliest end. The policy counts from the first tool list: the server knows when it sent it, the manager
// when it took it. A server may also see its end some time after the manager has let go.
func (c *checker) connectedTime(a *attempt, ups []connectedSpan, open, until time.Duration) (ok bool, from, to [2]time.Duration) {
	to[0] = until
	if t, ended := c.x.Time(a.end); ended {
		to[0] = t
	}
	for _, u := range ups {
		if u.from < open-c.serverDelay() || u.from >= until && until > open {
			continue
		}
		from[0] = u.from
		for _, i := range a.lastConn().Events {
			if e := c.x.Event(i); e.Kind == history.Answered && e.Method == "tools/list" && e.Code == 0 {
				from[0] = min(from[0], e.T)
				break
			}
		}
		from[1], to[1] = u.from, min(to[0], u.to)
		return true, from, to
	}
	return false, from, to
}

// retryPhaseIn returns the first phase between two times that says something about the next attempt, nil without one.
func retryPhaseIn(stays []phaseSpan, from, until time.Duration) *phaseSpan {
	for i := range stays {
		s := &stays[i]
		if s.T > until {
			return nil
		}
		if s.T >= from && s.Retry != "" {
			return s
		}
	}
	return nil
}

// classOf returns the class with which an attempt ended: the published one, unless the server's answer was of a class that is
// not simply counted. Without a published class the server's answer counts.
func (c *checker) classOf(a *attempt, stays []phaseSpan, until time.Duration) messages.Class {
	if retryRules[a.class] != counted && a.class != messages.ClassCanceled {
		return a.class
	}
	end := c.x.Event(a.end).T
	var published messages.Class
	for i := range stays {
		s := &stays[i]
		if s.T > until {
			break
		}
		// The first phase with a class after the dial is about this attempt, and so are later ones until the supervisor has
		// worked through its end.
		if s.T >= c.x.Event(a.open).T && s.Class != "" && (s.Phase == messages.Failed || s.Phase == messages.NeedsAuth || s.Step == messages.Restarting) {
			published = s.Class
			// A server that needs credentials when its connection ends is not dialled: each later phase is about another attempt.
			if s.T >= end || s.Phase == messages.NeedsAuth && s.to > end {
				break
			}
		}
	}
	if published != "" {
		return published
	}
	return a.class
}

// setDelayBounds computes earliest and latest: the union of the intervals of every case that is possible for this end.
func (c *checker) setDelayBounds(e *attemptEnd, kind retryRule) {
	p := c.plan.Policy
	base := p.NetworkBase
	if poolOf(c.serverSpec(e.server).Kind) == processes {
		base = p.StdioBase
	}
	// interval returns the longest backoff after so many failures in a row.
	interval := func(failures int) time.Duration {
		d := float64(base) * math.Pow(p.Factor, float64(max(failures-1, 0)))
		return time.Duration(math.Min(d, float64(p.Cap)))
	}
	// widenBounds adds one possible interval to the union.
	widest := false
	widenBounds := func(low, high time.Duration) {
		if !widest {
			e.earliest, e.latest, widest = low, max(low, high), true
			return
		}
		e.earliest, e.latest = min(e.earliest, low), max(e.latest, high)
	}
	// The policy adds jitter to a Retry-After, up to its cap.
	extraDelay := min(scaleDuration(e.retryAfter, p.RetryAfterJitter), p.Cap)
	if e.mayPark {
		low, high := scaleDuration(p.Probe, 1-p.ProbeJitter), scaleDuration(p.Probe, 1+p.ProbeJitter)
		if e.retryAfter > low {
			low, high = e.retryAfter, max(high, e.retryAfter+extraDelay)
		}
		widenBounds(low, high)
		if e.parked {
			return
		}
	}
	// A server that is not parked for sure may also be in one of these cases.
	switch {
	case e.retryAfter > 0:
		widenBounds(max(e.retryAfter, p.Floor), max(e.retryAfter+extraDelay, p.Floor))
	case kind == uncounted:
		widenBounds(p.Floor, interval(e.exhaustedFailures))
	case e.stable:
		widenBounds(0, p.Quick)
	default:
		if e.maybeStable {
			widenBounds(0, p.Quick)
		}
		widenBounds(p.Floor, interval(e.maxFailures))
	}
}

// scaleDuration multiplies a duration by a jitter factor.
func scaleDuration(d time.Duration, factor float64) time.Duration {
	return time.Duration(float64(d) * factor)
}

// noteExcuse looks for a cause other than the policy that can have started the next attempt or held it up: a command, new
// credentials, or the sleep of the machine.
func (c *checker) noteExcuse(e *attemptEnd, commands []ownerCommand, ups []connectedSpan, auth []time.Duration, until time.Duration) {
	open := c.x.Event(e.open).T
	for _, a := range commands {
		if a.begin > until+c.skew {
			break
		}
		if a.action == "refresh" || a.action == "configure" || a.begin < open-c.skew && !(waitsForRemoval(commands, a) && a.end >= open) {
			continue // what was asked for before the dial has had its effect with it
		}
		if c.leavesConnection(ups, a) {
			continue
		}
		if a.action == "wake" {
			e.noteWake(a.begin)
			e.wakes = append(e.wakes, a)
			continue
		}
		e.command = a.action
		return
	}
	for _, t := range auth {
		if t >= open && t <= until+c.skew {
			e.command = "other credentials"
			return
		}
	}
	for _, w := range c.faultWindows(e.server) {
		if w.fault == "sleep" && w.from <= until && w.to >= open {
			e.noteWake(w.from)
		}
	}
}

// noteWake takes down that the machine woke up at a time.
func (e *attemptEnd) noteWake(at time.Duration) {
	if !e.machineWoke {
		e.machineWoke, e.wokeAt, e.wokeLast = true, at, at
	}
	e.wokeAt, e.wokeLast = min(e.wokeAt, at), max(e.wokeLast, at)
}

// wentIdle reports whether a lazy server rested between its dial and another time; then its next use dials it, not the policy.
// A rest in the very instant of the dial came before it.
func wentIdle(stays []phaseSpan, dialled, to time.Duration) bool {
	for i := range stays {
		if s := &stays[i]; s.Step == messages.Idle && s.T > dialled && s.T <= to {
			return true
		}
	}
	return false
}

// waitsForRemoval reports whether a command waited for the end of a removal: it takes effect when the old connection is gone.
func waitsForRemoval(commands []ownerCommand, a ownerCommand) bool {
	for _, r := range commands {
		if r.action == "remove" && r.begin <= a.begin && a.begin-r.begin <= stopLadder+drainTime {
			return true
		}
	}
	return false
}

// clearsFailures reports whether a command between two times may have cleared the failure count, and whether it did so for
// sure. A reconnect of a server that is already being dialled changes nothing, so that the count may stand, and so does an adjust of a
// connected one.
func (c *checker) clearsFailures(commands []ownerCommand, ups []connectedSpan, from, to time.Duration) (cleared, sure bool) {
	for _, a := range commands {
		if a.begin > to+c.skew {
			break
		}
		if a.begin < from-c.skew || c.leavesConnection(ups, a) {
			continue // it had its effect with the dial, or has none on the failures
		}
		switch a.action {
		case "reconnect", "enable", "add", "adjust", "disable", "disconnect":
			cleared = true
		case "respec", "remove":
			cleared, sure = true, sure || a.begin > from+c.skew
		}
	}
	return cleared, sure
}

// leavesConnection reports whether a command is an adjust that was given and answered while the server was connected: no connection depends on
// what it changes, so that the policy goes on with the failures that it has counted.
func (c *checker) leavesConnection(ups []connectedSpan, a ownerCommand) bool {
	return a.action == "adjust" && a.answered && slices.ContainsFunc(ups, func(u connectedSpan) bool {
		return u.from <= a.begin-c.skew && (u.endEvent < 0 || u.to > a.end+c.skew)
	})
}

// signInTimes returns when a server's credentials changed: by a sign-in, or by a fault that takes or gives them.
func (c *checker) signInTimes(server string) []time.Duration {
	var out []time.Duration
	for _, i := range c.x.ServerEvents(server) {
		e := c.x.Event(i)
		if e.Kind == history.Auth || e.Kind == history.FaultOff && (e.Name == "unauthorized" || e.Name == "rotate-token") ||
			e.Kind == history.FaultOn && e.Name == "rotate-token" {
			out = append(out, e.T)
		}
	}
	return out
}
