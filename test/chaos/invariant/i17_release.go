package invariant

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// I17: the manager lets a connection go neither too early nor too late while its server would have kept it.
//
//   - A call that the server has received goes on when the owner disables the server, and for 5 s when he reconnects, removes
//     or changes it (actors.Timing.Drain), or when the server refuses the credentials of something else. Only disconnect, the call's own timeout and Close cut it earlier.
//   - The connection ends when these 5 s and a stop ladder have passed, and as soon as no call is in flight.
//   - A spec that differs only in settings that no connection depends on is applied around the present connection, which stays.
//   - A lazy server rests when it was not used for its idle timeout, counted from the last use: not sooner, and not much later,
//     and never while a caller watches one of its resources.
var releaseCheck = newCheck("I17", "connections are let go in time",
	"A call that was admitted may go on for 5 s when its server is reconnected, removed or changed; a lazy server rests when its idle "+
		"timeout has passed since its last use.",
	"No connection was let go, and no lazy server was idle.",
	func(c *checker) {
		for _, server := range c.x.Servers() {
			if c.spec[server] == nil {
				continue
			}
			commands := c.ownerCommands(server)
			calls := c.callsOf(server)
			c.checkDrained(server, commands, calls)
			c.checkReleased(server, commands, calls)
			c.checkIdleTimeout(server, commands, calls)
			c.checkWatchedRest(server)
			c.checkConnKept(server)
			c.checkDrainedBeside(server, commands)
		}
	})

// callsOf returns the calls that a server has received and that have ended, by their begin.
func (c *checker) callsOf(server string) (out []*history.CallRecord) {
	for _, call := range c.x.Calls() {
		if call.Server == server && call.Begin >= 0 && len(call.Received) > 0 && len(call.Ends) > 0 {
			out = append(out, call)
		}
	}
	return out
}

// drainByCommand holds the commands that end a connection, each with the time that admitted calls may go on.
var drainByCommand = map[string]time.Duration{"reconnect": drainTime, "remove": drainTime, "respec": drainTime, "add": drainTime, "disconnect": 0}

// askedInVain reports whether a call ended because its task asked for input and the program could not give it. Such a call ends by itself, so the
// command of the owner is not what cut it.
func askedInVain(end *history.Event) bool {
	return end.Class == messages.ClassProtocol && strings.Contains(end.Text, "which could not be given")
}

// checkDrained judges the calls that were in flight while the owner gave a command that ends their connection, or one that must
// not cut them.
func (c *checker) checkDrained(server string, commands []ownerCommand, calls []*history.CallRecord) {
	for _, call := range calls {
		received, end := c.x.Event(call.Received[len(call.Received)-1]), c.x.Event(call.Ends[0])
		until, commandEvent, commanded := c.drainUntil(commands, received.T, end.T)
		if !commanded {
			continue
		}
		c.judged++
		// A timeout is the call's own end. Every other unknown outcome, and one that was not sent, is a cut.
		cut := end.Outcome == messages.OutcomeUnknown && end.Class != messages.ClassTimeout || end.Outcome == messages.OutcomeNotSent
		died := end.T
		if end.Class == messages.ClassCanceled { // the manager closed the connection; the server's end follows from that and excuses nothing
			died = c.x.Event(commandEvent).T - c.instantBound()
		}
		// Excused are calls that their caller gave up, those cut after their time, those whose server or a fault ended the connection, and tasks that
		// ended for want of input, which the program could not give.
		if !cut || askedInVain(end) || c.wasGivenUp(call, end.T) || end.T >= min(until, c.closeTime())-c.instantBound() || c.serverEnded(server, received.Conn, died) ||
			len(c.refusalEvents(call, end.T)) > 0 || c.underFault(server, c.x.Event(call.Begin).T, end.T) {
			continue
		}
		c.reportViolation(server, call.Ends[0], []int{call.Begin, call.Received[len(call.Received)-1], commandEvent}, "Call %s of tool %s was under way on "+
			"connection %d since %s when its owner asked for %s at %s, and was cut at %s (%s): it may go on for %s.", call.ID, end.Tool,
			received.Conn, timeText(received.T), c.x.Event(commandEvent).Method, timeText(c.x.Event(commandEvent).T), timeText(end.T), end.Outcome,
			timeText(until-c.x.Event(commandEvent).T))
	}
}

