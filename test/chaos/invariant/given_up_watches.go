package invariant

import (
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// checkGivenUpAtRest judges that a server which was disabled and kept its connection is asked to end the watch of a resource that callers gave up
// meanwhile, once it is connected again: it would send updates that no caller wants. It looks at the requests of the legacy era, and only where no agent
// may watch the resource as well.
func (c *checker) checkGivenUpAtRest(server string) {
	spec := c.serverSpec(server)
	if c.real || spec == nil || !spec.Has(scenario.HasSubscribe) || spec.Era == messages.EraModern || len(c.plan.Agents) > 0 {
		return
	}
	uri, spans := scenario.OfferURI(server, "one"), connectedSpans(c.phaseSpans(server))
	for i := 1; i < len(spans); i++ {
		before, u := spans[i-1], spans[i]
		conn := c.connOf(server, u)
		due := u.from + 4*spec.Latency + c.slack + resubscribeReserve
		if conn == nil || conn != c.connOf(server, before) || u.to <= due || due >= c.closeTime() || !watchesOn(c, conn, uri, u.from) || !c.gaveUpBetween(server, before.to, u.from, due) ||
			c.isHindered(server, before.from, due) || c.wasCommanded(server, u.from+1, due) {
			continue
		}
		c.judged++
		if !slices.ContainsFunc(conn.Events, func(i int) bool {
			e := c.x.Event(i)
			return e.Kind == history.Received && e.Method == "resources/unsubscribe" && e.About == uri && e.T >= u.from-c.skew && e.T <= due
		}) {
			c.reportViolationAt(due, server, u.event, nil, "The callers gave up the watch of %s while the server was disabled from %s to %s. It kept its connection %d, and was not asked to end "+
				"the watch by %s.", uri, timeText(before.to), timeText(u.from), conn.Conn, timeText(due))
			return
		}
	}
}

// watchesOn reports whether a server watches a resource over a connection at a time: it has agreed to that, and was not asked to end it since.
func watchesOn(c *checker, conn *history.ConnRecord, uri string, t time.Duration) (watches bool) {
	asked := ""
	for _, i := range conn.Events {
		switch e := c.x.Event(i); {
		case e.T > t:
			return watches && asked == ""
		case e.Kind == history.Received && e.Method == "resources/subscribe" && e.About == uri:
			asked = e.ID
		case e.Kind == history.Received && e.Method == "resources/unsubscribe" && e.About == uri:
			watches, asked = false, ""
		case e.Kind == history.Answered && e.Method == "resources/subscribe" && e.ID == asked && asked != "":
			watches, asked = e.Code == 0, ""
		}
	}
	return watches && asked == ""
}

// gaveUpBetween reports whether the last that callers said of the server's resource by due is that they watch it no more, and that they said so from one
// time to another. What overlaps may have been taken in either order.
func (c *checker) gaveUpBetween(server string, from, to, due time.Duration) bool {
	gaveUp, open := false, 0
	for _, i := range c.x.ServerEvents(server) {
		e := c.x.Event(i)
		// A call whose number ends so watches another resource, which the record calls the same.
		if e.Method != "subscribe" && e.Method != "unsubscribe" || strings.HasSuffix(e.Call, "4") {
			continue
		}
		switch {
		case e.Kind == history.Reading && e.T > due:
			return gaveUp && open == 0
		case e.Kind == history.Reading:
			gaveUp = false
			open++
		case e.Kind == history.ReadEnd:
			open--
			gaveUp = open == 0 && e.Method == "unsubscribe" && e.Class == messages.ClassNone && e.T-e.Took > from+c.skew && e.T < to-c.skew
		}
	}
	return gaveUp && open == 0
}
