package invariant_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
)

// With the answer to a command the catalog shows what was done.
func TestShownWithTheAnswer(t *testing.T) {
	const up = `
		0s     s1 changed rev=1 hash=one names=a,b
		0s     s1 open conn=1
		0s     s1 phase phase=pending step=queued epoch=1
		0s     s1 phase phase=pending step=dialing epoch=2
		20ms   s1 phase phase=connected epoch=2
	`
	const changed = up + `
		1s     s1 changed rev=2 hash=two names=a,b,c
	`
	const over = `
		999s   - closing
	`
	runCases(t, "I16", []storyCase{
		{name: "nothing was asked", want: invariant.Inconclusive, why: "asked for nothing", story: `0s s2 open conn=1`},
		{name: "disabled and gone", want: invariant.Holds, story: up + `
			1s     s1 command command=1 method=disable
			1s     s1 phase phase=disabled warm=true epoch=2
			1s     s1 done command=1 method=disable
		` + over},
		{name: "disabled and still there", want: invariant.Violated, why: "still showed 2 tools", story: up + `
			1s     s1 command command=1 method=disable
			1s     s1 phase phase=disabled warm=true epoch=2
			1s     s1 done command=1 method=disable tools=2 hash=one
		` + over},
		{name: "removed and still there", want: invariant.Violated, why: "still showed 2 tools", story: up + `
			1s     s1 command command=1 method=remove
			1s     s1 phase phase=disabled epoch=2
			1s     s1 done command=1 method=remove tools=2 hash=one
			1s     s1 removed
		` + over},
		{name: "removed and added in one instant", want: invariant.Holds, story: up + `
			1s     s1 command command=1 method=remove
			1s     s1 command command=2 method=add
			1s     s1 phase phase=disabled epoch=2
			1s     s1 removed
			1s     s1 phase phase=pending step=dialing epoch=3
			1s     s1 phase phase=connected epoch=3
			1s     s1 done command=1 method=remove tools=2 hash=one
			1s     s1 done command=2 method=add tools=2 hash=one
		` + over},
		{name: "reconnected without tools", want: invariant.Violated, why: "no tool of the server", story: up + `
			1s     s1 command command=1 method=reconnect
			1s     s1 phase phase=pending step=closing epoch=2
			1s     s1 phase phase=pending step=dialing epoch=3
			2s     s1 phase phase=connected epoch=3
			2s     s1 done command=1 method=reconnect
		` + over},
		{name: "refreshed", want: invariant.Holds, story: changed + `
			2s     s1 command command=1 method=refresh
			2s     s1 done command=1 method=refresh tools=3 hash=two
		` + over},
		{name: "refreshed and changed meanwhile", want: invariant.Holds, story: changed + `
			2s     s1 command command=1 method=refresh
			2.5s   s1 changed rev=3 hash=three names=a
			3s     s1 done command=1 method=refresh tools=1 hash=three
		` + over},
		{name: "refreshed and the old list", want: invariant.Violated, why: "are not the list of the server since 1", story: changed + `
			2s     s1 command command=1 method=refresh
			2s     s1 done command=1 method=refresh tools=2 hash=one
		` + over},
		{name: "a list that the server refused", want: invariant.Holds, story: changed + `
			2s     s1 command command=1 method=refresh
			2s     s1 received conn=1 method=tools/list id=9
			2s     s1 answered conn=1 method=tools/list id=9 code=400
			2s     s1 done command=1 method=refresh tools=2 hash=one
		` + over},
		{name: "a list that cannot be read", want: invariant.Holds, story: changed + `
			1.5s   s1 fault-on fault=1 name=slow-start
			2s     s1 command command=1 method=refresh
			2s     s1 done command=1 method=refresh tools=2 hash=one
		` + over},
	})
}
