package invariant

import (
	"fmt"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// relistBackoff is the longest pause after failed lists: they are repeated after 1 s, doubling, up to 64 s.
const relistBackoff = 64 * time.Second

// I14: the catalog shows the true lists of the connected and enabled servers, no more and no less. It is judged at the end, and
// during the run after everything that a server announced:
//
//   - A list that was true before a connection asked for its first list is shown as soon as the server is connected.
//   - A change that was announced before a server was enabled is shown as soon as it is connected again.
//   - A change of before is shown as well after a server has agreed to send its news once more, over a stream that was opened again.
//   - An announced change is shown within the coalescing (MaxWait and Quiet) and two lists: one that may be under way, and its
//     own. The last change of a storm is not lost.
//   - An unannounced change may be shown or not.
//   - A stream of changes that is cut after a calm minute is opened again at once.
//   - A tool that the owner denies is not shown and reaches no server, from the answer to the command on.
var listCheck = newCheck("I14", "the servers' true lists",
	"The final snapshot equals the union of the servers' true lists.",
	"No server that announced its list was connected for long enough.",
	func(c *checker) {
		shows := c.catalogSpans()
		for _, server := range c.x.Servers() {
			l := c.listChangesOf(server)
			if len(l.changes) == 0 {
				continue
			}
			c.checkReopened(server)
			c.checkFilterShown(server, l, shows[server])
			c.checkFilterShownAtRest(server, l, shows[server])
			c.checkDeniedCalls(server)
			stays := c.phaseSpans(server)
			for _, u := range connectedSpans(stays) {
				c.checkCatalog(server, u, l, shows[server])
				c.enabledAnew(server, u, stays, l, shows[server])
				c.checkRelisted(server, u)
			}
		}
	})

// listChanges holds the changes of a server's true list over time, and its announcements, as indices of events in order.
type listChanges struct {
	changes       []int
	announcements []int
}

// listChangesOf returns the changes and announcements of a server. Where a server agrees once more to a subscription, which in the modern era stands for
// the stream that carries its news, what it changed before counts as announced: the client knows that it may have missed something. A server with
// resources agrees to subscriptions about these, too, so that its agreements say nothing of tools.
func (c *checker) listChangesOf(server string) listChanges {
	var l listChanges
	agreed := map[int]bool{}
	for _, i := range c.x.ServerEvents(server) {
		switch e := c.x.Event(i); {
		case e.Kind == history.Changed:
			l.changes = append(l.changes, i)
		case e.Kind != history.Notified || c.hasEnded(server, e.Conn, e.T):
		case e.Method == "notifications/tools/list_changed":
			l.announcements = append(l.announcements, i)
		case e.Method == "notifications/subscriptions/acknowledged" && !c.serverSpec(server).Offers:
			if agreed[e.Conn] {
				l.announcements = append(l.announcements, i)
			}
			agreed[e.Conn] = true
		}
	}
	return l
}

// changeBefore returns the index of the last change at or before a time, -1 if there was none.
func (c *checker) changeBefore(l listChanges, t time.Duration) int {
	// The search finds the first change after t, so that several changes in the instant t count as made.
	n, _ := slices.BinarySearchFunc(l.changes, t+1, func(i int, t time.Duration) int { return int(c.x.Event(i).T - t) })
	return n - 1
}

// checkCatalog judges one connected span.
func (c *checker) checkCatalog(server string, u connectedSpan, l listChanges, all []catalogSpan) {
	conn := c.connOf(server, u)
	if conn == nil {
		return
	}
	spec := c.serverSpec(server)
	// Twice, for the list that may be under way when the change is announced, and for the one that shows it.
	within := 2*(time.Duration(max(spec.Pages, 1))*2*spec.Latency+c.slack) + c.plan.MaxWait + c.plan.Quiet + c.slack
	if c.real {
		within += 2 * c.slack
	}
	end := min(u.to, c.closeTime())
	// The list that made the server connected began after the dial. A process that this dial starts announces its first list a
	// moment later, so that nothing older can have been listed. A server that offers more than tools may be connected without
	// its list, if that takes too long or cannot be read.
	without := spec.Offers && (c.underFault(server, c.x.Event(conn.Events[0]).T, u.from, unreadable...) || !c.hasListed(conn, u.from))
	if first := max(c.changeBefore(l, c.x.Event(conn.Events[0]).T), 0); !without && c.x.Event(l.changes[first]).T <= u.from && end > u.from+c.skew {
		c.judged++
		c.checkListShown(server, all, l, first, u.from+c.skew, u.event, -1, "before it was dialled")
	}
	for _, i := range l.announcements {
		e := c.x.Event(i)
		if e.Conn != conn.Conn || e.T > end {
			continue
		}
		due := max(e.T, u.from) + within
		if c.isHindered(server, e.T-listTimeout-relistBackoff, due) {
			// A lost answer is waited for, and a failed list is repeated, at the latest this long after the last fault.
			heal := c.hindranceEnd(server, e.T)
			due = max(due, heal+relistBackoff+listTimeout+within)
			if c.isHindered(server, heal+c.skew+1, due) {
				continue
			}
		}
		known := c.changeBefore(l, e.T)
		if due >= end || known < 0 {
			continue
		}
		c.judged++
		c.checkListShown(server, all, l, known, due, u.event, i, "and it was announced at "+timeText(e.T))
	}
}

// hasListed reports whether a list of a connection had reached the client at a time: the server has sent the last page, and no part of
// it is still on its way.
func (c *checker) hasListed(conn *history.ConnRecord, until time.Duration) bool {
	last, sent, arrived := "", false, false
	for _, i := range conn.Events {
		e := c.x.Event(i)
		switch {
		case e.T > until:
			return false
		case e.Kind == history.Received && e.Method == "tools/list":
			last, sent, arrived = e.ID, false, false
		case e.Kind == history.Listed:
			sent = true
		case e.Kind == history.Answered && e.Method == "tools/list" && e.ID == last && e.Code == 0:
			arrived = true
		}
		if sent && arrived {
			return true
		}
	}
	return false
}

// enabledAnew judges a server that was disabled and kept its connection: "it is re-listed before its tools return" if its list
// has changed.
func (c *checker) enabledAnew(server string, u connectedSpan, stays []phaseSpan, l listChanges, all []catalogSpan) {
	k := slices.IndexFunc(stays, func(s phaseSpan) bool { return s.event == u.event })
	for k > 0 && stays[k-1].endEvent == stays[k].event && stays[k-1].Epoch == u.epoch && stays[k-1].Phase == messages.Pending {
		k--
	}
	if k < 1 || stays[k-1].endEvent != stays[k].event || nodeOf(&stays[k-1]) != warm || stays[k-1].Epoch != u.epoch {
		return
	}
	conn, enabled := c.connOf(server, u), stays[k-1].to
	if conn == nil || min(u.to, c.closeTime()) <= u.from+c.skew+c.slack {
		return
	}
	for _, i := range slices.Backward(l.announcements) {
		e := c.x.Event(i)
		if e.Conn != conn.Conn || e.T >= enabled-c.instantBound() {
			continue
		}
		if known := c.changeBefore(l, e.T); known >= 0 && !c.isHindered(server, e.T-listTimeout-relistBackoff, u.from+c.skew) {
			c.judged++
			c.checkListShown(server, all, l, known, u.from+c.skew, u.event, i, "and it was announced at "+timeText(e.T)+", before it was enabled at "+timeText(enabled))
		}
		// Only the last announcement matters.
		return
	}
}

// listFaults are the faults that concern lists and do not prevent the manager from getting one.
var listFaults = []string{"list-changed", "list-storm", "quiet-change", "rug-pull", "long-names", "duplicate-names", "bad-schema",
	"control-characters", "leak-canary", "change-during-list", "tool-error", "bad-output", "hang-call", "ignore-cancel",
	"big-result", "endless-progress", "ignore-eof", "ignore-term", "duplicate-response", "unknown-response"}

// unreadable are the faults under which the client does not get what the server answers.
var unreadable = []string{"wrong-content-type", "truncate", "cut-stream", "server-error", "redirect", "half-line", "huge-line",
	"endless-line"}

// isHindered reports whether a fault that may keep a server from sending its list was active between two times.
func (c *checker) isHindered(server string, from, to time.Duration) bool {
	for _, w := range c.faultWindows(server) {
		if w.from <= to && w.to+c.skew >= from && !slices.Contains(listFaults, w.fault) {
			return true
		}
	}
	return false
}

// hindranceEnd returns when the faults had ended that hinder a server at a time, or follow closely on such faults.
func (c *checker) hindranceEnd(server string, t time.Duration) time.Duration {
	for _, w := range c.faultWindows(server) {
		if !slices.Contains(listFaults, w.fault) && w.from <= t+c.skew+listTimeout+relistBackoff {
			t = max(t, w.to)
		}
	}
	return t
}

// checkListShown judges that the catalog shows, at a time, the list after the known change, or after a later one.
func (c *checker) checkListShown(server string, all []catalogSpan, l listChanges, known int, t time.Duration, at, announcement int, when string) {
	n, _ := slices.BinarySearchFunc(all, t+1, func(s catalogSpan, t time.Duration) int { return int(s.from - t) })
	e := c.x.Event(l.changes[known])
	var now catalogSpan
	if n > 0 {
		now = all[n-1]
	} else {
		now = catalogSpan{event: at}
	}
	for _, i := range l.changes[known:] {
		if change := c.x.Event(i); change.T <= t && c.showsList(server, change, now, t) {
			return
		}
	}
	if now.state == "lost" || now.state == "cached" || c.mayMixPages(server, l.changes[known+1:], all[:n]) {
		return // I1 judges lost and cached lists
	}
	evidence := []int{l.changes[known], announcement, at}
	for i := known - 1; i >= 0; i-- {
		if old := c.x.Event(l.changes[i]); c.showsList(server, old, now, t) {
			c.reportViolationAt(t, server, now.event, evidence, "The list of tools of %s changed at %s to revision %d, %s. The catalog had to show it by %s, and "+
				"still showed revision %d.", server, timeText(e.T), e.Rev, when, timeText(t), old.Rev)
			return
		}
	}
	what := fmt.Sprintf("%d tools, a list that the server never had,", now.count)
	if now.count == 0 {
		what = "no tools of it"
	}
	c.reportViolationAt(t, server, now.event, evidence, "The list of %s has %d tools since %s, %s. The catalog showed %s at %s.", server, len(e.Names),
		timeText(e.T), when, what, timeText(t))
}

// mayMixPages reports whether the list that the last span shows may hold pages of two states, because the list has changed
// between the answers to its pages. Nothing tells the client; the change itself is judged when it is announced.
func (c *checker) mayMixPages(server string, later []int, shown []catalogSpan) bool {
	spec := c.serverSpec(server)
	if spec.Pages < 2 || len(shown) == 0 {
		return false
	}
	first := len(shown) - 1
	for first > 0 && shown[first-1].hash == shown[first].hash {
		first--
	}
	read := shown[first].from
	reading := time.Duration(spec.Pages)*2*spec.Latency + c.slack
	if c.isHindered(server, read-listTimeout, read) {
		reading += listTimeout
	}
	return slices.ContainsFunc(later, func(i int) bool {
		changed := c.x.Event(i).T
		return changed >= read-reading && changed <= read
	})
}
