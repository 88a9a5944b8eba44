package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// withdrawnBound is how long after its server an agent hears that a question is taken back: nothing has to wait for anything in between.
const withdrawnBound = 50 * time.Millisecond

// checkWithdrawn is I24 for a question that its server has taken back: the agent which was asked is told so, unless its call has ended
// before, it has answered, or it has gone.
func (c *checker) checkWithdrawn(s *agentSession, at int) {
	q := c.x.Event(at)
	if q.About == "" || q.Server == "" {
		return
	}
	for _, i := range c.x.ServerEvents(q.Server) {
		e := c.x.Event(i)
		if e.Kind != history.Notified || e.Method != "notifications/cancelled" || e.Call != q.About || e.T < q.T {
			continue
		}
		until := e.T + withdrawnBound
		if s.end(c) <= until || !s.isOpen(c, i, q.About, "tools/call") || c.underFault(q.Server, q.T, until) || c.wasCommanded(q.Server, q.T, until) || c.isStreamCut(s, q.T, until) {
			return
		}
		if call := c.x.Call(q.About); call == nil || call.GivenUp >= 0 && c.x.Event(call.GivenUp).T <= until {
			return
		}
		c.judged++
		if !slices.ContainsFunc(s.events, func(k int) bool {
			n := c.x.Event(k)
			return n.Kind == history.Noticed && n.Method == e.Method && n.About == q.About && n.T >= e.T-c.instantBound() && n.T <= until
		}) {
			c.reportViolation(q.Server, i, []int{at}, "The server took its question about call %s back at %s, which %s was asked at %s, and that agent was not told by %s.", q.About, timeText(e.T), s.agent,
				timeText(q.T), timeText(until))
		}
		return
	}
}

// isStreamCut reports whether a connection of a session broke in a stretch of time: what came on it is told on the next one.
func (c *checker) isStreamCut(s *agentSession, from, to time.Duration) bool {
	return slices.ContainsFunc(s.events, func(i int) bool {
		e := c.x.Event(i)
		return e.Kind == history.StreamCut && e.T >= from-10*time.Second && e.T <= to
	})
}
