package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// I20: what the manager promises beside calls of tools is kept.
//
//   - What is said by message comes to what the facade says: the same tools of one generation, one reply for each command, one answer for
//     a call however often its id is sent, and nobody else's progress. The harness sees that while it happens.
//   - What a server asks is answered by whoever is there for that server, and a request that a server wants to have back with input
//     comes back with that input. The server sees it.
//   - What is read is what the server has: what it had at some moment of the read, and of a list, which may be kept, at most so long before
//     as its server, or the protocol, allows.
//   - The text and the parts of an answer to a call say what the bytes of its server say. The harness sees that.
//   - Who has subscribed is told of each update.
var readCheck = newCheck("I20", "what is promised beside calls",
	"What is said by message comes to what the facade says; a server's question is answered for that server; what is read is what the server "+
		"has; who has subscribed is told.",
	"Nothing was said by message, and nothing was read.",
	func(c *checker) {
		if c.plan.Scenario.Manager.Messages {
			c.judged++
		}
		for _, server := range c.x.Servers() {
			states, reads := c.offerEvents(server), map[string]int{}
			for _, i := range c.x.ServerEvents(server) {
				switch e := c.x.Event(i); {
				case e.Kind == history.Reading:
					reads[e.Call] = i
				case e.Kind == history.ReadEnd:
					begin, known := reads[e.Call]
					if known && e.Class == messages.ClassNone && e.Rev != 0 {
						c.checkRead(server, states, begin, i)
					}
				case e.Kind == history.Notified:
					if e.Method == "notifications/resources/updated" {
						c.checkUpdate(server, i)
					}
				}
			}
		}
	})

// offerEvents are the events that say which state of a server's resources and prompts there was, in order.
func (c *checker) offerEvents(server string) (at []int) {
	for _, i := range c.x.ServerEvents(server) {
		if c.x.Event(i).Kind == history.Offered {
			at = append(at, i)
		}
	}
	return at
}

// stateAt is the state at a time: the last one that began before it.
func (c *checker) stateAt(states []int, t time.Duration) (rev, at int) {
	at = -1
	for _, i := range states {
		if e := c.x.Event(i); e.T <= t {
			rev, at = e.Rev, i
		}
	}
	return rev, at
}

const (
	// listCacheTime is how long a list may be kept of a server that tells of changes over HTTP in the legacy era, where it may have no stream to
	// tell on, and cacheTTL what the servers of the harness say of theirs in the modern one.
	listCacheTime = time.Minute
	cacheTTL      = time.Second
)

// checkRead judges one read.
func (c *checker) checkRead(server string, states []int, begin, end int) {
	b, e := c.x.Event(begin), c.x.Event(end)
	c.judged++
	since := b.T - c.skew
	if e.Method == "resources" || e.Method == "prompts" {
		since -= cacheTTL
		if c.isHindered(server, 0, e.T) || len(c.ownerCommands(server)) > 0 {
			since = 0
		} else if spec := c.serverSpec(server); spec.Kind == messages.HTTP && spec.Era != messages.EraModern {
			since -= listCacheTime
		}
	}
	least, _ := c.stateAt(states, since)
	most, shown := c.stateAt(states, e.T)
	switch {
	case e.Rev == history.Foreign:
		c.reportViolation(server, end, []int{begin}, "Of %s was read at %s what the server never had.", e.Method, timeText(e.T))
	case e.Rev < least:
		c.reportViolation(server, end, []int{begin, shown}, "Who read %s of the server from %s to %s was given its state %d, and it is in its state %d at least "+
			"since %s.", e.Method, timeText(b.T), timeText(e.T), e.Rev, least, timeText(since))
	case e.Rev > most:
		c.reportViolation(server, end, []int{begin, shown}, "Who read %s of the server from %s to %s was given its state %d, and the newest one is %d.",
			e.Method, timeText(b.T), timeText(e.T), e.Rev, most)
	}
}

// connNumbered is a connection of a server, nil if nothing is known of it.
func (c *checker) connNumbered(server string, number int) *history.ConnRecord {
	all := c.x.Conns(server)
	if i := slices.IndexFunc(all, func(o *history.ConnRecord) bool { return o.Conn == number }); i >= 0 {
		return all[i]
	}
	return nil
}

// updateDelay is how late an update may be told: updates of one resource within 100 ms are one event.
const updateDelay = 100 * time.Millisecond

// checkUpdate judges that who has subscribed to the resource of a server was told of an update.
func (c *checker) checkUpdate(server string, updateEvent int) {
	e := c.x.Event(updateEvent)
	due := e.T + updateDelay + c.skew + c.slack
	if due >= c.closeTime() || c.isHindered(server, e.T-time.Minute, due) {
		return
	}
	if conn := c.connNumbered(server, e.Conn); conn == nil || conn.Released >= 0 && c.x.Event(conn.Released).T <= due ||
		conn.Down >= 0 && c.x.Event(conn.Down).T <= due {
		return
	}
	if _, moved := c.commandIn(c.ownerCommands(server), e.T-2*time.Second, due); moved {
		return
	}
	ends := map[string]bool{}
	for _, i := range c.x.ServerEvents(server) {
		switch o := c.x.Event(i); {
		case o.Kind == history.Updated && o.T >= e.T-c.skew && o.T <= due:
			c.judged++
			return
		case o.Kind == history.Reading && o.Method == "unsubscribe" && o.T <= due:
			ends[o.Call] = true
		case o.Kind == history.ReadEnd && o.Class == messages.ClassNone && o.T < e.T-c.skew:
			delete(ends, o.Call)
		}
	}
	if len(ends) > 0 || c.subscribedMeanwhile(server, e.T) { // a caller ends the subscription just then, or has ended it while another began it
		return
	}
	c.judged++
	c.reportViolationAt(due, server, updateEvent, nil, "The server said at %s that the resource has changed to which somebody has subscribed, and who watches was "+
		"not told by %s.", timeText(e.T), timeText(due))
}

// subscribedMeanwhile reports whether the last subscription before t was under way when another caller ended it: which of the two counts
// then is the manager's choice, and the server may go on telling.
func (c *checker) subscribedMeanwhile(server string, t time.Duration) bool {
	type span struct{ from, to time.Duration }
	open, last := map[string]*span{}, map[string]*span{}
	var ended []span
	for _, i := range c.x.ServerEvents(server) {
		e := c.x.Event(i)
		if e.T >= t || e.Method != "subscribe" && e.Method != "unsubscribe" {
			continue
		}
		switch e.Kind {
		case history.Reading:
			open[e.Call] = &span{e.T, t}
		case history.ReadEnd:
			if s := open[e.Call]; s != nil {
				s.to = e.T
				last[e.Method] = s
				if e.Method == "unsubscribe" {
					ended = append(ended, *s)
				}
			}
		default:
		}
	}
	s := last["subscribe"]
	return s != nil && slices.ContainsFunc(ended, func(u span) bool { return u.from <= s.to && u.to >= s.from })
}
