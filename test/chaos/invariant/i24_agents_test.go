package invariant_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// joinedAgents are two agents of two principals, each of which has a session.
const joinedAgents = `
	1s - joined agent=agent-1 by=anna epoch=1 name=legacy_lines
	1s - joined agent=agent-2 by=ben epoch=1 name=legacy_http
	2s - asked agent=agent-1 by=anna epoch=1 id=1 method=tools/call about=a1-1
	2s - asked agent=agent-2 by=ben epoch=1 id=1 method=tools/call about=a2-1
`

// endedTask is a call of agent-1 that went on as a task, and ended while the stream of the agent was broken.
const endedTask = joinedAgents + `
	2s s1 call call=a1-1 agent=agent-1 by=anna
	3s - replied agent=agent-1 by=anna epoch=1 id=1 method=tools/call
	3s - tasked agent=agent-1 by=anna epoch=1 about=a1-1 deadline=1h
	4s - stream-cut agent=agent-1 by=anna epoch=1
	5s s1 end call=a1-1 agent=agent-1 by=anna outcome=unknown
`

func TestAgentsApart(t *testing.T) {
	runCases(t, "I24", []storyCase{
		{name: "everybody gets their own", want: invariant.Holds, story: joinedAgents + `
			3s - questioned agent=agent-1 by=anna epoch=1 method=elicitation/create about=a1-1
			3s - noticed agent=agent-2 by=ben epoch=1 method=notifications/progress about=a2-1
			4s - replied agent=agent-1 by=anna epoch=1 id=1 method=tools/call about=a1-1
			4s - replied agent=agent-2 by=ben epoch=1 id=1 method=tools/call about=a2-1`},
		{name: "the answer of another", want: invariant.Violated, why: "was given the answer to call a2-1 at 4s, which is one of agent-2", story: joinedAgents + `
			4s - replied agent=agent-1 by=anna epoch=1 id=1 method=tools/call about=a2-1`},
		{name: "the question of another", want: invariant.Violated, why: "was asked at 3s about call a2-1", story: joinedAgents + `
			3s - questioned agent=agent-1 by=anna epoch=1 method=elicitation/create about=a2-1`},
		{name: "a question in the exchange of its call", want: invariant.Holds, story: joinedAgents + `
			3s - asked agent=agent-2 by=ben epoch=1 id=2 method=tools/call about=a2-2
			4s - questioned agent=agent-2 by=ben epoch=1 id=1 method=elicitation/create about=a2-1
			4s - questioned agent=agent-2 by=ben epoch=1 id=2 method=elicitation/create about=a2-2`},
		{name: "a question in the exchange of another call", want: invariant.Violated, why: "came in the exchange of its request 2 (tools/call a2-2)",
			story: joinedAgents + `
			3s - asked agent=agent-2 by=ben epoch=1 id=2 method=tools/call about=a2-2
			4s - questioned agent=agent-2 by=ben epoch=1 id=2 method=elicitation/create about=a2-1`},
		{name: "the progress of another", want: invariant.Violated, why: "got the progress of a2-1 at 3s, which is one of agent-2", story: joinedAgents + `
			3s - noticed agent=agent-1 by=anna epoch=1 method=notifications/progress about=a2-1`},
		{name: "a progress after the answer", want: invariant.Violated, why: "it has no such call under way", story: joinedAgents + `
			3s - replied agent=agent-1 by=anna epoch=1 id=1 method=tools/call about=a1-1
			4s - noticed agent=agent-1 by=anna epoch=1 method=notifications/progress about=a1-1`},
		{name: "a progress of a task after its end", want: invariant.Violated, why: "it has no such call under way", story: endedTask + `
			7s - noticed agent=agent-1 by=anna epoch=1 method=notifications/progress about=a1-1`},
		{name: "a progress of a task that came with the resumed stream", want: invariant.Holds, story: endedTask + `
			7s - stream-back agent=agent-1 by=anna epoch=1
			7s - noticed agent=agent-1 by=anna epoch=1 method=notifications/progress about=a1-1`},
		{name: "a progress of a task after the resumption", want: invariant.Violated, why: "it has no such call under way", story: endedTask + `
			7s - stream-back agent=agent-1 by=anna epoch=1
			8s - noticed agent=agent-1 by=anna epoch=1 method=notifications/progress about=a1-1`},
		{name: "an update of what another watches", want: invariant.Violated, why: "which it does not watch", story: joinedAgents + `
			3s - asked agent=agent-2 by=ben epoch=1 id=2 method=resources/subscribe about=chaos://s1/one
			4s - noticed agent=agent-1 by=anna epoch=1 method=notifications/resources/updated about=chaos://s1/one`},
		{name: "an update of a part of what it watches", want: invariant.Holds, story: joinedAgents + `
			3s - asked agent=agent-1 by=anna epoch=1 id=2 method=resources/subscribe about=chaos://s1/one
			4s - noticed agent=agent-1 by=anna epoch=1 method=notifications/resources/updated about=chaos://s1/one/part`},
		{name: "a subscription of another", want: invariant.Violated, why: "which is none of its own", story: joinedAgents + `
			3s - asked agent=agent-2 by=ben epoch=1 id=7 method=subscriptions/listen
			4s - noticed agent=agent-1 by=anna epoch=1 id=7 method=notifications/tools/list_changed`},
		{name: "a session of another is open", want: invariant.Violated, why: "must be refused (foreign-session)", story: joinedAgents + `
			3s - asked agent=agent-2 by=ben epoch=1 id=t method=tools/list name=foreign-session code=404
			3s - replied agent=agent-2 by=ben epoch=1 id=t method=tools/list name=foreign-session code=200`},
		{name: "nobody came", want: invariant.Inconclusive, story: `1s s1 open conn=1`},
	})
}