// drainUntil returns until when a call may go on under the commands between two times, and the command that limits it. Commands
// that end no connection, such as disable, leave it without a limit (one hour past the end). any is false where no command or
// an older unfinished one came between.
func (c *checker) drainUntil(commands []ownerCommand, from, to time.Duration) (until time.Duration, commandEvent int, any bool) {
	until = c.endTime() + time.Hour
	for _, a := range commands {
		// A command from before that waits for the end of an attempt may be carried out at any later moment, so the call is not
		// judged.
		if a.begin > to || a.begin < from && (!a.answered || a.end >= from) && a.action != "configure" && a.action != "wake" {
			if a.begin <= to {
				return 0, 0, false
			}
			continue
		}
		if a.begin < from || a.everyServer {
			continue
		}
		if !any {
			commandEvent = a.event
		}
		any = true
		if drain, limited := drainByCommand[a.action]; limited && a.begin+drain < until {
			until, commandEvent = a.begin+drain, a.event
		}
	}
	return until, commandEvent, any
}

// serverEnded reports whether a server had ended a connection itself by a time; true for a connection without a record.
func (c *checker) serverEnded(server string, number int, t time.Duration) bool {
	conn := c.connByNumber(server, number)
	if conn == nil {
		return true
	}
	down, ok := c.x.Time(conn.Down)
	return ok && down <= t+c.serverDelay()
}

// promptEndTime bounds how long a healthy server takes to end on request. A simulated process takes some 20 ms.
const promptEndTime = 100 * time.Millisecond

// checkReleased judges that the manager ended a connection after a command that ends it: when the last of its calls has ended,
// or when the calls have had their drain time.
func (c *checker) checkReleased(server string, commands []ownerCommand, calls []*history.CallRecord) {
	ups := connectedSpans(c.phaseSpans(server))
	for _, a := range commands {
		drain, ends := drainByCommand[a.action]
		if !ends || a.action == "add" || a.refused {
			continue
		}
		conn := c.connOpenAt(server, a.begin-c.skew)
		reopens := a.action == "reconnect" || a.action == "respec"
		if conn == nil || reopens && !slices.ContainsFunc(ups, func(u connectedSpan) bool { return u.from < a.begin-c.skew && u.to > a.begin-c.skew }) {
			continue // a reconnect or another spec finds a connection that is still opening, and takes it
		}
		if c.isOfEarlierLife(commands, conn, a) {
			continue
		}
		last, why := a.begin, "nothing kept it"
		for _, call := range calls {
			end := c.x.Event(call.Ends[0])
			if end.T > last && slices.ContainsFunc(call.Received, func(i int) bool { // only a call on this connection keeps it; a call that is sent again uses the next one
				return c.x.Event(i).Conn == conn.Conn && c.x.Event(i).T <= a.begin+c.skew
			}) {
				last, why = min(end.T, a.begin+drain), "its calls had ended, or had had their 5s, at "+timeText(min(end.T, a.begin+drain))
			}
		}
		if read := c.lastReadOf(conn, a.begin); read > last {
			last = min(read, a.begin+drain)
			why = "what was read of it had been answered, or had had its 5s, at " + timeText(last)
		}
		// A real process, a read that waits for a person and a fault may delay the end; then the full drain and stop ladder are allowed.
		due := last + promptEndTime + c.slack
		if c.real || c.hasOpenReads(server, a.begin) || c.waitsForAgent(conn, a.begin) || c.underFault(server, c.x.Event(conn.Opened).T, due) {
			due, why = max(last, a.begin+drain)+stopLadder+c.slack, "nothing kept it"
		}
		if due >= c.closeTime() || c.underFault(server, a.begin, due) || c.isOvertaken(commands, a, due) {
			continue
		}
		c.judged++
		if released, over := c.x.Time(conn.Released); over && released <= due {
			continue
		}
		c.reportViolationAt(due, server, a.event, []int{conn.Open}, "The owner asked for %s at %s, and connection %d was still there at %s: %s.",
			a.action, timeText(a.begin), conn.Conn, timeText(due), why)
	}
}

