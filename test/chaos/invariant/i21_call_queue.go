package invariant

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// I21: calls wait for each other where a spec bounds the calls in flight at a server (maxInFlight), and do not wait where it
// does not. The check needs exact times and connections without a fault, because a request may have been written that the
// server has not read.
//
//   - No call waits while there is room: a place that a call leaves by its end or by its caller's cancellation goes to the next
//     one, and a canceled waiting call holds none.
//   - The calls of one caller are sent in the order in which they were made, and callers take turns: while one of them waits,
//     each other caller has at most one turn.
//   - A call is refused because of the bound only if as many calls are in flight and wait as the spec allows.
var callQueueCheck = newCheck("I21", "calls take turns",
	"No call waits while there is room for it; the calls of one caller are sent in their order, callers take turns, and only who finds "+
		"every place taken is refused.",
	"No call began at a connected server, or the times of this run are not exact.",
	func(c *checker) {
		if c.real {
			return
		}
		keys := c.turnKeys()
		for _, server := range c.x.Servers() {
			if c.spec[server] == nil || c.hasUnseenReads(server) { // reads take turns with calls, and are not in the record
				continue
			}
			q := c.queueOf(server, keys)
			if len(q.calls) == 0 {
				continue
			}
			ups := connectedSpans(c.phaseSpans(server))
			for _, u := range ups {
				c.checkRoom(q, u)
				c.checkTurnOrder(q, u)
			}
			c.checkInFlight(q)
			c.checkThrottled(q, ups)
		}
	})

// A callQueue holds the calls to one server, in the order of the index.
type callQueue struct {
	server string
	calls  []queuedCall
}

// callLimits returns how many calls may be in flight at a server (0: no bound) and how many may wait, in a stretch of time.
// known is false while the owner is changing one of them.
func (c *checker) callLimits(server string, from, to time.Duration) (most, waiting int, known bool) {
	all := c.specVersionsIn(server, from, to)
	most, waiting = all[0].MaxInFlight, all[0].MaxQueued
	for _, d := range all[1:] {
		if d.MaxInFlight != most || d.MaxQueued != waiting {
			return 0, 0, false
		}
	}
	return most, max(cmp.Or(waiting, messages.DefaultMaxQueued), 0), true
}

// A queuedCall is one call to a server. It waited from begin, when the gateway passed it on if an agent made it, to sent; sent equals end for a
// call that the server never received.
type queuedCall struct {
	call             *history.CallRecord
	caller           string
	begin, sent, end time.Duration
	received         bool
	// number is the id of its request, 0 if that is no number. A session counts its requests up, so ids order the calls of one
	// instant.
	number int64
	// receipt is the event of the server's receipt. resent is set for a later receipt of a call that was sent before.
	receipt int
	resent  bool
}

// queueOf collects the calls to a server that have a begin. A call without an end ends with the history. keys has by whom they take turns,
// where that is not their principal.
func (c *checker) queueOf(server string, keys map[string]string) *callQueue {
	q := &callQueue{server: server}
	for _, call := range c.x.Calls() {
		if call.Server != server || call.Begin < 0 {
			continue
		}
		if call.Tasked >= 0 && len(call.Received) == 0 && len(call.Ends) > 0 && c.reportedEnd(call) == nil {
			continue // how long it waited is not recorded: its agent heard of its end later, or could ask for it no more
		}
		begin := c.x.Event(call.Begin)
		w := queuedCall{call: call, caller: cmp.Or(keys[call.ID], begin.By), begin: begin.T, end: c.endTime()}
		if len(call.Ends) > 0 {
			w.end = c.endOfWork(call)
		}
		w.begin = min(c.passedOnAt(call), w.end)
		if w.sent = w.end; len(call.Received) > 0 {
			received := c.x.Event(call.Received[0])
			w.sent, w.received, w.receipt = received.T, true, call.Received[0]
			w.number, _ = strconv.ParseInt(received.ID, 10, 64) // 0 for an id that is no number: such requests have no order
		}
		w.begin = min(w.begin, w.sent)
		q.calls = append(q.calls, w)
	}
	return q
}

// turnKeys returns by whom the calls of agents on lines take turns: each session there has turns of its own, as the program that it is. Who
// comes back after it was killed is another one, beside whose calls those of before go on. All other calls are their principal's.
func (c *checker) turnKeys() map[string]string {
	keys := map[string]string{}
	for _, a := range c.plan.Agents {
		if a.Over != scenario.OverLines {
			continue
		}
		for _, i := range c.x.Order() {
			if e := c.x.Event(i); e.Kind == history.Asked && e.Agent == a.Name && e.Method == "tools/call" && keys[e.About] == "" {
				keys[e.About] = "session " + strconv.FormatUint(e.Epoch, 10) + " of " + a.Name
			}
		}
	}
	return keys
}

