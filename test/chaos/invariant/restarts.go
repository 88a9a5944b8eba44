package invariant

import (
	"math"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// ending is the end of one attempt or connection and what the documented policy makes of it, computed here from what the
// server saw and from the numbers of the plan. The manager's own arithmetic is not asked.
type ending struct {
	server string
	*attempt
	next *attempt // nil if there was no other one
	t    time.Duration
	// class is the server's word, or the manager's where the server said none.
	class messages.Class
	// verdict is what the manager published of it: the time of the next attempt; nil if it published none.
	verdict *stay

	// failures is how many attempts in a row have failed, this one included, as far as it is known: from low to high.
	low, high int
	stable    bool // it had lasted for Policy.Stable: no failure
	perhaps   bool // it may have
	exhausted int  // failures in a row that this machine caused
	parked    bool // for every count that is possible
	mayPark   bool
	never     bool // nothing is tried again by itself
	// asked is the command, or the like, that came between it and the next attempt; then the policy says nothing.
	asked string
	wakes bool // the machine woke up: what waits is tried again within Policy.WakeSpread of that
	woken time.Duration
	// earliest and latest bound the delay from t.
	earliest, latest time.Duration
}

// retried is what becomes of a class of errors, as the policy's comments say.
type retried uint8

const (
	counted retried = iota
	uncounted
	ifConnectedBefore
	notRetried
)

// classes is the table of package restart's comments: "where only a person can help there is no timer".
var classes = map[messages.Class]retried{
	messages.ClassConfig: notRetried, messages.ClassUnauthorized: notRetried, messages.ClassUnsupported: notRetried,
	messages.ClassDenied: notRetried, messages.ClassInvalid: notRetried, messages.ClassCanceled: notRetried,
	messages.ClassMissing: ifConnectedBefore, messages.ClassExhausted: uncounted,
}

// endings is the end of every attempt of a server, in order. An attempt that the manager was told to end, that was let go
// because it was idle, or that has no end is none.
func (c *court) endings(server string) []ending {
	var out []ending
	attempts := c.attempts(server)
	stays, commands := c.stays(server), c.commands(server)
	ups := connected(stays)
	auth := c.signIns(server)
	policy := c.plan.Policy
	spec := c.server(server)
	low, high, exhausted, ever := 0, 0, 0, false
	at := 0 // the first stay that can matter
	for i, a := range attempts {
		open := c.x.Event(a.open).T
		if i > 0 { // what happened before it may have cleared the count
			from := c.x.Event(attempts[i-1].open).T
			if cleared, sure := c.cleared(commands, from, open); cleared {
				low = 0
				if sure {
					high, exhausted, ever = 0, 0, false
				}
			}
		}
		for at < len(stays) && stays[at].to < open && stays[at].next >= 0 {
			at++
		}
		until := c.end()
		e := ending{server: server, attempt: a}
		if i+1 < len(attempts) {
			e.next = attempts[i+1]
			until = c.x.Event(e.next.open).T
		}
		if idle(stays[at:], open, until) { // it was let go, and its next use is a person's wish
			low, high, exhausted, ever = 0, 0, 0, true
			continue
		}
		wasUp, from, to := c.lasted(a, ups, open, until)
		ever = ever || wasUp
		t, ended := c.x.Time(a.end)
		if !ended {
			low, high = 0, high+1
			continue
		}
		e.t = t
		e.verdict = verdictOn(stays[at:], max(open, t-c.late-stopLadder), until)
		e.class = c.classOf(a, stays[at:], until)
		e.stable = wasUp && to[1]-from[1] >= policy.Stable
		e.perhaps = wasUp && to[0]-from[0] >= policy.Stable-c.late
		kind := classes[e.class]
		e.never = kind == notRetried || kind == ifConnectedBefore && !ever
		switch {
		case e.stable:
			low, high = 0, 0
		case e.perhaps:
			low = 0
		}
		switch {
		case kind == uncounted:
			exhausted++
		case e.stable:
		case e.perhaps:
			high, exhausted = high+1, 0
		default:
			low, high, exhausted = low+1, high+1, 0
		}
		e.low, e.high, e.exhausted = low, high, exhausted
		park := policy.NetworkPark
		if poolOf(spec.Kind) == processes {
			park = policy.StdioPark
		}
		e.mayPark = high >= park && !e.stable
		e.parked = low >= park && !e.stable && !e.perhaps
		if wasUp && kind == uncounted {
			e.parked, e.mayPark = false, false // connected since it was parked, and no failure since
		}
		c.bounds(&e, kind)
		c.excuse(&e, commands, auth, until)
		out = append(out, e)
	}
	return out
}

// stopLadder is how long an end may take to be published after the server has seen it: its standard input is closed, it
// is asked to end, it is killed.
const stopLadder = 6 * time.Second

// lasted is how long an attempt was connected: the earliest and the latest time at which it can have begun, and the latest
// and the earliest at which it can have ended. What counts is the first tool list: the server knows when it was sent, the
// manager when it was taken; and a server may see its end some time after the manager has let go.
func (c *court) lasted(a *attempt, ups []up, open, until time.Duration) (ok bool, from, to [2]time.Duration) {
	to[0] = until
	if t, ended := c.x.Time(a.end); ended {
		to[0] = t
	}
	for _, u := range ups {
		if u.from < open-c.slower() || u.from >= until && until > open {
			continue
		}
		from[0] = u.from
		for _, i := range a.last().Events {
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

// verdictOn is the first word about the next attempt after a time.
func verdictOn(stays []stay, from, until time.Duration) *stay {
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
func (c *court) classOf(a *attempt, stays []stay, until time.Duration) messages.Class {
	if classes[a.class] != counted && a.class != messages.ClassCanceled {
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

// bounds is the envelope of the delay.
func (c *court) bounds(e *ending, kind retried) {
	p := c.plan.Policy
	base := p.NetworkBase
	if poolOf(c.server(e.server).Kind) == processes {
		base = p.StdioBase
	}
	interval := func(failures int) time.Duration {
		d := float64(base) * math.Pow(p.Factor, float64(max(failures-1, 0)))
		return time.Duration(math.Min(d, float64(p.Cap)))
	}
	widest := false
	may := func(low, high time.Duration) {
		if !widest {
			e.earliest, e.latest, widest = low, max(low, high), true
			return
		}
		e.earliest, e.latest = min(e.earliest, low), max(e.latest, high)
	}
	after := min(scaled(e.retryAfter, p.RetryAfterJitter), p.Cap)
	if e.mayPark {
		low, high := scaled(p.Probe, 1-p.ProbeJitter), scaled(p.Probe, 1+p.ProbeJitter)
		if e.retryAfter > low {
			low, high = e.retryAfter, max(high, e.retryAfter+after)
		}
		may(low, high)
		if e.parked {
			return
		}
	}
	switch {
	case e.retryAfter > 0:
		may(max(e.retryAfter, p.Floor), max(e.retryAfter+after, p.Floor))
	case kind == uncounted:
		may(p.Floor, interval(e.exhausted))
	case e.stable:
		may(0, p.Quick)
	default:
		if e.perhaps {
			may(0, p.Quick)
		}
		may(p.Floor, interval(e.high))
	}
}

func scaled(d time.Duration, by float64) time.Duration { return time.Duration(float64(d) * by) }

// excuse finds what else than the policy can have begun the next attempt, or kept it from beginning.
func (c *court) excuse(e *ending, commands []asked, auth []time.Duration, until time.Duration) {
	open := c.x.Event(e.open).T
	for _, a := range commands {
		if a.begin > until+c.moment {
			break
		}
		if a.do == "refresh" || a.do == "configure" || a.begin < open-c.moment && !(waits(commands, a) && a.end >= open) {
			continue // what was asked for before the dial has had its effect with it
		}
		if a.do == "wake" {
			e.wakes, e.woken = true, a.begin
			continue
		}
		e.asked = a.do
		return
	}
	for _, t := range auth {
		if t >= open && t <= until+c.moment {
			e.asked = "other credentials"
			return
		}
	}
	for _, w := range c.faults(e.server) {
		if w.fault == "sleep" && w.from <= until && w.to >= open {
			e.wakes, e.woken = true, w.from
		}
	}
}

// idle reports whether a lazy server rested at some moment between its dial and another time: it is dialled by its next use. Where it
// rested in the instant of the dial, that was before.
func idle(stays []stay, dialled, to time.Duration) bool {
	for i := range stays {
		if s := &stays[i]; s.Step == messages.Idle && s.T > dialled && s.T <= to {
			return true
		}
	}
	return false
}

// waits reports whether a command waited for a removal to end: it takes effect when the old connection is gone.
func waits(commands []asked, a asked) bool {
	for _, r := range commands {
		if r.do == "remove" && r.begin <= a.begin && a.begin-r.begin <= stopLadder+drain {
			return true
		}
	}
	return false
}

// cleared reports whether a person asked for the server between two times, which begins the fast attempts anew. One who
// asks for what is on its way already changes nothing, so that the count may stand.
func (c *court) cleared(commands []asked, from, to time.Duration) (cleared, sure bool) {
	for _, a := range commands {
		if a.begin > to+c.moment {
			break
		}
		if a.begin < from-c.moment {
			continue // it had its effect with the dial
		}
		switch a.do {
		case "reconnect", "enable", "add", "adjust", "disable", "disconnect":
			cleared = true
		case "respec", "remove":
			cleared, sure = true, sure || a.begin > from+c.moment
		}
	}
	return cleared, sure
}

// signIns is when a server was given other credentials.
func (c *court) signIns(server string) []time.Duration {
	var out []time.Duration
	for _, i := range c.x.Of(server) {
		e := c.x.Event(i)
		if e.Kind == history.Auth || e.Kind == history.FaultOff && (e.Name == "unauthorized" || e.Name == "rotate-token") ||
			e.Kind == history.FaultOn && e.Name == "rotate-token" {
			out = append(out, e.T)
		}
	}
	return out
}
