package invariant_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// What callers give up while their server is disabled is ended over the connection that it kept.
func TestGivenUpAtRest(t *testing.T) {
	const watched = `
		0s     s1 open conn=1
		1ms    s1 phase phase=connected epoch=2
		2s     s1 read call=c1 method=subscribe
		2s     s1 received conn=1 method=resources/subscribe id=3 about=chaos://s1/one
		2.1s   s1 answered conn=1 method=resources/subscribe id=3
		2.1s   s1 read-end call=c1 method=subscribe
		5s     s1 phase phase=disabled warm=true epoch=2
	`
	const givenUp = `
		6s     s1 read call=c2 method=unsubscribe
		6s     s1 read-end call=c2 method=unsubscribe
	`
	const enabled = `
		8s     s1 phase phase=connected epoch=2
	`
	const ended = `
		8.01s  s1 received conn=1 method=resources/unsubscribe id=4 about=chaos://s1/one
	`
	const over = `
		40s    - closing
	`
	offers := func(p *scenario.Plan) { p.Servers[0].Offers = true }
	messages := func(p *scenario.Plan) { p.Scenario.Manager.Messages = true }
	runCases(t, "I20", []storyCase{
		{name: "nothing is read", want: invariant.Inconclusive, story: over},
		{name: "it is asked to end the watch", plan: offers, want: invariant.Holds, story: watched + givenUp + enabled + ended + over},
		{name: "it is not asked to end the watch", plan: offers, want: invariant.Violated, why: "was not asked to end the watch by 9.025s", story: watched + givenUp + enabled + over},
		{name: "it is asked to end another watch", plan: offers, want: invariant.Violated, why: "gave up the watch of chaos://s1/one while", story: watched + givenUp + enabled + `
			8.01s  s1 received conn=1 method=resources/unsubscribe id=4 about=chaos://s1/briefly
		` + over},
		{name: "it is watched again", plan: offers, want: invariant.Holds, story: watched + givenUp + enabled + `
			7s     s1 read call=c3 method=subscribe
			7s     s1 read-end call=c3 method=subscribe class=canceled
		` + over},
		{name: "it was connected when the watch was given up", plan: messages, want: invariant.Holds, story: watched + enabled + over},
	})
}
