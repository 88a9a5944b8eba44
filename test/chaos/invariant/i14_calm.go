package invariant

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

const (
	// calmStream is how long a stream has to live until the pauses before it is opened again begin anew, and firstPause the longest
	// pause then.
	calmStream = time.Minute
	firstPause = time.Second
)

// checkReopened judges that a stream which was cut after a calm time is opened again at once: what the server's list becomes meanwhile is
// not seen. It looks at servers with one stream alone, of the modern era over HTTP.
func (c *checker) checkReopened(server string) {
	spec := c.serverSpec(server)
	if c.real || spec == nil || spec.Offers || spec.Era != messages.EraModern || spec.Kind != messages.HTTP {
		return
	}
	for _, conn := range c.x.Conns(server) {
		opened, agreed, cut := -1, -1, -1
		for _, i := range c.x.ServerEvents(server) { // what a fault does to a connection is no event of it
			e := c.x.Event(i)
			switch {
			case e.Conn != conn.Conn:
			case e.Kind == history.Received && e.Method == "subscriptions/listen":
				if cut >= 0 {
					c.checkPause(server, conn, agreed, cut, i)
				}
				opened, agreed, cut = i, -1, -1
			case e.Kind == history.Notified && e.Method == "notifications/subscriptions/acknowledged" && opened >= 0:
				agreed = i
			case e.Kind == history.Fired && e.Name == "cut-stream" && agreed >= 0 && cut < 0:
				cut = i
			}
		}
		if cut >= 0 {
			c.checkPause(server, conn, agreed, cut, -1)
		}
	}
}

// checkPause judges the pause between the end of a stream and the next one, which is -1 if there is none.
func (c *checker) checkPause(server string, conn *history.ConnRecord, agreed, cut, next int) {
	from, to := c.x.Event(agreed).T, c.x.Event(cut).T
	due := to + firstPause + c.slack
	if to-from < calmStream+c.slack || due >= c.closeTime() || c.underOther(server, to, due) {
		return
	}
	for _, end := range []int{conn.Down, conn.Released} {
		if t, ok := c.x.Time(end); ok && t <= due {
			return
		}
	}
	if _, moved := c.commandIn(c.ownerCommands(server), to, due); moved {
		return
	}
	c.judged++
	if t, ok := c.x.Time(next); ok && t <= due {
		return
	}
	c.reportViolationAt(due, server, cut, []int{agreed}, "The stream of the server's changes, which stood since %s, was cut at %s. After a calm minute it is opened again "+
		"within %s, and it was not by %s.", timeText(from), timeText(to), timeText(firstPause), timeText(due))
}

// underOther reports whether another fault than cuts of streams had power over a server between two times.
func (c *checker) underOther(server string, from, to time.Duration) bool {
	for _, w := range c.faultWindows(server) {
		if w.fault != "cut-stream" && w.from <= to+c.skew && w.to+c.skew >= from {
			return true
		}
	}
	return false
}
