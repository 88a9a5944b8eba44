package invariant_test

import (
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

func TestLeft(t *testing.T) {
	const sent = `
			0s     s1 open conn=1
			10ms   s1 opened conn=1
			1s     s1 call call=c1 tool=write
			1s     s1 received conn=1 method=tools/call id=5 call=c1
			2s     s1 left call=c1 tool=write
		`
	// The connection was lost while it was half open: nobody saw it end, and the manager released it.
	const half = `
			0s     s1 open conn=1
			10ms   s1 opened conn=1
			1s     s1 call call=c1 tool=read
			1s     s1 received conn=1 method=tools/call id=5 call=c1
			1.5s   s1 released conn=1
			1.5s   s1 phase phase=pending step=restarting epoch=2 class=network
		`
	// A call that its server has not accepted.
	const unaccepted = `
		0s     s1 open conn=1
		10ms   s1 opened conn=1
		500ms  s1 phase phase=connected epoch=1
		1s     s1 call call=c1 tool=write
	`
	trusted := []string{"s1 kind=http trusted=true"}
	runCases(t, "I2", []storyCase{
		{name: "no call", want: invariant.Inconclusive, why: "No tool", story: "0s s1 open conn=1"},
		{name: "told at once", want: invariant.Holds, story: sent + `
			2s     s1 end call=c1 tool=write outcome=unknown class=canceled
		`},
		{name: "told late", want: invariant.Violated, why: "gave it up at 2s, and was told only at 2.5s", story: sent + `
			2.5s   s1 end call=c1 tool=write outcome=unknown class=canceled
		`},
		{name: "never told", want: invariant.Violated, why: "at 2.001s it had not ended", story: sent + `
			9s     s1 released conn=1
		`},
		{name: "told that the time had passed", want: invariant.Violated, why: "because its time had passed", story: sent + `
			2s     s1 end call=c1 tool=write outcome=unknown class=timeout
		`},
		{name: "the answer comes in the same moment", want: invariant.Holds, story: sent + `
			2s     s1 executed conn=1 tool=write call=c1 value=1
			2s     s1 answered conn=1 method=tools/call id=5 call=c1
			2s     s1 end call=c1 tool=write outcome=result conn=1 value=1
		`},
		{name: "the connection goes in the same moment", want: invariant.Holds, story: sent + `
			2s     s1 down conn=1 class=exited
			2s     s1 end call=c1 tool=write outcome=unknown class=exited
		`},
		{name: "it waits to be sent a second time, as on seed 4000314", servers: trusted, want: invariant.Holds, story: half + `
			2s     s1 left call=c1 tool=read
			2s     s1 end call=c1 tool=read outcome=unknown class=network
			9s     - closing
		`},
		{name: "it may not be sent a second time", want: invariant.Violated, why: "nothing else had happened to it", story: half + `
			2s     s1 left call=c1 tool=read
			2s     s1 end call=c1 tool=read outcome=unknown class=network
			9s     - closing
		`},
		{name: "it waits for another session, as on seed 30308019", want: invariant.Holds, story: unaccepted + `
			1.5s   s1 phase phase=pending step=restarting epoch=2 class=session
			2s     s1 left call=c1 tool=write
			2s     s1 end call=c1 tool=write outcome=not-sent class=session
			9s     - closing
		`},
		{name: "no session was lost", want: invariant.Violated, why: "nothing else had happened to it", story: unaccepted + `
			1.5s   s1 phase phase=pending step=restarting epoch=2 class=network
			2s     s1 left call=c1 tool=write
			2s     s1 end call=c1 tool=write outcome=not-sent class=session
			9s     - closing
		`},
		{name: "another connection was released", servers: trusted, want: invariant.Violated, why: "nothing else had happened to it", story: strings.ReplaceAll(
			strings.ReplaceAll(half, "released conn=1", "released conn=7"), " class=network", "") + `
			2s     s1 left call=c1 tool=read
			2s     s1 end call=c1 tool=read outcome=unknown class=network
			9s     - closing
		`},
		{name: "its connection is not released yet, as on seed 9772023", servers: trusted, want: invariant.Holds, story: strings.ReplaceAll(half,
			"1.5s   s1 released conn=1", "") + `
			2s     s1 left call=c1 tool=read
			2s     s1 end call=c1 tool=read outcome=unknown class=network
			2.5s   s1 released conn=1
			9s     - closing
		`},
	})
}

func TestTurns(t *testing.T) {
	one := func(p *scenario.Plan) { p.Servers[0].MaxInFlight, p.Servers[0].MaxQueued = 1, 2 }
	two := func(p *scenario.Plan) { p.Servers[0].MaxInFlight, p.Servers[0].MaxQueued = 2, 9 }
	read := func(p *scenario.Plan) {
		one(p)
		p.Load = append(p.Load, scenario.PlannedLoad{Server: "s1", Read: "prompt"})
	}
	beside := []string{"s1", "s2 connect=lazy"} // beside a lazy server agents read nothing
	onLines := func(p *scenario.Plan) {
		one(p)
		p.Agents = []scenario.PlannedAgent{{Name: "agent-5", As: "a", Over: scenario.OverLines}}
	}
	real := func(p *scenario.Plan) {
		one(p)
		p.Tier = scenario.Real
	}
	const up = `
			0s     s1 phase phase=connected epoch=2
		`
	const busy = up + `
			1s     s1 call call=c1 tool=write by=a
			1s     s1 received conn=1 method=tools/call id=5 call=c1
			1.1s   s1 call call=c2 tool=write by=a
			1.2s   s1 call call=c3 tool=write by=b
		`
	const taken = busy + `
			2s     s1 end call=c1 tool=write outcome=result
			2s     s1 received conn=1 method=tools/call id=6 call=c2
			3s     s1 end call=c2 tool=write outcome=result
			3s     s1 received conn=1 method=tools/call id=7 call=c3
			4s     s1 end call=c3 tool=write outcome=result
			9s     - closing
		`
	const expiring = up + `
			1s     s1 call call=c1 tool=write by=a
			1s     s1 received conn=1 method=tools/call id=5 call=c1
			1.1s   s1 call call=c2 tool=write by=b
			1.2s   s1 call call=c3 tool=write by=b
			1.3s   s1 call call=c4 tool=write by=a
			1.4s   s1 call call=c5 tool=write by=c
			1.5s   s1 call call=c6 tool=write by=a
			2s     s1 end call=c1 tool=write outcome=result
			2s     s1 received conn=1 method=tools/call id=6 call=c4
			3s     s1 end call=c4 tool=write outcome=result
	`
	const turnsOfA = `
			3s     s1 received conn=1 method=tools/call id=7 call=c5
			4s     s1 end call=c5 tool=write outcome=result
			4s     s1 received conn=1 method=tools/call id=8 call=c6
			5s     s1 end call=c6 tool=write outcome=result
			5s     s1 received conn=1 method=tools/call id=9 call=c3
			6s     s1 end call=c3 tool=write outcome=result
			9s     - closing
	`
	runCases(t, "I21", []storyCase{
		{name: "no call", want: invariant.Inconclusive, why: "No call", story: up},
		{name: "a call of an agent that left in its own instant waits for nothing", want: invariant.Inconclusive, why: "No call", story: up + `
			1s     s1 call call=a1-1 tool=read agent=agent-1
			1.01s  s1 end call=a1-1 tool=read outcome=not-sent class=canceled name=untaken agent=agent-1
			9s     - closing
		`},
		{name: "one after the other", plan: one, want: invariant.Holds, story: taken},
		{name: "a place stays empty", plan: one, want: invariant.Violated, why: "Call c2 of tool write of s1 began at 1.1s and waited for its turn at 2.001s, while 0", story: busy + `
			2s     s1 end call=c1 tool=write outcome=result
			5s     s1 received conn=1 method=tools/call id=6 call=c2
			9s     - closing
		`},
		{name: "reads take places", plan: read, want: invariant.Inconclusive, why: "No call", story: busy + `
			2s     s1 end call=c1 tool=write outcome=result
			5s     s1 received conn=1 method=tools/call id=6 call=c2
			9s     - closing
		`},
		{name: "real times are not exact", plan: real, want: invariant.Inconclusive, why: "not exact", story: taken},
		{name: "who leaves the queue is passed over", plan: one, want: invariant.Holds, story: busy + `
			1.5s   s1 left call=c2 tool=write
			1.5s   s1 end call=c2 tool=write outcome=not-sent class=canceled
			2s     s1 end call=c1 tool=write outcome=result
			2s     s1 received conn=1 method=tools/call id=7 call=c3
			4s     s1 end call=c3 tool=write outcome=result
			9s     - closing
		`},
		{name: "the newest goes first", plan: one, want: invariant.Violated, why: "before call c2 of the same caller", story: up + `
			1s     s1 call call=c1 tool=write
			1s     s1 received conn=1 method=tools/call id=5 call=c1
			1.1s   s1 call call=c2 tool=write
			1.2s   s1 call call=c3 tool=write
			2s     s1 end call=c1 tool=write outcome=result
			2s     s1 received conn=1 method=tools/call id=6 call=c3
			3s     s1 end call=c3 tool=write outcome=result
			3s     s1 received conn=1 method=tools/call id=7 call=c2
			4s     s1 end call=c2 tool=write outcome=result
			9s     - closing
		`},
		{name: "three turns in one instant are in the order of their requests", plan: one, want: invariant.Holds, story: up + `
			1s     s1 call call=c1 tool=write by=a
			1s     s1 received conn=1 method=tools/call id=5 call=c1
			1.1s   s1 call call=c2 tool=write by=a
			1.15s  s1 call call=c4 tool=write by=a
			1.2s   s1 call call=c3 tool=write by=b
			1.3s   s1 call call=c5 tool=write by=b
			2s     s1 end call=c1 tool=write outcome=result
			2s     s1 received conn=1 method=tools/call id=6 call=c2
			2s     s1 end call=c2 tool=write outcome=unknown class=canceled
			2s     s1 received conn=1 method=tools/call id=7 call=c3
			2s     s1 end call=c3 tool=write outcome=unknown class=canceled
			2s     s1 received conn=1 method=tools/call id=8 call=c4
			3s     s1 end call=c4 tool=write outcome=result
			3s     s1 received conn=1 method=tools/call id=9 call=c5
			4s     s1 end call=c5 tool=write outcome=result
			9s     - closing
		`},
		{name: "one caller has two turns", plan: one, want: invariant.Violated, why: `the second of its caller "a" while call c`, story: up + `
			1s     s1 call call=c1 tool=write by=a
			1s     s1 received conn=1 method=tools/call id=5 call=c1
			1.1s   s1 call call=c2 tool=write by=a
			1.2s   s1 call call=c3 tool=write by=b
			1.3s   s1 call call=c4 tool=write by=a
			2s     s1 end call=c1 tool=write outcome=result
			2s     s1 received conn=1 method=tools/call id=6 call=c2
			3s     s1 end call=c2 tool=write outcome=result
			3s     s1 received conn=1 method=tools/call id=7 call=c4
			4s     s1 end call=c4 tool=write outcome=result
			4s     s1 received conn=1 method=tools/call id=8 call=c3
			5s     s1 end call=c3 tool=write outcome=result
			9s     - closing
		`},
		{name: "an agent on lines that was killed comes back, and both take turns, as on seed 20300364", servers: beside, plan: onLines, want: invariant.Holds, story: turnsOfAgent("2")},
		{name: "an agent on lines has two turns", servers: beside, plan: onLines, want: invariant.Violated, why: `the second of its caller "session 1 of agent-5"`, story: turnsOfAgent("1")},
		{name: "two turns of one instant are sent in another order, as on seed 9200629", plan: two, want: invariant.Holds, story: turnsTogether("2s")},
		{name: "two turns of two instants", plan: two, want: invariant.Violated, why: `the second of its caller "a" while call c`,
			story: turnsTogether("2.1s")},
		{name: "a turn goes to a call that expires in the instant, as on seed 4005061", plan: one, want: invariant.Holds, story: expiring + `
			3s     s1 end call=c2 tool=write outcome=not-sent class=timeout
		` + turnsOfA},
		{name: "a call expires in another instant", plan: one, want: invariant.Violated, why: `the second of its caller "a" while call c`, story: expiring + `
			3.1s   s1 end call=c2 tool=write outcome=not-sent class=timeout
		` + turnsOfA},
		{name: "a call that is sent again takes a turn of its caller", plan: one, want: invariant.Holds, story: `
			0s     s1 phase phase=connected epoch=2
			0.5s   s1 call call=c0 tool=write by=b
			0.5s   s1 received conn=1 method=tools/call id=5 call=c0
			0.6s   s1 phase phase=pending step=restarting epoch=2
			0.8s   s1 phase phase=connected epoch=3
			1s     s1 call call=c1 tool=write by=a
			1s     s1 received conn=2 method=tools/call id=5 call=c1
			1.1s   s1 call call=c2 tool=write by=a
			1.2s   s1 call call=c3 tool=write by=b
			1.3s   s1 call call=c4 tool=write by=a
			2s     s1 end call=c1 tool=write outcome=result
			2s     s1 received conn=2 method=tools/call id=6 call=c2
			3s     s1 end call=c2 tool=write outcome=result
			3s     s1 received conn=2 method=tools/call id=7 call=c0
			4s     s1 end call=c0 tool=write outcome=result
			4s     s1 received conn=2 method=tools/call id=8 call=c4
			5s     s1 end call=c4 tool=write outcome=result
			5s     s1 received conn=2 method=tools/call id=9 call=c3
			6s     s1 end call=c3 tool=write outcome=result
			9s     - closing
		`},
		{name: "refused while there was a place", plan: one, want: invariant.Violated, why: "there were 1 others", story: up + `
			1s     s1 call call=c1 tool=write
			1s     s1 received conn=1 method=tools/call id=5 call=c1
			2s     s1 call call=c2 tool=write
			2s     s1 end call=c2 tool=write outcome=not-sent class=throttled
			4s     s1 end call=c1 tool=write outcome=result
			9s     - closing
		`},
		{name: "the agent of one heard late that its task was not sent, as on seed 30180304", want: invariant.Holds, story: up + `
			1s     s1 call call=c1 tool=write
			1s     s1 received conn=1 method=tools/call id=5 call=c1
			2s     s1 end call=c1 tool=write outcome=result
			2s     s1 call call=c2 tool=write
			2s     - tasked agent=agent-1 by=anna about=c2
			3s     s1 end call=c2 tool=write outcome=not-sent class=invalid
			9s     - closing
		`},
		{name: "a call is answered while its agent's stream is broken", plan: one, want: invariant.Holds, story: up + `
			1s     s1 call call=c1 tool=write agent=agent-1 by=anna
			1s     s1 received conn=1 method=tools/call id=5 call=c1
			1.1s   s1 call call=c2 tool=write
			2s     - stream-cut method=tools/call id=1 about=c1 agent=agent-1 by=anna
			3s     s1 answered conn=1 method=tools/call id=5 call=c1
			3.02s  - stream-back method=tools/call id=1 about=c1 agent=agent-1 by=anna
			3.02s  s1 end call=c1 tool=write outcome=result agent=agent-1 by=anna
			3s     s1 received conn=1 method=tools/call id=6 call=c2
			5s     s1 end call=c2 tool=write outcome=result
			9s     - closing
		`},
		{name: "one waits on after the answer that its agent missed", plan: one, want: invariant.Violated, why: "while 0 calls were in flight", story: up + `
			1s     s1 call call=c1 tool=write agent=agent-1 by=anna
			1s     s1 received conn=1 method=tools/call id=5 call=c1
			1.1s   s1 call call=c2 tool=write
			2s     - stream-cut method=tools/call id=1 about=c1 agent=agent-1 by=anna
			3s     s1 answered conn=1 method=tools/call id=5 call=c1
			3.02s  - stream-back method=tools/call id=1 about=c1 agent=agent-1 by=anna
			3.02s  s1 end call=c1 tool=write outcome=result agent=agent-1 by=anna
			4s     s1 received conn=1 method=tools/call id=6 call=c2
			5s     s1 end call=c2 tool=write outcome=result
			9s     - closing
		`},
		{name: "nothing is bounded and one waits", want: invariant.Violated, why: "nothing kept it", story: up + `
			1s     s1 call call=c1 tool=write
			3s     s1 received conn=1 method=tools/call id=5 call=c1
			4s     s1 end call=c1 tool=write outcome=result
			9s     - closing
		`},
	})
}

// turnsOfAgent is a story of two calls of an agent on lines, of which the second was made in a session of this number, that are sent while
// another caller of the same principal waits.
func turnsOfAgent(session string) string {
	return `
			0s     s1 phase phase=connected epoch=2
			1s     s1 call call=c1 tool=write by=b
			1s     s1 received conn=1 method=tools/call id=5 call=c1
			1.1s   -  asked agent=agent-5 by=a epoch=1 id=1 method=tools/call about=a5-1
			1.1s   s1 call call=a5-1 tool=write by=a agent=agent-5
			1.2s   s1 call call=c2 tool=write by=a
			1.3s   -  asked agent=agent-5 by=a epoch=` + session + ` id=2 method=tools/call about=a5-2
			1.3s   s1 call call=a5-2 tool=write by=a agent=agent-5
			2s     s1 end call=c1 tool=write outcome=result
			2s     s1 received conn=1 method=tools/call id=6 call=a5-1
			3s     s1 end call=a5-1 tool=write outcome=result
			3s     s1 received conn=1 method=tools/call id=7 call=a5-2
			4s     s1 end call=a5-2 tool=write outcome=result
			4s     s1 received conn=1 method=tools/call id=8 call=c2
			5s     s1 end call=c2 tool=write outcome=result
			9s     - closing
		`
}

// turnsTogether is a story of two callers at a server that takes two calls: a's and b's calls wait, each of them gets a turn, b's at 2s and
// a's at a time, and then a has another one before b. If the time is 2s, a's turn may have come first.
func turnsTogether(turnOfA string) string {
	return `
			0s     s1 open conn=1
			10ms   s1 opened conn=1
			20ms   s1 phase phase=connected epoch=1
			1s     s1 call call=c1 tool=write by=c
			1s     s1 received conn=1 method=tools/call id=4 call=c1
			1s     s1 call call=c2 tool=write by=d
			1s     s1 received conn=1 method=tools/call id=5 call=c2
			1.1s   s1 call call=c3 tool=write by=a
			1.2s   s1 call call=c4 tool=write by=b
			1.3s   s1 call call=c5 tool=write by=a
			1.4s   s1 call call=c6 tool=write by=b
			2s     s1 end call=c1 tool=write outcome=result
			2s     s1 received conn=1 method=tools/call id=6 call=c4
			` + turnOfA + `     s1 end call=c2 tool=write outcome=result
			` + turnOfA + `     s1 received conn=1 method=tools/call id=7 call=c3
			3s     s1 end call=c3 tool=write outcome=result
			3s     s1 received conn=1 method=tools/call id=8 call=c5
			4s     s1 end call=c4 tool=write outcome=result
			4s     s1 received conn=1 method=tools/call id=9 call=c6
			5s     s1 end call=c5 tool=write outcome=result
			5s     s1 end call=c6 tool=write outcome=result
			9s     - closing
		`
}
