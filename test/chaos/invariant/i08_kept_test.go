package invariant_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// What a server has beside its tools can be used also if it refuses to list those.
func TestAServerWithMoreThanToolsIsKept(t *testing.T) {
	const refuses = `
		0s     s1 phase phase=pending step=dialing epoch=2
		0s     s1 fault-on fault=1 name=list-error
		0s     s1 open conn=1
		1ms    s1 phase phase=pending step=handshaking epoch=2
		5ms    s1 answered conn=1 method=initialize id=1
		5ms    s1 phase phase=pending step=listing epoch=2
		10ms   s1 answered conn=1 method=tools/list id=2 code=-32603
	`
	const kept = refuses + `
		10ms   s1 phase phase=connected epoch=2
		30s    - closing
	`
	const dropped = refuses + `
		10ms   s1 phase phase=failed epoch=2 class=rejected
		11ms   s1 released conn=1
		30s    - closing
	`
	lacking := func(what string) func(*scenario.Plan) {
		return func(p *scenario.Plan) { p.Servers[0].Offers, p.Servers[0].Lacks = true, what }
	}
	runCases(t, "I8", []storyCase{
		{name: "nothing is published", want: invariant.Inconclusive, why: "published no phase", story: `0s s2 open conn=1`},
		{name: "one with everything is kept", plan: lacking(""), want: invariant.Holds, story: kept},
		{name: "one without prompts is dropped", plan: lacking(scenario.HasPrompts), want: invariant.Violated,
			why: "has more than tools, and refused at 10ms to list those over connection 1", story: dropped},
		{name: "one without resources is dropped", plan: lacking(scenario.HasResources), want: invariant.Violated, why: "It is to be connected", story: dropped},
		{name: "one without either is dropped", plan: lacking(scenario.HasResources + "," + scenario.HasPrompts), want: invariant.Holds, story: dropped},
		{name: "its connection may have ended for another reason", plan: lacking(""), want: invariant.Holds, story: refuses + `
			10ms   s1 fault-on fault=2 name=crash
			10ms   s1 down conn=1 class=exited
			10ms   s1 phase phase=failed epoch=2 class=exited
			11ms   s1 released conn=1
			30s    - closing
		`},
	})
}
