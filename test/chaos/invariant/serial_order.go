package invariant

import (
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

const (
	// serialTime bounds the search for an order, over all servers of a history. It is real time, also in a run with virtual
	// time.
	serialTime = 5 * time.Second
	// serialPart is the number of operations after which the search may cut, at the next place where the state is known.
	serialPart = 400
)

// checkSerialOrder searches for an order of the calls of each tool, one after the other, that explains what every caller got: a
// linearizability check, with porcupine. It uses what callers and connections show and not what the servers report as executed,
// so that it is a second opinion on the rest of I3.
//
// The object is a tool of a server: the open connection, 0 for none, and how often the tool ran. Operations are
//
//   - open: there was no connection, now there is this one; close: there is none any more. Both happen at one moment, the dial
//     and the release.
//   - a call with a result: its connection is open, the tool runs, and its count is the value of the result. It happens at some
//     moment between the call and its end.
//   - a call whose outcome is not known, or one that was sent again (over an HTTP connection that outlives one broken stream,
//     or over another connection): it ran or did not, at some moment between the call and the release of the connection that
//     received it. At a server with tasks it may be a task, which may run after that too, and a server over HTTP does not end
//     with the connection: it may run what it received at any later time.
//
// The search is bounded. A case that it could not decide is reported as undecided, not as a violation.
func (c *checker) checkSerialOrder() {
	// place is the position of each event in the order, which serves as the clock of the operations.
	place := make([]int64, len(c.h.Events))
	for n, i := range c.x.Order() {
		place[i] = int64(n)
	}
	deadline := time.Now().Add(serialTime)
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
		ops := c.toolOperations(t.server, byTool[t], place)
		for _, part := range splitOperations(ops, serialPart) {
			remaining := time.Until(deadline)
			if remaining <= 0 {
				c.reportUndecided("The calls of %s were too many to be put into one order within %s.", t.server, serialTime)
				return
			}
			switch porcupine.CheckOperationsTimeout(toolModel, part, remaining) {
			case porcupine.Illegal:
				c.reportNoOrder(t, part)
			case porcupine.Unknown:
				c.reportUndecided("The calls of tool %s of %s could not be put into one order within %s.", t.tool, t.server, serialTime)
			case porcupine.Ok:
			}
		}
	}
}

// A toolOperation is the input of an operation. event is the event that the violation shows as evidence.
type toolOperation struct {
	kind  string // open, close, result, maybe, task, begin
	conn  int
	value int
	event int
}

// A toolState is the state of the object: the open connection and how often the tool ran.
type toolState struct{ conn, value int }

// toolModel is the object for porcupine. It is nondeterministic: a call without a known outcome leaves two possible states.
var toolModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{toolState{}} },
	Step: func(state, input, _ any) []any {
		s, in := state.(toolState), input.(toolOperation)
		switch in.kind {
		case "begin": // the first operation of a part: the state that the part before has left
			return []any{toolState{in.conn, in.value}}
		case "open":
			if s.conn == 0 {
				return []any{toolState{in.conn, s.value}}
			}
		case "close":
			if s.conn == in.conn {
				return []any{toolState{0, s.value}}
			}
		case "result":
			if s.conn == in.conn && s.value+1 == in.value {
				return []any{toolState{in.conn, in.value}}
			}
		// The call ran only if its connection was the open one, and perhaps not even then.
		case "maybe":
			if s.conn == in.conn {
				return []any{s, toolState{s.conn, s.value + 1}}
			}
			return []any{s}
		// A task may run over no connection at all.
		case "task":
			return []any{s, toolState{s.conn, s.value + 1}}
		}
		return nil
	},
	Equal: func(a, b any) bool { return a == b },
}).ToModel()

