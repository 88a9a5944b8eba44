package invariant

import (
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// checkAskedTwice is I3 for a call about which its server has asked, and got an answer: the call is not sent a second time, even where its tool may
// run twice, because the person who has answered, or the model, would be asked again. The roots are no question to either.
func (c *checker) checkAskedTwice(call *history.CallRecord) {
	if len(call.Received) < 2 || c.spec[call.Server] == nil {
		return
	}
	last := call.Received[len(call.Received)-1]
	for _, i := range c.x.ServerEvents(call.Server) {
		e := c.x.Event(i)
		if e.Kind != history.Inquired || e.Call != call.ID || e.Code != 0 || e.Method == "roots/list" || e.Conn == c.x.Event(last).Conn || i > last {
			continue
		}
		c.reportViolation(call.Server, last, []int{call.Begin, i}, "The server asked about call %s of tool %s (%s), and had the answer at %s. The call was sent again at %s: "+
			"the same is asked twice.", call.ID, c.toolOf(call), e.Method, timeText(e.T), timeText(c.x.Event(last).T))
		return
	}
}
