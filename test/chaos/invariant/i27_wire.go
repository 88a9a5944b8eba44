package invariant

import (
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// I27: a call of an agent reaches the server and the tool that the agent named, and what the answer says of its outcome is what the
// server saw.
//
//   - It is executed by no other server and as no other tool, and sent twice only where I3 allows it.
//   - The outcome in the answer, by its _meta, agrees with the server (I3), and so does the text for the model: who reads that nothing was
//     sent may call again.
var wireCheck = newCheck("I27", "outcomes on the wire",
	"Nothing that may have run is sent twice through a gateway, and the outcome that stands in an answer agrees with what the server saw.",
	"No agent called a tool.",
	func(c *checker) {
		for _, call := range c.x.Calls() {
			if call.Begin < 0 || c.x.Event(call.Begin).Agent == "" {
				continue
			}
			c.judged++
			begin := c.x.Event(call.Begin)
			for _, i := range append(call.Received, call.Executed...) {
				if e := c.x.Event(i); e.Server != begin.Server || e.Kind == history.Executed && e.Tool != begin.Tool {
					c.reportViolation(begin.Server, i, []int{call.Begin}, "%s called the tool %s of %s (call %s), and the call came to %s %s at %s.", begin.Agent,
						begin.Tool, begin.Server, call.ID, e.Server, e.Tool, timeText(e.T))
				}
			}
			if c.checkExecutions(call) {
				c.checkSends(call)
			}
			c.checkOutcome(call)
			c.checkRefusedCall(call)
			c.checkText(call)
		}
	})

// checkText compares the text for the model with the outcome.
func (c *checker) checkText(call *history.CallRecord) {
	if len(call.Ends) == 0 {
		return
	}
	end := c.x.Event(call.Ends[0])
	safe, unsafe := strings.Contains(end.Text, "Nothing was sent"), strings.Contains(end.Text, "may have run: look")
	var misleads bool
	switch end.Outcome {
	case messages.OutcomeNotSent, messages.OutcomeRejected:
		misleads = unsafe
	case messages.OutcomeUnknown:
		misleads = safe || end.Text != "" && !unsafe
	default:
		misleads = safe || unsafe
	}
	if misleads {
		c.reportViolation(call.Server, call.Ends[0], []int{call.Begin}, "Call %s of tool %s ended with %s at %s, and the text for the model says: %s", call.ID,
			end.Tool, end.Outcome, timeText(end.T), end.Text)
	}
}
