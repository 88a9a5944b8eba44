package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// A listReader sorts the requests and the answers of a connection into lists. Two lists may run side by side: that of the catalog, and
// that of a call whose headers were refused.
type listReader struct {
	c     *checker
	lists []listRequest
	// answers holds the answer to the last request of each id, byID the list that it belongs to.
	answers map[string]*history.Event
	byID    map[string]int
}

// listsOf returns the tool lists of a connection, each with its pages, the times at which the server announced a change of its
// list, and in further the acknowledgments of subscriptions after the first. A later subscription may be about resources alone,
// or take the place of the first.
func (c *checker) listsOf(conn *history.ConnRecord) (lists []listRequest, announced, further []time.Duration) {
	agreed := false
	r := &listReader{c: c, answers: map[string]*history.Event{}, byID: map[string]int{}}
	for _, i := range conn.Events {
		if e := c.x.Event(i); e.Kind == history.Answered && e.Method == "tools/list" {
			r.answers[e.ID] = e
		}
	}
	for _, i := range conn.Events {
		e := c.x.Event(i)
		switch {
		case e.Kind == history.Notified:
			// The first acknowledged subscription counts as an announcement, because the client may have missed a change before
			// it.
			switch agreement := e.Method == "notifications/subscriptions/acknowledged"; {
			case agreement && agreed:
				further = append(further, e.T)
			case agreement || e.Method == "notifications/tools/list_changed":
				announced = append(announced, e.T)
				agreed = agreed || agreement
			}
		case e.Kind == history.Received && e.ID != "" && e.Method == "tools/list":
			r.addRequest(i, e)
		case e.Kind == history.Answered && e.Method == "tools/list":
			r.addAnswer(e)
		case e.Kind == history.Listed:
			if n := r.openListAt(e.T); n >= 0 {
				l := &r.lists[n]
				l.to, l.done, l.failed, l.rev = e.T, true, false, e.Rev
			}
		}
	}
	return r.lists, announced, further
}

// addRequest adds a request to the list that it goes on with, or begins a list. The client requests the next page in the instant in
// which the page before has come, and repeats a refused request with other credentials in the instant of the refusal.
func (r *listReader) addRequest(i int, e *history.Event) {
	n := r.openListAt(e.T)
	if n >= 0 {
		before := r.lastAnswer(&r.lists[n])
		if before == nil || !isWithin(before.T, e.T, r.c.skew) || !e.Cursor && before.Code == 0 {
			n = -1
		}
	}
	if n < 0 {
		n = len(r.lists)
		r.lists = append(r.lists, listRequest{firstEvent: i, from: e.T, to: e.T, failed: true})
	}
	r.lists[n].pages++
	r.lists[n].lastEvent = i
	r.byID[e.ID] = n
}

// addAnswer notes the answer to a list's last request.
func (r *listReader) addAnswer(e *history.Event) {
	n, known := r.byID[e.ID]
	if !known {
		return
	}
	l := &r.lists[n]
	// The client has repeated the request with other credentials in the instant of the refusal, so the list goes on under the new id.
	if e.Code != 0 && e.ID != r.c.x.Event(l.lastEvent).ID {
		return
	}
	if l.to, l.failed = e.T, e.Code != 0; l.failed {
		l.code, l.done = e.Code, true
	}
}

// lastAnswer returns the answer to a list's last request, nil if none came.
func (r *listReader) lastAnswer(l *listRequest) *history.Event {
	return r.answers[r.c.x.Event(l.lastEvent).ID]
}

// openListAt returns the list that is not done and whose last page came nearest to a time, the newest of several; -1 if there is
// none.
func (r *listReader) openListAt(t time.Duration) int {
	best, gap := -1, time.Duration(0)
	for n := range slices.Backward(r.lists) {
		l := &r.lists[n]
		if l.done {
			continue
		}
		// A list without a recorded answer is as far away as its request: nearer than one whose answer came long before (seed 788).
		away := (t - l.from).Abs()
		if a := r.lastAnswer(l); a != nil {
			away = (a.T - t).Abs()
		}
		if best < 0 || away < gap {
			best, gap = n, away
		}
	}
	return best
}

