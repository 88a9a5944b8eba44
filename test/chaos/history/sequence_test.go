package history_test

import (
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// A watcher that has room for few events, reads none while it watches and is closed then is told of a gap before the first event that is left.
func TestTheFirstEventFollowsTheBeginningOfTheWatch(t *testing.T) {
	for _, c := range []struct {
		name    string
		events  []messages.Event
		problem string
	}{
		{"the next event", []messages.Event{{Seq: 8, Server: "a"}}, ""},
		{"a gap that reaches to the first one", []messages.Event{{Kind: messages.EventGap, Missed: 3, Seq: 10}, {Seq: 11, Server: "a"}}, ""},
		{"no word of the lost ones", []messages.Event{{Seq: 11, Server: "a"}}, "of no gap"},
		{"a gap of too few", []messages.Event{{Kind: messages.EventGap, Missed: 1, Seq: 10}}, "1 events are missing after the event 7"},
		{"the end of a call that ran before", []messages.Event{{Seq: 8, Kind: messages.EventCallEnded, CallID: 1, Server: "a"}}, ""},
	} {
		s, problem := history.SequenceAfter(7), ""
		for _, e := range c.events {
			problem += s.Next(e)
		}
		if (problem == "") != (c.problem == "") || !strings.Contains(problem, c.problem) {
			t.Errorf("%s: %q, want %q", c.name, problem, c.problem)
		}
	}
}
