package invariant

import (
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// rested is I8 for lazy servers: one is let go when nobody uses it, and not while a call that it has received is under way.
func (c *court) rested(server string, stays []stay, commands []asked) {
	if !c.isLazy(server, 0, c.end()) {
		return
	}
	for i := 1; i < len(stays); i++ {
		s := &stays[i]
		if nodeOf(s) != resting || stays[i-1].next != s.at || nodeOf(&stays[i-1]) != isConnected {
			continue
		}
		if _, found := c.askedIn(commands, s.T-c.late, s.T); found {
			continue
		}
		if !c.isLazy(server, s.T-c.late, s.T) {
			c.violated(server, s.at, []int{stays[i-1].at}, "The server was let go at %s, and by its owner's last word it is not lazy.", clock(s.T))
			return
		}
		for _, call := range c.x.Calls() {
			if call.Server != server || len(call.Received) == 0 || len(call.Ends) == 0 {
				continue
			}
			received, end := c.x.Event(call.Received[len(call.Received)-1]), c.x.Event(call.Ends[0])
			if received.T >= stays[i-1].T && received.T < s.T-c.slower() && end.T > s.T+c.slower() {
				c.violated(server, s.at, []int{call.Begin, call.Received[0], call.Ends[0]}, "The server was let go at %s because nobody used "+
					"it, and call %s was under way from %s to %s.", clock(s.T), call.ID, clock(received.T), clock(end.T))
				return
			}
		}
	}
}

// waited is I2 for calls that may wait: one to a server whose tools are still shown, and which is on its way back, is not
// refused before CallWait has passed.
func (c *court) waited() {
	if c.plan.CallWait <= 0 {
		return
	}
	shows, stays := c.shows(), map[string][]stay{}
	for _, call := range c.x.Calls() {
		if call.Begin < 0 || len(call.Ends) == 0 || len(call.Received) > 0 {
			continue
		}
		begin, end := c.x.Event(call.Begin), c.x.Event(call.Ends[0])
		if end.Outcome != messages.OutcomeNotSent || c.gaveUp(call, end.T) || end.T-begin.T >= c.plan.CallWait-c.late ||
			begin.Deadline > 0 && end.T >= begin.Deadline-c.moment || end.T >= c.closing()-c.late {
			continue
		}
		from, to := begin.T-c.moment, end.T+c.moment
		inSight := slices.ContainsFunc(shows[call.Server], func(s shown) bool {
			return s.state == "lost" && s.from <= from && s.to >= to && c.lists(call.Server, s, begin.Tool)
		})
		if !inSight {
			continue
		}
		if stays[call.Server] == nil {
			stays[call.Server] = c.stays(call.Server)
		}
		if c.hopeful(stays[call.Server], from, to) {
			c.violated(call.Server, call.Ends[0], []int{call.Begin}, "Call %s of tool %s began at %s while the server was on its way back, and "+
				"was refused at %s. It may wait for %s.", call.ID, begin.Tool, clock(begin.T), clock(end.T), clock(c.plan.CallWait))
		}
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
