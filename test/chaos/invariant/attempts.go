package invariant

import (
	"net/http"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// attempt is one try to reach a server, from its dial to the moment at which nothing of it was left, as the server saw it.
// Usually it is one connection. It is two if the server ended on the probe for its era: the manager then opens the server "a
// second time, at once and within the same attempt".
type attempt struct {
	conns []*history.ConnRecord
	// These are indices of events: the first dial, the answer to the handshake, the end of the first tool list, the end of the
	// attempt. -1 stands for what did not happen.
	open, initialized, listed, end int
	// down is the event of the server's own end, -1 if the manager ended the connection.
	down int
	// class and retryAfter are what the server gave when it refused or ended the connection, or in its last answer before the
	// first list. refusedBy is the event with that demand, -1 without one.
	class      messages.Class
	retryAfter time.Duration
	refusedBy  int
}

// lastConn returns the last connection of the attempt.
func (a *attempt) lastConn() *history.ConnRecord { return a.conns[len(a.conns)-1] }

// attemptsOf returns every attempt to reach a server, in order. The result is cached for the checker.
func (c *checker) attemptsOf(server string) []*attempt {
	if known, ok := c.attemptCache[server]; ok {
		return known
	}
	var out []*attempt
	starts := c.attemptStarts(server)
	for _, conn := range c.x.Conns(server) {
		if n := len(out); n > 0 && c.isSecondOpening(out[n-1], conn) && !c.startedIn(starts, out, conn) {
			a := out[n-1]
			a.conns = append(a.conns, conn)
			a.initialized, a.end, a.down, a.class, a.retryAfter = -1, -1, -1, "", 0
			c.addConnEvents(a, conn)
			continue
		}
		a := &attempt{open: conn.Open, initialized: -1, listed: -1, end: -1, down: -1, refusedBy: -1}
		if a.open < 0 {
			a.open = conn.Events[0]
		}
		a.conns = append(a.conns, conn)
		c.addConnEvents(a, conn)
		out = append(out, a)
	}
	if c.attemptCache == nil {
		c.attemptCache = map[string][]*attempt{}
	}
	c.attemptCache[server] = out
	return out
}

// addConnEvents takes over what one connection shows of its attempt.
func (c *checker) addConnEvents(a *attempt, conn *history.ConnRecord) {
	a.down = conn.Down
	for _, i := range conn.Events {
		e := c.x.Event(i)
		switch e.Kind {
		case history.Answered:
			if e.Code == 0 && a.initialized < 0 && (e.Method == "initialize" || e.Method == "server/discover") {
				a.initialized = i
			}
			switch {
			case e.Code == 0:
				if a.refusedBy < 0 || c.x.Event(a.refusedBy).T < e.T {
					a.retryAfter, a.class = 0, ""
				}
			// Of two refusals in one instant the one with a demand counts.
			case a.retryAfter > 0 && e.RetryAfter == 0 && c.x.Event(a.refusedBy).T == e.T:
			case a.retryAfter > 0 && e.Method == "server/discover" && e.Code < 0 && c.x.Event(a.refusedBy).Method == "initialize":
				// A legacy server does not know server/discover and may say so late. Its answer to initialize counts.
			// A refusal before the end of the first list ends the attempt. A tool is called after the list, also if the record has both in
			// one instant and the refusal of the call first.
			case a.listed < 0 && e.Method != "tools/call" && (e.ID != "" || e.RetryAfter > 0):
				a.retryAfter, a.refusedBy, a.class = e.RetryAfter, i, ""
				if e.Code == http.StatusUnauthorized && !c.wasRepeated(conn, e) {
					a.class = messages.ClassUnauthorized
				}
			}
		case history.Listed:
			if a.listed < 0 {
				a.listed = i
			}
		case history.Refused, history.Down:
			if a.class != messages.ClassUnauthorized {
				a.class = e.Class
			}
			if e.RetryAfter > 0 {
				a.retryAfter, a.refusedBy = e.RetryAfter, i
			}
		default:
		}
	}
	switch {
	case conn.Released >= 0:
		a.end = conn.Released
	case conn.Refused >= 0:
		a.end = conn.Refused
	}
	if a.refusedBy >= 0 && a.end >= 0 && c.x.Event(a.end).T-c.x.Event(a.refusedBy).T > stopLadder+c.slack {
		// The connection went on after the refusal, and ended for another reason.
		a.class, a.retryAfter = c.serverClass(conn), 0
	}
}

// wasRepeated reports whether a refused request was sent again at once: the client had renewed its credentials.
func (c *checker) wasRepeated(conn *history.ConnRecord, refused *history.Event) bool {
	for _, i := range conn.Events {
		if e := c.x.Event(i); e.Kind == history.Received && e.Method == refused.Method && e.ID != refused.ID && e.T >= refused.T &&
			e.T <= refused.T+c.skew {
			return true
		}
	}
	return false
}

// serverClass returns the class with which a server refused or ended a connection.
func (c *checker) serverClass(conn *history.ConnRecord) messages.Class {
	for _, i := range []int{conn.Refused, conn.Down} {
		if i >= 0 {
			return c.x.Event(i).Class
		}
	}
	return ""
}

// attemptStarts returns the times at which the manager began attempts, by the epochs that it published.
func (c *checker) attemptStarts(server string) []time.Duration {
	var out []time.Duration
	var epoch uint64
	for _, i := range c.x.ServerEvents(server) {
		if e := c.x.Event(i); e.Kind == history.Phase && e.Step == messages.Dialing && e.Epoch != epoch {
			epoch = e.Epoch
			out = append(out, e.T)
		}
	}
	return out
}

// startedIn reports whether the manager began another attempt between the dial of the last one and a connection, to which that
// connection then belongs. Several attempts can begin in one instant; each has a dial.
func (c *checker) startedIn(starts []time.Duration, out []*attempt, conn *history.ConnRecord) bool {
	from, to := c.x.Event(out[len(out)-1].open).T, c.x.Event(conn.Open).T
	if c.real {
		taken := c.startsTaken(starts, out)
		return taken < len(starts) && starts[taken] <= to
	}
	started, dialled := 0, 0
	for n, _ := slices.BinarySearch(starts, from); n < len(starts) && starts[n] <= to; n++ {
		if started++; starts[n] > from {
			return true
		}
	}
	for n := len(out) - 1; n >= 0 && c.x.Event(out[n].open).T == from; n-- {
		dialled++
	}
	return started > dialled
}

// startsTaken returns how many of the manager's starts are those of attempts, or come before them. The manager dials before it publishes that, so that
// a real server may see the dial first: such an attempt takes the next start if that comes soon.
func (c *checker) startsTaken(starts []time.Duration, attempts []*attempt) (taken int) {
	for _, a := range attempts {
		open := c.x.Event(a.open).T
		before, _ := slices.BinarySearch(starts, open+1)
		if before <= taken && taken < len(starts) && starts[taken] <= open+c.skew {
			before = taken + 1
		}
		taken = max(taken, before)
	}
	return taken
}

// isSecondOpening reports whether conn continues an attempt whose server ended on server/discover. The manager opens it at once,
// and it happens once, because the second opening sends initialize. A server that ended before it received anything may have ended
// on the probe too: the client cannot tell.
func (c *checker) isSecondOpening(a *attempt, conn *history.ConnRecord) bool {
	if len(a.conns) != 1 || a.end < 0 || conn.Open < 0 {
		return false
	}
	// A real process records its opening when it runs: on a busy machine more than a second after the manager has started it.
	if gap := c.x.Event(conn.Open).T - c.x.Event(a.end).T; gap > c.skew && (!c.real || gap > c.skew+c.slack) {
		return false
	}
	heard, discovered, done := false, false, false
	for _, i := range a.conns[0].Events {
		if e := c.x.Event(i); e.Kind == history.Received {
			heard = true
			discovered = discovered || e.Method == "server/discover"
			// A request for the list shows that the handshake was complete.
			done = done || e.Method == "tools/list"
		}
	}
	return !done && (discovered || !heard)
}
