package invariant

import (
	"math"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// attemptEnd is the end of one attempt or connection and what the documented policy makes of it, computed here from what the
// server saw and from the numbers of the plan. The manager's own arithmetic is not asked.
type attemptEnd struct {
	server string
	*attempt
	next *attempt // nil if there was no other one
	t    time.Duration
	// class is the server's word, or the manager's where the server said none.
	class messages.Class
	// retryPhase is what the manager published of it: the time of the next attempt; nil if it published none.
	retryPhase *phaseSpan

	// failures is how many attempts in a row have failed, this one included, as far as it is known: from low to high.
	minFailures, maxFailures int
	stable                   bool // it had lasted for Policy.Stable: no failure
	maybeStable              bool // it may have
	exhaustedFailures        int  // failures in a row that this machine caused
	parked                   bool // for every count that is possible
	mayPark                  bool
	neverRetried             bool // nothing is tried again by itself
	// command is the command, or the like, that came between it and the next attempt; then the policy says nothing.
	command     string
	machineWoke bool // the machine woke up: what waits is tried again within Policy.WakeSpread of that
	wokeAt      time.Duration
	// earliest and latest bound the delay from t.
	earliest, latest time.Duration
}

// retryRule is what becomes of a class of errors, as the policy's comments say.
type retryRule uint8

const (
	counted retryRule = iota
	uncounted
	ifConnectedBefore
	notRetried
)

// retryRules is the table of package restart's comments: "where only a person can help there is no timer".
var retryRules = map[messages.Class]retryRule{
	messages.ClassConfig: notRetried, messages.ClassUnauthorized: notRetried, messages.ClassUnsupported: notRetried,
	messages.ClassDenied: notRetried, messages.ClassInvalid: notRetried, messages.ClassCanceled: notRetried,
	messages.ClassMissing: ifConnectedBefore, messages.ClassExhausted: uncounted,
}

// attemptEnds is the end of every attempt of a server, in order. An attempt that the manager was told to end, that was let go
// because it was idle, or that has no end is none.
func (c *checker) attemptEnds(server string) []attemptEnd {
	var out []attemptEnd
	attempts := c.attemptsOf(server)
	stays, commands := c.phaseSpans(server), c.ownerCommands(server)
	ups := connectedSpans(stays)
	auth := c.signInTimes(server)
	policy := c.plan.Policy
	spec := c.serverSpec(server)
	low, high, exhausted, ever := 0, 0, 0, false
	at := 0 // the first stay that can matter
	for i, a := range attempts {
		open := c.x.Event(a.open).T
		if i > 0 { // what happened before it may have cleared the count
			from := c.x.Event(attempts[i-1].open).T
			if cleared, sure := c.clearsFailures(commands, from, open); cleared {
				low = 0
				if sure {
					high, exhausted, ever = 0, 0, false
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
			low, high, exhausted, ever = 0, 0, 0, true
			continue
		}
		wasUp, from, to := c.connectedTime(a, ups, open, until)
		ever = ever || wasUp
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
		e.neverRetried = kind == notRetried || kind == ifConnectedBefore && !ever
		switch {
		case e.stable:
			low, high = 0, 0
		case e.maybeStable:
			low = 0
		}
		switch {
		case kind == uncounted:
			exhausted++
		case e.stable:
		case e.maybeStable:
			high, exhausted = high+1, 0
		default:
			low, high, exhausted = low+1, high+1, 0
		}
		e.minFailures, e.maxFailures, e.exhaustedFailures = low, high, exhausted
		park := policy.NetworkPark
		if poolOf(spec.Kind) == processes {
			park = policy.StdioPark
		}
		e.mayPark = high >= park && !e.stable
		e.parked = low >= park && !e.stable && !e.maybeStable
		if wasUp && kind == uncounted {
			e.parked, e.mayPark = false, false // connected since it was parked, and no failure since
		}
		c.setDelayBounds(&e, kind)
		c.noteExcuse(&e, commands, auth, until)
		out = append(out, e)
	}
	return out
}

// stopLadder is how long an end may take to be published after the server has seen it: its standard input is closed, it
// is asked to end, it is killed.
const stopLadder = 6 * time.Second

// connectedTime is how long an attempt was connected: the earliest and the latest time at which it can have begun, and the latest
// and the earliest at which it can have ended. What counts is the first tool list: the server knows when it was sent, the
// manager when it was taken; and a server may see its end some time after the manager has let go.
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

// retryPhaseIn is the first word about the next attempt after a time.
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

// classOf is why an attempt ended: what the manager published, unless the server has said a word that only a person can
// do something about. Where nothing was published it is the server's word.
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
		// The first word after the attempt has begun is about it, and so are those until its end was worked through.
		if s.T >= c.x.Event(a.open).T && s.Class != "" && (s.Phase == messages.Failed || s.Phase == messages.NeedsAuth || s.Step == messages.Restarting) {
			published = s.Class
			if s.T >= end {
				break
			}
		}
	}
	if published != "" {
		return published
	}
	return a.class
}

// setDelayBounds is the envelope of the delay.
func (c *checker) setDelayBounds(e *attemptEnd, kind retryRule) {
	p := c.plan.Policy
	base := p.NetworkBase
	if poolOf(c.serverSpec(e.server).Kind) == processes {
		base = p.StdioBase
	}
	interval := func(failures int) time.Duration {
		d := float64(base) * math.Pow(p.Factor, float64(max(failures-1, 0)))
		return time.Duration(math.Min(d, float64(p.Cap)))
	}
	widest := false
	widenBounds := func(low, high time.Duration) {
		if !widest {
			e.earliest, e.latest, widest = low, max(low, high), true
			return
		}
		e.earliest, e.latest = min(e.earliest, low), max(e.latest, high)
	}
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

func scaleDuration(d time.Duration, factor float64) time.Duration {
	return time.Duration(float64(d) * factor)
}

// noteExcuse finds what else than the policy can have begun the next attempt, or kept it from beginning.
func (c *checker) noteExcuse(e *attemptEnd, commands []ownerCommand, auth []time.Duration, until time.Duration) {
	open := c.x.Event(e.open).T
	for _, a := range commands {
		if a.begin > until+c.skew {
			break
		}
		if a.action == "refresh" || a.action == "configure" || a.begin < open-c.skew && !(waitsForRemoval(commands, a) && a.end >= open) {
			continue // what was asked for before the dial has had its effect with it
		}
		if a.action == "wake" {
			e.machineWoke, e.wokeAt = true, a.begin
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
			e.machineWoke, e.wokeAt = true, w.from
		}
	}
}

// wentIdle reports whether a lazy server rested at some moment between its dial and another time: it is dialled by its next use. Where it
// rested in the instant of the dial, that was before.
func wentIdle(stays []phaseSpan, dialled, to time.Duration) bool {
	for i := range stays {
		if s := &stays[i]; s.Step == messages.Idle && s.T > dialled && s.T <= to {
			return true
		}
	}
	return false
}

// waitsForRemoval reports whether a command waited for a removal to end: it takes effect when the old connection is gone.
func waitsForRemoval(commands []ownerCommand, a ownerCommand) bool {
	for _, r := range commands {
		if r.action == "remove" && r.begin <= a.begin && a.begin-r.begin <= stopLadder+drainTime {
			return true
		}
	}
	return false
}

// clearsFailures reports whether a person asked for the server between two times, which begins the fast attempts anew. One who
// asks for what is on its way already changes nothing, so that the count may stand.
func (c *checker) clearsFailures(commands []ownerCommand, from, to time.Duration) (cleared, sure bool) {
	for _, a := range commands {
		if a.begin > to+c.skew {
			break
		}
		if a.begin < from-c.skew {
			continue // it had its effect with the dial
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

// signInTimes is when a server was given other credentials.
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
