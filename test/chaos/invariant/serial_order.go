package invariant

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// checkSerialOrder looks for an order of the runs of each tool, one after the other, that explains what every caller got: a
// linearizability check. It uses what callers and connections show and not what the servers report as executed, so that it is a
// second opinion on the rest of I3.
//
// The object is a tool of a server: how often it ran.
//
//   - A call with a result: the tool ran at some moment between the call and its end, while the connection of the result was open,
//     and its count was then the value of the result.
//   - A call whose outcome is not known, or one that was sent again (over an HTTP connection that outlives one broken stream,
//     or over another connection): it ran or did not, at some moment between the call and the release of the connection that
//     received it. At a server with tasks it may be a task, which may run after that too, and a server over HTTP does not end
//     with the connection: it may run what it received at any later time.
//
// findRunMisfit decides every case, in a time that grows with n log n, so that a verdict does not depend on the speed of a machine.
func (c *checker) checkSerialOrder() {
	// place is the position of each event in the order, which serves as the clock of the runs.
	place := make([]int64, len(c.h.Events))
	for n, i := range c.x.Order() {
		place[i] = int64(n)
	}
	byTool := map[execution][]*history.CallRecord{}
	var tools []execution
	for _, call := range c.x.Calls() {
		if call.Begin < 0 || len(call.Received) == 0 {
			continue
		}
		t := execution{server: call.Server, tool: c.toolOf(call)}
		if byTool[t] == nil {
			tools = append(tools, t)
		}
		byTool[t] = append(byTool[t], call)
	}
	for _, t := range tools {
		runs := c.toolRuns(t.server, byTool[t], place)
		if misfit := findRunMisfit(runs); misfit.why != runsFit {
			c.reportMisfit(t, runs, misfit)
		}
	}
}

// reportMisfit reports calls of a tool that no order explains.
func (c *checker) reportMisfit(t execution, runs []toolRun, m runMisfit) {
	e, other := c.x.Event(runs[m.run].event), c.x.Event(runs[m.other].event)
	var why string
	related := []int{runs[m.other].event}
	switch m.why {
	case runImpossible:
		why, related = fmt.Sprintf("connection %d was not open during the call.", e.Conn), nil
	case valueTwice:
		why = fmt.Sprintf("call %s, which ended at %s, has the same value.", other.Call, timeText(other.T))
	case valueMissing:
		why, related = fmt.Sprintf("no call that reached the server can be the one with value %d.", m.value), nil
	default:
		why = fmt.Sprintf("call %s, which can only have run later, has value %d.", other.Call, runs[m.other].value)
	}
	c.reportViolation(t.server, runs[m.run].event, related, "No order of the calls of tool %s, one after the other, explains what the callers got: call %s "+
		"ended at %s with value %d on connection %d, and %s", t.tool, e.Call, timeText(e.T), runs[m.run].value, e.Conn, why)
}

// openPlaces returns between which places each connection of a server was open. One that was never open is missing.
func (c *checker) openPlaces(server string, place []int64) map[int][2]int64 {
	opens := map[int][2]int64{}
	conns := slices.DeleteFunc(slices.Clone(c.x.Conns(server)), func(r *history.ConnRecord) bool { return r.Open < 0 || r.Opened < 0 })
	slices.SortFunc(conns, func(a, b *history.ConnRecord) int { return cmp.Compare(place[a.Open], place[b.Open]) })
	for i, conn := range conns {
		to := farPlace(place)
		if conn.Released >= 0 {
			to = place[conn.Released]
		}
		// A server of a real run sees the end of a socket after the client, which may have dialled again by then.
		if i+1 < len(conns) {
			to = min(to, place[conns[i+1].Open]-1)
		}
		opens[conn.Conn] = [2]int64{place[conn.Open], to}
	}
	return opens
}

// farPlace lies after every event: the last place of a run that may still come.
func farPlace(place []int64) int64 { return int64(len(place)) }

// toolRuns returns what the calls of one tool of a server say about its runs.
func (c *checker) toolRuns(server string, calls []*history.CallRecord, place []int64) []toolRun {
	var runs []toolRun
	opens := c.openPlaces(server, place)
	mayRunLater := c.serverSpec(server).Tasks != "" || c.serverSpec(server).Kind == messages.HTTP
	for _, call := range calls {
		from, known := place[call.Begin], 0
		if len(call.Ends) > 0 {
			if end := c.x.Event(call.Ends[0]); end.Outcome == messages.OutcomeResult && end.Value > 0 && end.Conn > 0 {
				known = end.Conn
				open, was := opens[end.Conn]
				r := toolRun{from: max(from, open[0]), to: min(place[call.Ends[0]], open[1]), value: end.Value, event: call.Ends[0]}
				if !was {
					r.to = r.from - 1
				}
				runs = append(runs, r)
			} else if end.Outcome == messages.OutcomeRejected || end.Outcome == messages.OutcomeNotSent {
				continue // by its outcome the tool did not run
			}
		}
		for n := len(call.Received) - 1; n >= 0; n-- {
			e := c.x.Event(call.Received[n])
			open, was := opens[e.Conn]
			switch {
			case e.Conn == known:
				known = 0 // this receipt was answered; an earlier one over the same connection may have run as well
			case !was:
			case mayRunLater:
				runs = append(runs, toolRun{from: from, to: farPlace(place), event: call.Received[n]})
			default:
				runs = append(runs, toolRun{from: max(from, open[0]), to: open[1], event: call.Received[n]})
			}
		}
	}
	return runs
}
