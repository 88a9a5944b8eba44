package invariant_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

func TestSecretsAndControlCharacters(t *testing.T) {
	leaky := func(p *scenario.Plan) {
		p.Faults = []scenario.PlannedFault{{ID: 1, Fault: "leak-canary", Server: "s1", Begin: time.Second, End: time.Minute}}
	}
	runCases(t, "I10", []storyCase{
		{name: "a server says the secret and nothing repeats it", plan: leaky, want: invariant.Holds, story: `1s s1 open conn=1`},
		{name: "no secret was said", want: invariant.Inconclusive, why: "No server was made", story: `1s s1 open conn=1`},
		{name: "an error repeats what the server said", plan: leaky, want: invariant.Violated, why: "came out in status at 2s", story: `
			1s s1 open conn=1
			2s s1 canary text=status:_error
		`},
		{name: "the log repeats it", want: invariant.Violated, why: "in the log", story: `
			2s s1 log text=warn_the_canary
		`},
	})
	check, _ := invariant.Find("I10")
	v := check.Judge(&history.History{Events: []history.Event{
		{T: 1, Side: history.Manager, Kind: history.Log, Server: "s1", Text: "warn CANARY-7"},
		{T: 2, Side: history.Harness, Kind: history.Canary, Server: "s1", Text: "status: CANARY-7"},
	}})
	if strings.Contains(v.Why, "CANARY") {
		t.Errorf("the verdict repeats the secret: %s", v.Why)
	}
}
