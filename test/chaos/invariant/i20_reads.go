package invariant

import (
	"cmp"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// I20: the manager keeps its promises beside tool calls.
//
//   - A message over the JSON-RPC front has the effect of the facade's method: the same tools of one generation, one reply for
//     each command, one answer for a call however often its id is sent, and no progress of another caller. The harness checks
//     that while it happens.
//   - A question of a server is answered by the handler that its owner set for that server, and a request that a server wants
//     to have back with input comes back with that input. The server checks it.
//   - A read returns what the server has: a state from the time of the read. A list may be cached, and then be as old as its
//     server, or the protocol, allows.
//   - The audit log has one record of each call, with the caller, the tool and the outcome that its caller got. The harness checks that.
//   - The text and the parts of an answer to a call carry the bytes that its server sent. The harness checks that.
//   - The manager publishes each change of a list of resources or prompts that a server announces (i20_lists_told.go).
//   - The manager publishes each update of a resource that a caller has subscribed to, and asks each further connection to watch it. A
//     connection that was kept while the server was disabled is asked to end what was given up meanwhile (given_up_watches.go).
//   - The methods that only read (Status, ServerStatus, Servers, ConnectedServers, ToolsOf, History …) say the same at one
//     moment; what was never added is unknown to each. The harness checks that. Settled returns when every server stays as it is
//     (i20_settled.go).
var readCheck = newCheck("I20", "what is promised beside calls",
	"What is said by message comes to what the facade says; a server's question is answered for that server; what is read is what the server "+
		"has; who has subscribed is told.",
	"Nothing was said by message, and nothing was read.",
	func(c *checker) {
		if c.plan.Scenario.Manager.Messages {
			c.judged++
		}
		c.checkSettled()
		for _, server := range c.x.Servers() {
			c.checkResubscribed(server)
			c.checkGivenUpAtRest(server)
			c.checkListsTold(server)
			c.checkPersonal(server)
			// Reads overlap, so each end is paired with its begin by the call id.
			states, reads := c.offerEvents(server), map[string]int{}
			for _, i := range c.x.ServerEvents(server) {
				switch e := c.x.Event(i); {
				case e.Kind == history.Reading:
					reads[e.Call] = i
				case e.Kind == history.ReadEnd:
					begin, known := reads[e.Call]
					// An error and a read without a revision say nothing about the state.
					if known && e.Class == messages.ClassNone && e.Rev != 0 {
						c.checkRead(server, states, begin, i)
					}
					if known {
						c.checkBesideQueue(server, begin, i)
						c.checkReadWakes(server, begin, i)
					}
					if known && c.plan.Denies(server) {
						c.checkReadDenied(server, begin, i)
					}
				case e.Kind == history.Notified:
					if e.Method == "notifications/resources/updated" {
						c.checkUpdate(server, i)
					}
				}
			}
		}
	})

// offerEvents returns the events in which a server took a new state of its resources and prompts, in order.
func (c *checker) offerEvents(server string) (at []int) {
	for _, i := range c.x.ServerEvents(server) {
		if c.x.Event(i).Kind == history.Offered {
			at = append(at, i)
		}
	}
	return at
}

// stateAt returns the number of the newest state that began by a time, and its event; at is -1 before the first.
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
	// listCacheTime bounds how long the manager caches a list of a legacy HTTP server, which may have no stream over which it
	// could announce a change.
	listCacheTime = time.Minute
	// unannouncedTime bounds how long it caches a list of a legacy server that announces no changes of it.
	unannouncedTime = 5 * time.Second
	// cacheTTL is the time to live that the harness's servers declare in the modern era.
	cacheTTL = time.Second
)