func TestQuestionsTakenBack(t *testing.T) {
	const asked = joinedAgents + `
		2s s1 call call=a1-1 agent=agent-1 by=anna
		3s s1 questioned agent=agent-1 by=anna epoch=1 method=elicitation/create about=a1-1
		3.1s s1 notified conn=1 method=notifications/cancelled call=a1-1
	`
	runCases(t, "I24", []storyCase{
		{name: "the agent is told", want: invariant.Holds, story: asked + `
			3.1s - noticed agent=agent-1 by=anna epoch=1 method=notifications/cancelled about=a1-1
			5s - replied agent=agent-1 by=anna epoch=1 id=1 method=tools/call about=a1-1`},
		{name: "the agent is not told", want: invariant.Violated, why: "took its question about call a1-1 back at 3.1s", story: asked + `
			5s - replied agent=agent-1 by=anna epoch=1 id=1 method=tools/call about=a1-1`},
		{name: "it is told of another call", want: invariant.Violated, why: "was not told", story: asked + `
			3.1s - noticed agent=agent-1 by=anna epoch=1 method=notifications/cancelled about=a1-2
			5s - replied agent=agent-1 by=anna epoch=1 id=1 method=tools/call about=a1-1`},
		{name: "the call had ended before", want: invariant.Holds, story: joinedAgents + `
			2s s1 call call=a1-1 agent=agent-1 by=anna
			3s s1 questioned agent=agent-1 by=anna epoch=1 method=elicitation/create about=a1-1
			3.05s - replied agent=agent-1 by=anna epoch=1 id=1 method=tools/call about=a1-1
			3.1s s1 notified conn=1 method=notifications/cancelled call=a1-1
			9s - noticed agent=agent-2 by=ben epoch=1 method=notifications/progress about=a2-1`},
		{name: "the agent has gone", want: invariant.Holds, story: asked + `
			3.11s - parted agent=agent-1 by=anna epoch=1`},
		{name: "nobody came", want: invariant.Inconclusive, story: `1s s1 open conn=1`},
	})
}

