package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// checkRestsOn judges for I8 that a lazy server which has shown its tools goes on to rest when its owner disables and enables
// it: it has not been called, and enabling is no use of it.
func (c *checker) checkRestsOn(server string, stays []phaseSpan, commands []ownerCommand) {
	if c.real || c.hasUnseenReads(server) || !c.isLazy(server, 0, c.endTime()) {
		return
	}
	known := time.Duration(-1) // when it was connected in its present life; -1 before
	for i := 1; i < len(stays); i++ {
		s, before := &stays[i], &stays[i-1]
		if before.endEvent != s.event { // it was removed in between
			known = -1
			continue
		}
		if before.Phase == messages.Connected {
			known = before.T
		}
		if nodeOf(before) != disabled || nodeOf(s) != queued && nodeOf(s) != dialing || known < 0 {
			continue
		}
		if !slices.ContainsFunc(commands, func(a ownerCommand) bool { return a.action == "enable" && a.begin >= s.T-c.skew && a.begin <= s.T }) {
			continue
		}
		// Any other command since it was connected may have made another server of it, or asked for a start.
		if slices.ContainsFunc(commands, func(a ownerCommand) bool {
			return a.begin >= known-c.skew && a.begin <= s.T+c.skew && !slices.Contains([]string{"enable", "disable", "disconnect", "refresh", "configure"}, a.action)
		}) || !c.isLazyThroughout(server, known, s.T) || c.isCalledAt(server, s.T) {
			continue
		}
		c.reportViolation(server, s.event, []int{before.event}, "The server is lazy, its tools are known since %s, and its owner disabled and enabled it. Nobody called it, "+
			"and it was started at %s.", timeText(known), timeText(s.T))
		return
	}
}

// isLazyThroughout reports whether a server is lazy by every description that may be in force between two times.
func (c *checker) isLazyThroughout(server string, from, to time.Duration) bool {
	return !slices.ContainsFunc(c.specVersionsIn(server, from, to), func(d specVersion) bool { return d.Connect != messages.Lazy })
}

// isCalledAt reports whether a call or a read of a server was under way at a time, or began about then.
func (c *checker) isCalledAt(server string, t time.Duration) bool {
	if slices.ContainsFunc(c.x.Calls(), func(call *history.CallRecord) bool {
		if call.Server != server || call.Begin < 0 || c.x.Event(call.Begin).T > t+c.skew {
			return false
		}
		return len(call.Ends) == 0 || c.x.Event(call.Ends[0]).T >= t-c.skew
	}) {
		return true
	}
	return slices.ContainsFunc(c.x.ServerEvents(server), func(i int) bool {
		e := c.x.Event(i)
		return (e.Kind == history.Reading || e.Kind == history.ReadEnd) && e.T >= t-time.Minute && e.T <= t+c.skew
	})
}
