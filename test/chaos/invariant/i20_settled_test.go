package invariant_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// Who waits for every server to settle is answered when the last one has, and not before.
func TestSettled(t *testing.T) {
	const slow = `
			0s     s1 phase phase=pending step=dialing epoch=1
			0s     s2 phase phase=connected epoch=2
			1s     -  read method=settled
			20s    s1 phase phase=connected epoch=1
		`
	servers := []string{"s1", "s2"}
	runCases(t, "I20", []storyCase{
		{name: "nobody waits", want: invariant.Inconclusive, why: "nothing was read", servers: servers, story: `
			0s     s1 phase phase=connected epoch=2
			100s   -  closing`},
		{name: "when the last one has", want: invariant.Holds, servers: servers, story: slow + `
			20s    -  read-end method=settled took=19s
			100s   -  closing`},
		{name: "while one is on its way", want: invariant.Violated, why: "on its way all the time", servers: servers, story: slow + `
			15s    -  read-end method=settled took=14s
			100s   -  closing`},
		{name: "two at once, and the first ends first (seed 4001693)", want: invariant.Holds, servers: servers, story: `
			0s     s1 phase phase=pending step=dialing epoch=1
			0s     s2 phase phase=pending step=dialing epoch=2
			1s     -  read method=settled
			5s     s1 phase phase=connected epoch=1
			8s     s1 phase phase=pending step=dialing epoch=3
			10s    -  read method=settled
			12s    s2 phase phase=connected epoch=2
			12s    -  read-end method=settled took=11s
			20s    s1 phase phase=connected epoch=3
			20s    -  read-end method=settled took=10s
			100s   -  closing`},
		{name: "long after the last one", want: invariant.Violated, why: "told only at 40s", servers: servers, story: slow + `
			40s    -  read-end method=settled took=39s
			100s   -  closing`},
		{name: "in vain, for one that has settled", want: invariant.Violated, why: "told at 51s that this one has not", servers: servers, story: slow + `
			51s    -  read-end method=settled class=timeout name=s1 took=50s
			100s   -  closing`},
		{name: "in vain, for one that is on its way", want: invariant.Holds, servers: servers, story: `
			0s     s1 phase phase=pending step=dialing epoch=1
			1s     -  read method=settled
			51s    -  read-end method=settled class=timeout name=s1 took=50s
			100s   -  closing`},
		{name: "it is refused", want: invariant.Violated, why: "that it cannot be", servers: servers, story: slow + `
			2s     -  read-end method=settled class=invalid name=s1 took=1s
			100s   -  closing`},
	})
}

// A command to all servers is answered when the last of them is done, and says of each what became of it.
func TestCommandsToAllServers(t *testing.T) {
	all := func(p *scenario.Plan) { p.Commands = []scenario.PlannedCommand{{ID: 1, Do: scenario.ConnectAll}} }
	const both = `
			0s     s1 phase phase=failed class=exited epoch=1
			0s     s2 phase phase=disabled epoch=2
			10s    s1 command command=1 method=reconnect
			10s    s2 command command=1 method=enable
			10s    s2 phase phase=pending step=queued epoch=2
			10s    s1 phase phase=pending step=dialing epoch=3
			11s    s2 phase phase=connected epoch=4
		`
	servers := []string{"s1", "s2 disabled=true"}
	runCases(t, "I16", []storyCase{
		{name: "nobody commands", want: invariant.Inconclusive, why: "asked for nothing", servers: servers, story: `
			300s   -  closing`},
		{name: "when the last one is done", want: invariant.Holds, plan: all, servers: servers, story: both + `
			30s    s1 phase phase=connected epoch=3
			30s    s1 done command=1 method=reconnect
			30s    s2 done command=1 method=enable
			300s   -  closing`},
		{name: "long after the last one", want: invariant.Violated, why: "had to be answered by", plan: all, servers: servers, story: both + `
			30s    s1 phase phase=connected epoch=3
			90s    s1 done command=1 method=reconnect
			90s    s2 done command=1 method=enable
			300s   -  closing`},
		{name: "one failed and nothing is said of it", want: invariant.Violated, why: "neither connected nor at rest", plan: all, servers: servers, story: both + `
			30s    s1 phase phase=failed class=exited epoch=3
			30s    s1 done command=1 method=reconnect
			30s    s2 done command=1 method=enable
			300s   -  closing`},
		{name: "one failed and another is said to have", want: invariant.Violated, why: "published as failed at no time", plan: all, servers: servers, story: both + `
			30s    s1 phase phase=connected epoch=3
			30s    s1 done command=1 method=reconnect
			30s    s2 done command=1 method=enable class=exited
			300s   -  closing`},
	})
}