// isUndisturbed reports whether a stretch of time lies within a connected span that met no fault until the end of the stretch.
func (c *checker) isUndisturbed(server string, u connectedSpan, from, to time.Duration) bool {
	return from >= u.from+c.skew && to <= u.to-c.skew && !c.underFault(server, u.from, to)
}

// checkRoom judges that no call waits while fewer calls are in flight than the spec allows. It sweeps over the begins, sends
// and ends of all calls and compares the counts between two of them.
func (c *checker) checkRoom(q *callQueue, u connectedSpan) {
	type step struct {
		t                 time.Duration
		waiting, inFlight int
	}
	var steps []step
	for _, w := range q.calls {
		if w.begin > u.to || w.end < u.from {
			continue
		}
		c.judged++
		steps = append(steps, step{w.begin, 1, 0}, step{w.sent, -1, 0})
		if w.received {
			steps = append(steps, step{w.sent, 0, 1}, step{w.end, 0, -1})
		}
	}
	for _, d := range c.specVersions(q.server) { // a new spec version may change the bound, so a step begins there as well
		steps = append(steps, step{d.from, 0, 0}, step{d.to, 0, 0})
	}
	slices.SortFunc(steps, func(a, b step) int { return cmp.Compare(a.t, b.t) })
	waiting, inFlight := 0, 0
	for i, s := range steps {
		waiting, inFlight = waiting+s.waiting, inFlight+s.inFlight
		if i+1 == len(steps) || waiting == 0 {
			continue
		}
		from, to := max(s.t, u.from+c.skew), min(steps[i+1].t, u.to-c.skew)
		// Several steps may fall into one instant; only a wait that outlasts the instant counts.
		if to <= from+c.instantBound() || !c.isUndisturbed(q.server, u, from, to) {
			continue
		}
		most, _, known := c.callLimits(q.server, from+1, to-1)
		if !known || most > 0 && inFlight >= most {
			continue
		}
		// The violation names the first call that waits here.
		first := slices.IndexFunc(q.calls, func(w queuedCall) bool { return w.begin <= from && w.sent > from+c.instantBound() })
		if first < 0 {
			continue
		}
		w := q.calls[first]
		if most == 0 {
			c.reportViolationAt(from+c.instantBound(), q.server, w.call.Begin, nil, "Call %s of tool %s began at %s while the server was connected, and was not "+
				"sent by %s: nothing kept it.", w.call.ID, c.toolOf(w.call), timeText(c.x.Event(w.call.Begin).T), timeText(from+c.instantBound()))
			return
		}
		c.reportViolationAt(from+c.instantBound(), q.server, w.call.Begin, nil, "Call %s of tool %s began at %s and waited for its turn at %s, while %d calls "+
			"were in flight, and maxInFlight allows %d: it had to be sent, or the place of a call that has ended was not given back.", w.call.ID, c.toolOf(w.call), timeText(c.x.Event(w.call.Begin).T), timeText(from+c.instantBound()), inFlight, most)
		return
	}
}

// expiresAt reports whether a waiting call of a caller, or of any if caller is empty, expired at an instant. The session may have offered
// it the turn of that instant first, so the turns of that instant prove nothing.
func (q *callQueue) expiresAt(t time.Duration, caller string) bool {
	return slices.ContainsFunc(q.calls, func(w queuedCall) bool { return !w.received && w.end == t && (caller == "" || w.caller == caller) })
}

// checkInFlight judges that no call is sent while the allowed number is in flight. Calls that were sent under another bound go
// on.
func (c *checker) checkInFlight(q *callQueue) {
	for _, w := range q.calls {
		if !w.received {
			continue
		}
		most, _, known := c.callLimits(q.server, w.sent-c.instantBound(), w.sent)
		if !known || most == 0 {
			continue
		}
		inFlight, first := 0, w.sent
		for _, o := range q.calls {
			// A call of the same instant may have come before or after this one, and a call that was sent twice may have left
			// its place.
			if o.call == w.call || !o.received || o.sent >= w.sent-c.instantBound() || o.end <= w.sent+c.instantBound() || len(o.call.Received) != 1 {
				continue
			}
			if then, _, known := c.callLimits(q.server, o.sent-c.instantBound(), o.sent); known && then > 0 { // a call that was sent without a bound takes no place
				inFlight++
				first = min(first, o.sent)
			}
		}
		c.judged++
		if inFlight >= most && !c.underFault(q.server, first, w.sent) { // a connection that dies gives the places of its calls back
			c.reportViolation(q.server, w.call.Received[0], []int{w.call.Begin}, "Call %s of tool %s was sent at %s, while %d others were in flight: maxInFlight allows %d.",
				w.call.ID, c.toolOf(w.call), timeText(w.sent), inFlight, most)
			return
		}
	}
}

