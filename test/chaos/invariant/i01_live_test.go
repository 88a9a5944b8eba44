package invariant_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
)

func TestLiveLostAndCachedTools(t *testing.T) {
	const up = `
		1s     - snapshot generation=1 entries=s1:live:2:3:a
		1s     s1 phase phase=connected epoch=2
	`
	const listed = `
		0s     s1 changed rev=1 hash=a names=read,put,write
		500ms  s1 listed conn=1 rev=1
	` + up
	const down = up + `
		10s    s1 phase phase=pending step=restarting epoch=2 class=exited
		10s    - snapshot generation=2 entries=s1:lost:2:3:a
	`
	runCases(t, "I1", []storyCase{
		{name: "up and down and up", want: invariant.Holds, story: down + `
			11s    s1 phase phase=pending step=dialing epoch=3
			12s    - snapshot generation=3 entries=s1:live:3:3:a
			12s    s1 phase phase=connected epoch=3
			60s    - closing
		`},
		{name: "lost and gone in time", want: invariant.Holds, story: down + `
			15s    - snapshot generation=3 entries=s1::0:0
			60s    - closing
		`},
		{name: "disabled", want: invariant.Holds, story: up + `
			10s    s1 command command=1 method=disable
			10s    s1 phase phase=disabled warm=true epoch=2
			10s    - snapshot generation=2 entries=s1::0:0
			10s    s1 done command=1 method=disable
			60s    - closing
		`},
		{name: "a lazy server rests", servers: []string{"s1 connect=lazy"}, want: invariant.Holds, story: up + `
			10s    s1 phase phase=pending step=idle epoch=2
			10s    - snapshot generation=2 entries=s1:cached:2:3:a
			60s    - closing
		`},
		{name: "a lazy server rests and its tools are gone", servers: []string{"s1 connect=lazy"}, want: invariant.Violated, why: "shows none of its tools", story: listed + `
			10s    s1 phase phase=pending step=idle epoch=2
			10s    - snapshot generation=2 entries=s1:cached:2:3:a
			20s    - snapshot generation=3 entries=s1::0:0
			60s    - closing
		`},
		{name: "a lazy server rests whose last connection has listed nothing", servers: []string{"s1 connect=lazy"}, want: invariant.Holds, story: listed + `
			10s    s1 command command=1 method=respec
			10s    s1 phase phase=pending step=closing epoch=2
			10s    - snapshot generation=2 entries=s1::0:0
			10s    s1 open conn=2
			10s    s1 opened conn=2
			10s    s1 phase phase=pending step=listing epoch=3
			11s    s1 phase phase=connected epoch=3
			11s    s1 done command=1 method=respec
			20s    s1 phase phase=pending step=idle epoch=3
			60s    - closing
		`},
		{name: "a lazy server without tools rests", servers: []string{"s1 connect=lazy"}, want: invariant.Holds, story: listed + `
			10s    s1 phase phase=pending step=idle epoch=2
			10s    - snapshot generation=2 entries=s1:cached:2:3:a
			15s    s1 changed rev=2 hash=b names=
			20s    s1 phase phase=pending step=dialing epoch=3
			21s    s1 listed conn=2 rev=2
			21s    - snapshot generation=3 entries=s1::0:0
			21s    s1 phase phase=connected epoch=3
			40s    s1 phase phase=pending step=idle epoch=3
			60s    - closing
		`},
		{name: "no tools", want: invariant.Inconclusive, why: "The catalog showed no tools", story: `
			1s     s1 phase phase=failed
			60s    - closing
		`},
		{name: "tools stay live after a death", want: invariant.Violated, why: "3 live tools from 10s to 20s", story: up + `
			10s    s1 phase phase=pending step=restarting epoch=2 class=exited
			20s    - snapshot generation=2 entries=s1:lost:2:3:a
			21s    - closing
		`},
		{name: "tools stay live after disable", want: invariant.Violated, why: "while the server s1 is disabled (warm)", story: up + `
			10s    s1 phase phase=disabled warm=true epoch=2
			60s    - closing
		`},
		{name: "disable is answered and nothing is withdrawn", want: invariant.Violated, why: "although its owner had disabled or removed it at 10s (disable)", story: up + `
			10s    s1 command command=1 method=disable
			10s    s1 done command=1 method=disable
			60s    - closing
		`},
		{name: "tools stay live after a removal", want: invariant.Violated, why: "not known to the manager", story: up + `
			10s    s1 removed
			60s    - closing
		`},
		{name: "an entry of the old epoch is live after a reconnect", want: invariant.Violated, why: "epoch 2 from 12s", story: up + `
			12s    s1 phase phase=connected epoch=3
			60s    - closing
		`},
		{name: "lost tools never go", want: invariant.Violated, why: "had to go from the catalog after 5s, at 15s", story: down + `
			60s    - closing
		`},
		{name: "failing attempts prolong what is lost", want: invariant.Violated, why: "They were still shown at 18s", story: down + `
			14s    - snapshot generation=3 entries=s1:lost:2:3:a
			18s    - snapshot generation=4 entries=s1::0:0
			60s    - closing
		`},
		{name: "what is connected is marked lost", want: invariant.Violated, why: "marked lost from 12s", story: down + `
			12s    s1 phase phase=connected epoch=3
			60s    - closing
		`},
		{name: "what was disabled is marked lost", want: invariant.Violated, why: "nobody expects it back", story: up + `
			10s    s1 phase phase=disabled epoch=2
			10s    - snapshot generation=2 entries=s1:lost:2:3:a
			60s    - closing
		`},
		{name: "a drop takes the tools away at once", want: invariant.Violated, why: "makes the tools flap", story: up + `
			10s    s1 phase phase=pending step=restarting epoch=2 class=exited
			10s    - snapshot generation=2 entries=s1::0:0
			60s    - closing
		`},
		{name: "what is lost goes too soon", want: invariant.Violated, why: "after 1s instead of 5s", story: down + `
			11s    - snapshot generation=3 entries=s1::0:0
			60s    - closing
		`},
		{name: "what needs credentials goes at once", want: invariant.Holds, story: up + `
			10s    s1 phase phase=needs-auth epoch=2 class=unauthorized
			10s    - snapshot generation=2 entries=s1::0:0
			60s    - closing
		`},
		{name: "a server that is not lazy is cached", want: invariant.Violated, why: "the server s1 is not lazy", story: up + `
			10s    s1 phase phase=pending step=queued epoch=2
			10s    - snapshot generation=2 entries=s1:cached:2:3:a
			60s    - closing
		`},
		{name: "a lazy server is connected and its tools are cached", servers: []string{"s1 connect=lazy"}, want: invariant.Violated,
			why: "marked cached from 10s", story: up + `
			10s    - snapshot generation=2 entries=s1:cached:2:3:a
			60s    - closing
		`},
		{name: "half of the tools are live and half are lost", want: invariant.Violated, why: "two states", story: up + `
			10s    - snapshot generation=2 entries=s1:live:2:2:a,s1:lost:1:1:b
			60s    - closing
		`},
		{name: "within one instant nothing is judged", want: invariant.Holds, story: up + `
			10s    s1 phase phase=pending step=restarting epoch=2
			10.02s - snapshot generation=2 entries=s1:lost:2:3:a
			12s    - closing
		`},
	})
}
