package invariant_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// TestAgentsAreToldOfUpdates: who watches a resource is told of each update that the server sends, in either era, and further connections are asked
// for it.
func TestAgentsAreToldOfUpdates(t *testing.T) {
	offers := func(p *scenario.Plan) { p.Servers[0].Kind, p.Servers[0].Offers = messages.Stdio, true }
	hidden := func(p *scenario.Plan) {
		offers(p)
		heldBy(scenario.View{}, scenario.View{At: messages.Duration(3e9), Deny: []string{"s1:" + scenario.WholeServer}})(p)
	}
	const connected = `
			1s s1 open conn=1
			1s s1 opened conn=1
			1s s1 phase phase=connected epoch=1
			1s - joined agent=agent-1 by=anna epoch=1`
	const watched = connected + `
			2s - asked agent=agent-1 by=anna epoch=1 id=1 method=resources/subscribe about=chaos://s1/one
			2s s1 received conn=1 method=resources/subscribe id=1
			3s s1 answered conn=1 method=resources/subscribe id=1
			3s - replied agent=agent-1 by=anna epoch=1 id=1 method=resources/subscribe`
	const over = `
			30s - parted agent=agent-1 by=anna epoch=1
			30s s1 received conn=1 method=resources/unsubscribe id=9
			1m - closing`
	const listened = connected + `
			2s - asked agent=agent-1 by=anna epoch=1 id=1 method=subscriptions/listen about=chaos://s1/one
			3s - noticed agent=agent-1 by=anna epoch=1 id=1 method=notifications/subscriptions/acknowledged about=chaos://s1/one`
	const update = `
			10s s1 notified conn=1 method=notifications/resources/updated`
	const reconnected = `
			10s s1 phase phase=pending epoch=1
			10s s1 released conn=1
			11s s1 open conn=2
			11s s1 opened conn=2
			12s s1 phase phase=connected epoch=2`
	runCases(t, "I28", []storyCase{
		{name: "it is told", plan: offers, want: invariant.Holds, story: watched + update + `
			10s - noticed agent=agent-1 by=anna epoch=1 method=notifications/resources/updated about=chaos://s1/one` + over},
		{name: "it is not told", plan: offers, want: invariant.Violated, why: "the agent was not told by 11s", story: watched + update + over},
		{name: "the server sends it over a connection that was given up", plan: offers, want: invariant.Holds, story: watched + `
			9s s1 released conn=1` + update + over},
		{name: "it is told of the part that was updated", plan: offers, want: invariant.Holds, story: watched + update + ` about=chaos://s1/one/part
			10s - noticed agent=agent-1 by=anna epoch=1 method=notifications/resources/updated about=chaos://s1/one/part` + over},
		{name: "a part is updated, and it is told of nothing", plan: offers, want: invariant.Violated, why: "watches chaos://s1/one/part, or what it is a part of", story: watched + update +
			` about=chaos://s1/one/part` + over},
		{name: "it is told of another resource", plan: offers, want: invariant.Violated, why: "the agent was not told by 11s", story: watched + update + `
			10s - noticed agent=agent-1 by=anna epoch=1 method=notifications/resources/updated about=chaos://s1/two` + over},
		{name: "it has ended the watch", plan: offers, want: invariant.Holds, story: watched + `
			9s - asked agent=agent-1 by=anna epoch=1 id=2 method=resources/unsubscribe about=chaos://s1/one` + update + `
			11s - replied agent=agent-1 by=anna epoch=1 id=2 method=resources/unsubscribe` + over},
		{name: "its view hides the server", plan: hidden, want: invariant.Holds, story: watched + update + over},
		{name: "its server was disabled when it asked, as on seed 20900454", plan: offers, want: invariant.Holds, story: `
			1s - joined agent=agent-1 by=anna epoch=1
			2s - asked agent=agent-1 by=anna epoch=1 id=1 method=resources/subscribe about=chaos://s1/one
			3s - replied agent=agent-1 by=anna epoch=1 id=1 method=resources/subscribe
			5s s1 open conn=1
			5s s1 opened conn=1
			5s s1 phase phase=connected epoch=1` + update + over},
		{name: "a command is given", plan: offers, want: invariant.Holds, story: watched + `
			10s s1 command command=1 method=reconnect` + update + over},
		{name: "it listens, and is told", plan: offers, want: invariant.Holds, story: listened + update + `
			10s - noticed agent=agent-1 by=anna epoch=1 id=1 method=notifications/resources/updated about=chaos://s1/one` + over},
		{name: "it listens, and is not told", plan: offers, want: invariant.Violated, why: "the agent was not told by 11s", story: listened + update + over},
		{name: "it has no stream", plan: offers, want: invariant.Holds, story: watched + `
			9s - stream-cut agent=agent-1 by=anna epoch=1` + update + `
			12s - stream-back agent=agent-1 by=anna epoch=1
			12s - noticed agent=agent-1 by=anna epoch=1 method=notifications/resources/updated about=chaos://s1/one` + over},
		{name: "a further connection is asked", plan: offers, want: invariant.Holds, story: watched + reconnected + `
			12s s1 received conn=2 method=resources/subscribe id=1
			13s s1 answered conn=2 method=resources/subscribe id=1
			30s - parted agent=agent-1 by=anna epoch=1
			30s s1 received conn=2 method=resources/unsubscribe id=9
			1m - closing`},
		{name: "a further connection is not asked, and the session was forgotten, as on seed 20830540", plan: offers, want: invariant.Holds, story: watched + reconnected + `
			29s - asked agent=agent-1 by=anna epoch=1 id=9 method=tools/list
			29s - replied agent=agent-1 by=anna epoch=1 id=9 method=tools/list code=-32001` + over},
		{name: "a further connection is not asked, and the session had no stream for long, as on seed 20904876", plan: offers, want: invariant.Holds, story: watched + `
			4s - stream-cut agent=agent-1 by=anna epoch=1
			25s s1 phase phase=pending epoch=1
			25s s1 released conn=1
			26s s1 open conn=2
			26s s1 opened conn=2
			26s s1 phase phase=connected epoch=2
			50s - parted agent=agent-1 by=anna epoch=1
			1m - closing`},
		{name: "a further connection is not asked", plan: offers, want: invariant.Violated, why: "had agreed to no subscription on connection 2", story: watched + reconnected + over},
		{name: "nobody came", want: invariant.Inconclusive, story: `1s s1 open conn=1`},
	})
}
