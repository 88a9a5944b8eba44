package invariant_test

import (
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

func TestKept(t *testing.T) {
	const up = `
			0s     s1 open conn=1
			10ms   s1 opened conn=1
			20ms   s1 offered rev=1
			10s    s1 offered rev=2
			20s    s1 offered rev=3
		`
	const given = up + `
			10s    s1 read call=c1 method=subscribe
			10s    s1 read-end call=c1 method=subscribe
			11s    s1 phase phase=disabled epoch=1 warm=true
		`
	withAgent := func(p *scenario.Plan) { p.Agents = []scenario.PlannedAgent{{Name: "agent-1"}} }
	messages := func(p *scenario.Plan) { p.Scenario.Manager.Messages = true }
	const received = up + `
			20s    s1 notified conn=1 method=notifications/resources/updated
		`
	const partReceived = up + `
			20s    s1 notified conn=1 method=notifications/resources/updated about=chaos://s1/one/part
		`
	offers := func(p *scenario.Plan) { p.Servers[0].Offers = true }
	unannounced := func(p *scenario.Plan) { p.Servers[0].Offers, p.Servers[0].Lacks = true, scenario.HasResourceChanges }
	const announced = up + `
			20ms   s1 phase phase=connected epoch=1
			20s    s1 notified conn=1 method=notifications/prompts/list_changed
		`
	const announcedAndTold = announced + `
			20.1s  s1 listing method=prompts
		`
	runCases(t, "I20", []storyCase{
		{name: "a changed list is told", want: invariant.Holds, plan: offers, story: announced + `
			20.1s  s1 listing method=prompts
			1m     - closing
		`},
		// Seed 30329161: the manager's new connection waited for the agreement to its subscription still.
		{name: "a change is announced over a connection that was given up", want: invariant.Inconclusive, plan: offers, story: up + `
			20ms   s1 phase phase=connected epoch=1
			10s    s1 released conn=1
			20s    s1 notified conn=1 method=notifications/prompts/list_changed
			1m     - closing
		`},
		{name: "another list is told", want: invariant.Violated, why: "its list of prompts has changed, and no watcher was told of it by 21s", plan: offers, story: announced + `
			20.1s  s1 listing method=resources
			1m     - closing
		`},
		{name: "a changed list is told once the stream is open again that was cut, as on seed 30301176", want: invariant.Holds, plan: offers, story: strings.Replace(announced,
			"20s ", "17s - fault-on server=s1 fault=1 name=cut-stream\n18s - fault-off server=s1 fault=1 name=cut-stream\n20s ", 1) + `
			30s    s1 read call=c1 method=resource
			31s    s1 read-end call=c1 method=resource rev=3
			1m     - closing
		`},
		{name: "a changed list of a server that is lost", want: invariant.Holds, plan: offers, story: announced + `
			20.1s  s1 phase phase=pending epoch=1
			30s    s1 read call=c1 method=resource
			31s    s1 read-end call=c1 method=resource rev=3
			1m     - closing
		`},
		{name: "nothing was said", want: invariant.Inconclusive, why: "nothing was read", story: up},
		{name: "all was said by message", want: invariant.Holds, plan: messages, story: up},
		{name: "a message is answered otherwise than the facade", want: invariant.Violated, why: "sent twice", story: `
			1s     s1 violation name=I20 text=the_call_c1_was_sent_twice_and_answered_with_result_and_with_unknown
		`},
		{name: "what is read is what there is", want: invariant.Holds, story: up + `
			20.9s  s1 read call=c1 method=resource
			21s    s1 read-end call=c1 method=resource rev=3
		`},
		{name: "it changes meanwhile", want: invariant.Holds, story: up + `
			19s    s1 read call=c1 method=resource
			21s    s1 read-end call=c1 method=resource rev=2
		`},
		{name: "what was before the read", want: invariant.Violated, why: "was given its state 2", story: up + `
			20.9s  s1 read call=c1 method=resource
			21s    s1 read-end call=c1 method=resource rev=2
		`},
		{name: "what comes after it", want: invariant.Violated, why: "the newest one is 2", story: up + `
			19s    s1 read call=c1 method=prompt
			19.1s  s1 read-end call=c1 method=prompt rev=3
		`},
		{name: "what another server has", want: invariant.Violated, why: "never had", story: up + `
			19s    s1 read call=c1 method=prompt
			19.1s  s1 read-end call=c1 method=prompt rev=-1
		`},
		{name: "a list is kept for a while", want: invariant.Holds, story: up + `
			20.5s  s1 read call=c1 method=resources
			20.5s  s1 read-end call=c1 method=resources rev=2
		`},
		{name: "a list is kept too long", want: invariant.Violated, why: "was given its state 2", story: up + `
			23s    s1 read call=c1 method=resources
			23s    s1 read-end call=c1 method=resources rev=2
		`},
		{name: "over HTTP it may be kept for a minute", want: invariant.Holds, servers: []string{"s1 kind=http"}, story: up + `
			60s    s1 read call=c1 method=resources
			60s    s1 read-end call=c1 method=resources rev=2
		`},
		{name: "over HTTP it may not be kept for a minute if its changes are not announced", want: invariant.Violated, why: "was given its state 2", plan: unannounced, servers: []string{"s1 kind=http"}, story: up + `
			27s    s1 read call=c1 method=resources
			27s    s1 read-end call=c1 method=resources rev=2
		`},
		{name: "a list whose changes are not announced may be kept for 5 s", want: invariant.Holds, plan: unannounced, story: up + `
			24s    s1 read call=c1 method=resources
			24s    s1 read-end call=c1 method=resources rev=2
		`},
		{name: "a list that it had announced is not given as it was before, whatever the owner did since", want: invariant.Violated, why: "it had announced its state 3 before", plan: offers,
			story: announcedAndTold + `
			30s    s1 command command=1 method=reconnect
			30s    - done command=1 method=reconnect
			40s    s1 read call=c1 method=prompts
			40s    s1 read-end call=c1 method=prompts rev=2
			2m     - closing
		`},
		{name: "a list that it had announced over HTTP is not kept for a minute", want: invariant.Violated, why: "it had announced its state 3 before", plan: offers, servers: []string{"s1 kind=http"},
			story: announcedAndTold + `
			40s    s1 read call=c1 method=prompts
			40s    s1 read-end call=c1 method=prompts rev=2
			2m     - closing
		`},
		{name: "a list of another kind is kept over HTTP", want: invariant.Holds, plan: offers, servers: []string{"s1 kind=http"}, story: announcedAndTold + `
			40s    s1 read call=c1 method=resources
			40s    s1 read-end call=c1 method=resources rev=2
			2m     - closing
		`},
		{name: "the templates are not given as they were before the resources were announced", want: invariant.Violated, why: "it had announced its state 3 before", plan: offers,
			servers: []string{"s1 kind=http"}, story: strings.ReplaceAll(announcedAndTold, "prompts", "resources") + `
			40s    s1 read call=c1 method=templates
			40s    s1 read-end call=c1 method=templates rev=2
			2m     - closing
		`},
		{name: "the templates are kept over HTTP when prompts were announced", want: invariant.Holds, plan: offers, servers: []string{"s1 kind=http"}, story: announcedAndTold + `
			40s    s1 read call=c1 method=templates
			40s    s1 read-end call=c1 method=templates rev=2
			2m     - closing
		`},
		{name: "a list that was announced just when it was read", want: invariant.Holds, plan: offers, servers: []string{"s1 kind=http"}, story: announcedAndTold + `
			20.5s  s1 read call=c1 method=prompts
			20.5s  s1 read-end call=c1 method=prompts rev=2
			2m     - closing
		`},
		{name: "a list whose announcement a command met", want: invariant.Holds, plan: offers, servers: []string{"s1 kind=http"}, story: `
			20s    s1 command command=1 method=reconnect
			20s    - done command=1 method=reconnect` + announcedAndTold + `
			40s    s1 read call=c1 method=prompts
			40s    s1 read-end call=c1 method=prompts rev=2
			2m     - closing
		`},
		{name: "an update is told", want: invariant.Holds, story: received + `
			20.05s s1 updated
			90s    - closing
		`},
		{name: "an update is not told", want: invariant.Violated, why: "no watcher was told of it by 20.15s", story: received + `
			90s    - closing
		`},
		{name: "the update of a part is told as one of the whole", want: invariant.Violated, why: "no watcher was told of it by 20.15s", story: partReceived + `
			20.05s s1 updated about=chaos://s1/one
			90s    - closing
		`},
		{name: "the update of a part is told", want: invariant.Holds, story: partReceived + `
			20.05s s1 updated about=chaos://s1/one/part
			90s    - closing
		`},
		// Seed 20779073: the agent that watched had left, and the manager was asking for lists alone.
		{name: "an update while another set of resources is asked for", want: invariant.Inconclusive, why: "nothing was read", story: up + `
			20s    s1 received conn=1 id=75 method=subscriptions/listen
			20s    s1 notified conn=1 method=notifications/resources/updated
			20.002s s1 notified conn=1 about=75 method=notifications/subscriptions/acknowledged
			90s    - closing
		`},
		{name: "an update after the server agreed to another set", want: invariant.Violated, why: "no watcher was told of it by 20.15s", story: up + `
			19s    s1 received conn=1 id=75 method=subscriptions/listen
			19s    s1 notified conn=1 about=75 method=notifications/subscriptions/acknowledged
			20s    s1 notified conn=1 method=notifications/resources/updated
			90s    - closing
		`},
		{name: "an update is not told after a subscription that was ended while it began", want: invariant.Inconclusive, why: "nothing was read",
			story: up + `
			10s    s1 read call=c1 method=subscribe
			11s    s1 read call=c2 method=unsubscribe
			11s    s1 read-end call=c2 method=unsubscribe
			12s    s1 read-end call=c1 method=subscribe
			20s    s1 notified conn=1 method=notifications/resources/updated
			90s    - closing
		`},
		{name: "an update is not told after a subscription that was ended while its server was disabled", want: invariant.Inconclusive, why: "nothing was read",
			story: given + `
			12s    s1 read call=c2 method=unsubscribe
			12s    s1 read-end call=c2 method=unsubscribe
			20s    s1 notified conn=1 method=notifications/resources/updated
			90s    - closing
		`},
		{name: "an update comes while the server is asked to end what was given up meanwhile", want: invariant.Inconclusive, why: "nothing was read",
			story: given + `
			12s    s1 read call=c2 method=unsubscribe
			12s    s1 read-end call=c2 method=unsubscribe
			19s    s1 phase phase=connected epoch=1
			20s    s1 notified conn=1 method=notifications/resources/updated
			90s    - closing
		`},
		{name: "a server goes on to send updates that were given up while it was disabled", want: invariant.Violated, why: "no watcher was told of it by 20.15s",
			story: given + `
			12s    s1 read call=c2 method=unsubscribe
			12s    s1 read-end call=c2 method=unsubscribe
			13s    s1 phase phase=connected epoch=1
			20s    s1 notified conn=1 method=notifications/resources/updated
			90s    - closing
		`},
		{name: "an update is not told to a caller while the server is disabled", want: invariant.Violated, why: "no watcher was told of it by 20.15s",
			story: given + `
			20s    s1 notified conn=1 method=notifications/resources/updated
			90s    - closing
		`},
		{name: "an agent may have given its watch up while the server is disabled", want: invariant.Inconclusive, why: "nothing was read", plan: withAgent,
			story: given + `
			20s    s1 notified conn=1 method=notifications/resources/updated
			90s    - closing
		`},
		{name: "an agent watched what is disabled for a while", want: invariant.Violated, why: "no watcher was told of it by 20.15s", plan: withAgent,
			story: given + `
			13s    s1 phase phase=connected epoch=1
			20s    s1 notified conn=1 method=notifications/resources/updated
			90s    - closing
		`},
		{name: "an update is not told though the server was connected when a caller ended his subscription", want: invariant.Violated, why: "no watcher was told of it by 20.15s",
			story: up + `
			9s     s1 phase phase=connected epoch=1
			10s    s1 read call=c1 method=subscribe
			10s    s1 read-end call=c1 method=subscribe
			12s    s1 read call=c2 method=unsubscribe
			12s    s1 read-end call=c2 method=unsubscribe
			20s    s1 notified conn=1 method=notifications/resources/updated
			90s    - closing
		`},
		{name: "an update is not told to who has subscribed again since", want: invariant.Violated, why: "no watcher was told of it by 20.15s",
			story: up + `
			11s    s1 phase phase=disabled epoch=1 warm=true
			12s    s1 read call=c2 method=unsubscribe
			12s    s1 read-end call=c2 method=unsubscribe
			13s    s1 phase phase=connected epoch=1
			14s    s1 read call=c3 method=subscribe
			14s    s1 read-end call=c3 method=subscribe
			20s    s1 notified conn=1 method=notifications/resources/updated
			90s    - closing
		`},
		{name: "an update is not told while its server is asked to end the subscription", want: invariant.Inconclusive, why: "nothing was read",
			story: up + `
			10s    s1 received conn=1 method=resources/subscribe id=4
			10s    s1 answered conn=1 method=resources/subscribe id=4
			19.8s  s1 received conn=1 method=resources/unsubscribe id=5
			20s    s1 notified conn=1 method=notifications/resources/updated
			20.02s s1 answered conn=1 method=resources/unsubscribe id=5
			90s    - closing
		`},
		{name: "an update is not told of the subscription after the one that has ended", want: invariant.Violated, why: "no watcher was told of it by 20.15s",
			story: up + `
			10s    s1 received conn=1 method=resources/unsubscribe id=4
			10s    s1 answered conn=1 method=resources/unsubscribe id=4
			11s    s1 received conn=1 method=resources/subscribe id=5
			11s    s1 answered conn=1 method=resources/subscribe id=5
			20s    s1 notified conn=1 method=notifications/resources/updated
			90s    - closing
		`},
		// Seed 30180957: a redirect answered the request that ends the subscription, and the server went on to tell of it.
		{name: "an update is not told after its server has refused to end the subscription", want: invariant.Inconclusive, why: "nothing was read",
			story: up + `
			1s     s1 received conn=1 method=resources/subscribe id=4
			1s     s1 answered conn=1 method=resources/subscribe id=4
			2s     s1 received conn=1 method=resources/unsubscribe id=5
			2s     s1 answered conn=1 method=resources/unsubscribe id=5 code=307
			20s    s1 notified conn=1 method=notifications/resources/updated
			90s    - closing
		`},
		{name: "an update is not told to who has subscribed once more after that", want: invariant.Violated, why: "no watcher was told of it by 20.15s",
			story: up + `
			2s     s1 received conn=1 method=resources/unsubscribe id=5
			2s     s1 answered conn=1 method=resources/unsubscribe id=5 code=307
			3s     s1 received conn=1 method=resources/subscribe id=6
			3s     s1 answered conn=1 method=resources/subscribe id=6
			20s    s1 notified conn=1 method=notifications/resources/updated
			90s    - closing
		`},
		// Seed 20399013: the answer to a subscription is recorded after the request that ends it, which follows from it in one instant.
		{name: "an update is not told while the subscription ends in the moment of its answer", want: invariant.Inconclusive, why: "nothing was read",
			story: up + `
			1s     s1 received conn=1 method=resources/subscribe id=4
			9s     s1 received conn=1 method=resources/unsubscribe id=5
			9s     s1 answered conn=1 method=resources/subscribe id=4
			20s    s1 notified conn=1 method=notifications/resources/updated
			90s    - closing
		`},
		// Seed 20390531: the server agreed to the subscription when its caller had given it up.
		{name: "an update is not told to who has given the subscription up", want: invariant.Inconclusive, why: "nothing was read",
			story: up + `
			1s     s1 received conn=1 method=resources/subscribe id=4
			4s     s1 received conn=1 method=notifications/cancelled about=4
			9s     s1 answered conn=1 method=resources/subscribe id=4
			20s    s1 notified conn=1 method=notifications/resources/updated
			90s    - closing
		`},
		{name: "an update is not told, and another subscription was given up", want: invariant.Violated, why: "no watcher was told of it by 20.15s",
			story: up + `
			1s     s1 received conn=1 method=resources/subscribe id=3
			1s     s1 answered conn=1 method=resources/subscribe id=3
			1s     s1 received conn=1 method=resources/subscribe id=4
			4s     s1 received conn=1 method=notifications/cancelled about=4
			9s     s1 answered conn=1 method=resources/subscribe id=4
			20s    s1 notified conn=1 method=notifications/resources/updated
			90s    - closing
		`},
		{name: "an update is not told to who has gone", want: invariant.Inconclusive, why: "nothing was read", story: received + `
			20.01s s1 read call=c1 method=unsubscribe
			21s    s1 read-end call=c1 method=unsubscribe
			90s    - closing
		`},
	})
}
