package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// I8: what the manager publishes goes along the documented edges, for the reasons that are documented; and it does not contradict
// what the servers see.
//
//   - An edge that needs a wish has one: nothing leaves disabled or needs-auth by itself, and what was removed says nothing more.
//   - Wishes win: what was disabled or removed is not dialled, and is published as disabled when the command is answered.
//   - Connected means that the handshake was answered and the first list was sent; and a server that has ended is not
//     connected for longer than the rule of liveness needs to notice it (L5), nor is a remote one that says nothing.
//   - Epochs rise.
var edges = check("I8", "the state machine",
	"Only edges of the documented state machine; none out of disabled or needs-auth by itself.",
	"The manager published no phase.",
	func(c *court) {
		for _, server := range c.x.Servers() {
			stays := c.stays(server)
			commands, wishes := c.commands(server), c.wishes(server)
			auth := c.signIns(server)
			c.looked += len(stays)
			c.steps(server, stays, commands, auth)
			if len(stays) > 0 {
				c.ruled(server, wishes, stays)
			}
			c.shut(server, stays, commands, auth)
			c.rested(server, stays, commands)
			for _, u := range connected(stays) {
				c.alive(server, u)
				c.heard(server, u)
			}
		}
	})

// steps judges each published phase by the one before.
func (c *court) steps(server string, stays []stay, commands []asked, auth []time.Duration) {
	closing := c.closing()
	for i := range stays {
		to := &stays[i]
		from, before := absent, -1
		if i > 0 && stays[i-1].next == to.at {
			from, before = nodeOf(&stays[i-1]), stays[i-1].at
		}
		if i == 0 {
			continue // where the history of phases begins need not be where the server begins
		}
		at := nodeOf(to)
		if to.Class == messages.ClassUnauthorized && (at == failed || at == restarting) {
			c.violated(server, to.at, []int{before}, "The server wants credentials at %s and is published as %s instead of needs-auth: nobody "+
				"learns that a person must act.", clock(to.T), describe(to.Event))
		}
		if stays[i-1].Epoch > to.Epoch && from != absent {
			c.violated(server, to.at, []int{before}, "The epoch fell from %d to %d at %s.", stays[i-1].Epoch, to.Epoch, clock(to.T))
		}
		if from == absent {
			if !c.anyOf(server, commands, to.T, func(a asked) bool { return a.do == "add" || a.do == "respec" || a.do == "adjust" }) {
				c.violated(server, to.at, []int{stays[i-1].next}, "The server was removed at %s and is %s at %s, and nobody added it.",
					clock(stays[i-1].to), describe(to.Event), clock(to.T))
			}
			continue
		}
		if follows(from, at) || to.T >= closing && (at == disabled || at == warm) {
			continue
		}
		if c.anyOf(server, commands, to.T, func(a asked) bool { return wishedFor(a.do, from, at) }) {
			continue
		}
		if from == needsAuth && (at == queued || at == dialing || at == resting || at == handshaking || at == installing) && signedIn(auth, stays[i-1].T-c.late, to.T+c.late) {
			continue
		}
		why := "that is no edge of its state machine"
		if from == disabled || from == warm || from == needsAuth {
			why = "nobody asked for it"
		}
		c.violated(server, to.at, []int{before}, "The server went from %s to %s at %s (%s): %s.", from, at, clock(to.T),
			describe(to.Event), why)
	}
}

// anyOf reports whether a command was being carried out at a time: also one that was answered and waits for a removal before it.
func (c *court) anyOf(server string, commands []asked, t time.Duration, ok func(asked) bool) bool {
	for _, a := range commands {
		if a.begin > t+c.moment {
			return false
		}
		if (!a.answered || max(a.end+c.late+stopLadder+drain, c.held(server, commands, a)) >= t) && ok(a) {
			return true
		}
	}
	return false
}

// drain is how long calls may go on that were admitted before a removal: what is added again waits for them.
const drain = 5 * time.Second

func signedIn(auth []time.Duration, from, to time.Duration) bool {
	for _, t := range auth {
		if t >= from && t <= to {
			return true
		}
	}
	return false
}

