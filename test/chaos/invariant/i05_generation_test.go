package invariant_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
)

func TestGenerations(t *testing.T) {
	runCases(t, "I5", []storyCase{
		{name: "they rise", want: invariant.Holds, story: `
			1s  -  snapshot generation=1 entries=s1:live:1:3:a
			2s  -  snapshot generation=2 entries=s1:lost:1:3:a
			7s  -  snapshot generation=5 entries=s1::0:0
		`},
		{name: "a refused tool is no entry and still a change", want: invariant.Holds, story: `
			1s  -  snapshot generation=1 entries=s1:live:1:3:a
			2s  -  snapshot generation=2
		`},
		{name: "one was read twice", want: invariant.Holds, story: `
			1s  -  snapshot generation=1 entries=s1:live:1:3:a
			2s  -  snapshot generation=1
		`},
		{name: "no snapshot", want: invariant.Inconclusive, why: "No snapshot", story: `1s s1 open conn=1`},
		{name: "a change does not raise it", want: invariant.Violated, why: "the generation stayed 1", story: `
			1s  -  snapshot generation=1 entries=s1:live:1:3:a
			2s  -  snapshot generation=1 entries=s1:lost:1:3:a
		`},
		{name: "a registry that was restarted counts anew", want: invariant.Violated, why: "after generation 9", story: `
			1s  -  snapshot generation=9 entries=s1:live:1:3:a
			2s  -  snapshot generation=1 entries=s1:live:1:3:b
		`},
		{name: "two changes overtake each other in one instant", want: invariant.Violated, why: "Generation 2 was published", story: `
			1s  -  snapshot generation=3 entries=s1:live:1:3:a
			1s  -  snapshot generation=2 entries=s1:live:1:3:b
		`},
	})
}
