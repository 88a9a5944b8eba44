package invariant

import (
	"net/http"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// I8: the published phases follow the documented edges, for the documented reasons, and do not contradict what the servers see.
//
//   - An edge that needs a command has one: a server leaves disabled or needs-auth by a command only, and a removed server
//     publishes nothing more.
//   - Commands win: a disabled or removed server is not dialed, and is published as disabled when the command is answered.
//   - Connected means that the handshake was answered and the first list was sent; and a server that has ended is not published
//     as connected for longer than the probes need to notice it (L5), nor is a remote one that is silent.
//   - A server that has resources or prompts is connected also if it refuses to list its tools (i08_kept.go).
//   - Epochs rise.
var edgeCheck = newCheck("I8", "the state machine",
	"Only edges of the documented state machine; none out of disabled or needs-auth by itself.",
	"The manager published no phase.",
	func(c *checker) {
		for _, server := range c.x.Servers() {
			stays := c.phaseSpans(server)
			commands, wishes := c.ownerCommands(server), c.wantedStates(server)
			auth := c.signInTimes(server)
			c.judged += len(stays)
			c.checkEdges(server, stays, commands, auth)
			if len(stays) > 0 {
				c.checkUnwanted(server, wishes, stays)
			}
			c.checkNotDialed(server, stays, commands, auth)
			c.checkRestInUse(server, stays, commands)
			c.checkRestsOn(server, stays, commands)
			c.checkKept(server, stays)
			for _, u := range connectedSpans(stays) {
				c.checkLiveness(server, u)
				c.checkSilence(server, u)
				c.checkFailedCall(server, u)
				c.checkSilentCalls(server, u)
			}
		}
	})

// checkEdges judges each published phase by the one before.
func (c *checker) checkEdges(server string, stays []phaseSpan, commands []ownerCommand, auth []time.Duration) {
	closing := c.closeTime()
	for i := range stays {
		to := &stays[i]
		from, before := absent, -1
		if i > 0 && stays[i-1].endEvent == to.event {
			from, before = nodeOf(&stays[i-1]), stays[i-1].event
		}
		if i == 0 {
			// The history of phases may begin in the middle of the server's life.
			continue
		}
		at := nodeOf(to)
		if to.Class == messages.ClassUnauthorized && (at == failed || at == restarting) {
			c.reportViolation(server, to.event, []int{before}, "The server wants credentials at %s and is published as %s instead of needs-auth: nobody "+
				"learns that a person must act.", timeText(to.T), describePhase(to.Event))
		}
		// An epoch may fall after a removal: the server of the next addition is another one.
		if stays[i-1].Epoch > to.Epoch && from != absent {
			c.reportViolation(server, to.event, []int{before}, "The epoch fell from %d to %d at %s.", stays[i-1].Epoch, to.Epoch, timeText(to.T))
		}
		if from == absent {
			if !c.commandActive(server, commands, to.T, func(a ownerCommand) bool { return a.action == "add" || a.action == "respec" || a.action == "adjust" }) {
				c.reportViolation(server, to.event, []int{stays[i-1].endEvent}, "The server was removed at %s and is %s at %s, and nobody added it.",
					timeText(stays[i-1].to), describePhase(to.Event), timeText(to.T))
			}
			continue
		}
		if canFollow(from, at) || to.T >= closing && (at == disabled || at == warm) {
			continue
		}
		if c.commandActive(server, commands, to.T, func(a ownerCommand) bool { return commandAllows(a.action, from, at) }) {
			continue
		}
		if from == needsAuth && (at == queued || at == dialing || at == resting || at == handshaking || at == installing) && signedInDuring(auth, stays[i-1].T-c.slack, to.T+c.slack) {
			continue
		}
		why := "the state machine has no such step"
		if from == disabled || from == warm || from == needsAuth {
			why = "it leaves that by a command of its owner only, and nobody asked for it"
		}
		c.reportViolation(server, to.event, []int{before}, "The server went from %s to %s at %s: %s.", from, describePhase(to.Event),
			timeText(to.T), why)
	}
}

// commandActive reports whether a command that ok accepts was being carried out at a time. A command that was answered may
// still wait for an earlier removal.
func (c *checker) commandActive(server string, commands []ownerCommand, t time.Duration, ok func(ownerCommand) bool) bool {
	for _, a := range commands {
		if a.begin > t+c.skew {
			return false
		}
		if (!a.answered || max(a.end+c.slack+stopLadder+drainTime, c.waitsUntil(server, commands, a)) >= t) && ok(a) {
			return true
		}
	}
	return false
}

// drainTime bounds how long calls that were admitted before a removal may go on; a server that is added again waits for them.
const drainTime = 5 * time.Second

// signedInDuring reports whether a server got other credentials between two times.
func signedInDuring(auth []time.Duration, from, to time.Duration) bool {
	for _, t := range auth {
		if t >= from && t <= to {
			return true
		}
	}
	return false
}

// checkUnwanted judges that commands win: while the owner has disabled or removed a server it is not dialed, and the manager
// publishes that.
func (c *checker) checkUnwanted(server string, wishes []wantedSince, stays []phaseSpan) {
	end := c.closeTime()
	for i, w := range wishes {
		if w.wanted != wantDisabled && w.wanted != wantRemoved {
			continue
		}
		from, to := w.from, end
		if i+1 < len(wishes) {
			to = min(to, wishes[i+1].from)
		}
		if to <= from+c.skew {
			continue
		}
		c.judged++
		what := "disabled"
		if w.wanted == wantRemoved {
			what = "removed"
		}
		for _, conn := range c.x.Conns(server) {
			if t, ok := c.x.Time(conn.Open); ok && t > from+c.skew && t < to {
				c.reportViolation(server, conn.Open, []int{w.event}, "The server was %s by its owner at %s and was dialled at %s.", what, timeText(from), timeText(t))
				break
			}
		}
		for k := range stays {
			s := &stays[k]
			if s.Phase == messages.Disabled || s.T >= to-c.skew || s.endEvent >= 0 && s.to <= from+c.skew {
				continue
			}
			if min(s.to, to)-max(s.T, from) > c.skew {
				then := max(from+c.skew, s.T)
				c.reportViolationAt(then, server, s.event, []int{w.event}, "The server was %s by its owner at %s. The manager still said %s at %s.", what,
					timeText(from), describePhase(s.Event), timeText(then))
				break
			}
		}
	}
}

// checkNotDialed judges that a server is not dialed that needs credentials, or that the manager says it will not retry.
func (c *checker) checkNotDialed(server string, stays []phaseSpan, commands []ownerCommand, auth []time.Duration) {
	conns := c.x.Conns(server)
	k := 0
	for i := range stays {
		s := &stays[i]
		if s.Phase != messages.NeedsAuth && s.Retry != messages.RetryNever {
			continue
		}
		for k < len(conns) && (conns[k].Open < 0 || c.x.Event(conns[k].Open).T <= s.T+c.skew) {
			k++
		}
		for n := k; n < len(conns); n++ {
			t, ok := c.x.Time(conns[n].Open)
			if !ok {
				continue
			}
			if t >= s.to-c.serverDelay() || t > c.closeTime() {
				break
			}
			if _, found := c.commandIn(commands, s.T, t); found || signedInDuring(auth, s.T-c.slack, t+c.slack) {
				break
			}
			c.reportViolation(server, conns[n].Open, []int{s.event}, "The server is %s since %s and was dialled at %s, and nobody asked for it.",
				describePhase(s.Event), timeText(s.T), timeText(t))
			break
		}
	}
}

// checkLiveness compares one connected span with what the server saw.
func (c *checker) checkLiveness(server string, u connectedSpan) {
	conn := c.connOf(server, u)
	if conn == nil {
		if len(c.x.Conns(server)) > 0 {
			c.reportViolation(server, u.event, nil, "The server is published as connected at %s and no connection of it is open.", timeText(u.from))
		}
		return
	}
	// A server that offers more than tools may be connected without its list, if that takes too long.
	initialized, sent := false, c.serverSpec(server).Offers
	for _, i := range conn.Events {
		e := c.x.Event(i)
		if e.T > u.from+c.serverDelay() {
			break
		}
		if e.Kind == history.Answered && e.Code == 0 {
			initialized = initialized || e.Method == "initialize" || e.Method == "server/discover"
			sent = sent || e.Method == "tools/list"
		}
	}
	if !initialized || !sent {
		what := "its handshake was not answered"
		if initialized {
			what = "it has not sent a list of its tools"
		}
		c.reportViolation(server, u.event, []int{conn.Open}, "The server is published as connected at %s, and on connection %d %s.", timeText(u.from),
			conn.Conn, what)
		return
	}
	end := min(u.to, c.closeTime())
	dead, endEvent, bound := c.deadSince(server, conn)
	if endEvent < 0 || end-dead <= bound+c.slack {
		return
	}
	c.reportViolationAt(dead+bound, server, endEvent, []int{u.event, u.endEvent}, "Connection %d ended at %s. The manager had to notice it within %s, by %s, and "+
		"said that the server is connected until %s.", conn.Conn, timeText(dead), timeText(bound), timeText(dead+bound), timeText(end))
}

// checkSilence judges that the manager notices a remote server's silence: it probes after ProbeEvery without a message, and
// gives up after ProbeStrikes unanswered probes.
func (c *checker) checkSilence(server string, u connectedSpan) {
	conn := c.connOf(server, u)
	if conn == nil || poolOf(c.serverSpec(server).Kind) != network || c.plan.ProbeEvery <= 0 {
		return
	}
	last, at := u.from, u.event
	end := min(u.to, c.closeTime())
	checkGap := func(t time.Duration, shows int) bool {
		if t-last <= c.livenessBound()+c.slack || c.underFault(server, last, t, "sleep") {
			return false
		}
		c.reportViolationAt(last+c.livenessBound(), server, shows, []int{u.event, at}, "Connection %d was silent from %s to %s. The manager had to notice it "+
			"within %s, by %s, and said that the server is connected all the time.", conn.Conn, timeText(last), timeText(t), timeText(c.livenessBound()),
			timeText(last+c.livenessBound()))
		return true
	}
	for _, i := range conn.Events {
		e := c.x.Event(i)
		if e.T > end {
			break
		}
		// The server answers a request with an empty method only to something that it had asked a moment ago.
		question := e.Kind == history.Received && e.Method == ""
		isWord := question || e.Kind == history.Answered || e.Kind == history.Notified || e.Kind == history.Listed || e.Kind == history.Inquiry
		if !isWord || e.T < last {
			continue
		}
		if checkGap(e.T, i) {
			return
		}
		last, at = e.T, i
	}
	if !checkGap(end, at) && u.endEvent >= 0 {
		c.checkPatience(server, conn, u)
	}
}

// unreadableFaults are the faults under which an answer over HTTP is no message of the server.
var unreadableFaults = []string{"wrong-content-type", "redirect", "server-error", "truncate", "huge-line"}

// checkPatience judges that the manager gives a remote server up for its silence after ProbeStrikes pings that found no answer, one after the other: only
// pings that nothing follows for their whole time count.
func (c *checker) checkPatience(server string, conn *history.ConnRecord, u connectedSpan) {
	e := c.x.Event(u.endEvent)
	if e.Kind != history.Phase || e.Step != messages.Restarting || e.Class != messages.ClassTimeout {
		return
	}
	// What comes in the moment of the end may come too late, and the silence may have begun while the server was disabled.
	last, at := c.x.Event(conn.Events[0]).T, conn.Events[0]
	for _, i := range conn.Events {
		m := c.x.Event(i)
		if m.T >= u.to-c.instantBound() {
			break
		}
		if c.underFault(server, m.T, m.T, "black-hole", "partition", "half-open") {
			continue // no word of the server arrives then
		}
		if m.Kind == history.Answered && m.Code >= http.StatusBadRequest {
			continue // a status of HTTP is no word of the server, which may stand behind another that asks for credentials
		}
		if m.Kind == history.Notified && c.underFault(server, m.T-longestReopening, m.T, "cut-stream") {
			continue // the stream on which it belongs may not be open again yet
		}
		if m.Kind == history.Answered && c.underFault(server, m.T, m.T, unreadableFaults...) {
			continue // a body that the client cannot read is none either
		}
		if call := c.x.Call(m.Call); call != nil && c.serverSpec(server).Kind == messages.HTTP && c.wasGivenUp(call, m.T) {
			continue // the stream of a call that was given up is not read any more
		}
		// An agent that is asked may take its time: the answer says only that the server asked before.
		question := m.Kind == history.Received && m.Method == "" && len(c.plan.Agents) == 0
		if m.Kind == history.Answered || m.Kind == history.Notified || question {
			last, at = m.T, i
		}
	}
	c.judged++
	if patience := time.Duration(max(c.plan.ProbeStrikes, 1)) * c.plan.ProbeTimeout; u.to-last < patience-c.slack {
		c.reportViolation(server, u.endEvent, []int{at}, "Connection %d was given up at %s because the server was silent, and it was that only since %s. It may be silent for %s.", conn.Conn,
			timeText(u.to), timeText(last), timeText(patience))
	}
}

// connOf returns the connection behind a connected span: the last one that was opened before. Within one instant a server can
// be connected and dialed again (enabled and reconnected, say); then it is the one from before that instant.
func (c *checker) connOf(server string, u connectedSpan) *history.ConnRecord {
	var found *history.ConnRecord
	for _, conn := range c.x.Conns(server) {
		open, ok := c.x.Time(conn.Open)
		if !ok || open > u.from {
			continue
		}
		if t, ok := c.x.Time(conn.Released); ok && t < u.from-c.skew {
			continue
		}
		if found != nil && open == u.from && u.to == u.from {
			continue
		}
		found = conn
	}
	return found
}

// deadSince returns when a connection ended for good, the event, and how long that may go unnoticed. A child's exit and the end
// of a stream are seen at once; a remote server's silence is probed: ProbeEvery + ProbeStrikes × ProbeTimeout. endEvent is -1
// if the connection did not end.
func (c *checker) deadSince(server string, conn *history.ConnRecord) (t time.Duration, endEvent int, bound time.Duration) {
	endEvent, bound = -1, connDeathBound
	kind := c.serverSpec(server).Kind
	if poolOf(kind) == network {
		bound = c.livenessBound()
	}
	if d, ok := c.x.Time(conn.Down); ok {
		t, endEvent = d, conn.Down
	}
	if d, ok := c.x.Time(conn.Released); ok && endEvent < 0 {
		return d, conn.Released, connDeathBound
	}
	if endEvent >= 0 && kind == messages.HTTP {
		// A restarted server over HTTP answers at the same address, if only with a refusal, and notifies its subscribers: then
		// nothing has ended. A handshake that it answers, however late, is with the restarted one.
		for _, i := range conn.Events {
			e := c.x.Event(i)
			isHandshake := e.Kind == history.Answered && e.Code == 0 && (e.Method == "initialize" || e.Method == "server/discover")
			if e.T > t && (isHandshake || (e.Kind == history.Answered || e.Kind == history.Notified) && e.T-t < bound) {
				return 0, -1, 0
			}
		}
	}
	if c.underFault(server, t, t+bound, hiddenEndFaults...) {
		bound += c.faultsEnd(server, t) - t
	}
	return t, endEvent, bound
}

// livenessBound bounds how long a vanished peer may go unnoticed. Its last message may have come during a probe, whose time counts
// first.
func (c *checker) livenessBound() time.Duration {
	return max(c.plan.ProbeEvery, c.plan.ProbeTimeout) + time.Duration(max(c.plan.ProbeStrikes, 1))*c.plan.ProbeTimeout
}

// faultsEnd returns when the last of the faults had ended that hide an end from the manager, of those that were active at a
// time, or began while one was.
func (c *checker) faultsEnd(server string, t time.Duration) time.Duration {
	for _, w := range c.faultWindows(server) {
		if slices.Contains(hiddenEndFaults, w.fault) && w.from <= t+c.skew {
			t = max(t, w.to)
		}
	}
	return t
}
