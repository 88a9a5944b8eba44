package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// I6: a server has one process or session at a time, is dialled once per epoch, and no more start at once than the gate has
// slots. All of it is counted at the servers.
//
// A slot is held from the dial until the handshake is answered, until everything is released, or for Limits.Hold (2 s).
// Within one instant what ends is counted before what begins.
var single = check("I6", "one connection per server, and the gate",
	"At most one live process or session per server; at most gate slots held, and 8×gate processes without a handshake.",
	"No server was dialled.",
	func(c *court) {
		held, unanswered := map[string][]change{}, []change{}
		for _, server := range c.x.Servers() {
			c.alone(server)
			c.perEpoch(server)
			pool := poolOf(c.server(server).Kind)
			for _, a := range c.attempts(server) {
				c.looked++
				from := c.x.Event(a.open).T
				to := c.answeredBy(a)
				held[pool] = append(held[pool], change{from, +1, a.open}, change{min(to, from+c.plan.Limits.Hold), -1, a.open})
				if pool == processes {
					unanswered = append(unanswered, change{from, +1, a.open}, change{to, -1, a.open})
				}
			}
		}
		for _, p := range []struct {
			pool  string
			limit int
		}{{processes, c.plan.Limits.Processes}, {network, c.plan.Limits.Network}, {inProcess, c.plan.Limits.InProcess}} {
			c.atMost(held[p.pool], p.limit, "%d starts of the %s held a slot of the gate at %s, and it has %d.", p.pool)
		}
		limits := c.plan.Limits
		c.atMost(unanswered, limits.Processes*limits.UnansweredFactor, "%d %s had neither answered the handshake nor ended at %s, and %d "+
			"may.", processes)
	})

// The three kinds of slots.
const (
	processes = "processes"
	network   = "network"
	inProcess = "in-process servers"
)

func poolOf(kind messages.TransportKind) string {
	switch kind {
	case messages.Stdio, "":
		return processes
	case messages.SDK:
		return inProcess
	default:
		return network
	}
}

// change is one more or one less of something at a time.
type change struct {
	t  time.Duration
	by int
	at int
}

// atMost counts what there is at once. The format takes the count, the pool, the time and the limit.
func (c *court) atMost(changes []change, limit int, format, pool string) {
	if limit <= 0 {
		return
	}
	slices.SortStableFunc(changes, func(a, b change) int {
		if a.t != b.t {
			return int(a.t - b.t)
		}
		return a.by - b.by // what ends is counted before what begins
	})
	count := 0
	slack := 0
	if c.real {
		slack = limit / 2 // a slot is given on before its server has told that it is free
	}
	for _, ch := range changes {
		if count += ch.by; ch.by > 0 && count > limit+slack {
			e := c.x.Event(ch.at)
			c.violated(e.Server, ch.at, nil, format, count, pool, clock(e.T), limit)
			return
		}
	}
}

// answeredBy is when an attempt had answered its handshake or had ended; the end of the history if neither happened.
func (c *court) answeredBy(a *attempt) time.Duration {
	to := c.end() + 1
	for _, i := range []int{a.greeted, a.end} {
		if t, ok := c.x.Time(i); ok {
			to = min(to, t)
		}
	}
	return to
}

// alone judges that a connection is opened only when nothing is left of the one before.
func (c *court) alone(server string) {
	var last *history.ConnRecord
	for _, conn := range c.x.Conns(server) {
		if conn.Open < 0 {
			continue
		}
		if last != nil {
			open := c.x.Event(conn.Open).T
			gone := last.Released
			if gone < 0 {
				gone = last.Refused
			}
			if t, ok := c.x.Time(gone); !ok || t > open+c.slower() {
				left := "was never released"
				if ok {
					left = "was released at " + clock(t)
				}
				c.violated(server, conn.Open, []int{last.Open, gone}, "Connection %d was opened at %s while connection %d was still there: "+
					"it %s.", conn.Conn, clock(open), last.Conn, left)
			}
		}
		last = conn
	}
}

// slower is how much later than the manager a server may tell of its own end: nothing in virtual time.
func (c *court) slower() time.Duration {
	if c.real {
		return c.moment
	}
	return 0
}

// perEpoch judges that one start is one dial: a second attempt without another start in between is nobody's decision.
func (c *court) perEpoch(server string) {
	starts := c.starts(server)
	if len(starts) == 0 {
		return // what the manager publishes is not in the history
	}
	dials, begun := 0, 0
	for _, a := range c.attempts(server) {
		open := c.x.Event(a.open).T
		dials++
		for begun < len(starts) && starts[begun] <= open+c.moment {
			begun++
		}
		if dials > begun {
			c.violated(server, a.open, nil, "The server was dialled at %s for the %d. time, and the manager had begun %d attempts: one "+
				"epoch is one dial, and a second opening only after an end on the question about the era.", clock(open), dials, begun)
			return
		}
	}
}
