package invariant_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
)

func TestStatuses(t *testing.T) {
	up := `
		0s     s1 phase phase=pending step=queued epoch=1
		0s     s1 open conn=1
		0s     s1 phase phase=pending step=dialing epoch=2
		1s     s1 phase phase=connected epoch=2 since=1s tools=3
		1s     -  snapshot generation=1 entries=s1:live:2:3:aa
		10s    s1 down conn=1 class=exited
		10s    s1 phase phase=pending step=restarting epoch=2 since=10s class=exited text=gone
		10s    s1 phase phase=pending step=restarting epoch=2 since=10s class=exited text=gone retry=retry next=11s
	`
	back := up + `
		11s    s1 open conn=2
		11s    s1 phase phase=pending step=dialing epoch=3 since=10s class=exited text=gone
	`
	runCases(t, "I22", []storyCase{
		{name: "it is as it was", want: invariant.Holds, story: back + `
			12s    s1 phase phase=connected epoch=3 since=12s restarts=1
			12s    -  snapshot generation=2 entries=s1:live:3:3:aa
			20s    s1 status phase=connected epoch=3 since=12s restarts=1 tools=3
			60s    -  closing`},
		{name: "a restart is not counted", want: invariant.Violated, why: "restarted 0 times", story: back + `
			12s    s1 phase phase=connected epoch=3 since=12s
			60s    -  closing`},
		{name: "what never was is counted", want: invariant.Violated, why: "restarted 7 times", story: back + `
			12s    s1 phase phase=connected epoch=3 since=12s restarts=7
			60s    -  closing`},
		{name: "since is of the phase before", want: invariant.Violated, why: "it is so since 1s", story: back + `
			12s    s1 phase phase=connected epoch=3 since=1s restarts=1
			60s    -  closing`},
		{name: "the error stays", want: invariant.Violated, why: "its status says an error", story: back + `
			12s    s1 phase phase=connected epoch=3 since=12s restarts=1 class=exited text=gone
			60s    -  closing`},
		{name: "the time of the attempt stays", want: invariant.Violated, why: "its status says that the next attempt is at 11s", story: up + `
			11s    s1 open conn=2
			11s    s1 phase phase=pending step=dialing epoch=3 since=10s class=exited text=gone next=11s
			60s    -  closing`},
		{name: "it is parked and restarts", want: invariant.Violated, why: "that is failed", story: up + `
			10s    s1 phase phase=pending step=restarting epoch=2 since=10s class=exited text=gone retry=parked next=300s
			60s    -  closing`},
		{name: "it is tried before", want: invariant.Violated, why: "it was made at 10.5s", story: up + `
			10.5s  s1 open conn=2
			10.5s  s1 phase phase=pending step=dialing epoch=3 since=10s class=exited text=gone
			60s    -  closing`},
		{name: "it is not tried", want: invariant.Violated, why: "said so still at", story: up + `
			60s    -  closing`},
		{name: "who asks hears of another time", want: invariant.Violated, why: "those who watch were told last", story: up + `
			10.5s  s1 status phase=pending step=restarting epoch=2 since=10s class=exited text=now retry=retry next=10.9s
			11s    s1 open conn=2
			11s    s1 phase phase=pending step=dialing epoch=3 since=10s class=exited text=gone
			12s    -  closing`},
		{name: "who asks hears of other tools", want: invariant.Violated, why: "the catalog shows 3", story: back + `
			12s    s1 phase phase=connected epoch=3 since=12s restarts=1
			12s    -  snapshot generation=2 entries=s1:live:3:3:aa
			20s    s1 status phase=connected epoch=3 since=12s restarts=1 tools=2
			60s    -  closing`},
		{name: "nothing is said", want: invariant.Inconclusive, story: "1s - closing"},
	})
}
