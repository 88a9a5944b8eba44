package invariant_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

func TestNothingIsKeptOfAgents(t *testing.T) {
	offers := func(p *scenario.Plan) { p.Servers[0].Offers = true }
	const watched = `
		1s s1 open conn=1
		1s s1 opened conn=1
		1s - joined agent=agent-1 by=anna epoch=1
		2s - asked agent=agent-1 by=anna epoch=1 id=1 method=resources/subscribe about=chaos://s1/one
		2s s1 received conn=1 method=resources/subscribe id=1
		2s s1 answered conn=1 method=resources/subscribe id=1
		2s - replied agent=agent-1 by=anna epoch=1 id=1 method=resources/subscribe about=chaos://s1/one
	`
	const givenUp = `
			3s s1 phase phase=connected epoch=1
			4s s1 command command=1 method=disable
			4s s1 phase phase=disabled epoch=1
			5s - asked agent=agent-1 by=anna epoch=1 id=2 method=resources/unsubscribe about=chaos://s1/one
			5s - replied agent=agent-1 by=anna epoch=1 id=2 method=resources/unsubscribe
			8s s1 command command=2 method=enable
			8s s1 phase phase=connected epoch=1`
	const resubscribed = `
			1s s1 open conn=1
			1s s1 opened conn=1
			1s - joined agent=agent-1 by=anna epoch=1
			2s - asked agent=agent-1 by=anna epoch=1 id=1 method=resources/subscribe about=chaos://s1/one
			2s s1 received conn=1 method=resources/subscribe id=1
			2s s1 answered conn=1 method=resources/subscribe id=1
			2s - replied agent=agent-1 by=anna epoch=1 id=1 method=resources/subscribe
			3s s1 received conn=1 method=resources/unsubscribe id=2
			3s s1 answered conn=1 method=resources/unsubscribe id=2
			4s - asked agent=agent-1 by=anna epoch=1 id=3 method=resources/subscribe about=chaos://s1/one
			4s - replied agent=agent-1 by=anna epoch=1 id=3 method=resources/subscribe
			7s - parted agent=agent-1 by=anna epoch=1
			8s - closing`
	hidden := func(p *scenario.Plan) {
		offers(p)
		heldBy(scenario.View{}, scenario.View{At: messages.Duration(3500 * time.Millisecond), Deny: []string{"s1:*"}})(p)
	}
	runCases(t, "I28", []storyCase{
		{name: "it is begun again, and the server is not asked", plan: offers, want: invariant.Violated, why: "was to end the subscription", story: resubscribed},
		// Seed 30328559: the gateway still looked for the server when the agent took its wish back.
		{name: "it is begun again and taken back before the answer", plan: offers, want: invariant.Holds, story: strings.Replace(resubscribed, `
			4s - replied`, `
			4s - asked agent=agent-1 by=anna epoch=1 id=4 method=resources/unsubscribe about=chaos://s1/one
			5s - replied`, 1)},
		{name: "it is begun again where its view hides the server by then", plan: hidden, want: invariant.Holds, story: resubscribed},
		{name: "it is ended in the instant of the answer, and begun again", plan: offers, want: invariant.Holds, story: `
			1s s1 open conn=1
			1s s1 opened conn=1
			1s - joined agent=agent-1 by=anna epoch=1
			2s - asked agent=agent-1 by=anna epoch=1 id=1 method=resources/subscribe about=chaos://s1/one
			2s s1 received conn=1 method=resources/subscribe id=1
			3s s1 received conn=1 method=resources/unsubscribe id=2
			3s s1 answered conn=1 method=resources/subscribe id=1
			4s s1 answered conn=1 method=resources/unsubscribe id=2
			5s s1 received conn=1 method=resources/subscribe id=3
			6s s1 answered conn=1 method=resources/subscribe id=3
			7s - parted agent=agent-1 by=anna epoch=1
			8s s1 received conn=1 method=resources/unsubscribe id=4
			1m - closing`},
		{name: "the last one ends it", plan: offers, want: invariant.Holds, story: watched + `
			5s - parted agent=agent-1 by=anna epoch=1
			5s s1 received conn=1 method=resources/unsubscribe id=2
			1m - closing`},
		{name: "nobody ends it", plan: offers, want: invariant.Violated, why: "was not asked by 15s to end the subscription", story: watched + `
			5s - parted agent=agent-1 by=anna epoch=1
			1m - closing`},
		// Seed 20800193: the endpoint has the session, and with it the watch, for some time after its agent was killed.
		{name: "the last one is killed, and its session stands", plan: offers, want: invariant.Holds, story: watched + `
			5s - parted agent=agent-1 by=anna epoch=1 name=abandoned
			1m - closing`},
		{name: "who was refused has not watched, as on seed 9741019", plan: offers, want: invariant.Holds, story: watched + `
			5s - parted agent=agent-1 by=anna epoch=1
			8s s1 command command=1 method=disable
			30s - joined agent=agent-2 by=ben epoch=1
			31s - asked agent=agent-2 by=ben epoch=1 id=1 method=resources/subscribe about=chaos://s1/one
			31s - replied agent=agent-2 by=ben epoch=1 id=1 method=resources/subscribe code=-32603
			35s - parted agent=agent-2 by=ben epoch=1
			2m - closing`},
		{name: "it is given up while the server is disabled, and the server is asked when it is enabled", plan: offers, want: invariant.Holds, story: watched + givenUp + `
			8s s1 received conn=1 method=resources/unsubscribe id=2
			50s - parted agent=agent-1 by=anna epoch=1
			1m - closing`},
		{name: "it is given up while the server is disabled, and the server is not asked", plan: offers, want: invariant.Violated,
			why: "the server s1 was connected again since 8s", story: watched + givenUp + `
			50s - parted agent=agent-1 by=anna epoch=1
			1m - closing`},
		{name: "a second agent is a second subscription", plan: offers, want: invariant.Violated, why: "to watch what it had been asked to watch", story: watched + `
			5s s1 received conn=1 method=resources/subscribe id=2
			6s - parted agent=agent-1 by=anna epoch=1`},
		{name: "a subscription to another resource", plan: offers, want: invariant.Holds, story: watched + `
			5s s1 received conn=1 method=resources/subscribe id=2 about=chaos://s2/one
			6s - parted agent=agent-1 by=anna epoch=1
			6s s1 received conn=1 method=resources/unsubscribe id=3 about=chaos://s1/one
			1m - closing`},
		{name: "the end of a subscription to another resource", plan: offers, want: invariant.Violated, why: "was not asked by 16s to end the subscription", story: watched + `
			6s - parted agent=agent-1 by=anna epoch=1
			6s s1 received conn=1 method=resources/unsubscribe id=3 about=chaos://s2/one
			1m - closing`},
		{name: "who watches asks once more, and is refused", plan: offers, want: invariant.Violated, why: "asked for that once more at 4s, and was refused", story: watched + `
			4s - asked agent=agent-1 by=anna epoch=1 id=2 method=resources/subscribe about=chaos://s1/one
			4s - replied agent=agent-1 by=anna epoch=1 id=2 method=resources/subscribe code=-32603
			5s - parted agent=agent-1 by=anna epoch=1
			5s s1 received conn=1 method=resources/unsubscribe id=2
			1m - closing`},
		// Seed 20703602: a request from before the owner's command is answered after it.
		{name: "who watches since the owner's command asks once more, and is refused", plan: offers, want: invariant.Holds, story: watched + `
			1.5s s1 command command=1 method=remove
			4s - asked agent=agent-1 by=anna epoch=1 id=2 method=resources/subscribe about=chaos://s1/one
			4s - replied agent=agent-1 by=anna epoch=1 id=2 method=resources/subscribe code=-32603
			5s - parted agent=agent-1 by=anna epoch=1
			5s s1 received conn=1 method=resources/unsubscribe id=2
			1m - closing`},
		{name: "who watches asks once more, and is refused by a server that its owner disables", plan: offers, want: invariant.Holds, story: watched + `
			3s s1 command command=1 method=disable
			4s - asked agent=agent-1 by=anna epoch=1 id=2 method=resources/subscribe about=chaos://s1/one
			4s - replied agent=agent-1 by=anna epoch=1 id=2 method=resources/subscribe code=-32603
			5s - parted agent=agent-1 by=anna epoch=1
			5s s1 received conn=1 method=resources/unsubscribe id=2
			1m - closing`},
		{name: "who watches asks once more, and its time is over before its turn", plan: func(p *scenario.Plan) {
			offers(p)
			p.Servers[0].CallTimeout = time.Second
		}, want: invariant.Holds, story: watched + `
			4s - asked agent=agent-1 by=anna epoch=1 id=2 method=resources/subscribe about=chaos://s1/one
			5s - replied agent=agent-1 by=anna epoch=1 id=2 method=resources/subscribe code=-32603
			6s - parted agent=agent-1 by=anna epoch=1
			6s s1 received conn=1 method=resources/unsubscribe id=2
			1m - closing`},
		{name: "nobody came", want: invariant.Inconclusive, story: `1s s1 open conn=1`},
		{name: "something is kept", want: invariant.Violated, why: "keeps 1 sessions", story: watched + `
			5s - parted agent=agent-1 by=anna epoch=1
			6s - violation name=I28 text=the_gateway_keeps_1_sessions`},
	})
}
