package invariant

import (
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// waited is I2 for calls that may wait for their server (CallWait), and that no server received.
//
//   - One whose server is on its way, or to be tried again by itself, is not refused before CallWait has passed: whether its tools are still
//     shown, or are withdrawn already, or the connection ended under a call that had not been sent.
//   - One whose server is not connected in that time is refused when CallWait has passed, and not later.
//   - One whose server cannot come in that time (disabled, without credentials, not tried again, or parked until later) is refused at once.
func (c *court) waited() {
	if c.plan.CallWait <= 0 {
		return
	}
	shows, stays := c.shows(), map[string][]stay{}
	for _, call := range c.x.Calls() {
		if call.Begin < 0 || len(call.Ends) == 0 || len(call.Received) > 0 || c.spec[call.Server] == nil {
			continue
		}
		begin, end := c.x.Event(call.Begin), c.x.Event(call.Ends[0])
		if end.Outcome != messages.OutcomeNotSent || c.gaveUp(call, end.T) || begin.Deadline > 0 && end.T >= begin.Deadline-c.moment ||
			end.T >= c.closing()-c.late || end.Class == messages.ClassTimeout {
			continue
		}
		if stays[call.Server] == nil {
			stays[call.Server] = c.stays(call.Server)
		}
		of := stays[call.Server]
		if !c.waitsLongEnough(call, of, shows[call.Server]) || c.isLazy(call.Server, begin.T, end.T) || c.under("", begin.T, end.T) {
			continue
		}
		c.waitsNoLonger(call, of)
	}
}

// released is I2 for calls that wait for their turn when the connection ends: who waits is told, or goes to the next connection, which he waits
// for as long as he may.
func (c *court) released() {
	for _, call := range c.x.Calls() {
		if call.Begin < 0 || len(call.Received) > 0 || c.spec[call.Server] == nil {
			continue
		}
		begin, end := c.x.Event(call.Begin), c.end()
		if len(call.Ends) > 0 {
			end = c.x.Event(call.Ends[0]).T
		}
		longest := max(c.plan.CallWait, c.plan.WithdrawAfter) + c.moment + c.late
		if end-begin.T <= longest || c.isLazy(call.Server, begin.T, end) || c.under(call.Server, begin.T, end, slowEars...) || c.under("", begin.T, end) {
			continue
		}
		ups := connected(c.stays(call.Server))
		k := slices.IndexFunc(ups, func(u up) bool { return u.from < begin.T-c.moment && u.to > begin.T+c.moment })
		if k < 0 || ups[k].next < 0 || end <= ups[k].to+longest || k+1 < len(ups) && ups[k+1].from <= end || ups[k].to+longest >= c.closing() {
			continue
		}
		c.looked++
		c.violatedAt(ups[k].to+longest, call.Server, ups[k].next, []int{call.Begin}, "Call %s of tool %s began at %s and waited for its turn when its connection "+
			"ended at %s. It had to end by %s, and waited on until %s: there was no other connection.", call.ID, begin.Tool, clock(begin.T), clock(ups[k].to),
			clock(ups[k].to+longest), clock(end))
	}
}

// waitsLongEnough judges that a call is not refused too early.
func (c *court) waitsLongEnough(call *history.CallRecord, stays []stay, all []shown) bool {
	begin, end := c.x.Event(call.Begin), c.x.Event(call.Ends[0])
	from, to := begin.T-c.moment, end.T+c.moment
	inSight := slices.ContainsFunc(all, func(s shown) bool {
		return s.state == "lost" && s.from <= from && s.to >= to && c.lists(call.Server, s, begin.Tool)
	})
	mine := end.Class != messages.ClassInvalid && end.Class != messages.ClassDenied && end.Class != messages.ClassThrottled
	if end.T-begin.T < c.plan.CallWait-c.late && (inSight || mine) && c.hopeful(stays, from, to) {
		c.violated(call.Server, call.Ends[0], []int{call.Begin}, "Call %s of tool %s began at %s while the server was on its way back, and "+
			"was refused at %s. It may wait for %s.", call.ID, begin.Tool, clock(begin.T), clock(end.T), clock(c.plan.CallWait))
		return false
	}
	if !mine {
		return true
	}
	// The connection ended under it: then it waits from that moment on.
	for _, u := range connected(stays) {
		if u.from > begin.T-c.moment || u.to < begin.T || u.to > end.T+c.moment || u.next < 0 {
			continue
		}
		if end.T < u.to+c.plan.CallWait-c.late && c.hopeful(stays, u.to+1, max(to, u.to+2)) {
			c.violated(call.Server, call.Ends[0], []int{call.Begin, u.next}, "Call %s of tool %s began at %s and was not sent when its connection ended at %s. "+
				"The server was on its way back, and the call was refused at %s. It may wait for %s.", call.ID, begin.Tool, clock(begin.T), clock(u.to),
				clock(end.T), clock(c.plan.CallWait))
			return false
		}
	}
	return true
}

// waitsNoLonger judges that a call is refused as soon as its server cannot come, or CallWait has passed.
func (c *court) waitsNoLonger(call *history.CallRecord, stays []stay) {
	begin, end := c.x.Event(call.Begin), c.x.Event(call.Ends[0])
	k := 0
	for _, p := range split(stays, &k, begin.T-c.moment, end.T) {
		if p.phase == nil || p.phase.Phase == messages.Connected {
			return // what it met there is another matter
		}
		s := p.phase
		hopeless := s.Phase == messages.Disabled || s.Phase == messages.NeedsAuth || s.Retry == messages.RetryNever ||
			s.Retry == messages.RetryParked && s.Next >= begin.T+c.plan.CallWait
		if since := max(p.from, begin.T); hopeless && p.to > since+c.moment+c.late {
			c.violatedAt(since+c.moment+c.late, call.Server, call.Ends[0], []int{call.Begin, s.at}, "Call %s of tool %s waited for its server, which was %s "+
				"from %s on: it had to be refused at once, by %s, and was at %s.", call.ID, begin.Tool, describe(s.Event), clock(since),
				clock(since+c.moment+c.late), clock(end.T))
			return
		}
	}
	if late := begin.T + c.plan.CallWait + c.late; end.T > late {
		c.violatedAt(late, call.Server, call.Ends[0], []int{call.Begin}, "Call %s of tool %s began at %s and waited for its server, which was not connected "+
			"in that time, until %s. It may wait for %s, until %s.", call.ID, begin.Tool, clock(begin.T), clock(end.T), clock(c.plan.CallWait), clock(late))
	}
}

// lists reports whether what is shown of a server holds a tool.
func (c *court) lists(server string, s shown, tool string) bool {
	if s.tools != "" {
		return slices.Contains(strings.Split(s.tools, ","), tool)
	}
	return slices.ContainsFunc(c.ledger(server).revs, func(i int) bool {
		e := c.x.Event(i)
		return e.Hash == s.hash && slices.Contains(e.Names, tool)
	})
}

// hopeful reports whether a server was being started anew, or was to be, over a whole stretch of time.
func (c *court) hopeful(stays []stay, from, to time.Duration) bool {
	covered := false
	for i := range stays {
		s := &stays[i]
		if s.to < from || s.T > to {
			continue
		}
		switch at := nodeOf(s); {
		case at == restarting, at == queued, at == dialing, at == handshaking, at == installing, at == listing, at == closing:
		case at == failed && s.Retry == messages.RetryAt:
		default:
			return false
		}
		covered = true
	}
	return covered
}