// TestQuestionsReachWhoCanBeAsked: of two agents at a server over HTTP one can be asked for input by a form, and the other one nothing.
func TestQuestionsReachWhoCanBeAsked(t *testing.T) {
	plan := func(p *scenario.Plan) { p.Servers[0].Kind, p.Servers[0].Era = messages.HTTP, messages.EraLegacy }
	const calls = `
		1s - joined agent=agent-1 by=anna epoch=1 name=legacy_lines names=elicitation/create
		1s - joined agent=agent-2 by=ben epoch=1 name=modern_http
		2s - asked agent=agent-1 by=anna epoch=1 id=1 method=tools/call about=a1-1
		2s s1 call call=a1-1 tool=write agent=agent-1 by=anna
		2s - asked agent=agent-2 by=ben epoch=1 id=1 method=tools/call about=a2-1
		2s s1 call call=a2-1 tool=write agent=agent-2 by=ben
	`
	const asked = calls + `
		3s s1 inquiry conn=1 method=elicitation/create id=ask-3 call=a1-1 hash=q1
	`
	const later = `
		9s - noticed agent=agent-1 by=anna epoch=1 method=notifications/progress about=a1-1`
	consulted := func(agent, hash string) string {
		return `
		3.02s s1 consulted agent=` + agent + ` epoch=1 method=elicitation/create about=a1-1 hash=` + hash
	}
	const advised = `
		4s s1 advised agent=agent-1 by=anna epoch=1 method=elicitation/create about=a1-1 hash=a1`
	const stranger = calls + `
		3s s1 inquiry conn=1 method=elicitation/create id=ask-3 call=a2-1 hash=q1
	`
	const refused = `
		3.01s s1 inquired conn=1 method=elicitation/create id=ask-3 call=a2-1 code=-32603`
	runCases(t, "I24", []storyCase{
		{name: "the agent is asked, and its answer arrives", want: invariant.Holds, plan: plan, story: asked + consulted("agent-1", "q1") + advised + `
			4.01s s1 inquired conn=1 method=elicitation/create id=ask-3 call=a1-1 hash=a1` + later},
		{name: "nobody is asked", want: invariant.Violated, why: "it was not asked by 3.075s", plan: plan, story: asked + later},
		{name: "another thing is asked", want: invariant.Violated, why: "is not what the server had asked", plan: plan, story: asked + consulted("agent-1", "q2") + later},
		{name: "another kind of question", want: invariant.Violated, why: "elicitation/create url), whose agent agent-1 has not declared", plan: plan,
			story: strings.ReplaceAll(asked, "hash=q1", "hash=q1 name=url") + consulted("agent-1", "q1") + later},
		{name: "its server asks a second time, for a visit, in the moment of the answer", want: invariant.Holds, plan: plan, story: asked + advised + `
			4s s1 consulted agent=agent-1 epoch=1 method=elicitation/create about=a1-1 hash=q1
			4s s1 inquired conn=1 method=elicitation/create id=ask-3 call=a1-1 hash=a1
			4s s1 inquiry conn=1 method=elicitation/create id=ask-3-more call=a1-1 hash=q2 name=url
			4s s1 inquired conn=1 method=elicitation/create id=ask-3-more call=a1-1 code=-32603` + strings.ReplaceAll(later, "9s", "10s") + consulted("agent-1", "q1")},
		{name: "the answer does not arrive", want: invariant.Violated, why: "did not get the answer by 4.075s", plan: plan, story: asked + consulted("agent-1", "q1") + advised + later},
		{name: "another answer arrives", want: invariant.Violated, why: "was given another answer at 4.01s", plan: plan, story: asked + consulted("agent-1", "q1") + advised + `
			4.01s s1 inquired conn=1 method=elicitation/create id=ask-3 call=a1-1 hash=a2` + later},
		{name: "who cannot be asked is not, and the server is refused", want: invariant.Holds, plan: plan, story: stranger + refused + later},
		{name: "who cannot be asked is asked", want: invariant.Violated, why: "has not declared that it can be asked so", plan: plan,
			story: stranger + strings.ReplaceAll(consulted("agent-2", "q1"), "a1-1", "a2-1") + refused + later},
		{name: "the server waits for who cannot be asked", want: invariant.Violated, why: "it was not refused by 3.075s", plan: plan, story: stranger + later},
		{name: "the agent has left", want: invariant.Holds, plan: plan, story: asked + `
			3.01s - parted agent=agent-1 by=anna epoch=1
			9s - replied agent=agent-2 by=ben epoch=1 id=1 method=tools/call about=a2-1`},
		{name: "the call was given up", want: invariant.Holds, plan: plan, story: asked + `
			3.01s s1 left call=a1-1 tool=write` + later},
		{name: "nobody came", want: invariant.Inconclusive, story: `1s s1 open conn=1`},
	})
}

// TestLevelsAreAskedFor: a server of the legacy era is asked for what agents want, before their calls come to it, and for nothing finer.
func TestLevelsAreAskedFor(t *testing.T) {
	writes := func(p *scenario.Plan) { p.Servers[0].Logs, p.Servers[0].Era = true, messages.EraLegacy }
	const wanted = `
		1s - joined agent=agent-1 by=anna epoch=1 name=legacy_lines
		2s - asked agent=agent-1 by=anna epoch=1 id=1 method=logging/setLevel level=debug
		3s - replied agent=agent-1 by=anna epoch=1 id=1 method=logging/setLevel
		4s - asked agent=agent-1 by=anna epoch=1 id=2 method=tools/call about=a1-1
		4s s1 call call=a1-1 tool=write agent=agent-1 by=anna`
	const called = `
		4s s1 received conn=1 method=tools/call call=a1-1 id=7`
	const modern = `
		1s - joined agent=agent-1 by=anna epoch=1 name=modern_lines
		4s - asked agent=agent-1 by=anna epoch=1 id=2 method=tools/call about=a1-1 level=debug
		4s s1 call call=a1-1 tool=write agent=agent-1 by=anna`
	asked := func(level string) string {
		return `
		2.5s s1 received conn=1 method=logging/setLevel id=5 level=` + level + `
		2.6s s1 answered conn=1 method=logging/setLevel id=5`
	}
	runCases(t, "I24", []storyCase{
		{name: "the level that is wanted", want: invariant.Holds, plan: writes, story: wanted + asked("debug") + called},
		{name: "a coarser one", want: invariant.Violated, why: "wants log messages of the level debug", plan: writes, story: wanted + asked("warning") + called},
		{name: "none", want: invariant.Violated, why: "the server was asked for \"\" there", plan: writes, story: wanted + called},
		{name: "it is being asked", want: invariant.Holds, plan: writes, story: wanted + `
			3.9s s1 received conn=1 method=logging/setLevel id=6 level=warning` + called},
		{name: "whose level was refused, as on seed 30340582", want: invariant.Holds, plan: writes, story: strings.Replace(wanted, "id=1 method=logging/setLevel\n", "id=1 method=logging/setLevel code=-32602\n", 1) + asked("warning") + called},
		{name: "who has set no level", want: invariant.Holds, plan: writes, story: strings.NewReplacer("2s - asked", "5s - asked", "3s - replied", "6s - replied").Replace(wanted) + called},
		{name: "a request that wants a level, and is not asked for", want: invariant.Violated, why: "wants log messages of the level debug", plan: writes, story: modern + called},
		{name: "a request that wants a level", want: invariant.Holds, plan: writes, story: modern + `
			4s s1 received conn=1 method=logging/setLevel id=6 level=debug
			4s s1 answered conn=1 method=logging/setLevel id=6` + called},
		{name: "a finer one than anybody wants", want: invariant.Violated, why: "no agent that may use it has wanted any as fine", plan: writes,
			story: strings.ReplaceAll(wanted, "level=debug", "level=error") + asked("debug") + called},
		{name: "nobody came", want: invariant.Inconclusive, story: `1s s1 open conn=1`},
	})
}

