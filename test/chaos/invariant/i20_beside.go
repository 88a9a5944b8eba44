package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// checkBesideQueue is I20 for what waits for no turn: who subscribes to a resource, or ends that, is answered while the calls
// that the server may have in flight wait for their answers. The server itself answers such a request at once.
func (c *checker) checkBesideQueue(server string, begin, end int) {
	b, e := c.x.Event(begin), c.x.Event(end)
	spec := c.serverSpec(server)
	if c.real || e.Method != "subscribe" && e.Method != "unsubscribe" {
		return
	}
	// A subscription of the modern era opens a stream of its own, and both eras may have to ask twice. Subscriptions to one
	// resource, and their ends, follow each other.
	roundTrips := 4 + 2*c.countSubscribing(server, b.T)
	bound := b.T + time.Duration(roundTrips)*spec.Latency + time.Second + c.slack
	if bound >= c.closeTime() || c.underOtherFault(server, b.T-listTimeout, bound, []string{"hang-call"}) {
		return
	}
	if !slices.ContainsFunc(connectedSpans(c.phaseSpans(server)), func(u connectedSpan) bool { return u.from < b.T-c.skew && u.to > bound }) {
		return
	}
	if _, found := c.commandIn(c.ownerCommands(server), b.T, bound); found {
		return
	}
	c.judged++
	if e.T > bound {
		c.reportViolationAt(bound, server, end, []int{begin}, "Who asked for %s at %s was answered at %s. It waits for no call, and was to be answered by %s.", e.Method,
			timeText(b.T), timeText(e.T), timeText(bound))
	}
}

// countSubscribing counts who had asked to subscribe to a resource of a server, or to end that, and had no answer at a time.
func (c *checker) countSubscribing(server string, t time.Duration) (n int) {
	for _, i := range c.x.ServerEvents(server) {
		switch e := c.x.Event(i); {
		case e.T >= t:
			return n
		case e.Method != "subscribe" && e.Method != "unsubscribe":
		case e.Kind == history.Reading:
			n++
		case e.Kind == history.ReadEnd:
			n--
		}
	}
	return n
}