// checkRead judges that a read returned a state of the server from between the oldest allowed one and the newest.
func (c *checker) checkRead(server string, states []int, begin, end int) {
	b, e := c.x.Event(begin), c.x.Event(end)
	c.judged++
	since := b.T - c.skew
	// Only lists are cached. With a fault or a command the age of the cached list is not known, so every older state is
	// allowed.
	if readNews[e.Method] != "" {
		since -= cacheTTL
		switch spec := c.serverSpec(server); {
		case c.isHindered(server, 0, e.T) || len(c.ownerCommands(server)) > 0:
			since = 0
		case spec.Era == messages.EraModern:
		case spec.Lacks != "" && !spec.Has(listAnnouncements[e.Method]):
			since -= unannouncedTime
		case spec.Kind == messages.HTTP:
			since -= listCacheTime
		}
	}
	least, _ := c.stateAt(states, since)
	announced := c.announcedState(server, states, e.Method, b.T)
	most, shown := c.stateAt(states, e.T)
	switch {
	case e.Rev == history.Foreign:
		c.reportViolation(server, end, []int{begin}, "A caller read a %s of the server at %s and was given what the server never had.", e.Method, timeText(e.T))
	case e.Rev < least:
		c.reportViolation(server, end, []int{begin, shown}, "Who read %s of the server from %s to %s was given its state %d, and it is in its state %d at least "+
			"since %s.", e.Method, timeText(b.T), timeText(e.T), e.Rev, least, timeText(since))
	case e.Rev < announced:
		c.reportViolation(server, end, []int{begin, shown}, "Who read %s of the server from %s to %s was given its state %d, and it had announced its state %d before.", e.Method, timeText(b.T),
			timeText(e.T), e.Rev, announced)
	case e.Rev > most:
		c.reportViolation(server, end, []int{begin, shown}, "Who read %s of the server from %s to %s was given its state %d, and the newest one is %d.",
			e.Method, timeText(b.T), timeText(e.T), e.Rev, most)
	}
}

// newsAge is the time by which the stream is open again on which a server over HTTP announces changes, after a fault that may have broken it.
const newsAge = 3 * time.Minute

// announcedState returns the newest state of a list that a server had announced some time before a read began, over a connection that stood: from then
// on no older list is given, whatever happens to the server later. It is 0 for what is no list.
func (c *checker) announcedState(server string, states []int, read string, begin time.Duration) (rev int) {
	spans := connectedSpans(c.phaseSpans(server))
	for _, i := range c.x.ServerEvents(server) {
		e := c.x.Event(i)
		if e.T+updateBound >= begin {
			return rev
		}
		if kind := listNews[e.Method]; e.Kind != history.Notified || kind == "" || kind != readNews[read] || c.hasEnded(server, e.Conn, e.T) || c.isDisturbed(server, spans, e.T, e.T+updateBound) {
			continue
		}
		if c.serverSpec(server).Kind != messages.HTTP || !c.underFault(server, e.T-newsAge, e.T) {
			rev, _ = c.stateAt(states, e.T)
		}
	}
	return rev
}

// checkReadDenied judges that nothing is read of a server that a rule denies as a whole.
func (c *checker) checkReadDenied(server string, begin, end int) {
	b, e := c.x.Event(begin), c.x.Event(end)
	if !slices.Contains([]string{"resource", "prompt", "resources", "prompts", "templates"}, e.Method) {
		return
	}
	if !slices.ContainsFunc(c.specVersionsIn(server, b.T, e.T), func(d specVersion) bool { return !slices.Contains(d.Refused, scenario.WholeServer) }) {
		c.judged++
		if e.Class == messages.ClassNone {
			c.reportViolation(server, end, []int{begin}, "Who read %s of the server at %s, when a rule denied the whole server, was answered at %s.", e.Method,
				timeText(b.T), timeText(e.T))
		}
	}
}

// connNumbered returns a connection of a server by its number, nil if the record has none.
func (c *checker) connNumbered(server string, number int) *history.ConnRecord {
	all := c.x.Conns(server)
	if i := slices.IndexFunc(all, func(o *history.ConnRecord) bool { return o.Conn == number }); i >= 0 {
		return all[i]
	}
	return nil
}

// updateDelay bounds how late an update is published: the session joins updates of one resource within 100 ms into one event.
const updateDelay = 100 * time.Millisecond

