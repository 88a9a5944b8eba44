package invariant_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

func TestAgentsAreAnswered(t *testing.T) {
	brief := func(p *scenario.Plan) {
		p.Servers[0].CallTimeout, p.Servers[0].MaxCallTimeout = time.Second, time.Second
	}
	const oneCall = `
		1s - joined agent=agent-1 by=anna epoch=1 name=legacy_lines
		2s - asked agent=agent-1 by=anna epoch=1 id=1 method=tools/call about=a1-1
		2s s1 call call=a1-1 tool=write agent=agent-1 by=anna
	`
	runCases(t, "I25", []storyCase{
		{name: "one answer each", want: invariant.Holds, story: joinedAgents + `
			4s - replied agent=agent-1 by=anna epoch=1 id=1 method=tools/call about=a1-1
			4s - replied agent=agent-2 by=ben epoch=1 id=1 method=tools/call about=a2-1`},
		{name: "two answers", want: invariant.Violated, why: "had asked 1 times with that id", story: joinedAgents + `
			4s - replied agent=agent-1 by=anna epoch=1 id=1 method=tools/call about=a1-1
			5s - replied agent=agent-1 by=anna epoch=1 id=1 method=tools/call about=a1-1`},
		{name: "no answer to a list", want: invariant.Violated, why: "has no answer", story: joinedAgents + `
			3s - asked agent=agent-1 by=anna epoch=1 id=2 method=tools/list
			9m - closing`},
		{name: "a request that was taken back, and is waited for after its time", want: invariant.Holds, story: joinedAgents + `
			3s - asked agent=agent-1 by=anna epoch=1 id=2 method=tools/list
			4s - replied agent=agent-1 by=anna epoch=1 id=1 method=tools/call about=a1-1
			4s - parted agent=agent-2 by=ben epoch=1
			4m - replied agent=agent-1 by=anna epoch=1 id=2 method=tools/list name=taken-back
			4m - parted agent=agent-1 by=anna epoch=1
			9m - closing`},
		{name: "a call that was given up, and its session ends soon after its time", want: invariant.Holds, plan: brief, story: oneCall + `
			2.1s s1 left call=a1-1 tool=write agent=agent-1
			2.1s s1 end call=a1-1 tool=write outcome=unknown class=canceled agent=agent-1
			9s - parted agent=agent-1 by=anna epoch=1`},
		{name: "a call that was not given up, and its session ends soon after its time", want: invariant.Violated, why: "has no answer", plan: brief, story: oneCall + `
			9s - parted agent=agent-1 by=anna epoch=1`},
		{name: "an answer after its time", want: invariant.Violated, why: "was answered only at 4m0s", story: joinedAgents + `
			3s - asked agent=agent-1 by=anna epoch=1 id=2 method=tools/list
			4s - replied agent=agent-1 by=anna epoch=1 id=1 method=tools/call about=a1-1
			4s - parted agent=agent-2 by=ben epoch=1
			4m - replied agent=agent-1 by=anna epoch=1 id=2 method=tools/list
			4m - parted agent=agent-1 by=anna epoch=1
			9m - closing`},
		{name: "no answer, and the session has ended", want: invariant.Holds, story: joinedAgents + `
			3s - asked agent=agent-1 by=anna epoch=1 id=2 method=tools/list
			4s - parted agent=agent-1 by=anna epoch=1
			4s - parted agent=agent-2 by=ben epoch=1
			9m - closing`},
		{name: "taken back, and no answer", want: invariant.Holds, story: joinedAgents + `
			3s - replied agent=agent-1 by=anna epoch=1 id=1 method=tools/call about=a1-1
			3s - replied agent=agent-2 by=ben epoch=1 id=1 method=tools/call about=a2-1
			3s - asked agent=agent-1 by=anna epoch=1 id=2 method=tools/list
			5s - replied agent=agent-1 by=anna epoch=1 id=2 method=tools/list name=taken-back
			9m - closing`},
		{name: "the exchange ends, and nobody has taken it back", want: invariant.Violated, why: "held no answer", story: joinedAgents + `
			3s - replied agent=agent-1 by=anna epoch=1 id=1 method=tools/call about=a1-1
			3s - replied agent=agent-2 by=ben epoch=1 id=1 method=tools/call about=a2-1
			3s - asked agent=agent-1 by=anna epoch=1 id=2 method=tools/list
			5s - replied agent=agent-1 by=anna epoch=1 id=2 method=tools/list name=no-answer
			9m - closing`},
		{name: "taken back, and answered late", want: invariant.Violated, why: "had asked 1 times with that id", story: joinedAgents + `
			3s - asked agent=agent-1 by=anna epoch=1 id=2 method=tools/list
			5s - replied agent=agent-1 by=anna epoch=1 id=2 method=tools/list name=taken-back
			6s - replied agent=agent-1 by=anna epoch=1 id=2 method=tools/list
			9m - closing`},
		{name: "nobody came", want: invariant.Inconclusive, story: `1s s1 open conn=1`},
		{name: "the server of its view has been removed", want: invariant.Holds, story: ofOneServer + `
			5s s1 command command=1 method=remove
			5s s1 done command=1 method=remove
			6s - asked agent=agent-1 by=anna epoch=1 id=2 method=no/such name=unknown-method
			6s - replied agent=agent-1 by=anna epoch=1 id=2 method=no/such name=unknown-method code=-32602`},
		{name: "the server of its view has come back", want: invariant.Violated, why: "had to be refused with the code -32601, and was answered at ", story: ofOneServer + `
			5s s1 command command=1 method=remove
			5s s1 done command=1 method=remove
			6s s1 command command=2 method=add
			7s s1 done command=2 method=add
			8s - asked agent=agent-1 by=anna epoch=1 id=2 method=no/such name=unknown-method
			8s - replied agent=agent-1 by=anna epoch=1 id=2 method=no/such name=unknown-method code=-32602`},
		{name: "what is wrong gets a result", want: invariant.Violated, why: "sent a tools/list that is wrong on purpose (bad-cursor): it had to be refused " +
			"with the code -32602, and was answered at 3s with a result", story: joinedAgents + `
			3s - asked agent=agent-1 by=anna epoch=1 id=2 method=tools/list name=bad-cursor
			3s - replied agent=agent-1 by=anna epoch=1 id=2 method=tools/list`},
		{name: "a round that is over is answered once more", want: invariant.Violated, why: "(used-state): it had to be refused with the code -32602", story: joinedAgents + `
			3s - asked agent=agent-1 by=anna epoch=1 id=2 method=tools/call name=used-state
			3s - replied agent=agent-1 by=anna epoch=1 id=2 method=tools/call`},
		{name: "a round that is over is refused", want: invariant.Holds, story: joinedAgents + `
			3s - asked agent=agent-1 by=anna epoch=1 id=2 method=tools/call name=used-state
			3s - replied agent=agent-1 by=anna epoch=1 id=2 method=tools/call code=-32602`},
		{name: "another error than the protocol has", want: invariant.Violated, why: "had to be refused with the code -32601, and was answered at ", story: joinedAgents + `
			3s - asked agent=agent-1 by=anna epoch=1 id=2 method=no/such name=unknown-method
			3s - replied agent=agent-1 by=anna epoch=1 id=2 method=no/such name=unknown-method code=-32603`},
		{name: "an id that is in use", want: invariant.Violated, why: "had to be refused with the code -32600, and was answered at 3s with a result", story: joinedAgents + `
			3s - asked agent=agent-1 by=anna epoch=1 id=2 method=tools/list name=id-in-use
			3s - replied agent=agent-1 by=anna epoch=1 id=2 method=tools/list name=id-in-use`},
		{name: "the id of what was taken back", want: invariant.Violated, why: "agent-1 took a request back and used its id (2) again", story: joinedAgents + `
			3s - asked agent=agent-1 by=anna epoch=1 id=2 method=tools/list name=id-of-the-cancelled
			3s - replied agent=agent-1 by=anna epoch=1 id=2 method=tools/list name=id-of-the-cancelled code=-32600`},
		{name: "an id that is free", want: invariant.Holds, story: joinedAgents + `
			3s - asked agent=agent-1 by=anna epoch=1 id=2 method=tools/list name=id-of-the-cancelled
			3s - replied agent=agent-1 by=anna epoch=1 id=2 method=tools/list name=id-of-the-cancelled`},
		{name: "a session that is not open", want: invariant.Violated, why: "(before-initialize): it had to be refused with the code -32600", story: joinedAgents + `
			3s - asked agent=agent-1 by=anna epoch=1 id=2 method=tools/list name=before-initialize
			3s - replied agent=agent-1 by=anna epoch=1 id=2 method=tools/list name=before-initialize`},
	})
}

