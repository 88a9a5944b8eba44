package invariant_test

import (
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

func TestEarliest(t *testing.T) {
	const connected = `
			0s     s1 open conn=1
			10ms   s1 opened conn=1
		`
	const sent = connected + `
			1s     s1 call call=c1 tool=write
			1s     s1 received conn=1 method=tools/call id=5 call=c1
		`
	const asked = connected + `
			1s     s1 call call=a1-1 tool=write agent=agent-1
			1s     s1 received conn=1 method=tools/call id=5 call=a1-1
		`
	// An agent over HTTP loses the connection of a call, and has another one 20 ms later (seed 20004171).
	const answered = `
			1.184s -  stream-cut method=tools/call id=1 about=a1-1 agent=agent-1
			1.202s s1 executed conn=1 tool=write call=a1-1 value=1
			1.202s s1 answered conn=1 method=tools/call id=5 call=a1-1
			1.204s -  stream-back method=tools/call id=1 about=a1-1 agent=agent-1
		`
	real := func(p *scenario.Plan) { p.Tier = scenario.Real }
	runCases(t, "I2", []storyCase{
		{name: "no call", want: invariant.Inconclusive, why: "No tool", story: connected},
		{name: "told with the answer", want: invariant.Holds, story: sent + `
			1.01s  s1 executed conn=1 tool=write call=c1 value=1
			1.01s  s1 answered conn=1 method=tools/call id=5 call=c1
			1.01s  s1 end call=c1 tool=write outcome=result conn=1 value=1
		`},
		{name: "told when a clock rings", want: invariant.Violated, why: "told only at 2.01s", story: sent + `
			1.01s  s1 executed conn=1 tool=write call=c1 value=1
			1.01s  s1 answered conn=1 method=tools/call id=5 call=c1
			2.01s  s1 end call=c1 tool=write outcome=result conn=1 value=1
		`},
		{name: "the answer never came through", want: invariant.Holds, story: `
			1s     s1 fault-on fault=1 name=cut-stream
		` + sent + `
			1.01s  s1 executed conn=1 tool=write call=c1 value=1
			1.01s  s1 answered conn=1 method=tools/call id=5 call=c1
			9s     s1 end call=c1 tool=write outcome=unknown class=network
		`},
		{name: "another status of HTTP is tried again", want: invariant.Holds, story: sent + `
			1.01s  s1 answered conn=1 method=tools/call id=5 call=c1 code=401
			1.9s   s1 end call=c1 tool=write outcome=rejected class=unauthorized
		`},
		{name: "real processes take a moment", want: invariant.Holds, plan: real, story: sent + `
			1.01s  s1 executed conn=1 tool=write call=c1 value=1
			1.01s  s1 answered conn=1 method=tools/call id=5 call=c1
			1.4s   s1 end call=c1 tool=write outcome=result conn=1 value=1
		`},
		{name: "told when the connection died", want: invariant.Holds, story: sent + `
			1.5s   s1 down conn=1 class=exited
			1.5s   s1 end call=c1 tool=write outcome=unknown class=exited
		`},
		{name: "told a second after the connection died", want: invariant.Violated, why: "which died at 1.5s", story: sent + `
			1.5s   s1 down conn=1 class=exited
			2.5s   s1 end call=c1 tool=write outcome=unknown class=exited
		`},
		{name: "the harness ends a call that left in its own instant and came to nobody", want: invariant.Inconclusive, why: "No tool", story: connected + `
			1s     s1 call call=a1-1 tool=write agent=agent-1
			1.01s  s1 left call=a1-1 tool=write agent=agent-1
			1.01s  s1 end call=a1-1 tool=write outcome=not-sent class=canceled name=untaken agent=agent-1
		`},
		{name: "the harness ends a call that came to a server", want: invariant.Violated, why: "told only at 1.02s", story: connected + `
			1s     s1 call call=a1-1 tool=write agent=agent-1
			1s     s1 received conn=1 method=tools/call id=5 call=a1-1
			1.01s  s1 answered conn=1 method=tools/call id=5 call=a1-1
			1.02s  s1 end call=a1-1 tool=write outcome=not-sent name=untaken agent=agent-1
		`},
		// Seed 20830527: both calls had waited, were sent in one moment, and are like each other but for their answers.
		{name: "two tasks that were sent together, and answered one after the other", want: invariant.Holds, story: connected + `
			1s    s1 call call=a1-1 tool=write agent=agent-1 by=anna
			1s    s1 call call=a1-2 tool=write agent=agent-1 by=anna
			1.1s  s1 received conn=1 method=tools/call id=5 call=a1-1
			1.1s  s1 received conn=1 method=tools/call id=6 call=a1-2
			1.1s  s1 told method=call-started tool=write
			1.1s  s1 told method=call-started tool=write
			1.5s  s1 answered conn=1 method=tools/call id=5 call=a1-1
			1.5s  s1 told method=call-ended tool=write outcome=result took=400ms
			1.5s  - tasked agent=agent-1 by=anna about=a1-1 deadline=1h
			1.6s  s1 answered conn=1 method=tools/call id=6 call=a1-2
			1.6s  s1 told method=call-ended tool=write outcome=result took=500ms
			1.6s  - tasked agent=agent-1 by=anna about=a1-2 deadline=1h
			1.8s  s1 end call=a1-1 outcome=result tool=write agent=agent-1 by=anna
			1.8s  s1 end call=a1-2 outcome=result tool=write agent=agent-1 by=anna
			9s    - closing`},
		{name: "told with another connection, when the answer found none", want: invariant.Holds, story: asked + answered + `
			1.204s s1 end call=a1-1 tool=write outcome=result conn=1 value=1 agent=agent-1
		`},
		{name: "told long after another connection, when the answer found none", want: invariant.Violated, why: "told only at 1.3s", story: asked + answered + `
			1.3s   s1 end call=a1-1 tool=write outcome=result conn=1 value=1 agent=agent-1
		`},
		// Seed 20871220: the agent was killed before it had another one.
		{name: "no other connection came", want: invariant.Holds, story: asked + `
			1.184s -  stream-cut method=tools/call id=1 about=a1-1 agent=agent-1
			1.185s s1 executed conn=1 tool=write call=a1-1 value=1
			1.185s s1 answered conn=1 method=tools/call id=5 call=a1-1
			1.204s s1 end call=a1-1 tool=write outcome=result conn=1 value=1 agent=agent-1
		`},
		{name: "told with another connection, when the answer had a connection", want: invariant.Violated, why: "told only at 1.204s", story: asked + `
			1.1s   s1 executed conn=1 tool=write call=a1-1 value=1
			1.1s   s1 answered conn=1 method=tools/call id=5 call=a1-1
			1.184s -  stream-cut method=tools/call id=1 about=a1-1 agent=agent-1
			1.204s -  stream-back method=tools/call id=1 about=a1-1 agent=agent-1
			1.204s s1 end call=a1-1 tool=write outcome=result conn=1 value=1 agent=agent-1
		`},
		{name: "its time passed while it had no connection", want: invariant.Holds, plan: func(p *scenario.Plan) { p.Servers[0].CallTimeout = 190 * time.Millisecond },
			story: asked + `
			1.184s -  stream-cut method=tools/call id=1 about=a1-1 agent=agent-1
			1.204s -  stream-back method=tools/call id=1 about=a1-1 agent=agent-1
			1.204s s1 end call=a1-1 tool=write outcome=unknown class=timeout agent=agent-1
		`},
		{name: "its server died while it had no connection", want: invariant.Holds, story: asked + `
			1.184s -  stream-cut method=tools/call id=1 about=a1-1 agent=agent-1
			1.185s s1 down conn=1 class=exited
			1.207s -  stream-back method=tools/call id=1 about=a1-1 agent=agent-1
			1.207s s1 end call=a1-1 tool=write outcome=unknown class=exited agent=agent-1
		`},
		{name: "refused at once", want: invariant.Holds, story: `
			1s     s1 call call=c1 tool=write
			1s     s1 end call=c1 tool=write outcome=not-sent class=network
		`},
		{name: "refused after a second", want: invariant.Violated, why: "was not sent only at 2s", story: `
			1s     s1 call call=c1 tool=write
			2s     s1 end call=c1 tool=write outcome=not-sent class=network
		`},
		{name: "it waits for the session after one that was forgotten", servers: []string{"s1 kind=http"}, want: invariant.Holds, story: `
			0s     s1 phase phase=connected epoch=1
			1s     s1 call call=c1 tool=write
			1s     s1 phase phase=pending step=restarting class=session epoch=1
			6s     s1 end call=c1 tool=write outcome=not-sent class=session
		`},
		{name: "it waits too long for the session after one that was forgotten", servers: []string{"s1 kind=http"}, want: invariant.Violated,
			why: "was not sent only at 7s", story: `
			0s     s1 phase phase=connected epoch=1
			1s     s1 call call=c1 tool=write
			1s     s1 phase phase=pending step=restarting class=session epoch=1
			7s     s1 end call=c1 tool=write outcome=not-sent class=session
		`},
		{name: "it may wait for its server", want: invariant.Holds, plan: func(p *scenario.Plan) { p.CallWait = 5 * time.Second }, story: `
			1s     s1 call call=c1 tool=write
			2s     s1 end call=c1 tool=write outcome=not-sent class=network
		`},
		{name: "at its deadline", want: invariant.Holds, story: `
			1s     s1 call call=c1 tool=write deadline=3s
			1s     s1 received conn=1 method=tools/call id=5 call=c1
			3s     s1 end call=c1 tool=write outcome=unknown class=timeout
		`},
		{name: "a little after its deadline", want: invariant.Violated, why: "50ms later", story: `
			1s     s1 call call=c1 tool=write deadline=3s
			1s     s1 received conn=1 method=tools/call id=5 call=c1
			3.05s  s1 end call=c1 tool=write outcome=unknown class=timeout
		`},
	})
}

func TestRefusedIsNotUnknown(t *testing.T) {
	const sent = `
			1s     s1 call call=c1 tool=write
			1s     s1 received conn=1 method=tools/call id=5 call=c1
		`
	const late = `
			1s     s1 call call=c1 tool=write deadline=1.1s
			1.6s   s1 end call=c1 tool=write outcome=unknown class=timeout
		`
	real := func(p *scenario.Plan) { p.Tier = scenario.Real }
	runCases(t, "I3", []storyCase{
		{name: "no call", want: invariant.Inconclusive, why: "No call", story: `1s s1 open conn=1`},
		{name: "refused by the server", want: invariant.Holds, story: sent + `
			1.01s  s1 answered conn=1 method=tools/call id=5 call=c1 code=-32602
			1.01s  s1 end call=c1 tool=write outcome=rejected class=rejected
		`},
		{name: "refused by the server and told as unknown", want: invariant.Violated, why: "had refused it", story: sent + `
			1.01s  s1 answered conn=1 method=tools/call id=5 call=c1 code=-32602
			1.01s  s1 end call=c1 tool=write outcome=unknown class=rejected
		`},
		{name: "given up in the moment in which the server refused it, as on seed 20981605", want: invariant.Holds, story: sent + `
			1.01s  s1 left call=c1 tool=write
			1.01s  s1 answered conn=1 method=tools/call id=5 call=c1 code=-32602
			1.01s  s1 end call=c1 tool=write outcome=unknown class=canceled
		`},
		{name: "given up after the server had refused it", want: invariant.Violated, why: "had refused it", story: sent + `
			1.01s  s1 answered conn=1 method=tools/call id=5 call=c1 code=-32602
			1.02s  s1 left call=c1 tool=write
			1.02s  s1 end call=c1 tool=write outcome=unknown class=canceled
		`},
		{name: "a server that broke may have run it", want: invariant.Holds, story: sent + `
			1.01s  s1 answered conn=1 method=tools/call id=5 call=c1 code=500
			1.01s  s1 end call=c1 tool=write outcome=unknown class=network
		`},
		{name: "the first of two may have run", want: invariant.Holds, servers: []string{"s1 trusted=true"}, story: `
			1s     s1 call call=c1 tool=put
			1s     s1 received conn=1 method=tools/call id=5 call=c1
			2s     s1 received conn=2 method=tools/call id=5 call=c1
			2.01s  s1 answered conn=2 method=tools/call id=5 call=c1 code=-32602
			2.01s  s1 end call=c1 tool=put outcome=unknown class=rejected
		`},
		{name: "nobody received it", want: invariant.Violated, why: "no server received it", story: `
			1s     s1 call call=c1 tool=write
			1s     s1 end call=c1 tool=write outcome=unknown class=network
		`},
		{name: "nobody received it, and its agent could ask about its task no more, as on seed 30180183", want: invariant.Holds, story: `
			1s     s1 call call=c1 tool=write
			2s     s1 left call=c1
			2s     s1 end call=c1 tool=write outcome=unknown class=canceled name=unseen
		`},
		{name: "nobody received it in its time, which was over", plan: real, want: invariant.Holds, story: late},
		{name: "nobody received it in its time, as only real sockets do", want: invariant.Violated, why: "no server received it", story: late},
		{name: "nobody received it, and its time was not over", plan: real, want: invariant.Violated, why: "no server received it", story: `
			1s     s1 call call=c1 tool=write deadline=3s
			1.1s   s1 end call=c1 tool=write outcome=unknown class=network
		`},
		{name: "rejected by an answer in two pieces", want: invariant.Holds, story: `
			900ms  s1 fault-on fault=1 name=half-line
		` + sent + `
			2s     s1 fault-off fault=1 name=half-line
			2s     s1 end call=c1 tool=write outcome=rejected class=rejected
		`},
		{name: "rejected by nobody", want: invariant.Violated, why: "not refused it", story: sent + `
			2s     s1 end call=c1 tool=write outcome=rejected class=rejected
		`},
	})
}
