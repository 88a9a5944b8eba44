package invariant

import (
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

const (
	// serialTime bounds the search for an order, over all servers of a history.
	serialTime = 5 * time.Second
	// serialPart is how many operations are searched together, if there is a place at which to cut.
	serialPart = 400
)

// checkSerialOrder asks whether the calls of each tool can be put into one order, one after the other, that explains what every
// caller got: a linearizability check, with porcupine. It uses what callers and connections show and not what the servers
// say that they executed, so that it is a second opinion on the rest of I3.
//
// The object is a tool of a server: the connection that there is, 0 for none, and how often the tool ran. Operations are
//
//   - open: there was no connection, now there is this one; close: there is none any more. Both at one moment, the dial and the
//     release.
//   - a call with a result: its connection is there, the tool runs, and its count is the value of the result. At some moment
//     between the call and its end.
//   - a call whose outcome is not known, or any that was sent again (over a connection of HTTP that lives on when one stream breaks,
//     or over another one): it ran or did not, at some moment between the call and
//     the release of the connection that received it. At a server with tasks it may be one, which runs after that too, and a server over
//     HTTP is no part of the connection: it may run what it received whenever it likes.
//
// The search is bounded. What could not be decided says nothing.
func (c *checker) checkSerialOrder() {
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

// toolOperation is the input of an operation. at is the event that the operation is, for the evidence.
type toolOperation struct {
	kind  string // open, close, result, maybe, begin
	conn  int
	value int
	event int
}

// toolState is the state of the object.
type toolState struct{ conn, value int }

// toolModel is the object. A set of states is what may be: a call without a known outcome leaves two.
var toolModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{toolState{}} },
	Step: func(state, input, _ any) []any {
		s, in := state.(toolState), input.(toolOperation)
		switch in.kind {
		case "begin": // of a part: what the operation before has left
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
		case "maybe":
			if s.conn == in.conn {
				return []any{s, toolState{s.conn, s.value + 1}}
			}
			return []any{s}
		case "task":
			return []any{s, toolState{s.conn, s.value + 1}}
		}
		return nil
	},
	Equal: func(a, b any) bool { return a == b },
}).ToModel()

// toolOperations are the connections of a server and the calls of one of its tools, by their begin.
func (c *checker) toolOperations(server string, calls []*history.CallRecord, place []int64) []porcupine.Operation {
	var ops []porcupine.Operation
	add := func(in toolOperation, from, to int64) {
		ops = append(ops, porcupine.Operation{Input: in, Call: from, Return: max(to, from)})
	}
	far := int64(len(place)) * 2
	released := map[int]int64{}
	for _, conn := range c.x.Conns(server) {
		if conn.Open < 0 || conn.Opened < 0 {
			continue // nothing was ever sent there
		}
		add(toolOperation{"open", conn.Conn, 0, conn.Open}, place[conn.Open], place[conn.Open])
		released[conn.Conn] = far
		if conn.Released >= 0 {
			released[conn.Conn] = place[conn.Released]
			from := place[conn.Released]
			if c.real {
				// A server hears of the end of a socket after the client, who may have dialled again by then.
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
				continue // it did not run, by its outcome
			}
		}
		for n := len(call.Received) - 1; n >= 0; n-- {
			e := c.x.Event(call.Received[n])
			if e.Conn == known {
				known = 0 // this is what was answered; what was sent before over the same connection may have run as well
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

// splitOperations divides operations where one with a result stands alone: what it leaves is known, and nothing before it can matter
// later. A part is longer than size if there is no such place.
func splitOperations(ops []porcupine.Operation, size int) [][]porcupine.Operation {
	var out [][]porcupine.Operation
	var part []porcupine.Operation
	latest := int64(-1) // the last end of those before
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

// reportNoOrder tells of calls that no order explains, by the first of them to end that the longest order found does not hold.
func (c *checker) reportNoOrder(t execution, ops []porcupine.Operation) {
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
