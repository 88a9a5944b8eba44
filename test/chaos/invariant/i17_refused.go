package invariant

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// checkDrainedBeside is I17 for the calls that a server had accepted when it refused the credentials of something else: the
// connection goes, and they may go on for 5 s, as at a reconnect. Only faults that concern credentials, or keep calls waiting,
// leave it to the manager alone how such a call ends.
func (c *checker) checkDrainedBeside(server string, commands []ownerCommand) {
	stays := c.phaseSpans(server)
	for i := 1; i < len(stays); i++ {
		s := &stays[i]
		if c.real || s.Phase != messages.NeedsAuth || stays[i-1].endEvent != s.event || nodeOf(&stays[i-1]) != connectedNode {
			continue
		}
		until := s.T + drainTime
		if _, found := c.commandIn(commands, s.T-c.slack, until); found || until >= c.closeTime() {
			continue
		}
		for _, call := range c.callsOf(server) {
			received, end := c.x.Event(call.Received[len(call.Received)-1]), c.x.Event(call.Ends[0])
			if received.T < stays[i-1].T || received.T >= s.T-c.skew || end.T < s.T || end.T >= until-c.instantBound() || len(call.Received) > 1 {
				continue
			}
			if c.wasGivenUp(call, end.T) || len(c.refusalEvents(call, end.T)) > 0 || c.pollsRefused(call, received.Conn, end, s.T) || c.serverEnded(server, received.Conn, s.T) || c.underOtherFault(server, received.T, end.T, credentialFaults) {
				continue
			}
			c.judged++
			if end.Outcome == messages.OutcomeUnknown && end.Class != messages.ClassTimeout || end.Outcome == messages.OutcomeNotSent {
				c.reportViolation(server, call.Ends[0], []int{call.Begin, call.Received[0], s.event}, "Call %s of tool %s was under way on connection %d since %s when the "+
					"server refused other credentials at %s, and was cut at %s (%s): it may go on for %s.", call.ID, end.Tool, received.Conn, timeText(received.T),
					timeText(s.T), timeText(end.T), end.Outcome, timeText(drainTime))
				return
			}
		}
	}
}

// pollsRefused reports whether a call that had become a task ended because nothing could ask after it: its server refused that, or had refused these
// credentials before (at the time before), so that they are not sent again. The record does not say which task a request asks after, so there must be a
// refusal of that instant for each such call that ended then.
func (c *checker) pollsRefused(call *history.CallRecord, conn int, end *history.Event, before time.Duration) bool {
	created := map[string]bool{} // the ids of the requests that were answered by a task, or by the result
	refused := 0
	for _, i := range c.x.ServerEvents(call.Server) {
		e := c.x.Event(i)
		switch {
		case e.Kind != history.Answered || e.Conn != conn:
		case e.Method == "tools/call" && e.Code == 0 && e.T < end.T:
			created[e.ID] = true
		case strings.HasPrefix(e.Method, "tasks/") && e.Method != "tasks/cancel" && e.Code == http.StatusUnauthorized && e.T == end.T:
			refused++
		}
	}
	isEndedTask := func(o *history.CallRecord) bool {
		e, received := c.x.Event(o.Ends[0]), c.x.Event(o.Received[len(o.Received)-1])
		return e.T == end.T && e.Class == messages.ClassUnauthorized && received.Conn == conn && created[received.ID]
	}
	tasks := 0
	for _, o := range c.callsOf(call.Server) {
		if isEndedTask(o) {
			tasks++
		}
	}
	return isEndedTask(call) && (refused >= tasks || end.T > before+c.instantBound())
}

// credentialFaults are the faults under which a server goes on to serve what it has accepted.
var credentialFaults = []string{"unauthorized", "rotate-token", "hang-call"}

// underOtherFault reports whether a fault that is not one of those had power over a server at some time between from and to.
func (c *checker) underOtherFault(server string, from, to time.Duration, these []string) bool {
	return slices.ContainsFunc(c.faultWindows(server), func(w faultWindow) bool {
		return w.from <= to+c.skew && w.to+c.skew >= from && !slices.Contains(these, w.fault)
	})
}