// ruled judges that wishes win: while a server is disabled or removed by its owner's word it is not dialled, and the
// manager says so.
func (c *court) ruled(server string, wishes []since, stays []stay) {
	end := c.closing()
	for i, w := range wishes {
		if w.wish != off && w.wish != gone {
			continue
		}
		from, to := w.from, end
		if i+1 < len(wishes) {
			to = min(to, wishes[i+1].from)
		}
		if to <= from+c.moment {
			continue
		}
		c.looked++
		what := "disabled"
		if w.wish == gone {
			what = "removed"
		}
		for _, conn := range c.x.Conns(server) {
			if t, ok := c.x.Time(conn.Open); ok && t > from+c.moment && t < to {
				c.violated(server, conn.Open, []int{w.at}, "The server was %s by its owner at %s and was dialled at %s.", what, clock(from), clock(t))
				break
			}
		}
		for k := range stays {
			s := &stays[k]
			if s.Phase == messages.Disabled || s.T >= to-c.moment || s.next >= 0 && s.to <= from+c.moment {
				continue
			}
			if min(s.to, to)-max(s.T, from) > c.moment {
				then := max(from+c.moment, s.T)
				c.violatedAt(then, server, s.at, []int{w.at}, "The server was %s by its owner at %s. The manager still said %s at %s.", what,
					clock(from), describe(s.Event), clock(then))
				break
			}
		}
	}
}

// shut judges that nobody is dialled who needs credentials, or of whom it was said that nothing is tried again.
func (c *court) shut(server string, stays []stay, commands []asked, auth []time.Duration) {
	conns := c.x.Conns(server)
	k := 0
	for i := range stays {
		s := &stays[i]
		if s.Phase != messages.NeedsAuth && s.Retry != messages.RetryNever {
			continue
		}
		for k < len(conns) && (conns[k].Open < 0 || c.x.Event(conns[k].Open).T <= s.T+c.moment) {
			k++
		}
		for n := k; n < len(conns); n++ {
			t, ok := c.x.Time(conns[n].Open)
			if !ok {
				continue
			}
			if t >= s.to-c.slower() || t > c.closing() {
				break
			}
			if _, found := c.askedIn(commands, s.T, t); found || signedIn(auth, s.T-c.late, t+c.late) {
				break
			}
			c.violated(server, conns[n].Open, []int{s.at}, "The server is %s since %s and was dialled at %s, and nobody asked for it.",
				describe(s.Event), clock(s.T), clock(t))
			break
		}
	}
}

// alive compares one time of being connected with what its server saw.
func (c *court) alive(server string, u up) {
	conn := c.connOf(server, u)
	if conn == nil {
		if len(c.x.Conns(server)) > 0 {
			c.violated(server, u.at, nil, "The server is published as connected at %s and no connection of it is open.", clock(u.from))
		}
		return
	}
	greeted, sent := false, c.server(server).Offers // which is enough to be connected, where the list takes too long
	for _, i := range conn.Events {
		e := c.x.Event(i)
		if e.T > u.from+c.slower() {
			break
		}
		if e.Kind == history.Answered && e.Code == 0 {
			greeted = greeted || e.Method == "initialize" || e.Method == "server/discover"
			sent = sent || e.Method == "tools/list"
		}
	}
	if !greeted || !sent {
		what := "its handshake was not answered"
		if greeted {
			what = "it has not sent a list of its tools"
		}
		c.violated(server, u.at, []int{conn.Open}, "The server is published as connected at %s, and on connection %d %s.", clock(u.from),
			conn.Conn, what)
		return
	}
	end := min(u.to, c.closing())
	dead, by, bound := c.deadSince(server, conn)
	if by < 0 || end-dead <= bound+c.late {
		return
	}
	c.violatedAt(dead+bound, server, by, []int{u.at, u.next}, "Connection %d ended at %s. The manager had to notice it within %s, by %s, and "+
		"said that the server is connected until %s.", conn.Conn, clock(dead), clock(bound), clock(dead+bound), clock(end))
}

