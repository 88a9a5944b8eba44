package invariant

import (
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// checkCallWait is I2 for calls that may wait for their server (CallWait) and that no server received.
//
//   - A call whose server is being started, or will be retried by itself, is not refused before CallWait has passed: whether
//     the tools are still shown or withdrawn already, or the connection ended under a call that had not been sent.
//   - A call whose server is not connected in that time is refused when CallWait has passed, and not later.
//   - A call whose server cannot come in that time (disabled, without credentials, not retried, or parked until later) is
//     refused at once.
func (c *checker) checkCallWait() {
	if c.plan.CallWait <= 0 {
		return
	}
	shows, stays := c.catalogSpans(), map[string][]phaseSpan{}
	for _, call := range c.x.Calls() {
		if call.Begin < 0 || len(call.Ends) == 0 || len(call.Received) > 0 || c.spec[call.Server] == nil {
			continue
		}
		begin, end := c.x.Event(call.Begin), *c.x.Event(call.Ends[0])
		end.T = c.refusedAt(call)
		if end.Outcome != messages.OutcomeNotSent || c.wasGivenUp(call, end.T) || begin.Deadline > 0 && end.T >= begin.Deadline-c.skew ||
			end.T >= c.closeTime()-c.slack || end.Class == messages.ClassTimeout {
			continue
		}
		if stays[call.Server] == nil {
			stays[call.Server] = c.phaseSpans(call.Server)
		}
		spans := stays[call.Server]
		if !c.waitsLongEnough(call, &end, spans, shows[call.Server]) || c.isLazy(call.Server, begin.T, end.T) || c.underFault("", begin.T, end.T) {
			continue
		}
		c.waitsNoLonger(call, &end, spans)
	}
}

// checkReleasedCalls is I2 for calls that wait for a slot when their connection ends: the call ends, or goes to the next
// connection, for which it waits as long as it may.
func (c *checker) checkReleasedCalls() {
	for _, call := range c.x.Calls() {
		if call.Begin < 0 || len(call.Received) > 0 || c.spec[call.Server] == nil {
			continue
		}
		begin, from, end := c.x.Event(call.Begin), c.passedOnAt(call), c.endTime()
		if len(call.Ends) > 0 {
			end = c.refusedAt(call)
		}
		longest := max(c.plan.CallWait, c.plan.WithdrawAfter) + c.skew + c.slack
		if end-from <= longest || c.isLazy(call.Server, begin.T, end) || c.underFault(call.Server, begin.T, end, slowReadFaults...) || c.underFault("", begin.T, end) {
			continue
		}
		ups := connectedSpans(c.phaseSpans(call.Server))
		k := slices.IndexFunc(ups, func(u connectedSpan) bool { return u.from < from-c.skew && u.to > from+c.skew })
		if k < 0 || ups[k].endEvent < 0 || end <= ups[k].to+longest || k+1 < len(ups) && ups[k+1].from <= end || ups[k].to+longest >= c.closeTime() {
			continue
		}
		c.judged++
		c.reportViolationAt(ups[k].to+longest, call.Server, ups[k].endEvent, []int{call.Begin}, "Call %s of tool %s began at %s and waited for its turn when its connection "+
			"ended at %s. It had to end by %s, and waited on until %s: there was no other connection.", call.ID, begin.Tool, timeText(begin.T), timeText(ups[k].to),
			timeText(ups[k].to+longest), timeText(end))
	}
}

// waitsLongEnough judges that a call is not refused too early, with its end. It returns false after a violation.
func (c *checker) waitsLongEnough(call *history.CallRecord, end *history.Event, stays []phaseSpan, all []catalogSpan) bool {
	begin := c.x.Event(call.Begin)
	from, to := begin.T-c.skew, end.T+c.skew
	inSight := slices.ContainsFunc(all, func(s catalogSpan) bool {
		return s.state == "lost" && s.from <= from && s.to >= to && c.listHolds(call.Server, s, begin.Tool)
	})
	// A rule of the owner, or a definition that nobody has approved, refuses a tool that is still in sight, because nothing withdraws lost
	// tools before their time.
	if end.Class == messages.ClassDenied && (c.plan.HoldsBack(call.Server) || slices.ContainsFunc(c.specVersionsIn(call.Server, from, to), func(d specVersion) bool { return !d.LetsThrough(begin.Tool) })) {
		return true
	}
	mine := end.Class != messages.ClassInvalid && end.Class != messages.ClassDenied && end.Class != messages.ClassThrottled
	if end.T-begin.T < c.plan.CallWait-c.slack && (inSight || mine) && c.isComingBack(stays, from, to) {
		c.reportViolation(call.Server, call.Ends[0], []int{call.Begin}, "Call %s of tool %s began at %s while the server was on its way back, and "+
			"was refused at %s. It may wait for %s.", call.ID, begin.Tool, timeText(begin.T), timeText(end.T), timeText(c.plan.CallWait))
		return false
	}
	if !mine {
		return true
	}
	// The connection ended under the call, which then waits from that time on, but no longer than a call of its server may take.
	if c.mayHaveTimedOut(call.Server, begin.T, end.T) {
		return true
	}
	for _, u := range connectedSpans(stays) {
		if u.from > begin.T-c.skew || u.to < begin.T || u.to > end.T+c.skew || u.endEvent < 0 {
			continue
		}
		if end.Class == messages.ClassUnauthorized && end.T < u.to {
			continue // it was refused for the credentials of its caller, before the connection ended
		}
		if end.T < u.to+c.plan.CallWait-c.slack && c.isComingBack(stays, u.to+1, max(to, u.to+2)) {
			c.reportViolation(call.Server, call.Ends[0], []int{call.Begin, u.endEvent}, "Call %s of tool %s began at %s and was not sent when its connection ended at %s. "+
				"The server was on its way back, and the call was refused at %s. It may wait for %s.", call.ID, begin.Tool, timeText(begin.T), timeText(u.to),
				timeText(end.T), timeText(c.plan.CallWait))
			return false
		}
	}
	return true
}

// waitsNoLonger judges that a call is refused as soon as its server cannot come, or CallWait has passed.
func (c *checker) waitsNoLonger(call *history.CallRecord, end *history.Event, stays []phaseSpan) {
	if c.wasFoundLater(call) {
		return
	}
	begin, from := c.x.Event(call.Begin), c.passedOnAt(call)
	// A call that met a connection waits anew when that ends, also if it lasted no longer than an instant: checkReleasedCalls
	// judges that.
	to, isMet := end.T, false
	if up := slices.IndexFunc(stays, func(s phaseSpan) bool { return s.Phase == messages.Connected && s.to >= from-c.skew }); up >= 0 && stays[up].T <= end.T {
		to, isMet = max(stays[up].T, from-c.skew), true
	}
	k := 0
	for _, p := range splitByPhase(stays, &k, from-c.skew, to) {
		if p.phase == nil {
			return
		}
		s := p.phase
		hopeless := s.Phase == messages.Disabled || s.Phase == messages.NeedsAuth || s.Retry == messages.RetryNever ||
			s.Retry == messages.RetryParked && s.Next >= from+c.plan.CallWait
		if since := max(p.from, from); hopeless && p.to > since+c.skew+c.slack {
			c.reportViolationAt(since+c.skew+c.slack, call.Server, call.Ends[0], []int{call.Begin, s.event}, "Call %s of tool %s waited for its server, which was %s "+
				"from %s on: it had to be refused at once, by %s, and was at %s.", call.ID, begin.Tool, describePhase(s.Event), timeText(since),
				timeText(since+c.skew+c.slack), timeText(end.T))
			return
		}
	}
	if late := from + c.plan.CallWait + c.slack; end.T > late && !isMet {
		c.reportViolationAt(late, call.Server, call.Ends[0], []int{call.Begin}, "Call %s of tool %s began at %s and waited for its server, which was not connected "+
			"in that time, until %s. It may wait for %s, until %s.", call.ID, begin.Tool, timeText(begin.T), timeText(end.T), timeText(c.plan.CallWait), timeText(late))
	}
}

// listHolds reports whether the shown list of a server holds a tool.
func (c *checker) listHolds(server string, s catalogSpan, tool string) bool {
	if s.tools != "" {
		return slices.Contains(strings.Split(s.tools, ","), tool)
	}
	return slices.ContainsFunc(c.listChangesOf(server).changes, func(i int) bool {
		e := c.x.Event(i)
		return e.Hash == s.hash && slices.Contains(e.Names, tool)
	})
}

// isComingBack reports whether a server was being restarted, or waited for a retry, during the whole time between from and to. Where it has
// no phase it was removed, or not added yet. One for which the machine lacked something is not waited for.
func (c *checker) isComingBack(stays []phaseSpan, from, to time.Duration) bool {
	covered, until := false, from
	for i := range stays {
		s := &stays[i]
		if s.to < from || s.T > to {
			continue
		}
		switch at := nodeOf(s); {
		case at == restarting, at == queued, at == dialing, at == handshaking, at == installing, at == listing, at == closing:
		case at == failed && s.Retry == messages.RetryAt && s.Class != messages.ClassExhausted:
		default:
			return false
		}
		if s.T > until {
			return false
		}
		covered, until = true, s.to
	}
	return covered && until >= to
}
