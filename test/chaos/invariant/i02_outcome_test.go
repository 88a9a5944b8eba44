package invariant_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

func TestOneOutcomePerCall(t *testing.T) {
	const connected = `
		0s     s1 open conn=1
		10ms   s1 opened conn=1
	`
	runCases(t, "I2", []storyCase{
		{name: "a result", want: invariant.Holds, story: connected + `
			1s     s1 call call=c1 tool=write
			1s     s1 received conn=1 method=tools/call call=c1 tool=write
			1.01s  s1 executed conn=1 call=c1 tool=write value=1
			1.01s  s1 end call=c1 tool=write outcome=result conn=1 value=1
			70s    - closed
		`},
		{name: "given up at the deadline", want: invariant.Holds, story: connected + `
			1s     s1 call call=c1 tool=write
			1s     s1 received conn=1 method=tools/call call=c1
			61s    s1 end call=c1 tool=write outcome=unknown class=timeout
		`},
		{name: "still under way when the history ends", want: invariant.Inconclusive, why: "No tool was called", story: connected + `
			1s     s1 call call=c1 tool=write
			30s    - house text=late
		`},
		{name: "a call waits for a server that is on its way back", plan: func(p *scenario.Plan) { p.CallWait = 2e9 }, want: invariant.Holds, story: connected + `
			1s     s1 changed rev=1 hash=a names=read,write
			1s     s1 phase phase=pending step=restarting epoch=2
			1s     - snapshot generation=2 entries=s1:lost:2:2:a
			2s     s1 call call=c1 tool=read
			4s     s1 end call=c1 tool=read outcome=not-sent class=network
			8s     - closing
		`},
		{name: "a call does not wait", plan: func(p *scenario.Plan) { p.CallWait = 2e9 }, want: invariant.Violated, why: "It may wait for 2s", story: connected + `
			1s     s1 changed rev=1 hash=a names=read,write
			1s     s1 phase phase=pending step=restarting epoch=2
			1s     - snapshot generation=2 entries=s1:lost:2:2:a
			2s     s1 call call=c1 tool=read
			2s     s1 end call=c1 tool=read outcome=not-sent class=network
			8s     - closing
		`},
		{name: "a call ends with the session of its agent, as on seed 9006032", plan: func(p *scenario.Plan) { p.CallWait = 2e9 }, want: invariant.Holds, story: connected + `
			1s     s1 changed rev=1 hash=a names=read,write
			1s     s1 phase phase=pending step=restarting epoch=2
			1s     - snapshot generation=2 entries=s1:lost:2:2:a
			2s     s1 call call=c1 tool=read agent=agent-1
			2.5s   - parted agent=agent-1
			2.5s   s1 end call=c1 tool=read outcome=not-sent class=canceled agent=agent-1
			8s     - closing
		`},
		{name: "a call ends with the session of another agent", plan: func(p *scenario.Plan) { p.CallWait = 2e9 }, want: invariant.Violated, why: "It may wait for 2s", story: connected + `
			1s     s1 changed rev=1 hash=a names=read,write
			1s     s1 phase phase=pending step=restarting epoch=2
			1s     - snapshot generation=2 entries=s1:lost:2:2:a
			2s     s1 call call=c1 tool=read agent=agent-1
			2.5s   - parted agent=agent-2
			2.5s   s1 end call=c1 tool=read outcome=not-sent class=canceled agent=agent-1
			8s     - closing
		`},
		// Seed 30330846: the connection ended in the moment after the refusal.
		{name: "a call is refused for its caller's credentials just before its connection ends", plan: func(p *scenario.Plan) { p.CallWait = 20e9 }, want: invariant.Holds, story: connected + `
			20ms   s1 phase phase=connected epoch=2
			1s     s1 changed rev=1 hash=a names=read,write
			2s     s1 call call=c1 tool=read
			2s     s1 end call=c1 tool=read outcome=not-sent class=unauthorized
			2.001s s1 phase phase=pending step=restarting epoch=2
			2.001s - snapshot generation=2 entries=s1:lost:2:2:a
			50s    - closing
		`},
		{name: "nothing was called", want: invariant.Inconclusive, why: "No tool was called", story: connected},
		{name: "a waiting call is forgotten when its connection dies", want: invariant.Violated, why: "has no outcome", story: connected + `
			1s     s1 call call=c1 tool=write
			1s     s1 received conn=1 method=tools/call call=c1
			2s     s1 down conn=1 class=exited
			90s    - closing
		`},
		{name: "Close leaves a call behind", want: invariant.Violated, why: "the manager has closed", story: connected + `
			1s     s1 call call=c1 tool=write
			2s     - closed
		`},
		{name: "the answer and the end of the connection both end it", want: invariant.Violated, why: "ended twice", story: connected + `
			1s     s1 call call=c1 tool=write
			1.01s  s1 end call=c1 tool=write outcome=result conn=1 value=1
			1.01s  s1 end call=c1 tool=write outcome=unknown
		`},
		{name: "no call timeout is applied", want: invariant.Violated, why: "had to end at 1m1s", story: connected + `
			1s     s1 call call=c1 tool=write
			75s    s1 end call=c1 tool=write outcome=unknown class=timeout
		`},
		{name: "the caller's own deadline is not applied", want: invariant.Violated, why: "for its deadline", story: connected + `
			1s     s1 call call=c1 tool=write deadline=3s
			4s     s1 end call=c1 tool=write outcome=unknown class=timeout
		`},
		{name: "given up before its time", want: invariant.Violated, why: "was given up at 6s", story: connected + `
			1s     s1 call call=c1 tool=write
			1s     s1 received conn=1 method=tools/call call=c1
			6s     s1 end call=c1 tool=write outcome=unknown class=timeout
		`},
		{name: "a repetition gets a new deadline", servers: []string{"s1 trusted=true timeout=10s"}, want: invariant.Violated,
			why: "had to end at 11s", story: connected + `
			1s     s1 call call=c1 tool=read
			16s    s1 end call=c1 tool=read outcome=result conn=2 value=1
		`},
		{name: "endless progress resets the clock, up to a longest time", want: invariant.Holds, story: connected + `
			0s     s1 fault-on fault=1 name=endless-progress
			1s     s1 call call=c1 tool=write
			601s   s1 end call=c1 tool=write outcome=unknown class=timeout
			700s   s1 fault-off fault=1 name=endless-progress
		`},
		{name: "endless progress resets the clock for ever", want: invariant.Violated, why: "the longest time", story: connected + `
			0s     s1 fault-on fault=1 name=endless-progress
			1s     s1 call call=c1 tool=write
			900s   s1 end call=c1 tool=write outcome=result
			901s   s1 fault-off fault=1 name=endless-progress
		`},
		{name: "a call to a dead process waits for its deadline", want: invariant.Violated, why: "which died at 2s", story: connected + `
			1s     s1 call call=c1 tool=write
			1s     s1 received conn=1 method=tools/call call=c1 tool=write
			2s     s1 down conn=1 class=exited
			5s     s1 end call=c1 tool=write outcome=unknown class=exited
		`},
		{name: "a stream whose events are numbered is gone on with in vain for a while", servers: []string{"s1 kind=http"}, want: invariant.Holds,
			plan: func(p *scenario.Plan) { p.Servers[0].Web = scenario.WebNumbered }, story: connected + `
			1s     s1 call call=c1 tool=write
			1s     s1 received conn=1 method=tools/call call=c1 tool=write
			2s     s1 down conn=1 class=network
			5s     s1 end call=c1 tool=write outcome=unknown class=network
		`},
		{name: "a stream whose events are numbered is gone on with for too long", servers: []string{"s1 kind=http"}, want: invariant.Violated, why: "which died at 2s",
			plan: func(p *scenario.Plan) { p.Servers[0].Web = scenario.WebNumbered }, story: connected + `
			1s     s1 call call=c1 tool=write
			1s     s1 received conn=1 method=tools/call call=c1 tool=write
			2s     s1 down conn=1 class=network
			10s    s1 end call=c1 tool=write outcome=unknown class=network
		`},
		{name: "the answer that was delivered beats the death", want: invariant.Holds, story: connected + `
			1s     s1 call call=c1 tool=write
			1s     s1 received conn=1 method=tools/call call=c1 tool=write
			2s     s1 executed conn=1 call=c1 tool=write value=1
			2s     s1 down conn=1 class=exited
			2.02s  s1 end call=c1 tool=write outcome=result conn=1 value=1
		`},
		{name: "a call reaches a server of HTTP that was started again in the instant of its crash", servers: []string{"s1 kind=http"},
			want: invariant.Holds, story: connected + `
			2s     s1 call call=c1 tool=write
			2s     s1 received conn=1 method=tools/call call=c1
			2s     s1 down conn=1 class=network
			8s     s1 answered conn=1 method=tools/call call=c1
			8s     s1 end call=c1 tool=write outcome=result
		`},
		{name: "a call waits for its turn, and its server dies", want: invariant.Holds, story: connected + `
			2s     s1 call call=c1 tool=write
			3s     s1 end call=c1 tool=write outcome=not-sent class=exited
		`, plan: func(p *scenario.Plan) { p.Servers[0].MaxInFlight = 2 }},
		{name: "a trusted server's read waits for the next connection", servers: []string{"s1 trusted=true"}, want: invariant.Holds,
			story: connected + `
			1s     s1 call call=c1 tool=read
			1s     s1 received conn=1 method=tools/call call=c1 tool=read
			2s     s1 down conn=1 class=exited
			5s     s1 end call=c1 tool=read outcome=unknown class=exited
		`},
		{name: "the other side of a cable that was cut is not seen to die", servers: []string{"s1 kind=http"}, want: invariant.Holds,
			story: connected + `
			1s     s1 call call=c1 tool=write
			1s     s1 received conn=1 method=tools/call call=c1 tool=write
			2s     s1 fault-on fault=1 name=half-open
			2s     s1 down conn=1 class=network
			47s    s1 end call=c1 tool=write outcome=unknown class=network
		`},
		{name: "answers are handed to the wrong callers", want: invariant.Violated, why: "was given, at 1.02s, the result of call c2", story: connected + `
			1s     s1 call call=c1 tool=write
			1s     s1 call call=c2 tool=write
			1.01s  s1 executed conn=1 call=c1 tool=write value=1
			1.01s  s1 executed conn=1 call=c2 tool=write value=2
			1.02s  s1 end call=c1 tool=write outcome=result conn=1 value=2
			1.02s  s1 end call=c2 tool=write outcome=result conn=1 value=1
		`},
		{name: "a call is said to be given up whose caller waits", want: invariant.Violated, why: "was told at 11s that the caller had given it up", story: connected + `
			1s     s1 call call=c1 tool=write
			11s    s1 end call=c1 tool=write outcome=not-sent class=canceled text=the_caller_gave_up_while_it_waited
			20s    - closing
		`},
		{name: "a call ends because its connection was closed", want: invariant.Holds, story: connected + `
			1s     s1 call call=c1 tool=write
			1s     s1 received conn=1 method=tools/call call=c1 tool=write
			11s    s1 released conn=1
			11s    s1 end call=c1 tool=write outcome=unknown class=canceled text=the_connection_was_closed
			20s    - closing
		`},
		{name: "an outcome that is none", want: invariant.Violated, why: `the outcome ""`, story: connected + `
			1s     s1 call call=c1 tool=write
			1.01s  s1 end call=c1 tool=write
		`},
		{name: "an end of nothing", want: invariant.Violated, why: "nobody had made it", story: connected + `
			1.01s  s1 end call=c1 tool=write outcome=result
		`},
	})
}
