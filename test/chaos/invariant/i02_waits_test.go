package invariant_test

import (
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

func TestCallsWaitForTheirServer(t *testing.T) {
	waits := func(p *scenario.Plan) { p.CallWait = 8 * time.Second }
	brief := func(p *scenario.Plan) { waits(p); p.Servers[0].CallTimeout = time.Second }
	gone := `
		0s     s1 open conn=1
		1s     s1 phase phase=connected epoch=2
		10s    s1 down conn=1 class=exited
		10s    s1 phase phase=pending step=restarting epoch=2 class=exited text=gone
		10s    s1 phase phase=pending step=restarting epoch=2 class=exited text=gone retry=retry next=70s
	`
	sight := `
		0s     s1 changed rev=1 hash=aa names=read,write
		20ms   -  snapshot generation=1 entries=s1:live:2:2:aa:read+write
	` + gone + `
		10s    -  snapshot generation=2 entries=s1:lost:2:2:aa:read+write
		11s    s1 command command=1 method=permit
		11s    s1 done command=1 method=permit
	`
	const refused = `
		12s    s1 call call=c1 tool=write
		12s    s1 end call=c1 tool=write outcome=not-sent class=denied
		13s    -  snapshot generation=3 entries=s1
		60s    -  closing
	`
	parked := `
		0s     s1 open conn=1
		1s     s1 phase phase=failed class=exited text=gone retry=parked next=300s
	`
	runCases(t, "I2", []storyCase{
		{name: "it waits as long as it may", plan: waits, want: invariant.Holds, story: gone + `
			20s    s1 call call=c1 tool=write
			28s    s1 end call=c1 tool=write outcome=not-sent class=network
			60s    -  closing`},
		{name: "its tools are withdrawn and it is refused", plan: waits, want: invariant.Violated, why: "was refused at 20s", story: gone + `
			20s    s1 call call=c1 tool=write
			20s    s1 end call=c1 tool=write outcome=not-sent class=network
			60s    -  closing`},
		{name: "its server was removed, and is added in the moment of the refusal", plan: waits, want: invariant.Holds, story: gone + `
			15s    s1 phase phase=disabled epoch=2
			15s    s1 removed
			20s    s1 call call=c1 tool=write
			20s    s1 end call=c1 tool=write outcome=not-sent
			20.01s s1 phase phase=pending step=queued epoch=4
			60s    -  closing`},
		{name: "this machine cannot start its server and it is refused", plan: waits, want: invariant.Holds, story: gone + `
			18s    s1 phase phase=failed class=exhausted text=descriptors epoch=3 retry=retry next=70s
			20s    s1 call call=c1 tool=write
			20s    s1 end call=c1 tool=write outcome=not-sent class=exhausted
			60s    -  closing`},
		{name: "it waits twice as long", plan: waits, want: invariant.Violated, why: "until 36s", story: gone + `
			20s    s1 call call=c1 tool=write
			36s    s1 end call=c1 tool=write outcome=not-sent class=network
			60s    -  closing`},
		{name: "the connection ends under it and it is refused", plan: waits, want: invariant.Violated, why: "was not sent when its connection ended at 10s", story: gone + `
			9s     s1 call call=c1 tool=write
			10s    s1 end call=c1 tool=write outcome=not-sent class=network
			60s    -  closing`},
		{name: "the connection ends under it and its own time passes then", plan: brief, want: invariant.Holds, story: gone + `
			9s     s1 call call=c1 tool=write
			10s    s1 end call=c1 tool=write outcome=not-sent class=network
			60s    -  closing`},
		{name: "the connection ends under it and it waits", plan: waits, want: invariant.Holds, story: gone + `
			9s     s1 call call=c1 tool=write
			18s    s1 end call=c1 tool=write outcome=not-sent class=network
			60s    -  closing`},
		{name: "the connection ends under it and it waits on", plan: waits, want: invariant.Violated, why: "waited on until 40s", story: gone + `
			9s     s1 call call=c1 tool=write
			40s    s1 end call=c1 tool=write outcome=not-sent class=timeout
			60s    -  closing`},
		{name: "it waits anew after a connection of one instant", plan: waits, want: invariant.Holds, story: gone + `
			20s    s1 call call=c1 tool=write
			27s    s1 phase phase=connected epoch=3
			27s    s1 phase phase=pending step=restarting epoch=3 class=session text=lost retry=retry next=70s
			35s    s1 end call=c1 tool=write outcome=not-sent class=session
			60s    -  closing`},
		{name: "it is in sight and denied", plan: waits, want: invariant.Violated, why: "was refused at 12s", story: sight + refused},
		// Seed 6001694: the rule came while the server was away.
		{name: "it is in sight and a rule denies it", want: invariant.Holds, story: sight + refused,
			plan: func(p *scenario.Plan) { waits(p); withPermits("write")(p) }},
		{name: "nobody comes and it is refused at once", plan: waits, want: invariant.Holds, story: parked + `
			20s    s1 call call=c1 tool=write
			20s    s1 end call=c1 tool=write outcome=not-sent class=exited
			60s    -  closing`},
		{name: "nobody comes and it waits", plan: waits, want: invariant.Violated, why: "it had to be refused at once", story: parked + `
			20s    s1 call call=c1 tool=write
			28s    s1 end call=c1 tool=write outcome=not-sent class=exited
			60s    -  closing`},
		// Seed 20320481: when it was refused is not in the history, and its agent asks now and then.
		{name: "nobody comes, and its agent asks for its task later", plan: waits, want: invariant.Holds, story: joinedAgents + parked + `
			20s    s1 call call=a1-1 tool=write agent=agent-1 by=anna
			20s    - tasked agent=agent-1 by=anna about=a1-1 deadline=1h
			28s    s1 end call=a1-1 tool=write outcome=not-sent class=exited agent=agent-1 by=anna
			60s    -  closing`},
		{name: "nobody comes, and the agent that asks for its task was refused late", plan: waits, want: invariant.Violated, why: "and was at 28s", story: joinedAgents + parked + `
			20s    s1 call call=a1-1 tool=write agent=agent-1 by=anna
			28s    - tasked agent=agent-1 by=anna about=a1-1 deadline=1h
			29s    s1 end call=a1-1 tool=write outcome=not-sent class=exited agent=agent-1 by=anna
			60s    -  closing`},
		{name: "nothing is called", want: invariant.Inconclusive, story: "1s s1 open conn=1"},
	})
}

// A question of a server is a sign of life: it is in the record by its answer.
func TestAQuestionIsHeard(t *testing.T) {
	runCases(t, "I8", []storyCase{
		{name: "it asked", servers: []string{"s1 kind=http"}, want: invariant.Holds, story: `
			0s     s1 open conn=1
			10ms   s1 answered conn=1 method=initialize
			20ms   s1 answered conn=1 method=tools/list
			30ms   s1 phase phase=pending step=listing epoch=2
			30ms   s1 phase phase=connected epoch=2
			10s    s1 received conn=1
			54s    s1 answered conn=1 method=ping
			60s    -  closing`},
		{name: "it did not", servers: []string{"s1 kind=http"}, want: invariant.Violated, why: "was silent", story: `
			0s     s1 open conn=1
			10ms   s1 answered conn=1 method=initialize
			20ms   s1 answered conn=1 method=tools/list
			30ms   s1 phase phase=pending step=listing epoch=2
			30ms   s1 phase phase=connected epoch=2
			54s    s1 answered conn=1 method=ping
			60s    -  closing`},
		{name: "nothing is said", want: invariant.Inconclusive, story: "1s - closing"},
	})
}