// checkUpdate judges that watchers got the update of a resource to which a caller has subscribed. It skips updates under a
// fault, near the end of their connection and near a command, because then the subscription may be gone.
func (c *checker) checkUpdate(server string, updateEvent int) {
	e := c.x.Event(updateEvent)
	due := e.T + updateDelay + c.skew + c.slack
	if due >= c.closeTime() || c.isHindered(server, e.T-time.Minute, due) {
		return
	}
	conn := c.connNumbered(server, e.Conn)
	if conn == nil || conn.Released >= 0 && c.x.Event(conn.Released).T <= due || conn.Down >= 0 && c.x.Event(conn.Down).T <= due ||
		c.isUnwanted(conn, e.T, due) {
		return
	}
	if _, moved := c.commandIn(c.ownerCommands(server), e.T-2*time.Second, due); moved {
		return
	}
	// ends holds the unsubscribe requests that are open at the time of the update.
	ends := map[string]bool{}
	for _, i := range c.x.ServerEvents(server) {
		switch o := c.x.Event(i); {
		case o.Kind == history.Updated && o.About == e.About && o.T >= e.T-c.skew && o.T <= due:
			c.judged++
			return
		case o.Kind == history.Reading && o.Method == "unsubscribe" && o.T <= due:
			ends[o.Call] = true
		case o.Kind == history.ReadEnd && o.Class == messages.ClassNone && o.T < e.T-c.skew:
			delete(ends, o.Call)
		}
	}
	if len(ends) > 0 || c.subscribedMeanwhile(server, e.T) || c.mayHaveBeenGivenUp(server, e.T) { // the subscription may be ending at this moment
		return
	}
	c.judged++
	c.reportViolationAt(due, server, updateEvent, nil, "The server said at %s that %s has changed, to which a caller has subscribed, and no watcher was told of "+
		"it by %s.", timeText(e.T), cmp.Or(e.About, "a resource"), timeText(due))
}

// isUnwanted reports whether the manager wanted no updates on a connection at a time, or was asking that they end: it has asked for that, also if
// the server refused it, and for no subscription since; or it had given up each request for one that the server agreed to. A server of the modern
// era is asked for another set of resources by a new subscriptions/listen, and sends updates of the old set until it has agreed.
func (c *checker) isUnwanted(conn *history.ConnRecord, t, due time.Duration) bool {
	hasAsked, wanted := false, false
	listens := map[string]bool{} // the requests that the server has not agreed to
	open := map[string]bool{}    // the requests that are not answered, and not given up
	for _, i := range conn.Events {
		e := c.x.Event(i)
		if e.T > due {
			break
		}
		switch {
		case e.Kind == history.Received && e.Method == "resources/unsubscribe":
			hasAsked, wanted = true, false
			clear(open) // what a server agrees to after that was asked for before
		case e.T > t:
		case e.Kind == history.Received && e.Method == "subscriptions/listen":
			listens[e.ID] = true
		case e.Kind == history.Notified && e.Method == "notifications/subscriptions/acknowledged":
			delete(listens, e.About)
		case e.Kind == history.Answered && e.Method == "subscriptions/listen":
			delete(listens, e.ID)
		case e.Kind == history.Received && e.Method == "resources/subscribe":
			hasAsked, open[e.ID] = true, true
		case e.Kind == history.Received && e.Method == "notifications/cancelled":
			delete(open, e.About)
			delete(listens, e.About)
		case e.Kind == history.Answered && e.Method == "resources/subscribe" && open[e.ID]:
			wanted = wanted || e.Code == 0
			delete(open, e.ID)
		}
	}
	return hasAsked && !wanted || len(listens) > 0
}

// subscribedMeanwhile reports whether the last subscription before t was under way while another caller ended one. The manager
// may take the two in either order, and the server may go on to send updates.
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

// mayHaveBeenGivenUp reports whether who had subscribed may have given that up while the server was not connected, which it was not a
// moment before t either: an agent may end its watch at any time, a caller of the program says so. A connection that is kept is asked to end
// the subscription when the server is connected again, and the server sends updates that nobody wants until then.
func (c *checker) mayHaveBeenGivenUp(server string, t time.Duration) bool {
	asked := t - 4*c.serverSpec(server).Latency - resubscribeReserve
	if slices.ContainsFunc(connectedSpans(c.phaseSpans(server)), func(u connectedSpan) bool { return u.from < asked && u.to > t }) {
		return false
	}
	return len(c.plan.Agents) > 0 || c.unsubscribedWhileDown(server, t)
}

// unsubscribedWhileDown reports whether the subscription that callers had before t was ended while the server was not connected.
func (c *checker) unsubscribedWhileDown(server string, t time.Duration) bool {
	down := false
	for _, i := range c.x.ServerEvents(server) {
		e := c.x.Event(i)
		if e.T >= t || e.Kind != history.ReadEnd || e.Class != messages.ClassNone {
			continue
		}
		switch e.Method {
		case "subscribe":
			down = false
		case "unsubscribe":
			s := c.spanAt(c.phaseSpans(server), e.T)
			down = s == nil || s.Phase != messages.Connected
		}
	}
	return down
}