// heard judges that a remote server's silence is noticed: it is asked after ProbeEvery without a message, and given up after
// ProbeStrikes questions without an answer.
func (c *court) heard(server string, u up) {
	conn := c.connOf(server, u)
	if conn == nil || poolOf(c.server(server).Kind) != network || c.plan.ProbeEvery <= 0 {
		return
	}
	last, at := u.from, u.at
	end := min(u.to, c.closing())
	silence := func(t time.Duration, shows int) bool {
		if t-last <= c.liveness()+c.late || c.under(server, last, t, "sleep") {
			return false
		}
		c.violatedAt(last+c.liveness(), server, shows, []int{u.at, at}, "Connection %d was silent from %s to %s. The manager had to notice it "+
			"within %s, by %s, and said that the server is connected all the time.", conn.Conn, clock(last), clock(t), clock(c.liveness()),
			clock(last+c.liveness()))
		return true
	}
	for _, i := range conn.Events {
		e := c.x.Event(i)
		if e.T > end {
			break
		}
		question := e.Kind == history.Received && e.Method == "" // it is answered what it had asked, a moment ago
		if e.Kind != history.Answered && e.Kind != history.Notified && e.Kind != history.Listed && !question || e.T < last {
			continue
		}
		if silence(e.T, i) {
			return
		}
		last, at = e.T, i
	}
	silence(end, at)
}

// connOf is the connection that stood when a server was published as connected: the last one that was opened before. Within one
// instant a server can be connected and dialled anew (enabled and reconnected, say): then it is the one from before that instant.
func (c *court) connOf(server string, u up) *history.ConnRecord {
	var found *history.ConnRecord
	for _, conn := range c.x.Conns(server) {
		open, ok := c.x.Time(conn.Open)
		if !ok || open > u.from {
			continue
		}
		if t, ok := c.x.Time(conn.Released); ok && t < u.from-c.moment {
			continue
		}
		if found != nil && open == u.from && u.to == u.from {
			continue
		}
		found = conn
	}
	return found
}

// deadSince is when a connection ended for good, the event, and how long that may go unnoticed: a child's exit and the end of a stream are
// seen, a remote server's silence is asked about: ProbeEvery + ProbeStrikes × ProbeTimeout. by is -1 if it did not end.
func (c *court) deadSince(server string, conn *history.ConnRecord) (t time.Duration, by int, bound time.Duration) {
	by, bound = -1, deathBound
	kind := c.server(server).Kind
	if poolOf(kind) == network {
		bound = c.liveness()
	}
	if d, ok := c.x.Time(conn.Down); ok {
		t, by = d, conn.Down
	}
	if d, ok := c.x.Time(conn.Released); ok && by < 0 {
		return d, conn.Released, deathBound
	}
	if by >= 0 && kind == messages.HTTP {
		// A server of HTTP that was started again answers where it was, if only with a refusal, and tells what was subscribed to: then
		// nothing has ended.
		for _, i := range conn.Events {
			if e := c.x.Event(i); e.T > t && (e.Kind == history.Answered || e.Kind == history.Notified) && e.T-t < bound {
				return 0, -1, 0
			}
		}
	}
	if c.under(server, t, t+bound, unseen...) {
		bound += c.faultsEnd(server, t) - t
	}
	return t, by, bound
}

// liveness is how long a peer that vanished may go unnoticed. Its last message may have come while a question was under way,
// which is waited for first.
func (c *court) liveness() time.Duration {
	return max(c.plan.ProbeEvery, c.plan.ProbeTimeout) + time.Duration(max(c.plan.ProbeStrikes, 1))*c.plan.ProbeTimeout
}

// faultsEnd is when the last fault that hides an end from the manager ended, of those that had power over a server at a time, or
// came on top of one that had.
func (c *court) faultsEnd(server string, t time.Duration) time.Duration {
	for _, w := range c.faults(server) {
		if slices.Contains(unseen, w.fault) && w.from <= t+c.moment {
			t = max(t, w.to)
		}
	}
	return t
}