// Of the servers of the plan s1 is one of stdio, which does not say about which call it asks, and s2 one over HTTP, which does.
func TestQuestionsThatNameNoCall(t *testing.T) {
	plan := func(p *scenario.Plan) {
		second := p.Servers[0]
		second.Name, second.Kind = "s2", messages.HTTP
		p.Servers = append(p.Servers, second)
	}
	// twoCalls are two calls of agent-2 at a server.
	twoCalls := func(server string) string {
		return joinedAgents + strings.ReplaceAll(`
			2s SERVER call call=a2-1 agent=agent-2 by=ben
			3s - asked agent=agent-2 by=ben epoch=1 id=2 method=tools/call about=a2-2
			3s SERVER call call=a2-2 agent=agent-2 by=ben
		`, "SERVER", server)
	}
	const givenUp = `
			3.1s - replied agent=agent-2 by=ben epoch=1 id=1 method=tools/call about=a2-1 name=taken-back
	`
	question := func(server, id, about string) string {
		return "4s " + server + " questioned agent=agent-2 by=ben epoch=1 id=" + id + " method=elicitation/create about=" + about
	}
	runCases(t, "I24", []storyCase{
		{name: "in the exchange of another call at that server", want: invariant.Holds, plan: plan, story: twoCalls("s1") + question("s1", "2", "a2-1")},
		{name: "over HTTP in the exchange of another call", want: invariant.Violated, why: "came in the exchange of its request 2", plan: plan,
			story: twoCalls("s2") + question("s2", "2", "a2-1")},
		{name: "in the exchange of a call at another server", want: invariant.Violated, why: "came in the exchange of its request 3", plan: plan,
			story: twoCalls("s1") + `
			3s - asked agent=agent-2 by=ben epoch=1 id=3 method=tools/call about=a2-3
			3s s2 call call=a2-3 agent=agent-2 by=ben
		` + question("s1", "3", "a2-1")},
		{name: "in the exchange of a read at that server", want: invariant.Holds, plan: plan, story: twoCalls("s1") + `
			3s - asked agent=agent-2 by=ben epoch=1 id=3 method=resources/read about=chaos://s1/one
		` + question("s1", "3", "a2-1")},
		{name: "about a call that was given up", want: invariant.Holds, plan: plan, story: twoCalls("s1") + givenUp + question("s1", "2", "a2-1")},
		{name: "over HTTP about a call that was given up", want: invariant.Violated, why: "it has no such call under way", plan: plan,
			story: twoCalls("s2") + givenUp + question("s2", "2", "a2-1")},
		{name: "about a call that was given up, and no other is under way", want: invariant.Violated, why: "it has no such call under way", plan: plan,
			story: twoCalls("s1") + givenUp + `
			3.2s - replied agent=agent-2 by=ben epoch=1 id=2 method=tools/call about=a2-2
		` + question("s1", "2", "a2-1")},
		{name: "about a call that was given up, and the other is at another server", want: invariant.Violated, why: "it has no such call under way", plan: plan,
			story: strings.Replace(twoCalls("s1"), "s1 call call=a2-2", "s2 call call=a2-2", 1) + givenUp + question("s1", "2", "a2-1")},
		{name: "about a call that the server has answered", want: invariant.Violated, why: "it has no such call under way", plan: plan,
			story: twoCalls("s1") + `
			3.1s s1 received conn=1 method=tools/call call=a2-1 id=7
			3.1s s1 answered conn=1 method=tools/call call=a2-1 id=7
		` + givenUp + question("s1", "2", "a2-1")},
		{name: "about a call that another agent gave up", want: invariant.Violated, why: "which is one of agent-1", plan: plan, story: twoCalls("s1") + `
			2s s1 call call=a1-1 agent=agent-1 by=anna
			3.1s - replied agent=agent-1 by=anna epoch=1 id=1 method=tools/call about=a1-1 name=taken-back
		` + question("s1", "2", "a1-1")},
		{name: "nobody came", want: invariant.Inconclusive, plan: plan, story: `1s s1 open conn=1`},
	})
}

