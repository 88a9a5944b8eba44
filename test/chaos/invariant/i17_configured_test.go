package invariant_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// A connection that a changed configuration has ended goes on for the calls that it has, whatever is asked of its server meanwhile (seed 20888261).
func TestAConnectionThatAConfigurationEnded(t *testing.T) {
	const calling = `
		0s     s1 open conn=1
		1ms    s1 opened conn=1
		10ms   s1 phase phase=connected epoch=2
		10s    s1 call call=c1 tool=write
		10s    s1 received conn=1 method=tools/call id=5 call=c1
	`
	const disconnected = `
		12s    s1 command command=2 method=disconnect
		12s    s1 phase phase=disabled epoch=2
		12s    s1 done command=2 method=disconnect
		13s    s1 end call=c1 tool=write outcome=result conn=1
		13s    s1 released conn=1
		60s    -  closing
	`
	configured := func(p *scenario.Plan) {
		p.Scenario.Manager.Configured = true
		p.Commands = []scenario.PlannedCommand{{ID: 1, Do: "respec", Server: "s1"}, {ID: 2, Do: "disconnect", Server: "s1"}}
	}
	runCases(t, "I17", []storyCase{
		{name: "another spec had ended it", plan: configured, want: invariant.Holds, story: calling + `
			11s    s1 command command=1 method=respec
			11s    s1 phase phase=pending step=closing epoch=2
			11s    s1 done command=1 method=respec
		` + disconnected},
		{name: "nothing had ended it", plan: configured, want: invariant.Violated, why: "asked for disconnect", story: calling + disconnected},
		{name: "nothing ends", plan: configured, want: invariant.Inconclusive, story: "1s s1 open conn=1"},
	})
}
