package invariant_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
)

// A call wakes a lazy server that rests. The planted bug sleeper-not-woken let calls wait for ever, and no judge said so: calls of a lazy server are
// bounded by a deadline of their own only.
func TestCallsWakeTheirServer(t *testing.T) {
	const rests = `
		0s     s1 open conn=1
		1s     s1 phase phase=connected epoch=2
		10s    s1 phase phase=pending step=idle epoch=2
		10s    s1 down conn=1 class=network
		20s    s1 call call=c1 tool=write
	`
	runCases(t, "I2", []storyCase{
		{name: "a call wakes its server", want: invariant.Holds, story: rests + `
			20s    s1 phase phase=pending step=queued epoch=3
			21s    s1 phase phase=connected epoch=3
			21s    s1 received conn=2 method=tools/call call=c1
			22s    s1 end call=c1 tool=write outcome=result
			60s    -  closing`},
		{name: "a call ends with its server at rest", want: invariant.Holds, story: rests + `
			20s    s1 end call=c1 tool=write outcome=not-sent class=denied
			60s    -  closing`},
		{name: "a call waits, and its server rests on", want: invariant.Violated, why: "rested from 10s to 40s", story: rests + `
			40s    s1 phase phase=pending step=queued epoch=3
			41s    s1 phase phase=connected epoch=3
			41s    s1 received conn=2 method=tools/call call=c1
			42s    s1 end call=c1 tool=write outcome=result
			60s    -  closing`},
		{name: "nobody calls", want: invariant.Inconclusive, why: "No tool was called", story: `
			0s     s1 open conn=1
			1s     s1 phase phase=connected epoch=2
			10s    s1 phase phase=pending step=idle epoch=2
			60s    -  closing`},
	})
}