// ofOneServer is an agent whose view is one server.
const ofOneServer = `
	1s - joined agent=agent-1 by=anna epoch=1 name=legacy_http about=s1
`

func TestViewsOfAgents(t *testing.T) {
	const shown = joinedAgents + `
		500ms - snapshot generation=1 entries=s1:live:2:3:abc
		3s - asked agent=agent-1 by=anna epoch=1 id=2 method=tools/list
		3s - replied agent=agent-1 by=anna epoch=1 id=2 method=tools/list entries=s1::0:3:abc
	`
	runCases(t, "I26", []storyCase{
		{name: "the catalog, and a change that is told", want: invariant.Holds, story: shown + `
			5s - snapshot generation=2 entries=s1:live:2:4:def
			5.05s - noticed agent=agent-1 by=anna epoch=1 method=notifications/tools/list_changed
			9s - closing`},
		{name: "another list than the catalog", want: invariant.Violated, why: "was shown 3 tools of the server s1", story: shown + `
			5s - asked agent=agent-1 by=anna epoch=1 id=3 method=tools/list
			5s - replied agent=agent-1 by=anna epoch=1 id=3 method=tools/list entries=s1::0:3:def`},
		{name: "a server that is not there", want: invariant.Violated, why: "which its view does not have", story: shown + `
			5s - asked agent=agent-1 by=anna epoch=1 id=3 method=tools/list
			5s - replied agent=agent-1 by=anna epoch=1 id=3 method=tools/list entries=s1::0:3:abc,s2::0:1:x`},
		{name: "the tools of a lost server", want: invariant.Violated, why: "was shown 3 tools of the server s1", story: shown + `
			5s - snapshot generation=2 entries=s1:lost:2:3:abc
			5.05s - noticed agent=agent-1 by=anna epoch=1 method=notifications/tools/list_changed
			6s - asked agent=agent-1 by=anna epoch=1 id=3 method=tools/list
			6s - replied agent=agent-1 by=anna epoch=1 id=3 method=tools/list entries=s1::0:3:abc`},
		{name: "a change that is not told", want: invariant.Violated, why: "it was not told by", story: shown + `
			5s - snapshot generation=2 entries=s1:live:2:4:def
			9s - closing`},
		{name: "nobody came", want: invariant.Inconclusive, story: `1s s1 open conn=1`},
		{name: "a change that is told when there is a stream again", want: invariant.Holds, story: shown + `
			4.5s - stream-cut agent=agent-1 by=anna epoch=1
			5s - snapshot generation=2 entries=s1:live:2:4:def
			7s - stream-back agent=agent-1 by=anna epoch=1
			7s - noticed agent=agent-1 by=anna epoch=1 method=notifications/tools/list_changed
			9s - closing`},
		{name: "a change without a stream that is never told", want: invariant.Violated, why: "it was not told by 7.", story: shown + `
			4.5s - stream-cut agent=agent-1 by=anna epoch=1
			5s - snapshot generation=2 entries=s1:live:2:4:def
			7s - stream-back agent=agent-1 by=anna epoch=1
			9s - closing`},
		{name: "a notice in the moment in which the stream breaks", want: invariant.Holds, story: shown + `
			5s - snapshot generation=2 entries=s1:live:2:4:def
			5.04s - stream-cut agent=agent-1 by=anna epoch=1
			7s - stream-back agent=agent-1 by=anna epoch=1
			9s - closing`},
		{name: "a stream that took the place of another", want: invariant.Violated, why: "It had another stream than before since 4s", story: shown + `
			4s - stream-back agent=agent-1 by=anna epoch=1
			5s - snapshot generation=2 entries=s1:live:2:4:def
			9s - closing`},
		{name: "a change that is taken back at once", want: invariant.Holds, story: shown + `
			5s - snapshot generation=2 entries=s1:lost:2:3:abc
			5.02s - snapshot generation=3 entries=s1:live:3:3:abc
			9s - closing`},
		{name: "no change, and a notification", want: invariant.Violated, why: "nothing that it sees had changed", story: shown + `
			6s - snapshot generation=2
			6.05s - noticed agent=agent-1 by=anna epoch=1 method=notifications/tools/list_changed`},
	})
}