// lastReadOf returns when the last of the reads was answered that a connection had under way at a time, that time for none. A read may take several
// requests, each in the instant of the answer before it; one without an answer keeps the connection as long as calls may.
func (c *checker) lastReadOf(conn *history.ConnRecord, from time.Duration) time.Duration {
	answered := map[string]time.Duration{}
	for _, i := range conn.Events {
		if e := c.x.Event(i); e.Kind == history.Answered && e.ID != "" {
			answered[e.ID] = e.T
		}
	}
	last := from
	for _, i := range conn.Events {
		e := c.x.Event(i)
		if e.Kind != history.Received || e.ID == "" || e.T > last+c.instantBound() || !isReadMethod(e.Method) && e.Method != "tasks/get" && e.Method != "tasks/result" {
			continue
		}
		until, ok := answered[e.ID]
		if !ok {
			return c.endTime()
		}
		last = max(last, until)
	}
	return last
}

// suspendedReadTime is how long a read that wants a person to visit an address waits for its agent of the modern era, which comes back to it, or has
// gone, without any request under way: gateway.answerTime, and once more for a second visit.
const suspendedReadTime = 10 * time.Minute

// waitsForAgent reports whether such a read may wait at a time.
func (c *checker) waitsForAgent(conn *history.ConnRecord, t time.Duration) bool {
	return slices.ContainsFunc(c.plan.Agents, func(a scenario.PlannedAgent) bool { return a.Era == messages.EraModern }) &&
		slices.ContainsFunc(conn.Events, func(i int) bool {
			e := c.x.Event(i)
			return e.Kind == history.Answered && e.Code == visitNeeded && e.T <= t && e.T > t-suspendedReadTime
		})
}

// hasOpenReads reports whether a caller or an agent had a read under way at a time that may be one of this server: it may wait between its requests,
// until a person has visited an address.
func (c *checker) hasOpenReads(server string, t time.Duration) bool {
	open := map[string]bool{}
	note := func(events []int, begins, ends history.Kind) {
		for _, i := range events {
			e := c.x.Event(i)
			key := e.Agent + " " + strconv.FormatUint(e.Epoch, 10) + " " + e.ID + e.Call
			switch {
			case e.Kind == begins && e.T <= t+c.instantBound() && (e.Kind == history.Reading || isReadMethod(e.Method)):
				open[key] = true
			case e.Kind == ends && e.T <= t-c.instantBound():
				delete(open, key)
			}
		}
	}
	for _, s := range c.plan.Servers { // the read of a resource that names no server may go to any of them
		if s.Name == server || slices.ContainsFunc(c.plan.Load, func(l scenario.PlannedLoad) bool { return l.Server == s.Name && l.Read == "resource" }) {
			note(c.x.ServerEvents(s.Name), history.Reading, history.ReadEnd)
		}
	}
	note(c.x.ServerEvents(""), history.Asked, history.Replied)
	return len(open) > 0
}

// isOfEarlierLife reports whether a connection belongs to a server that was removed before a command was given: the command is then
// for the server that was added in its place, and the connection goes as the removal said. A set that describes the server anew does the same.
func (c *checker) isOfEarlierLife(commands []ownerCommand, conn *history.ConnRecord, a ownerCommand) bool {
	opened := c.x.Event(conn.Opened).T
	return slices.ContainsFunc(commands, func(r ownerCommand) bool {
		// Another spec that came with a whole set was answered before the connection of the one before had ended.
		ends := r.action == "remove" || r.action == "respec" && r.impliedBySet
		return ends && !r.refused && r.event != a.event && r.begin <= a.begin && r.begin >= opened
	})
}

