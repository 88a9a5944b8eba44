package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// I17: when a connection is let go that its server would have kept.
//
//   - A call that it has received goes on when its owner disables the server, and for 5 s when he reconnects, removes or changes it
//     (actors.Timing.Drain). It is cut before only by disconnect, by the end of its own time and by Close.
//   - The connection goes when these 5 s and a stop ladder have passed, and as soon as no call is under way.
//   - A spec that differs in what no connection depends on is put around the connection that there is: it stays.
//   - A lazy server rests when it was not used for its idle timeout, counted from the last use: not sooner, and not much later.
var letGo = check("I17", "connections are let go in time",
	"A call that was admitted may go on for 5 s when its server is reconnected, removed or changed; a lazy server rests when its idle "+
		"timeout has passed since its last use.",
	"No connection was let go, and no lazy server was idle.",
	func(c *court) {
		for _, server := range c.x.Servers() {
			if c.spec[server] == nil {
				continue
			}
			commands := c.commands(server)
			of := c.callsOf(server)
			c.drained(server, commands, of)
			c.gone(server, commands, of)
			c.idles(server, commands, of)
			c.keepsConnection(server)
		}
	})

// callsOf is the calls that a server has received and that have ended, in the order in which they began.
func (c *court) callsOf(server string) (out []*history.CallRecord) {
	for _, call := range c.x.Calls() {
		if call.Server == server && call.Begin >= 0 && len(call.Received) > 0 && len(call.Ends) > 0 {
			out = append(out, call)
		}
	}
	return out
}

// leaves are the commands that end a connection, each with how long admitted calls may go on.
var leaves = map[string]time.Duration{"reconnect": drain, "remove": drain, "respec": drain, "add": drain, "disconnect": 0}

// drained judges the calls that were under way while their owner asked for something that ends their connection, or that must not.
func (c *court) drained(server string, commands []asked, calls []*history.CallRecord) {
	for _, call := range calls {
		received, end := c.x.Event(call.Received[len(call.Received)-1]), c.x.Event(call.Ends[0])
		until, by, asked := c.mayGoOn(commands, received.T, end.T)
		if !asked {
			continue
		}
		c.looked++
		cut := end.Outcome == messages.OutcomeUnknown && end.Class != messages.ClassTimeout || end.Outcome == messages.OutcomeNotSent
		died := end.T
		if end.Class == messages.ClassCanceled { // the manager closed the connection, and that its server ended is what follows
			died = c.x.Event(by).T - c.atOnce()
		}
		if !cut || c.gaveUp(call, end.T) || end.T >= min(until, c.closing())-c.atOnce() || c.endedBy(server, received.Conn, died) ||
			len(c.refusals(call, end.T)) > 0 || c.under(server, c.x.Event(call.Begin).T, end.T) {
			continue
		}
		c.violated(server, call.Ends[0], []int{call.Begin, call.Received[len(call.Received)-1], by}, "Call %s of tool %s was under way on "+
			"connection %d since %s when its owner asked for %s at %s, and was cut at %s (%s): it may go on for %s.", call.ID, end.Tool,
			received.Conn, clock(received.T), c.x.Event(by).Method, clock(c.x.Event(by).T), clock(end.T), end.Outcome,
			clock(until-c.x.Event(by).T))
	}
}

// mayGoOn is until when a call may go on whatever was asked of its server between two times, and by which command. Those that end no
// connection, such as disable, let it go on for as long as it likes.
func (c *court) mayGoOn(commands []asked, from, to time.Duration) (until time.Duration, by int, any bool) {
	until = c.end() + time.Hour
	for _, a := range commands {
		// What was asked before and waits for an attempt to end may be carried out later.
		if a.begin > to || a.begin < from && (!a.answered || a.end >= from) && a.do != "configure" && a.do != "wake" {
			if a.begin <= to {
				return 0, 0, false
			}
			continue
		}
		if a.begin < from || a.everyServer {
			continue
		}
		if !any {
			by = a.at
		}
		any = true
		if drain, leaves := leaves[a.do]; leaves && a.begin+drain < until {
			until, by = a.begin+drain, a.at
		}
	}
	return until, by, any
}

// endedBy reports whether a server had ended a connection itself by then.
func (c *court) endedBy(server string, number int, t time.Duration) bool {
	conn := c.connection(server, number)
	if conn == nil {
		return true
	}
	down, ok := c.x.Time(conn.Down)
	return ok && down <= t+c.slower()
}

// quickly is how long a server that is well takes to end when it is asked to: a simulated process some 20 ms.
const quickly = 100 * time.Millisecond

// gone judges that a connection which was to be ended is ended: when the last of its calls has, or when they have had their time.
func (c *court) gone(server string, commands []asked, calls []*history.CallRecord) {
	ups := connected(c.stays(server))
	for _, a := range commands {
		drain, ends := leaves[a.do]
		if !ends || a.do == "add" || a.refused {
			continue
		}
		conn := c.openAt(server, a.begin-c.moment)
		again := a.do == "reconnect" || a.do == "respec"
		if conn == nil || again && !slices.ContainsFunc(ups, func(u up) bool { return u.from < a.begin-c.moment && u.to > a.begin-c.moment }) {
			continue // one that is being opened is what a reconnect asks for
		}
		last, why := a.begin, "nothing kept it"
		for _, call := range calls {
			end := c.x.Event(call.Ends[0])
			if end.T > last && slices.ContainsFunc(call.Received, func(i int) bool { // it may be sent again, on the next one
				return c.x.Event(i).Conn == conn.Conn && c.x.Event(i).T <= a.begin+c.moment
			}) {
				last, why = min(end.T, a.begin+drain), "its calls had ended, or had had their 5s, at "+clock(min(end.T, a.begin+drain))
			}
		}
		// Who stays away from its end for a reason that is not in the record is given all the time that there is.
		due := last + quickly + c.late
		if c.real || c.reads(server) || c.under(server, c.x.Event(conn.Opened).T, due) {
			due, why = max(last, a.begin+drain)+stopLadder+c.late, "nothing kept it"
		}
		if due >= c.closing() || c.under(server, a.begin, due) || c.overtaken(commands, a, due) {
			continue
		}
		c.looked++
		if released, over := c.x.Time(conn.Released); over && released <= due {
			continue
		}
		c.violatedAt(due, server, a.at, []int{conn.Open}, "The owner asked for %s at %s, and connection %d was still there at %s: %s.",
			a.do, clock(a.begin), conn.Conn, clock(due), why)
	}
}