// Of the servers of the plan s1 is one of stdio, which does not say about which call it writes, and s2 one over HTTP, which does.
func TestLogsOfAgents(t *testing.T) {
	plan := func(p *scenario.Plan) {
		second := p.Servers[0]
		second.Name, second.Kind = "s2", messages.HTTP
		p.Servers = append(p.Servers, second)
	}
	const call = `
		1s - joined agent=agent-1 by=anna epoch=1 name=legacy_lines
		1s - joined agent=agent-2 by=ben epoch=1 name=modern_lines
		2s - asked agent=agent-1 by=anna epoch=1 id=1 method=logging/setLevel level=error
		2s - replied agent=agent-1 by=anna epoch=1 id=1 method=logging/setLevel
		3s - asked agent=agent-1 by=anna epoch=1 id=2 method=tools/call about=a1-1
		3s s2 call call=a1-1 tool=write agent=agent-1 by=anna
		3s s2 received conn=1 method=tools/call call=a1-1 id=7
		3.1s s2 notified conn=1 method=notifications/message call=a1-1 level=error
		3.1s s2 notified conn=1 method=notifications/message call=a1-1 level=info
		3.1s s2 answered conn=1 method=tools/call call=a1-1 id=7
	`
	const answer = `
		3.2s - replied agent=agent-1 by=anna epoch=1 id=2 method=tools/call about=a1-1 outcome=result
		3.2s s2 end call=a1-1 tool=write outcome=result agent=agent-1 by=anna
	`
	const noticed = `
		3.1s - noticed agent=agent-1 by=anna epoch=1 method=notifications/message about=a1-1 level=`
	const modern = `
		1s - joined agent=agent-2 by=ben epoch=1 name=modern_lines
		3s - asked agent=agent-2 by=ben epoch=1 id=5 method=tools/call about=a2-1 level=warning
		3s s2 call call=a2-1 tool=write agent=agent-2 by=ben
		3s - asked agent=agent-2 by=ben epoch=1 id=6 method=tools/call about=a2-2
		3s s2 call call=a2-2 tool=write agent=agent-2 by=ben
		3.1s - noticed agent=agent-2 by=ben epoch=1 method=notifications/message about=`
	const leftBehind = `
		1s - joined agent=agent-3 by=ben epoch=1 name=modern_lines
		3s - asked agent=agent-3 by=ben epoch=1 id=5 method=tools/call about=a3-1 level=warning
		3s s1 call call=a3-1 tool=write agent=agent-3 by=ben
	`
	runCases(t, "I24", []storyCase{
		{name: "what a session wants", want: invariant.Holds, plan: plan, story: call + noticed + "error" + answer},
		{name: "less severe than a session wants", want: invariant.Violated, why: "got a log message of the level info at 3.1s (call a1-1), and wants error and above", plan: plan,
			story: call + noticed + "error" + noticed + "info" + answer},
		{name: "what a session wants does not come", want: invariant.Violated, why: "agent-1 wants error and above, and had not got it when the call was answered", plan: plan,
			story: call + answer},
		{name: "what a session wants comes after the answer", want: invariant.Violated, why: "had not got it when the call was answered", plan: plan,
			story: call + answer + `
			3.3s - noticed agent=agent-1 by=anna epoch=1 method=notifications/message about=a1-1 level=error`},
		{name: "a level that was refused is not wanted, as on seed 20980474", want: invariant.Holds, plan: plan, story: strings.Replace(call, "id=1 method=logging/setLevel\n", `id=1 method=logging/setLevel
		2.5s - asked agent=agent-1 by=anna epoch=1 id=8 method=logging/setLevel level=debug
		2.5s - replied agent=agent-1 by=anna epoch=1 id=8 method=logging/setLevel code=-32602
		`, 1) + noticed + "error" + answer},
		{name: "a level that is set in the same moment", want: invariant.Holds, plan: plan, story: call + `
			3.1s - asked agent=agent-1 by=anna epoch=1 id=3 method=logging/setLevel level=emergency
			3.1s - replied agent=agent-1 by=anna epoch=1 id=3 method=logging/setLevel` + answer},
		{name: "what a request wants", want: invariant.Holds, plan: plan, story: modern + "a2-1 level=warning"},
		{name: "less severe than a request wants", want: invariant.Violated, why: "and wants warning and above", plan: plan, story: modern + "a2-1 level=notice"},
		{name: "to a request that wants none", want: invariant.Violated, why: "and wants none", plan: plan, story: modern + "a2-2 level=emergency"},
		{name: "about the call of another", want: invariant.Violated, why: "which is none of its own", plan: plan, story: modern + "a1-1 level=emergency"},
		// Seed 20850392: the server of a call that was given up writes about it while it works on one of another agent, and does not say which.
		{name: "about the call of another of the principal that was given up", want: invariant.Holds, plan: plan, story: leftBehind + `
			3.05s s1 left call=a3-1 tool=write agent=agent-3 by=ben` + modern + "a3-1 level=emergency"},
		{name: "about the call of another of the principal", want: invariant.Violated, why: "which is none of its own", plan: plan,
			story: leftBehind + modern + "a3-1 level=emergency"},
		{name: "nobody came", want: invariant.Inconclusive, plan: plan, story: `1s s1 open conn=1`},
	})
}