// TestAgentsRead: an agent reads what the server has, and is refused nothing that the server, or the gateway, can give.
func TestAgentsRead(t *testing.T) {
	offers := func(p *scenario.Plan) { p.Servers[0].Kind, p.Servers[0].Offers = messages.Stdio, true }
	bounded := func(p *scenario.Plan) {
		offers(p)
		p.Servers[0].MaxInFlight = 1
	}
	const asked = `
		1s s1 open conn=1
		1s s1 opened conn=1
		1s s1 phase phase=connected epoch=1
		1s s1 offered rev=1
		2s s1 offered rev=2
		1s - joined agent=agent-1 by=anna epoch=1
		10s - asked agent=agent-1 by=anna epoch=1 id=1 method=resources/read about=chaos://s1/one
		10s - asked agent=agent-1 by=anna epoch=1 id=2 method=prompts/list`
	watching := strings.Replace(asked, "method=resources/read", "method=resources/subscribe", 1)
	const watchRefused = `
		11s - replied agent=agent-1 by=anna epoch=1 id=1 method=resources/subscribe code=-32603 text=the_deadline_passed`
	const refused = `
		11s - replied agent=agent-1 by=anna epoch=1 id=1 method=resources/read code=-32603 text=it_is_away`
	const over = `
		30s - parted agent=agent-1 by=anna epoch=1
		1m - closing`
	runCases(t, "I25", []storyCase{
		{name: "the newest state", want: invariant.Holds, plan: offers, story: asked + `
			11s - replied agent=agent-1 by=anna epoch=1 id=1 method=resources/read about=chaos://s1/one rev=2` + over},
		{name: "an older state", want: invariant.Violated, plan: offers, why: "was given its state 1, and it is in its state 2", story: asked + `
			11s - replied agent=agent-1 by=anna epoch=1 id=1 method=resources/read about=chaos://s1/one rev=1` + over},
		{name: "a state of another server", want: invariant.Violated, plan: offers, why: "what the server never had", story: asked + `
			11s - replied agent=agent-1 by=anna epoch=1 id=1 method=resources/read about=chaos://s1/one rev=-1` + over},
		{name: "refused without a cause", want: invariant.Violated, plan: offers, why: "nothing was in the way", story: asked + refused + over},
		{name: "refused though the server answered", want: invariant.Violated, plan: offers, why: "nothing was in the way", story: asked + `
			10s s1 received conn=1 id=5 method=resources/read
			11s s1 answered conn=1 id=5 method=resources/read` + refused + over},
		{name: "the server answers with an error", want: invariant.Holds, plan: offers, story: asked + `
			10s s1 received conn=1 id=5 method=resources/read
			11s s1 answered conn=1 id=5 method=resources/read code=-32002` + refused + over},
		{name: "the server wants a visit in the round before, as on seed 20830173", want: invariant.Holds, plan: offers, story: asked + `
			9s s1 answered conn=1 id=5 method=resources/read code=-32042
			11s - replied agent=agent-1 by=anna epoch=1 id=1 method=resources/read code=-32042 text=this_needs_a_visit` + over},
		{name: "no server wants a visit", want: invariant.Violated, plan: offers, why: "nothing was in the way", story: asked + `
			11s - replied agent=agent-1 by=anna epoch=1 id=1 method=resources/read code=-32042 text=this_needs_a_visit` + over},
		{name: "the server does not answer", want: invariant.Holds, plan: offers, story: asked + `
			10s s1 received conn=1 id=5 method=resources/read` + refused + over},
		{name: "the server does not say what it has, as on seed 20740003", want: invariant.Holds, plan: offers, story: asked + `
			10s s1 received conn=1 id=5 method=resources/list` + refused + over},
		{name: "the server does not acknowledge the subscription, as on seed 20820479", want: invariant.Holds, plan: offers, story: watching + `
			10s s1 received conn=1 id=5 method=subscriptions/listen` + watchRefused + over},
		{name: "the server has acknowledged the subscription", want: invariant.Violated, plan: offers, why: "nothing was in the way", story: watching + `
			10s s1 received conn=1 id=5 method=subscriptions/listen
			11s s1 notified conn=1 method=notifications/subscriptions/acknowledged` + watchRefused + over},
		{name: "its agent refuses a question about it", want: invariant.Holds, plan: offers, story: asked + `
			10.5s s1 advised agent=agent-1 by=anna epoch=1 method=sampling/createMessage code=-1` + refused + over},
		{name: "a list without a server that has something", want: invariant.Violated, plan: offers, why: "was given none of the server s1 at 11s",
			story: strings.ReplaceAll(asked, "resources/read about=chaos://s1/one", "resources/list") + `
			11s - replied agent=agent-1 by=anna epoch=1 id=1 method=resources/list` + over},
		{name: "a list without a server that was as slow as its timeout, as on seed 20860022", want: invariant.Holds, plan: func(p *scenario.Plan) {
			offers(p)
			p.Servers[0].CallTimeout = time.Second
		}, story: strings.ReplaceAll(asked, "resources/read about=chaos://s1/one", "resources/list") + `
			11s - replied agent=agent-1 by=anna epoch=1 id=1 method=resources/list` + over},
		{name: "a list with it", want: invariant.Holds, plan: offers, story: strings.ReplaceAll(asked, "resources/read about=chaos://s1/one", "resources/list") + `
			11s - replied agent=agent-1 by=anna epoch=1 id=1 method=resources/list entries=s1:live:1:2:x` + over},
		{name: "the server is away", want: invariant.Holds, plan: offers, story: asked + `
			11s s1 phase phase=pending epoch=1` + refused + over},
		{name: "a server with a bound of calls", want: invariant.Holds, plan: bounded, story: asked + refused + over},
		{name: "a server that was given a bound of calls, as on seed 20820600", want: invariant.Holds, plan: func(p *scenario.Plan) {
			offers(p)
			withAdjusts(adjustParams{"maxInFlight": "1", "maxQueued": "1"})(p)
		}, story: asked + `
			3s s1 command command=1 method=adjust
			3s s1 done command=1 method=adjust` + refused + over},
		{name: "a view that hides the server", want: invariant.Holds, plan: func(p *scenario.Plan) {
			offers(p)
			heldBy(scenario.View{Deny: []string{"s1:" + scenario.WholeServer}})(p)
		}, story: asked + refused + over},
		{name: "a list that is refused", want: invariant.Violated, plan: offers, why: "asked prompts/list", story: asked + `
			10s - replied agent=agent-1 by=anna epoch=1 id=2 method=prompts/list code=-32603` + over},
		{name: "nobody came", want: invariant.Inconclusive, story: `1s s1 open conn=1`},
		{name: "a list in a session that is forgotten", want: invariant.Holds, plan: offers, story: asked + `
			10s - replied agent=agent-1 by=anna epoch=1 id=2 method=prompts/list code=-32001` + over},
	})
}
