package invariant_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

func TestACleanHouse(t *testing.T) {
	live := func(p *scenario.Plan) { p.Tier = scenario.Real }
	runCases(t, "I12", []storyCase{
		{name: "everything is released", want: invariant.Holds, story: `
			0s  -  house text=baseline house=0,10,5
			0s  s1 open conn=1
			1s  s1 refused conn=1
			2s  s1 open conn=2
			9s  -  closing
			9s  s1 released conn=2
			9s  -  closed
			9s  -  house text=after_close house=0,10,5
		`},
		{name: "what the runtime keeps of its first child", plan: live, want: invariant.Holds, story: `
			0s  -  house text=baseline house=0,10,5
			9s  -  closed
			9s  -  house text=after_close house=0,13,9
		`},
		{name: "what virtual time was left with", want: invariant.Violated, why: "2 goroutines instead of 0", story: `
			9s  -  closed
			9s  -  house text=after_close house=0,0,2
		`},
		{name: "the run was cut short", want: invariant.Inconclusive, why: "did not reach the end", story: `
			0s  -  house text=baseline house=0,10,5
			0s  s1 open conn=1
		`},
		{name: "a process is left", plan: live, want: invariant.Violated, why: "3 processes instead of 0", story: `
			0s  -  house text=baseline house=0,10,5
			9s  -  closed
			9s  -  house text=after_close house=3,10,5
		`},
		{name: "a goroutine per attempt is left", want: invariant.Violated, why: "45 goroutines instead of 5", story: `
			0s  -  house text=baseline house=0,10,5
			9s  -  closed
			9s  -  house text=after_close house=0,10,45
		`},
		{name: "descriptors leak", plan: live, want: invariant.Violated, why: "60 open files instead of 10", story: `
			0s  -  house text=baseline house=0,10,5
			9s  -  closed
			9s  -  house text=after_close house=0,60,5
		`},
		{name: "Close returns before a connection is released", want: invariant.Violated, why: "Connection 1 of s1, opened at 1s, was never released",
			story: `
			1s  s1 open conn=1
			2s  s1 opened conn=1
			9s  -  closed
		`},
	})
}