// checkTurnOrder judges the turns of waiting calls within one connection: while a call waits, each other caller may send once,
// and no later call of its own caller may be sent before it.
func (c *checker) checkTurnOrder(q *callQueue, u connectedSpan) {
	var sent []queuedCall // in the order in which they were sent
	for _, w := range q.calls {
		for _, i := range w.call.Received {
			w.resent = i != w.receipt
			w.sent, w.receipt = c.x.Event(i).T, i
			w.number, _ = strconv.ParseInt(c.x.Event(i).ID, 10, 64)
			if w.sent >= u.from+c.skew && w.sent <= u.to-c.skew {
				sent = append(sent, w)
			}
		}
	}
	slices.SortStableFunc(sent, func(a, b queuedCall) int { return cmp.Or(cmp.Compare(a.sent, b.sent), cmp.Compare(a.number, b.number)) })
	for _, w := range q.calls {
		// A call that began before this connection also waited for the connection, in no order of turns.
		if w.begin < u.from+c.skew || w.sent > u.to-c.skew || w.sent <= w.begin+c.instantBound() || !c.isUndisturbed(q.server, u, w.begin, w.sent) {
			continue
		}
		if most, _, known := c.callLimits(q.server, w.begin, w.sent); !known || most == 0 {
			continue
		}
		c.judged++
		// turns counts the sends of each other caller since this call's caller had its last turn.
		turns := map[string]int{}
		for _, other := range sent {
			if other.sent <= w.begin || other.sent >= w.sent || other.call == w.call {
				continue
			}
			// The turn of this caller may have gone to a call of his that expired in the instant.
			if q.expiresAt(other.sent, w.caller) {
				clear(turns)
				continue
			}
			if other.caller == w.caller {
				clear(turns)
				if other.begin > w.begin {
					c.reportViolation(q.server, other.receipt, []int{w.call.Begin, other.call.Begin}, "Call %s of tool %s was made at %s and sent at "+
						"%s, before call %s of the same caller, which had waited since %s.", other.call.ID, c.toolOf(other.call), timeText(other.begin),
						timeText(other.sent), w.call.ID, timeText(w.begin))
					return
				}
				continue
			}
			// A call that is sent again may have had a turn for it, or go on in the place that it had.
			if other.resent || q.expiresAt(other.sent, "") {
				continue
			}
			// Calls that get their turns in one instant are sent in any order: this one's turn may have been the later one.
			if slices.ContainsFunc(sent, func(own queuedCall) bool { return own.caller == w.caller && own.sent == other.sent }) {
				continue
			}
			if turns[other.caller]++; turns[other.caller] == 2 {
				c.reportViolation(q.server, other.receipt, []int{w.call.Begin, other.call.Begin}, "Call %s of tool %s was sent at %s, the second of "+
					"its caller %q while call %s of the caller %q waited since %s: callers take turns, and it was to be sent before.", other.call.ID,
					c.toolOf(other.call), timeText(other.sent), other.caller, w.call.ID, w.caller, timeText(w.begin))
				return
			}
		}
	}
}

// checkThrottled judges that calls were refused as too many only while every place was taken.
func (c *checker) checkThrottled(q *callQueue, ups []connectedSpan) {
	for _, w := range q.calls {
		if len(w.call.Ends) == 0 || w.received {
			continue
		}
		end := c.x.Event(w.call.Ends[0])
		if end.Class != messages.ClassThrottled || end.Outcome != messages.OutcomeNotSent || !slices.ContainsFunc(ups, func(u connectedSpan) bool { return c.isUndisturbed(q.server, u, w.begin, w.end) }) {
			continue // the server itself may have answered that it is too busy
		}
		most, waiting, known := c.callLimits(q.server, w.begin, w.end)
		if !known || most == 0 {
			continue
		}
		c.judged++
		others := 0
		for _, o := range q.calls {
			if o.call != w.call && o.begin <= w.end && o.end >= w.end {
				others++
			}
		}
		if others < most+waiting {
			c.reportViolation(q.server, w.call.Ends[0], []int{w.call.Begin}, "Call %s of tool %s was refused at %s because as many are in flight and wait as "+
				"may, and there were %d others: %d may be in flight and %d wait.", w.call.ID, c.toolOf(w.call), timeText(end.T), others, most, waiting)
		}
	}
}
