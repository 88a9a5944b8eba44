package invariant_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// Two calls in a row that time out in silence have the manager ask for a sign of life. The planted bugs silence-counted-once-more and
// silence-starts-anew left that out, and no judge said so: the next probe came soon enough for every other one.
func TestCallsThatTimeOutInSilence(t *testing.T) {
	const held = `
		0s     s1 phase phase=pending step=dialing epoch=2
		0s     s1 open conn=1
		1ms    s1 phase phase=pending step=handshaking epoch=2
		5ms    s1 answered conn=1 method=initialize id=1
		5ms    s1 phase phase=pending step=listing epoch=2
		10ms   s1 answered conn=1 method=tools/list id=2
		20ms   s1 phase phase=connected epoch=2
		10s    s1 fault-on fault=1 name=hang-call
		11s    s1 call call=c1 tool=write
		11s    s1 received conn=1 method=tools/call id=3 call=c1
		14s    s1 end call=c1 tool=write outcome=unknown class=timeout
	`
	const twice = held + `
		15s    s1 call call=c2 tool=write
		15s    s1 received conn=1 method=tools/call id=4 call=c2
		18s    s1 end call=c2 tool=write outcome=unknown class=timeout
	`
	const answered = `
		18s    s1 received conn=1 method=ping id=5
		18.1s  s1 answered conn=1 method=ping id=5
	`
	const over = `
		30s    - closing
	`
	http := []string{"s1 kind=http"}
	runCases(t, "I8", []storyCase{
		{name: "nothing is published", want: invariant.Inconclusive, why: "published no phase", story: `0s s2 open conn=1`},
		{name: "the server is asked", servers: http, want: invariant.Holds, story: twice + answered + over},
		{name: "the server is not asked", servers: http, want: invariant.Violated, why: "Calls c1 and c2 of tool write timed out over connection 1, the last at 18s",
			story: twice + over},
		{name: "one call is no reason", servers: http, want: invariant.Holds, story: held + over},
		{name: "the server has said something", servers: http, want: invariant.Holds, story: twice + over + `
		16s    s1 notified conn=1 method=notifications/message
		`},
		// Seed 20600186.
		{name: "the server was adjusted between the calls", servers: http, want: invariant.Holds, story: twice + over + `
		14.5s  s1 command command=1 method=adjust
		14.5s  s1 done command=1 method=adjust
		`},
		{name: "a child's end would show", want: invariant.Holds, story: twice + over},
	})
}

// A server is given up for its silence only after three questions that found no answer. What answers a question of the server says when it was
// silent last, unless an agent was asked, which may take its time.
func TestPatienceWithSilence(t *testing.T) {
	const up = `
		0s     s1 open conn=1
		0s     s1 phase phase=pending step=handshaking epoch=2
		10ms   s1 answered conn=1 method=initialize
		20ms   s1 answered conn=1 method=tools/list
		20ms   s1 phase phase=pending step=listing epoch=2
		20ms   s1 phase phase=connected epoch=2
	`
	const asked = up + `
		20s    s1 received conn=1
	`
	const lost = `
		45s    s1 phase phase=pending step=restarting epoch=2 class=timeout text=silent
		45s    s1 released conn=1
		60s    -  closing
	`
	agents := func(p *scenario.Plan) { p.Agents = []scenario.PlannedAgent{{}} }
	servers := []string{"s1 kind=http"}
	runCases(t, "I8", []storyCase{
		{name: "for as long as it may", servers: servers, want: invariant.Holds, story: up + lost},
		{name: "too early", servers: servers, want: invariant.Violated, why: "it was that only since 20s", story: up + `
			20s    s1 answered conn=1 method=ping
		` + lost},
		{name: "too early after a question of the server", servers: servers, want: invariant.Violated, why: "it was that only since 20s", story: asked + lost},
		{name: "after the late answer of an agent", servers: servers, plan: agents, want: invariant.Holds, story: asked + lost},
		{name: "nothing happens", want: invariant.Inconclusive, story: "1s - closing"},
	})
}
