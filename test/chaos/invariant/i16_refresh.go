package invariant

import (
	"net/http"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// checkRefreshRefused is I16 for a refresh whose list the server refuses: the refusal is the answer, and the owner does not wait until a later
// list comes through. It is judged only in virtual time, of a connection that stands, and without a fault that delays what a server says.
func (c *checker) checkRefreshRefused(server string, stays []phaseSpan, a ownerCommand) {
	// Credentials that are refused once are renewed, and the list is asked for again with the new ones; refused twice, the server is connected no more.
	// A tool that a call found changed is listed again by the session alone, of which no owner hears.
	if c.real || a.ofAll || a.action != "refresh" || c.serverSpec(server).Headers {
		return
	}
	refusal := -1
	for _, i := range c.x.ServerEvents(server) {
		if e := c.x.Event(i); e.Kind == history.Answered && e.Method == "tools/list" && e.Code != 0 && e.Code != http.StatusUnauthorized && e.T > a.begin+c.skew {
			refusal = i
			break
		}
	}
	if refusal < 0 || a.answered && a.end <= c.x.Event(refusal).T {
		return
	}
	t := c.x.Event(refusal).T
	due := t + c.skew + c.slack
	if due >= c.closeTime() || !c.connectedThroughout(stays, a.begin-c.skew, due) || c.isHindered(server, a.begin, due) {
		return
	}
	c.judged++
	if !a.answered || a.end > due {
		c.reportViolationAt(due, server, a.event, []int{refusal}, "The owner asked for refresh at %s, and that %s. The server refused its list at %s, and that was the answer: it was "+
			"due by %s.", timeText(a.begin), answerText(a), timeText(t), timeText(due))
	}
}