// hasUnseenReads reports whether the load reads from a server without a mark in the record. A read is a use and delays the idle
// timeout. A read of a resource that names no server may go to any of them, and a read of something that a server does not
// offer is answered without a message on the wire.
func (c *checker) hasUnseenReads(server string) bool {
	// Agents list and read, unless a server is lazy. The levels of log messages that they want are no use.
	if len(c.plan.Agents) > 0 && !slices.ContainsFunc(c.plan.Servers, func(s scenario.Server) bool { return s.Connect == messages.Lazy }) {
		return true
	}
	return slices.ContainsFunc(c.plan.Load, func(l scenario.PlannedLoad) bool { return l.Server == server && l.Read != "" || l.Read == "resource" })
}

// isOvertaken reports whether the manager may have carried out another command in place of this one, because the other began by
// due and was not answered before this one began.
func (c *checker) isOvertaken(commands []ownerCommand, a ownerCommand, due time.Duration) bool {
	return slices.ContainsFunc(commands, func(b ownerCommand) bool {
		return b.event != a.event && !b.everyServer && b.action != "refresh" && b.begin <= due && (!b.answered || b.end >= a.begin-c.skew)
	})
}

// connOpenAt returns the connection of a server that was open at a time, nil if there was none.
func (c *checker) connOpenAt(server string, t time.Duration) *history.ConnRecord {
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

// checkIdleTimeout judges each connected span of a lazy server under each version of its spec. Reads without a record would
// move the last use, so servers with such reads are left out.
func (c *checker) checkIdleTimeout(server string, commands []ownerCommand, calls []*history.CallRecord) {
	if c.hasUnseenReads(server) {
		return
	}
	for _, u := range connectedSpans(c.phaseSpans(server)) {
		for _, d := range c.specVersions(server) {
			if d.Connect == messages.Lazy && d.IdleTimeout > 0 && d.from <= u.to && d.to > u.from {
				c.idle(server, u, d, commands, calls)
			}
		}
	}
}

// checkWatchedRest judges that a server does not rest while a caller watches its resource: nothing would bring the updates.
func (c *checker) checkWatchedRest(server string) {
	if s := c.serverSpec(server); !s.Offers || len(c.plan.Agents) > 0 { // what agents watch they end without a mark in the record
		return
	}
	for _, u := range connectedSpans(c.phaseSpans(server)) {
		if u.endEvent < 0 {
			continue
		}
		since, watched := c.subscribedSince(server, u.to, u.to)
		if !watched || c.wasForgotten(server, since, u.to) {
			continue
		}
		c.judged++
		if c.x.Event(u.endEvent).Step == messages.Idle {
			c.reportViolation(server, u.endEvent, []int{u.event}, "The server was let go at %s because it was not used, and a caller watches a resource of it since %s: "+
				"no update comes any more.", timeText(u.to), timeText(since))
		}
	}
}

// lastUnsentCall returns when the last call of a stretch ended that came to the connection of a server and could not be sent on it: one whose
// arguments fit in no header, or one that has waited until its end for a server that does not read; 0 without one.
func (c *checker) lastUnsentCall(server string, from, to time.Duration) (last time.Duration) {
	for _, call := range c.x.Calls() {
		if call.Server != server || len(call.Received) > 0 || len(call.Ends) == 0 {
			continue
		}
		if e := c.x.Event(call.Ends[0]); slices.Contains([]messages.Class{messages.ClassInvalid, messages.ClassTimeout, messages.ClassCanceled}, e.Class) && e.T > from && e.T <= to {
			last = max(last, e.T)
		}
	}
	return last
}

// idle judges that a lazy server rested one idle timeout after its last use, within one span and one spec version.
func (c *checker) idle(server string, u connectedSpan, spec specVersion, commands []ownerCommand, calls []*history.CallRecord) {
	from, to := max(u.from, spec.from), min(u.to, spec.to)
	// The server's idle timer may have started up to the skew before the connected phase was recorded.
	used, ended, last := u.from-c.skew, u.from, u.event
	conn := c.connOf(server, u)
	for _, call := range calls {
		for _, i := range call.Received { // only the first receipt over this connection is its use; an earlier connection's does not count
			received := c.x.Event(i)
			// A call that began before a disabling may still be under way when its connection is adopted.
			if received.T < u.from-c.skew && conn != nil && received.Conn == conn.Conn {
				ended = max(ended, min(c.x.Event(call.Ends[0]).T, to))
			}
			if received.T < u.from-c.skew || received.T > to {
				continue
			}
			// What was sent to a server that did not read comes later, and the manager has counted the use before.
			at := received.T
			if begin := c.x.Event(call.Begin).T; c.underFault(server, begin, at, "deaf", "stop") {
				at = begin
			}
			if at >= used {
				used, last = at, i
			}
			ended = max(ended, min(c.x.Event(call.Ends[0]).T, to))
			break // a second receipt over this connection, with other credentials, is the same use
		}
	}
	// A sleeping machine stops the idle timer, and a command may have ended or renewed the connection.
	if c.underFault(server, u.from, to, "sleep") || slices.ContainsFunc(commands, func(a ownerCommand) bool {
		if a.action == "adjust" && a.answered && (a.end <= from || a.begin >= to) { // the adjust that begins or ends this spec version lies outside of it
			return false
		}
		return a.action != "configure" && a.begin <= to+c.skew && (a.begin >= from-c.skew || !a.answered || a.end >= from-c.skew)
	}) {
		return
	}
	c.judged++
	rested := to == u.to && u.endEvent >= 0 && c.x.Event(u.endEvent).Step == messages.Idle
	if rested && u.to < used+spec.IdleTimeout-c.instantBound() {
		c.reportViolation(server, u.endEvent, []int{u.event, last}, "The server was let go at %s because nobody used it for %s, and it was used at %s.",
			timeText(u.to), timeText(spec.IdleTimeout), timeText(used))
		return
	}
	// A supervisor that finds the server in use checks again after a tenth of the timeout at the earliest, and it waits for a
	// tool list that is running.
	due := max(used, ended, from, c.listedAt(server, u), c.lastUnknownPrompt(from, to), c.lastUnsentCall(server, from, to)) + spec.IdleTimeout + spec.IdleTimeout/10 + c.slack + c.instantBound()
	if to > due && due < c.closeTime() {
		c.reportViolationAt(due, server, u.event, []int{last}, "The server was used last until %s and is to be let go when it was not used for %s, by "+
			"%s at the latest, and it was connected until %s.", timeText(max(used, ended)), timeText(spec.IdleTimeout), timeText(due), timeText(to))
	}
}

// lastUnknownPrompt returns when a prompt was read last, in a span, that no server is known to have: the error names the nearest one, for which
// every connected server is asked for its prompts, also one that has none and sees no message.
func (c *checker) lastUnknownPrompt(from, to time.Duration) (last time.Duration) {
	for _, l := range c.plan.Load {
		if l.Read != "prompt" {
			continue
		}
		for _, i := range c.x.ServerEvents(l.Server) {
			if e := c.x.Event(i); e.Kind == history.ReadEnd && e.Method == l.Read && e.Class == messages.ClassInvalid && e.T >= from && e.T <= to {
				last = max(last, e.T)
			}
		}
	}
	return last
}

// listedAt returns when the last list of a connected span was done: the time of its answer or, if the server never answered, the list timeout
// after the request. Before that time the supervisor lets no lazy server go. A gateway lists prompts and resources, too.
func (c *checker) listedAt(server string, u connectedSpan) (at time.Duration) {
	pending := map[string]time.Duration{} // when the unanswered lists were requested
	for _, i := range c.x.ServerEvents(server) {
		e := c.x.Event(i)
		if !strings.HasSuffix(e.Method, "/list") || e.T < u.from || e.T > u.to {
			continue
		}
		switch {
		case e.Kind == history.Received:
			at, pending[e.ID] = e.T, e.T
		case e.Kind == history.Answered:
			// The request for the next page may come in the instant of the answer, and before it in the record.
			at = e.T
			delete(pending, e.ID)
		}
	}
	for _, since := range pending {
		at = max(at, since+listTimeout)
	}
	return at
}