// listFailed reports whether the client saw a list fail: the server refused it or never answered, or its pages led in a circle. The
// transport handles the HTTP codes for credentials, sessions and addresses (300 to 499) below the list and repeats the request at
// once, so these are no failures.
func (c *checker) listFailed(server string, l listRequest) bool {
	if l.code >= 300 && l.code < 500 {
		return false
	}
	return l.failed || !l.done && c.wentInCircle(server, l)
}

// wentInCircle reports whether the pages of a list led back to its first one. A list of several pages repeats a cursor then, also after
// the fault. One of a single page ends well if that comes once more after the fault, before the client gives the list up.
func (c *checker) wentInCircle(server string, l listRequest) bool {
	if spec := c.serverSpec(server); c.real || spec == nil || spec.Pages > 1 || l.to-l.from >= listTimeout {
		return c.underFault(server, l.from, l.to, "cursor-loop")
	}
	return slices.ContainsFunc(c.faultWindows(server), func(w faultWindow) bool {
		return w.fault == "cursor-loop" && w.from <= l.to && l.to < w.to
	})
}

// checkRelistPause judges the pause before each list that follows on failed ones: 1 s, doubled by each further failure up to 64
// s. A failure that only the client saw makes its pause longer, never shorter.
func (c *checker) checkRelistPause(server string, lists []listRequest) {
	commands := c.ownerCommands(server)
	failures := 0
	for n := 1; n < len(lists); n++ {
		before, l := lists[n-1], lists[n]
		if n == 1 || !c.listFailed(server, before) { // the first list belongs to the connect and has no pause after it
			failures = 0
			continue
		}
		// A command may request a list without a pause.
		if _, found := c.anyCommandIn(commands, before.from, l.from); found {
			failures = 0
			continue
		}
		// These faults make the client see other failures than the server.
		if c.underFault(server, before.from, l.from, "empty-cursor", "sleep", "cut-stream") || c.calledForHeaders(server, before.from, l.from) {
			failures = 0
			continue
		}
		failures++
		pause := relistPause(failures)
		// A list without an answer is given up after its time, and may be answered when the next one has been asked for.
		ended := min(before.to, before.from+listTimeout)
		if l.from-ended < pause-c.timePrecision()-c.skew/5 {
			c.reportViolation(server, l.firstEvent, []int{before.firstEvent}, "The list failed %d times in a row, the last time at %s, and was asked for again at %s, "+
				"after %s: it is waited for %s before.", failures, timeText(ended), timeText(l.from), timeText(l.from-ended), timeText(pause))
		}
	}
}

// relistPause returns the pause after so many failed lists in a row: 1, 2, 4 ... 64 s.
func relistPause(failures int) time.Duration { return time.Second << min(max(failures-1, 0), 6) }

// checkRelisted judges for I14 that the client requests a failed list again while the connection stands. The old list stays in
// the catalog meanwhile.
func (c *checker) checkRelisted(server string, u connectedSpan) {
	conn := c.connOf(server, u)
	if conn == nil {
		return
	}
	lists, _, _ := c.listsOf(conn)
	end := min(u.to, c.closeTime())
	for n, l := range lists {
		if l.from < u.from || !c.listFailed(server, l) {
			continue
		}
		// The client gives an unanswered list up after listTimeout. Failures that only the client saw may have made its pause
		// the longest.
		due := max(l.to, l.from+listTimeout) + relistBackoff + c.slack
		if n+1 < len(lists) || due >= end || c.mayNotHear(server, l.from, due) || c.calledForHeaders(server, l.from, l.to) {
			continue
		}
		if slices.ContainsFunc(c.ownerCommands(server), func(a ownerCommand) bool { return a.begin > l.to && a.begin <= due }) {
			continue
		}
		c.judged++
		c.reportViolation(server, l.firstEvent, []int{u.event}, "The list of the tools that was asked for at %s failed, and was not asked for again until %s: what changed "+
			"is forgotten.", timeText(l.from), timeText(due))
	}
}

// mayNotHear reports whether a fault may have kept a request from the server between two times.
func (c *checker) mayNotHear(server string, from, to time.Duration) bool {
	return c.underFault(server, from, to, slowReadFaults...) || c.underFault(server, from, to, "empty-cursor")
}
