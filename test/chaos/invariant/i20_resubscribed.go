package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// resubscribeReserve is added to the times of the requests by which a new connection is asked for what callers watch.
const resubscribeReserve = time.Second

// checkResubscribed judges that what a caller has subscribed to is watched on each further connection: the server agrees to a subscription
// there soon after it is connected. It looks at servers of the legacy era, whose subscriptions are requests of their own, and at connections
// whose subscription nobody ends or renews meanwhile. One resource may be refused there; that ends no other subscription.
func (c *checker) checkResubscribed(server string) {
	spec := c.serverSpec(server)
	if c.real || spec == nil || !spec.Offers || spec.Era == messages.EraModern || len(c.plan.Agents) > 0 {
		return
	}
	due := 4*spec.Latency + c.slack + resubscribeReserve
	for _, u := range connectedSpans(c.phaseSpans(server)) {
		conn := c.connOf(server, u)
		since, stands := c.subscribedSince(server, u.from, u.from+due)
		if conn == nil || !stands || since >= c.x.Event(conn.Events[0]).T-c.skew || u.to <= u.from+due || u.from+due >= c.closeTime() {
			continue // the subscription was made on this connection, or it is too short
		}
		if c.isHindered(server, c.x.Event(conn.Events[0]).T, u.from+due) || c.wasForgotten(server, since, u.from+due) {
			continue
		}
		c.judged++
		if !slices.ContainsFunc(conn.Events, func(i int) bool {
			e := c.x.Event(i)
			return e.Kind == history.Answered && e.Method == "resources/subscribe" && e.Code == 0 && e.T <= u.from+due
		}) {
			c.reportViolationAt(u.from+due, server, u.event, nil, "A caller watches a resource of the server since %s. It is connected anew since %s, and had agreed to no "+
				"subscription on connection %d by %s.", timeText(since), timeText(u.from), conn.Conn, timeText(u.from+due))
			return
		}
	}
}

// subscribedSince returns since when a caller has the subscription to the server's resource that stands at a time; false if there is none,
// or if one is made or ended at that time or until the other one.
func (c *checker) subscribedSince(server string, t, until time.Duration) (since time.Duration, stands bool) {
	open, ends := 0, false // how many requests are open, and whether one of those that overlap ends the subscription
	for _, i := range c.x.ServerEvents(server) {
		e := c.x.Event(i)
		if e.Method != "subscribe" && e.Method != "unsubscribe" {
			continue
		}
		switch {
		case e.Kind == history.Reading && e.T > until:
			return since, stands && open == 0
		case e.Kind == history.Reading && e.T > t-c.skew:
			return 0, false
		case e.Kind == history.Reading:
			ends = (ends && open > 0) || e.Method == "unsubscribe"
			open++
			stands = false
		case e.Kind == history.ReadEnd && e.T <= t-c.skew:
			open--
			// Of two that overlap nobody knows which was last.
			stands = !ends && e.Class == messages.ClassNone && open == 0
			since = e.T
		case e.Kind == history.ReadEnd:
			return 0, false
		}
	}
	return since, stands && open == 0
}

// wasForgotten reports whether the owner gave a command between two times after which a server may be another one.
func (c *checker) wasForgotten(server string, from, to time.Duration) bool {
	return slices.ContainsFunc(c.ownerCommands(server), func(a ownerCommand) bool {
		return a.action != "reconnect" && a.action != "refresh" && a.begin <= to && a.end >= from-c.skew
	})
}
