package invariant_test

import (
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// TestAgentsAreToldOfOfferedLists: an agent that has listed prompts or resources, or listens, is told of each change that a server announces.
func TestAgentsAreToldOfOfferedLists(t *testing.T) {
	offers := func(p *scenario.Plan) { p.Servers[0].Kind, p.Servers[0].Offers = messages.Stdio, true }
	bounded := func(p *scenario.Plan) { offers(p); p.Servers[0].MaxInFlight = 1 }
	hasty := func(p *scenario.Plan) {
		offers(p)
		p.Servers[0].Latency, p.Servers[0].CallTimeout = 200*time.Millisecond, 800*time.Millisecond
	}
	slow := func(p *scenario.Plan) { offers(p); p.Servers[0].Latency = 100 * time.Millisecond }
	denied := func(p *scenario.Plan) {
		offers(p)
		p.Commands = append(p.Commands, scenario.PlannedCommand{Server: "s1", Do: "permit", At: time.Minute, With: map[string]string{"refuse": "*"}})
	}
	hidden := func(p *scenario.Plan) {
		offers(p)
		heldBy(scenario.View{}, scenario.View{At: messages.Duration(5 * time.Second), Deny: []string{"s1:" + scenario.WholeServer}})(p)
	}
	const connected = `
			1s s1 open conn=1
			1s s1 opened conn=1
			1s s1 phase phase=connected epoch=1`
	const joined = connected + `
			2s - joined agent=agent-1 by=anna epoch=1 name=legacy_lines about=s1`
	const listed = joined + `
			3s - asked agent=agent-1 by=anna epoch=1 id=1 method=resources/list
			3s - replied agent=agent-1 by=anna epoch=1 id=1 method=resources/list`
	const changed = `
			10s s1 notified conn=1 method=notifications/resources/list_changed`
	const row = changed + `
			10400ms s1 notified conn=1 method=notifications/resources/list_changed
			10800ms s1 notified conn=1 method=notifications/resources/list_changed
			11200ms s1 notified conn=1 method=notifications/resources/list_changed
			11600ms s1 notified conn=1 method=notifications/resources/list_changed
			12s     s1 notified conn=1 method=notifications/resources/list_changed`
	const hears = `
			10s - noticed agent=agent-1 by=anna epoch=1 method=notifications/resources/list_changed`
	const over = `
			30s - parted agent=agent-1 by=anna epoch=1
			1m - closing`
	const listens = connected + `
			2s - joined agent=agent-1 by=anna epoch=1 name=modern_lines about=s1
			3s - asked agent=agent-1 by=anna epoch=1 id=1 method=subscriptions/listen
			3s - noticed agent=agent-1 by=anna epoch=1 id=1 method=notifications/subscriptions/acknowledged`
	runCases(t, "I26", []storyCase{
		{name: "it is told", plan: offers, want: invariant.Holds, story: listed + changed + hears + over},
		{name: "it is not told", plan: offers, want: invariant.Violated, why: "agent-1, which had asked for it at 3s, was not told by 11", story: listed + changed + over},
		{name: "the list waits for a slot among the server's requests, as on seed 20966843", plan: bounded, want: invariant.Inconclusive, story: listed + changed + over},
		{name: "the list takes longer than the server's call timeout, as on seed 20980239", plan: hasty, want: invariant.Inconclusive, story: listed + changed + over},
		{name: "the list changes faster than its pages can be read", plan: slow, want: invariant.Holds, story: listed + row + `
			13500ms - noticed agent=agent-1 by=anna epoch=1 method=notifications/resources/list_changed` + over},
		{name: "the list has changed faster than its pages can be read", plan: slow, want: invariant.Violated, why: "said at 10s that its list has changed (notifications/resources/list_changed), and agent-1, which had asked for it at 3s, was not told by 15.1",
			story: listed + row + over},
		{name: "the list changes slowly enough for its pages to be read", plan: slow, want: invariant.Violated, why: "was not told by 13.1", story: listed + changed + `
			10500ms s1 notified conn=1 method=notifications/resources/list_changed
			13500ms - noticed agent=agent-1 by=anna epoch=1 method=notifications/resources/list_changed` + over},
		{name: "it was told of the change before", plan: offers, want: invariant.Violated, why: "was not told by 11", story: listed + `
			9s - noticed agent=agent-1 by=anna epoch=1 method=notifications/resources/list_changed` + changed + over},
		{name: "it is told of another list", plan: offers, want: invariant.Violated, why: "was not told by 11", story: listed + changed + `
			10s - noticed agent=agent-1 by=anna epoch=1 method=notifications/prompts/list_changed` + over},
		{name: "it lists it again by itself, as on seed 20981033", plan: offers, want: invariant.Holds, story: listed + changed + `
			10s - asked agent=agent-1 by=anna epoch=1 id=2 method=resources/list
			10s - replied agent=agent-1 by=anna epoch=1 id=2 method=resources/list` + over},
		{name: "it lists another list by itself", plan: offers, want: invariant.Violated, why: "was not told by 11", story: listed + changed + `
			10s - asked agent=agent-1 by=anna epoch=1 id=2 method=prompts/list
			10s - replied agent=agent-1 by=anna epoch=1 id=2 method=prompts/list` + over},
		{name: "it has listed the templates", plan: offers, want: invariant.Violated, why: "was not told by 11", story: joined + `
			3s - asked agent=agent-1 by=anna epoch=1 id=1 method=resources/templates/list
			3s - replied agent=agent-1 by=anna epoch=1 id=1 method=resources/templates/list` + changed + over},
		{name: "it has listed something else", plan: offers, want: invariant.Inconclusive, story: joined + `
			3s - asked agent=agent-1 by=anna epoch=1 id=1 method=prompts/list
			3s - replied agent=agent-1 by=anna epoch=1 id=1 method=prompts/list` + changed + over},
		{name: "its list was refused", plan: offers, want: invariant.Inconclusive, story: joined + `
			3s - asked agent=agent-1 by=anna epoch=1 id=1 method=resources/list
			3s - replied agent=agent-1 by=anna epoch=1 id=1 method=resources/list code=-32603` + changed + over},
		{name: "it listens, and is told", plan: offers, want: invariant.Holds, story: listens + changed + `
			10s - noticed agent=agent-1 by=anna epoch=1 id=1 method=notifications/resources/list_changed` + over},
		{name: "it listens, and is not told", plan: offers, want: invariant.Violated, why: "which listens for that since it asked at 3s, was not told", story: listens + changed + over},
		{name: "it has ended the subscription", plan: offers, want: invariant.Inconclusive, story: listens + `
			9s - ended agent=agent-1 by=anna epoch=1 id=1 method=subscriptions/listen` + changed + over},
		{name: "it has gone", plan: offers, want: invariant.Inconclusive, story: listed + changed + `
			10s - parted agent=agent-1 by=anna epoch=1
			1m - closing`},
		{name: "its stream breaks", plan: offers, want: invariant.Inconclusive, story: listed + changed + `
			10500ms - stream-cut agent=agent-1 by=anna epoch=1` + over},
		{name: "a command is given", plan: offers, want: invariant.Inconclusive, story: listed + `
			10s s1 command command=1 method=reconnect` + changed + over},
		{name: "a fault may have swallowed the request for a list", plan: offers, want: invariant.Inconclusive, story: listed + `
			4s s1 fault-on fault=1 name=black-hole
			6s s1 fault-off fault=1 name=black-hole` + changed + over},
		{name: "a rule denies the server at times", plan: denied, want: invariant.Inconclusive, story: listed + changed + over},
		{name: "its view comes to hide the server", plan: hidden, want: invariant.Holds, story: listed + changed + over},
	})
}
