package invariant

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// I6: a server, or an instance of one, has one process or session at a time, is dialed once per epoch, and no more servers start at once than the gate
// has slots. The servers' events count, not the manager's.
//
// A slot is held from the dial until the handshake is answered, until everything is released, or for Limits.Hold (2 s) and the
// time in which its processes waited for a processor. The gate for processes has fewer slots while starts are starved. Within
// one instant ends count before begins.
var singleConnCheck = newCheck("I6", "one connection per server, and the gate",
	"At most one live process or session per server or instance; at most gate slots held, and 8×gate processes without a handshake.",
	"No server was dialled.",
	func(c *checker) {
		for _, server := range c.x.Servers() {
			c.checkOneConn(server)
			c.checkDialsPerEpoch(server)
		}
		limits := c.plan.Limits
		for _, pool := range []struct {
			name  string
			limit int
		}{{processes, limits.Processes}, {network, limits.Network}, {inProcess, limits.InProcess}} {
			gate := c.gateOf(pool.name)
			c.judged += len(gate.starts)
			var held []change
			for _, s := range gate.starts {
				held = append(held, change{s.from, +1, s.open}, change{min(s.to, s.heldAtLeast), -1, s.open})
			}
			c.checkLimit(held, func(t time.Duration) int {
				if pool.name == processes {
					return gate.widthAt(t).most
				}
				return pool.limit
			}, "%d starts of the %s held a slot of the start gate at %s, and it had %d.", pool.name)
		}
		var unanswered []change
		for _, s := range c.gateOf(processes).starts {
			unanswered = append(unanswered, change{s.from, +1, s.open}, change{s.to, -1, s.open})
		}
		c.checkLimit(unanswered, func(time.Duration) int { return limits.Processes * limits.UnansweredFactor },
			"%d %s had neither answered the handshake nor ended at %s, and %d may.", processes)
		if !c.real {
			c.checkDisplaced(c.gateOf(processes))
		}
	})

// The three pools of the gate.
const (
	processes = "processes"
	network   = "network"
	inProcess = "in-process servers"
)

// poolOf returns the pool of a kind of transport.
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
// event is the dial that the change belongs to.
type change struct {
	t     time.Duration
	delta int
	event int
}

// checkLimit counts how many exist at once. limitAt returns the limit of a time, 0 for none. format takes the count, the pool, the
// time and the limit.
func (c *checker) checkLimit(changes []change, limitAt func(time.Duration) int, format, pool string) {
	slices.SortStableFunc(changes, func(a, b change) int {
		if a.t != b.t {
			return int(a.t - b.t)
		}
		// Ends count before begins.
		return a.delta - b.delta
	})
	count := 0
	// held are the dials of those that exist, in the order in which they began.
	var held []int
	for _, ch := range changes {
		if count += ch.delta; ch.delta <= 0 {
			held = slices.DeleteFunc(held, func(event int) bool { return event == ch.event })
			continue
		}
		held = append(held, ch.event)
		limit := limitAt(ch.t)
		slack := 0
		if c.real {
			// The gate passes a slot on before the server has recorded that it is free.
			slack = limit / 2
		}
		// Only the first excess is reported: the same starts would be counted again with each further one.
		if limit > 0 && count > limit+slack {
			e := c.x.Event(ch.event)
			c.reportViolation(e.Server, ch.event, held[:len(held)-1], format+" They are those of %s.", count, pool, timeText(e.T), limit, c.serversText(held))
			return
		}
	}
}

// serversText names the servers of events: "s1, s2 and 3 more".
func (c *checker) serversText(events []int) string {
	const most = 6
	var names []string
	for _, i := range events {
		if name := c.x.Event(i).Server; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// handshakeEnd returns when an attempt had answered its handshake or had ended; the end of the history if neither happened.
func (c *checker) handshakeEnd(a *attempt) time.Duration {
	to := c.endTime() + 1
	for _, i := range []int{a.initialized, a.end} {
		if t, ok := c.x.Time(i); ok {
			to = min(to, t)
		}
	}
	return to
}

// checkOneConn judges that a connection is opened only when nothing is left of the one before.
func (c *checker) checkOneConn(server string) {
	var last *history.ConnRecord
	for _, conn := range c.x.Conns(server) {
		if conn.Open < 0 {
			continue
		}
		if last != nil {
			open := c.x.Event(conn.Open).T
			// A refused dial has no release of its own: nothing was opened.
			releaseEvent := last.Released
			if releaseEvent < 0 {
				releaseEvent = last.Refused
			}
			if t, ok := c.x.Time(releaseEvent); !ok || t > open+c.serverDelay() {
				releaseText := "was never released"
				if ok {
					releaseText = "was released at " + timeText(t)
				}
				c.reportViolation(server, conn.Open, []int{last.Open, releaseEvent}, "Connection %d was opened at %s while connection %d was still there: "+
					"it %s.", conn.Conn, timeText(open), last.Conn, releaseText)
			}
		}
		last = conn
	}
}

// serverDelay bounds how much later than the manager a server may record its own end: nothing in virtual time.
func (c *checker) serverDelay() time.Duration {
	if c.real {
		return c.skew
	}
	return 0
}

// checkDialsPerEpoch judges that each dial belongs to an attempt that the manager had begun.
func (c *checker) checkDialsPerEpoch(server string) {
	starts := c.attemptStarts(server)
	if len(starts) == 0 {
		// The history lacks what the manager published.
		return
	}
	dials, started := 0, 0
	before := []int{}
	for _, a := range c.attemptsOf(server) {
		open := c.x.Event(a.open).T
		dials++
		for started < len(starts) && starts[started] <= open+c.skew {
			started++
		}
		if dials > started {
			c.reportViolation(server, a.open, before, "The server was dialled at %s for the %d. time, and the manager had begun %d attempts: one "+
				"epoch is one dial, and a second opening only after an end on the question about the era.", timeText(open), dials, started)
			return
		}
		before = []int{a.open, a.end}
	}
}