// toolOperations returns the connections of a server and the calls of one of its tools as operations, sorted by their begin.
func (c *checker) toolOperations(server string, calls []*history.CallRecord, place []int64) []porcupine.Operation {
	var ops []porcupine.Operation
	add := func(in toolOperation, from, to int64) {
		ops = append(ops, porcupine.Operation{Input: in, Call: from, Return: max(to, from)})
	}
	// far lies after every event: the return of an operation that may still run.
	far := int64(len(place)) * 2
	released := map[int]int64{}
	for _, conn := range c.x.Conns(server) {
		if conn.Open < 0 || conn.Opened < 0 {
			continue // no call was ever sent there
		}
		add(toolOperation{"open", conn.Conn, 0, conn.Open}, place[conn.Open], place[conn.Open])
		released[conn.Conn] = far
		if conn.Released >= 0 {
			released[conn.Conn] = place[conn.Released]
			from := place[conn.Released]
			if c.real {
				// A server sees the end of a socket after the client, which may have dialled again by then.
				from = place[conn.Opened]
			}
			add(toolOperation{"close", conn.Conn, 0, conn.Released}, from, place[conn.Released])
		}
	}
	for _, call := range calls {
		from, known := place[call.Begin], 0
		if len(call.Ends) > 0 {
			if end := c.x.Event(call.Ends[0]); end.Outcome == messages.OutcomeResult && end.Value > 0 && end.Conn > 0 {
				known = end.Conn
				add(toolOperation{"result", end.Conn, end.Value, call.Ends[0]}, from, place[call.Ends[0]])
			} else if end.Outcome == messages.OutcomeRejected || end.Outcome == messages.OutcomeNotSent {
				continue // by its outcome the tool did not run
			}
		}
		for n := len(call.Received) - 1; n >= 0; n-- {
			e := c.x.Event(call.Received[n])
			if e.Conn == known {
				known = 0 // this receipt was answered; an earlier one over the same connection may have run as well
			} else if released[e.Conn] > 0 && (c.serverSpec(server).Tasks != "" || c.serverSpec(server).Kind == messages.HTTP) {
				add(toolOperation{"task", e.Conn, 0, call.Received[n]}, from, far)
			} else if released[e.Conn] > 0 {
				add(toolOperation{"maybe", e.Conn, 0, call.Received[n]}, from, released[e.Conn])
			}
		}
	}
	slices.SortStableFunc(ops, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	return ops
}

// splitOperations divides operations after one with a result that overlaps no other: the state there is known, and no earlier
// operation can matter later. A part is longer than size if there is no such place.
func splitOperations(ops []porcupine.Operation, size int) [][]porcupine.Operation {
	var out [][]porcupine.Operation
	var part []porcupine.Operation
	latest := int64(-1) // the latest return of the operations so far
	for i, op := range ops {
		in := op.Input.(toolOperation)
		alone := op.Call > latest && (i+1 == len(ops) || ops[i+1].Call > op.Return)
		latest = max(latest, op.Return)
		part = append(part, op)
		if alone && in.kind == "result" && len(part) >= size {
			out = append(out, part)
			part = []porcupine.Operation{
				{Input: toolOperation{"begin", in.conn, in.value, in.event}, Call: op.Return, Return: op.Return},
			}
		}
	}
	return append(out, part)
}

// reportNoOrder reports calls that no order explains. Of the operations that the longest order found leaves out it names the
// one that ends first.
func (c *checker) reportNoOrder(t execution, ops []porcupine.Operation) {
	// The verbose check repeats the search for one more second and keeps the orders it tried.
	_, info := porcupine.CheckOperationsVerbose(toolModel, ops, time.Second)
	var longest []porcupine.Operation
	for _, partition := range info.PartialLinearizationsOperations() {
		for _, found := range partition {
			if len(found) > len(longest) {
				longest = found
			}
		}
	}
	placed := map[toolOperation]bool{}
	for _, op := range longest {
		placed[op.Input.(toolOperation)] = true
	}
	misfit := ops[len(ops)-1]
	for _, op := range ops {
		if !placed[op.Input.(toolOperation)] && (placed[misfit.Input.(toolOperation)] || op.Return < misfit.Return) {
			misfit = op
		}
	}
	in := misfit.Input.(toolOperation)
	e := c.x.Event(in.event)
	switch in.kind {
	case "open", "close":
		c.reportViolation(t.server, in.event, nil, "No order of the calls of tool %s and of the connections explains what the callers got: the %s of "+
			"connection %d at %s does not fit.", t.tool, in.kind, in.conn, timeText(e.T))
	default:
		c.reportViolation(t.server, in.event, nil, "No order of the calls of tool %s, one after the other, explains what the callers got: call %s, "+
			"which ended at %s with value %d on connection %d, does not fit.", t.tool, e.Call, timeText(e.T), in.value, in.conn)
	}
}