// reads reports whether something is read of a server that leaves no mark in the record. A read is a use, of all servers where it
// names none, and one of what a server does not offer is answered without a message that could be seen.
func (c *court) reads(server string) bool {
	return slices.ContainsFunc(c.plan.Load, func(l scenario.Stream) bool { return l.Server == server && l.Read != "" || l.Read == "resource" })
}

// overtaken reports whether another command came before or with this one and may have been carried out in its place.
func (c *court) overtaken(commands []asked, a asked, due time.Duration) bool {
	return slices.ContainsFunc(commands, func(b asked) bool {
		return b.at != a.at && !b.everyServer && b.do != "refresh" && b.begin <= due && (!b.answered || b.end >= a.begin-c.moment)
	})
}

// openAt is the connection of a server that was there at a time, nil if there was none.
func (c *court) openAt(server string, t time.Duration) *history.ConnRecord {
	for _, conn := range c.x.Conns(server) {
		opened, ok := c.x.Time(conn.Opened)
		if !ok || opened > t {
			continue
		}
		if released, over := c.x.Time(conn.Released); over && released < t {
			continue
		}
		if down, over := c.x.Time(conn.Down); over && down < t {
			continue
		}
		return conn
	}
	return nil
}

// idles judges when a lazy server is let go.
func (c *court) idles(server string, commands []asked, calls []*history.CallRecord) {
	if c.reads(server) {
		return
	}
	for _, u := range connected(c.stays(server)) {
		for _, d := range c.descriptions(server) {
			if d.Connect == messages.Lazy && d.IdleTimeout > 0 && d.from <= u.to && d.to > u.from {
				c.idle(server, u, d, commands, calls)
			}
		}
	}
}

// idle judges a time of being connected as far as one description of the server counts.
func (c *court) idle(server string, u up, spec described, commands []asked, calls []*history.CallRecord) {
	from, to := max(u.from, spec.from), min(u.to, spec.to)
	// Within a moment before it is seen as connected its clock may have begun to run.
	used, ended, last := u.from-c.moment, u.from, u.at
	for _, call := range calls {
		for _, i := range call.Received { // it may have been sent again over the next connection
			received := c.x.Event(i)
			if received.T < u.from-c.moment || received.T > to {
				continue
			}
			if received.T >= used {
				used, last = received.T, i
			}
			ended = max(ended, min(c.x.Event(call.Ends[0]).T, to))
			break // what is sent once more over this connection, with other credentials, is one use
		}
	}
	if c.under(server, u.from, to, "sleep") || slices.ContainsFunc(commands, func(a asked) bool {
		if a.do == "adjust" && a.answered && (a.end <= from || a.begin >= to) { // that is how this description begins, or ends
			return false
		}
		return a.do != "configure" && a.begin <= to+c.moment && (a.begin >= from-c.moment || !a.answered || a.end >= from-c.moment)
	}) {
		return
	}
	c.looked++
	rested := to == u.to && u.next >= 0 && c.x.Event(u.next).Step == messages.Idle
	if rested && u.to < used+spec.IdleTimeout-c.atOnce() {
		c.violated(server, u.next, []int{u.at, last}, "The server was let go at %s because nobody used it for %s, and it was used at %s.",
			clock(u.to), clock(spec.IdleTimeout), clock(used))
		return
	}
	// Who finds it in use looks again after a tenth of the timeout at the earliest. A list that is under way is waited for.
	due := max(used, ended, from, c.listedAt(server, u)) + spec.IdleTimeout + spec.IdleTimeout/10 + c.late + c.atOnce()
	if to > due && due < c.closing() {
		c.violatedAt(due, server, u.at, []int{last}, "The server was used last until %s and is to be let go when it was not used for %s, by "+
			"%s at the latest, and it was connected until %s.", clock(max(used, ended)), clock(spec.IdleTimeout), clock(due), clock(to))
	}
}

// listedAt returns when the last list of a server's tools was done while it was connected: with its answer, or, if the server never
// answered, when the manager gave up. Until then a lazy server is not let go.
func (c *court) listedAt(server string, u up) (at time.Duration) {
	asked := time.Duration(-1) // when the list was asked for that is not answered yet
	for _, i := range c.x.Of(server) {
		e := c.x.Event(i)
		if e.Method != "tools/list" || e.T < u.from || e.T > u.to {
			continue
		}
		switch {
		case e.Kind == history.Received:
			at, asked = e.T, e.T
		case e.Kind == history.Answered:
			at, asked = e.T, -1
		}
	}
	if asked >= 0 {
		at = asked + listTimeout
	}
	return at
}
