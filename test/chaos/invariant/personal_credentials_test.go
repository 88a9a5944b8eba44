package invariant_test

import (
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// TestCallersHaveTheirOwnCredentials has calls to a server that refuses the credentials of the second caller of each load.
func TestCallersHaveTheirOwnCredentials(t *testing.T) {
	personal := func(p *scenario.Plan) { p.Servers[0].Personal = true }
	refusing := func(p *scenario.Plan) {
		personal(p)
		p.Faults = []scenario.PlannedFault{{ID: 1, Fault: "unauthorized", Server: "s1", Begin: 500 * time.Millisecond, End: 2 * time.Second}}
	}
	const up = `
		0s     s1 phase phase=connected epoch=1
		0s     s1 open conn=1
		0s     s1 opened conn=1
	`
	const refused = `
		1s     s1 call call=c1 tool=read by=caller-1-2
		1.1s   s1 end call=c1 tool=read outcome=rejected class=unauthorized
	`
	const other = `
		1s     s1 call call=c2 tool=read by=caller-1-1
		1.1s   s1 end call=c2 tool=read outcome=rejected class=unauthorized
	`
	runCases(t, "I20", []storyCase{
		{name: "the caller is told", plan: personal, want: invariant.Holds, story: up + refused},
		{name: "its call comes with the credentials of another", plan: personal, want: invariant.Violated, why: "got its call c1 at 1.05s: with those of another", story: up + `
			1s     s1 call call=c1 tool=read by=caller-1-2
			1.05s  s1 received conn=1 method=tools/call call=c1 id=4
			1.1s   s1 end call=c1 tool=read outcome=rejected class=unauthorized
		`},
		{name: "its call gets a result", plan: personal, want: invariant.Violated, why: "its call c1 got a result", story: up + `
			1s     s1 call call=c1 tool=read by=caller-1-2
			1.1s   s1 end call=c1 tool=read outcome=result
		`},
		{name: "another caller is refused", plan: personal, want: invariant.Violated, why: "Call c2 of caller-1-1 ended at 1.1s with refused credentials", story: up + other},
		{name: "a caller without a name is refused", plan: personal, want: invariant.Violated, why: "Call c2 of a caller without a name", story: up + `
			1s     s1 call call=c2 tool=read
			1.1s   s1 end call=c2 tool=read outcome=rejected class=unauthorized
		`},
		{name: "all are refused for a while", plan: refusing, want: invariant.Holds, story: up + other},
		{name: "a server that knows no callers", want: invariant.Inconclusive, why: "Nothing was said by message", story: up + other},
	})
}
