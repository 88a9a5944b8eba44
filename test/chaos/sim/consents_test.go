package sim

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/load"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// TestConsentsOfPersons has questions and results of calls, and the reports about them.
func TestConsentsOfPersons(t *testing.T) {
	type step struct {
		ask          bool // or else a result
		caller, tool string
		call         string
		trusted      bool
	}
	asked := func(caller, tool, call string) step { return step{ask: true, caller: caller, tool: tool, call: call} }
	result := func(caller, tool, call string) step { return step{caller: caller, tool: tool, call: call} }
	for name, c := range map[string]struct {
		steps []step
		want  []string
	}{
		"each call is asked about":               {[]step{asked("", "put", "c1"), result("", "put", "c1"), asked("", "put", "c2"), result("", "put", "c2")}, nil},
		"a tool is allowed until the end":        {[]step{asked("a", "read", "c1"), result("a", "read", "c1"), result("a", "read", "c2")}, nil},
		"the person of all allows it to all":     {[]step{asked("", "read", "c1"), result("a", "read", "c2")}, nil},
		"a trusted server says that it reads":    {[]step{{tool: "read", call: "c1", trusted: true}}, nil},
		"a trusted server's tool does not read":  {[]step{{tool: "put", call: "c1", trusted: true}}, []string{`the call c1 of the tool put got a result, and the person of "", whose consent it needs, was not asked`}},
		"one call was asked about and not both":  {[]step{asked("", "put", "c1"), result("", "put", "c2")}, []string{`the call c2 of the tool put got a result, and the person of "", whose consent it needs, was not asked`}},
		"another caller's person has allowed it": {[]step{asked("a", "read", "c1"), result("b", "read", "c2")}, []string{`the call c2 of the tool read got a result, and the person of "b", whose consent it needs, was not asked`}},
		"another caller's person was asked":      {[]step{asked("a", "put", "c1"), result("b", "put", "c1")}, []string{`the call c1 of the tool put got a result, and the person of "b", whose consent it needs, was not asked`}},
		"a person is asked in spite of that":     {[]step{asked("a", "read", "c1"), asked("a", "read", "c2")}, []string{`the person of "a" was asked about the tool read, and had allowed it until the manager ends`}},
		"two persons are asked about one tool":   {[]step{asked("a", "read", "c1"), asked("b", "read", "c2")}, nil},
	} {
		var got []string
		p := &consents{report: func(_, text string) { got = append(got, text) }, granted: map[consent]bool{}, allowed: map[string]string{}}
		for _, s := range c.steps {
			if s.ask {
				p.answerAsk(s.caller, supervisor.AskRequest{Server: "s1", Tool: s.tool, Arguments: json.RawMessage(`{"call":"` + s.call + `"}`)})
				continue
			}
			p.checkCall(load.Call{ID: s.call, Stream: scenario.PlannedLoad{Server: "s1", Tool: s.tool}}, s.caller, s.trusted)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if ctx := (&consents{}).scopeTo(t.Context(), "a"); ctx == context.Context(nil) || ctx == t.Context() {
		t.Error("the person of a caller is not in the context of its calls")
	}
}