// heldBy holds agent-1 to views.
func heldBy(views ...scenario.View) func(*scenario.Plan) {
	return func(p *scenario.Plan) {
		p.Agents = append(p.Agents, scenario.PlannedAgent{Name: "agent-1", As: "anna", Within: views, Held: "held-1"})
	}
}

func TestViewsHide(t *testing.T) {
	const catalog = joinedAgents + `
		500ms - snapshot generation=1 entries=s1:live:2:3:abc:read+put+write:-write=2/def
	`
	noWrite := heldBy(scenario.View{Deny: []string{"s1:write"}})
	nothing := heldBy(scenario.View{Deny: []string{"s1:*"}})
	later := heldBy(scenario.View{}, scenario.View{At: messages.Duration(5 * time.Second), Servers: []string{"s2"}})
	const list = catalog + `
		3s - asked agent=agent-1 by=anna epoch=1 id=2 method=tools/list
		3s - replied agent=agent-1 by=anna epoch=1 id=2 method=tools/list entries=`
	const call = catalog + `
		6s - asked agent=agent-1 by=anna epoch=1 id=2 method=tools/call about=a1-2
		6s s1 call call=a1-2 tool=write agent=agent-1 by=anna
	`
	runCases(t, "I26", []storyCase{
		{name: "the rest of the tools", want: invariant.Holds, plan: noWrite, story: list + `s1::0:2:def`},
		{name: "all tools", want: invariant.Violated, why: "was shown 3 tools of the server s1", plan: noWrite, story: list + `s1::0:3:abc`},
		{name: "the rest of the tools with another definition", want: invariant.Violated, why: "was shown 2 tools of the server s1", plan: noWrite, story: list + `s1::0:2:xyz`},
		{name: "tools of a hidden server", want: invariant.Violated, why: "was shown 3 tools of the server s1", plan: nothing, story: list + `s1::0:3:abc`},
		{name: "a view that hides a server later, which is told", want: invariant.Holds, plan: later, story: list + `s1::0:3:abc
			5.05s - noticed agent=agent-1 by=anna epoch=1 method=notifications/tools/list_changed
			9s - closing`},
		{name: "a view that hides a server later, which is not told", want: invariant.Violated, why: "from 3 tools to 0, and it was not told", plan: later,
			story: list + `s1::0:3:abc
			9s - closing`},
		{name: "a hidden tool changes, which is told", want: invariant.Violated, why: "nothing that it sees had changed", plan: noWrite, story: list + `s1::0:2:def
			6s - snapshot generation=2 entries=s1:live:2:3:new:read+put+write:-write=2/def
			6.05s - noticed agent=agent-1 by=anna epoch=1 method=notifications/tools/list_changed`},
		{name: "a hidden tool is unknown", want: invariant.Holds, plan: noWrite, story: call + `
			6s - replied agent=agent-1 by=anna epoch=1 id=2 method=tools/call code=-32602
			6s s1 end call=a1-2 tool=write agent=agent-1 by=anna name=untaken outcome=not-sent`},
		{name: "a hidden tool is denied", want: invariant.Violated, why: "it had to be told that there is no such thing", plan: noWrite, story: call + `
			6s - replied agent=agent-1 by=anna epoch=1 id=2 method=tools/call`},
		{name: "an agent comes back to a call that its view hides by now, as on seed 277", want: invariant.Holds, plan: later, story: catalog + `
			4s - asked agent=agent-1 by=anna epoch=1 id=2 method=tools/call about=a1-2
			4s s1 call call=a1-2 tool=write agent=agent-1 by=anna
			4s s1 received conn=1 method=tools/call id=5 call=a1-2
			8s - asked agent=agent-1 by=anna epoch=1 id=3 method=tools/call about=a1-2
			9s - closing`},
		{name: "a hidden tool comes to its server", want: invariant.Violated, why: "which its view hides, and the call came to the server at 6s", plan: noWrite, story: call + `
			6s s1 received conn=1 method=tools/call call=a1-2 id=7`},
		{name: "a tool that is hidden while it is called", want: invariant.Holds,
			plan: heldBy(scenario.View{}, scenario.View{At: messages.Duration(6 * time.Second), Deny: []string{"s1:write"}}),
			story: call + `
			6s s1 received conn=1 method=tools/call call=a1-2 id=7
			7s - replied agent=agent-1 by=anna epoch=1 id=2 method=tools/call about=a1-2`},
		{name: "a resource of a hidden server is not there", want: invariant.Holds, plan: nothing, story: catalog + `
			6s - asked agent=agent-1 by=anna epoch=1 id=3 method=resources/read about=chaos://s1/one
			6s - replied agent=agent-1 by=anna epoch=1 id=3 method=resources/read code=-32002`},
		{name: "a resource of a hidden server is read", want: invariant.Violated, why: "asked resources/read (chaos://s1/one) at 6s about what its view hides", plan: nothing,
			story: catalog + `
			6s - asked agent=agent-1 by=anna epoch=1 id=3 method=resources/read about=chaos://s1/one
			6s - replied agent=agent-1 by=anna epoch=1 id=3 method=resources/read`},
		// Seed 20896260: s1__x is another server, which the view shows.
		{name: "a prompt of a server whose name begins with that of a hidden one", servers: []string{"s1", "s1__x"}, want: invariant.Holds, plan: nothing, story: catalog + `
			6s - asked agent=agent-1 by=anna epoch=1 id=3 method=prompts/get about=s1__x__greet
			6s - replied agent=agent-1 by=anna epoch=1 id=3 method=prompts/get`},
		{name: "a prompt of a hidden server", want: invariant.Violated, why: "asked prompts/get (s1__greet) at 6s about what its view hides", plan: nothing, story: catalog + `
			6s - asked agent=agent-1 by=anna epoch=1 id=3 method=prompts/get about=s1__greet
			6s - replied agent=agent-1 by=anna epoch=1 id=3 method=prompts/get`},
		{name: "prompts of a hidden server are listed", want: invariant.Violated, why: "was given 2 entries of s1", plan: nothing, story: catalog + `
			6s - asked agent=agent-1 by=anna epoch=1 id=3 method=prompts/list
			6s - replied agent=agent-1 by=anna epoch=1 id=3 method=prompts/list entries=s1::0:2`},
		{name: "an update of a hidden server", want: invariant.Violated, why: "whose server its view hides", plan: nothing, story: catalog + `
			6s s1 updated
			6s - noticed agent=agent-1 by=anna epoch=1 method=notifications/resources/updated about=chaos://s1/one`},
		{name: "an update of another server that took the URI of a hidden one, as on seed 20202348", want: invariant.Holds, plan: nothing, story: catalog + `
			1s s1 updated
			6s s2 updated
			6s - noticed agent=agent-1 by=anna epoch=1 method=notifications/resources/updated about=chaos://s1/one`},
		{name: "an update from before, which was kept while there was no stream, as on seed 20710169", want: invariant.Holds, plan: later, story: list + `s1::0:3:abc
			4s - stream-cut agent=agent-1 by=anna epoch=1
			4.5s s1 updated
			6s s1 updated
			6s - stream-back agent=agent-1 by=anna epoch=1
			6s - noticed agent=agent-1 by=anna epoch=1 method=notifications/resources/updated about=chaos://s1/one`},
		{name: "an update of a server that has just been hidden", want: invariant.Holds, plan: later, story: list + `s1::0:3:abc
			5.05s - noticed agent=agent-1 by=anna epoch=1 method=notifications/tools/list_changed
			5.05s s1 updated
			5.05s - noticed agent=agent-1 by=anna epoch=1 method=notifications/resources/updated about=chaos://s1/one`},
		{name: "nobody came", want: invariant.Inconclusive, story: `1s s1 open conn=1`},
	})
}

