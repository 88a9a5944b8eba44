package invariant

import (
	"net/http"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// attempt is one try to reach a server, from its dial to the moment at which nothing of it was left, as the server saw it.
// Mostly it is one connection. It is two if the server ended on the question which era it speaks: then it is "opened a
// second time, at once and within the same attempt".
type attempt struct {
	conns []*history.ConnRecord
	// open, greeted, listed and end are event indices: of the first dial, of the answer to the handshake, of the end of the
	// first tool list, of the end of everything. -1 for what did not happen.
	open, initialized, listed, end int
	// down is the server's own end, -1 if the manager ended the connection.
	down int
	// class and retryAfter are what the server said when it refused or ended, or in its last answer before the handshake.
	class      messages.Class
	retryAfter time.Duration
	refusedBy  int // the event that demanded retryAfter
}

func (a *attempt) lastConn() *history.ConnRecord { return a.conns[len(a.conns)-1] }

// attemptsOf is every try to reach a server, in order.
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
			case a.retryAfter > 0 && e.RetryAfter == 0 && c.x.Event(a.refusedBy).T == e.T: // of one instant the demand counts
			case a.retryAfter > 0 && e.Method == "server/discover" && e.Code < 0 && c.x.Event(a.refusedBy).Method == "initialize":
				// It does not know the question, whenever it says so. What counts is what it says to the other one.
			case a.listed < 0 && (e.ID != "" || e.RetryAfter > 0): // what is refused before the first list is in ends the attempt
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
		a.class, a.retryAfter = c.serverClass(conn), 0 // it went on after the refusal, and ended of something else
	}
}

// wasRepeated reports whether a question that was refused was put again at once: the client had other credentials.
func (c *checker) wasRepeated(conn *history.ConnRecord, refused *history.Event) bool {
	for _, i := range conn.Events {
		if e := c.x.Event(i); e.Kind == history.Received && e.Method == refused.Method && e.ID != refused.ID && e.T >= refused.T &&
			e.T <= refused.T+c.skew {
			return true
		}
	}
	return false
}

// serverClass is how a server ended a connection by its own word.
func (c *checker) serverClass(conn *history.ConnRecord) messages.Class {
	for _, i := range []int{conn.Refused, conn.Down} {
		if i >= 0 {
			return c.x.Event(i).Class
		}
	}
	return ""
}

// attemptStarts is when the manager began an attempt, by the epochs that it published.
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

// startedIn reports whether another attempt was begun between the dial of the last one and a connection: then that is its own.
// Several can begin in one instant; each has a dial.
func (c *checker) startedIn(starts []time.Duration, out []*attempt, conn *history.ConnRecord) bool {
	from, to := c.x.Event(out[len(out)-1].open).T, c.x.Event(conn.Open).T
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

// isSecondOpening reports whether conn goes on with an attempt whose server ended on server/discover. Both are within one
// moment, and it happens once: what is opened again is asked to initialize. A server that ended before it heard anything may have
// ended on the question too: its client cannot know.
func (c *checker) isSecondOpening(a *attempt, conn *history.ConnRecord) bool {
	if len(a.conns) != 1 || a.end < 0 || conn.Open < 0 {
		return false
	}
	if gap := c.x.Event(conn.Open).T - c.x.Event(a.end).T; gap > c.skew {
		return false
	}
	heard, discovered, done := false, false, false
	for _, i := range a.conns[0].Events {
		if e := c.x.Event(i); e.Kind == history.Received {
			heard = true
			discovered = discovered || e.Method == "server/discover"
			done = done || e.Method == "tools/list" // the handshake was complete
		}
	}
	return !done && (discovered || !heard)
}