func TestOutcomesOnTheWire(t *testing.T) {
	const call = `
		1s s1 opened conn=1
		2s s1 call call=a1-1 tool=write agent=agent-1 by=anna
	`
	runCases(t, "I27", []storyCase{
		{name: "a result", want: invariant.Holds, story: call + `
			2s s1 received conn=1 method=tools/call call=a1-1
			2s s1 executed conn=1 tool=write call=a1-1 value=1
			2s s1 end call=a1-1 tool=write outcome=result conn=1 value=1 agent=agent-1`},
		{name: "what ran is told as not sent", want: invariant.Violated, why: "calls again, and it runs twice", story: call + `
			2s s1 received conn=1 method=tools/call call=a1-1
			2s s1 executed conn=1 tool=write call=a1-1 value=1
			2s s1 end call=a1-1 tool=write outcome=not-sent agent=agent-1`},
		{name: "the text says that it is safe", want: invariant.Violated, why: "the text for the model says", story: call + `
			2s s1 received conn=1 method=tools/call call=a1-1
			2s s1 end call=a1-1 tool=write outcome=unknown agent=agent-1 text=gone._Nothing_was_sent_to_the_server.`},
		{name: "it is sent twice", want: invariant.Violated, why: "it was sent 2 times", story: call + `
			2s s1 received conn=1 method=tools/call call=a1-1
			3s s1 received conn=1 method=tools/call call=a1-1
			4s s1 executed conn=1 tool=write call=a1-1 value=1
			4s s1 end call=a1-1 tool=write outcome=result conn=1 value=1 agent=agent-1`},
		{name: "nobody came", want: invariant.Inconclusive, story: `1s s1 open conn=1`},
		{name: "another tool runs", want: invariant.Violated, why: "the call came to s1 read", story: call + `
			2s s1 received conn=1 method=tools/call call=a1-1
			2s s1 executed conn=1 tool=read call=a1-1 value=1
			2s s1 end call=a1-1 tool=write outcome=result conn=1 value=1 agent=agent-1`},
	})
}
