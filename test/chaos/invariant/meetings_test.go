package invariant_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// What a server had accepted before it refused other credentials goes on.
func TestCallsBesideRefusedCredentials(t *testing.T) {
	const refused = `
		0s     s1 phase phase=pending step=dialing epoch=2
		0s     s1 open conn=1
		10ms   s1 opened conn=1
		20ms   s1 phase phase=connected epoch=2
		10s    s1 call call=c1 tool=write
		10s    s1 received conn=1 method=tools/call id=5 call=c1
		11s    s1 fault-on fault=1 name=unauthorized
		12s    s1 phase phase=needs-auth epoch=2 class=unauthorized text=no
	`
	const over = `
		90s    - closing
	`
	// Two calls run as tasks.
	task := strings.Replace(refused, "11s    s1 fault-on", `10.1s  s1 answered conn=1 method=tools/call id=5
		10.2s  s1 call call=c2 tool=write
		10.2s  s1 received conn=1 method=tools/call id=6 call=c2
		10.3s  s1 answered conn=1 method=tools/call id=6
		11s    s1 fault-on`, 1)
	http := []string{"s1 kind=http"}
	runCases(t, "I17", []storyCase{
		{name: "nothing is let go", servers: http, want: invariant.Inconclusive, why: "No connection was let go", story: `0s s2 open conn=1`},
		{name: "it goes on", servers: http, want: invariant.Holds, story: refused + `
		14s    s1 answered conn=1 method=tools/call id=5 call=c1
		14s    s1 end call=c1 tool=write outcome=result value=1 conn=1
		14s    s1 released conn=1
		` + over},
		{name: "it is cut", servers: http, want: invariant.Violated, why: "refused other credentials at 12s", story: refused + `
		12s    s1 end call=c1 tool=write outcome=unknown class=canceled
		12s    s1 released conn=1
		` + over},
		// Seed 4005381.
		{name: "it is a task, and its server refused to be asked after it", servers: http, want: invariant.Holds, story: task + `
		11.9s  s1 received conn=1 method=tasks/get id=7
		12s    s1 answered conn=1 method=tasks/get id=7 code=401
		12s    s1 end call=c1 tool=write outcome=unknown class=unauthorized
		13s    s1 answered conn=1 method=tasks/result id=8
		13s    s1 end call=c2 tool=write outcome=result value=2 conn=1
		17s    s1 released conn=1
		` + over},
		{name: "it is a task, and is due to be asked after when its credentials are refused already, as on seed 20980166", servers: http, want: invariant.Holds, story: task + `
		12.1s  s1 end call=c1 tool=write outcome=unknown class=unauthorized
		13s    s1 answered conn=1 method=tasks/result id=8
		13s    s1 end call=c2 tool=write outcome=result value=2 conn=1
		17s    s1 released conn=1
		` + over},
		{name: "a call that is no task ends a little later", servers: http, want: invariant.Violated, why: "refused other credentials at 12s", story: refused + `
		12.1s  s1 end call=c1 tool=write outcome=unknown class=unauthorized
		12.1s  s1 released conn=1
		` + over},
		{name: "a task is cut as another one is refused", servers: http, want: invariant.Violated, why: "refused other credentials at 12s", story: task + `
		11.9s  s1 received conn=1 method=tasks/get id=7
		12s    s1 answered conn=1 method=tasks/get id=7 code=401
		12s    s1 end call=c1 tool=write outcome=unknown class=unauthorized
		12s    s1 end call=c2 tool=write outcome=unknown class=unauthorized
		12s    s1 released conn=1
		` + over},
	})
}

// Who subscribes waits for no call.
func TestSubscribingBesideCalls(t *testing.T) {
	const up = `
		0s     s1 phase phase=pending step=dialing epoch=2
		0s     s1 open conn=1
		20ms   s1 phase phase=connected epoch=2
		10s    s1 fault-on fault=1 name=hang-call
		10s    s1 call call=c1 tool=write
		11s    s1 read call=r1 method=subscribe
	`
	const over = `
		90s    - closing
	`
	bounded := func(p *scenario.Plan) { p.Servers[0].MaxInFlight = 1 }
	runCases(t, "I20", []storyCase{
		{name: "nothing is read", want: invariant.Inconclusive, why: "nothing was read", story: `0s s2 open conn=1`},
		{name: "at once", plan: bounded, want: invariant.Holds, story: up + `
		11.1s  s1 read-end call=r1 method=subscribe
		` + over},
		{name: "behind the calls", plan: bounded, want: invariant.Violated, why: "It waits for no call", story: up + `
		30s    s1 read-end call=r1 method=subscribe
		` + over},
		{name: "behind another one, at a slow server", plan: func(p *scenario.Plan) { p.Servers[0].Latency = 5 * time.Second }, want: invariant.Holds,
			story: strings.Replace(up, "11s ", "10.5s  s1 read call=r0 method=subscribe\n\t\t11s ", 1) + `
		30s    s1 read-end call=r0 method=subscribe
		35s    s1 read-end call=r1 method=subscribe
		` + over},
		{name: "while the server is being reconnected", plan: bounded, want: invariant.Inconclusive, why: "nothing was read", story: up + `
		11s    s1 command command=1 method=reconnect
		30s    s1 read-end call=r1 method=subscribe
		` + over},
	})
}

// A lazy server that rests is not started by its owner's disable and enable, and a connection over which a call could not reach
// its server is looked at.
func TestStartsAndEndsThatACallDecides(t *testing.T) {
	const rested = `
		0s     s1 phase phase=pending step=dialing epoch=2
		0s     s1 open conn=1
		1ms    s1 phase phase=pending step=handshaking epoch=2
		5ms    s1 answered conn=1 method=initialize id=1
		5ms    s1 phase phase=pending step=listing epoch=2
		10ms   s1 answered conn=1 method=tools/list id=2
		20ms   s1 phase phase=connected epoch=2
		10s    s1 phase phase=pending step=idle epoch=2
		10s    s1 released conn=1
		20s    s1 command command=1 method=disable
		20s    s1 phase phase=disabled epoch=2
		20s    s1 done command=1 method=disable
		30s    s1 command command=2 method=enable
	`
	const started = `
		30s    s1 phase phase=pending step=queued epoch=2
		30s    s1 phase phase=pending step=dialing epoch=3
		30s    s1 open conn=2
		30s    s1 phase phase=pending step=handshaking epoch=3
		31s    s1 answered conn=2 method=initialize id=1
		31s    s1 phase phase=pending step=listing epoch=3
		31s    s1 answered conn=2 method=tools/list id=2
		31s    s1 phase phase=connected epoch=3
	`
	const over = `
		40s    - closing
	`
	const ended = `
		0s     s1 phase phase=pending step=dialing epoch=2
		0s     s1 open conn=1
		1ms    s1 phase phase=pending step=handshaking epoch=2
		5ms    s1 answered conn=1 method=initialize id=1
		5ms    s1 phase phase=pending step=listing epoch=2
		10ms   s1 answered conn=1 method=tools/list id=2
		20ms   s1 phase phase=connected epoch=2
		10s    s1 fault-on fault=1 name=crash
		10s    s1 down conn=1 class=network
		15s    s1 call call=c1 tool=write
		15s    s1 end call=c1 tool=write outcome=not-sent class=network
	`
	lazy, http := []string{"s1 connect=lazy"}, []string{"s1 kind=http"}
	runCases(t, "I8", []storyCase{
		{name: "nothing is published", want: invariant.Inconclusive, why: "published no phase", story: `0s s2 open conn=1`},
		{name: "it rests on", servers: lazy, want: invariant.Holds, story: rested + `
		30s    s1 phase phase=pending step=idle epoch=2
		30s    s1 done command=2 method=enable
		` + over},
		{name: "it is started", servers: lazy, want: invariant.Violated, why: "Nobody called it", story: rested + started + over},
		{name: "it is started, and called", servers: lazy, want: invariant.Holds, story: rested + `
		30s    s1 call call=c1 tool=write
		` + started + over},
		{name: "an eager one is started", want: invariant.Holds, story: rested + started + over},
		{name: "the manager looks when a call fails", servers: http, want: invariant.Holds, story: ended + `
		15s    s1 phase phase=pending step=restarting epoch=2 class=network text=gone
		` + over},
		{name: "nobody looks when a call fails", servers: http, want: invariant.Violated, why: "it had to look at once", story: ended + `
		20s    s1 phase phase=pending step=restarting epoch=2 class=network text=gone
		` + over},
		{name: "the next probe finds it without a call", servers: http, want: invariant.Holds, story: `
		0s     s1 phase phase=pending step=dialing epoch=2
		0s     s1 open conn=1
		1ms    s1 phase phase=pending step=handshaking epoch=2
		5ms    s1 answered conn=1 method=initialize id=1
		5ms    s1 phase phase=pending step=listing epoch=2
		10ms   s1 answered conn=1 method=tools/list id=2
		20ms   s1 phase phase=connected epoch=2
		10s    s1 down conn=1 class=network
		20s    s1 phase phase=pending step=restarting epoch=2 class=network text=gone
		` + over},
	})
}

// A call whose answer was lost alone is made once more.
func TestALostAnswerIsAskedForAgain(t *testing.T) {
	const lost = `
		0s     s1 phase phase=pending step=dialing epoch=2
		0s     s1 open conn=1
		20ms   s1 phase phase=connected epoch=2
		10s    s1 fault-on fault=1 name=truncate
		10s    s1 call call=c1 tool=read
		10s    s1 received conn=1 method=tools/call id=5 call=c1
		10.1s  s1 executed conn=1 tool=read call=c1 value=1
		10.1s  s1 received conn=1 method=ping id=6
	`
	const answered = `
		10.2s  s1 answered conn=1 method=ping id=6
	`
	const unknown = `
		10.3s  s1 end call=c1 tool=read outcome=unknown class=network
	`
	const over = `
		60s    - closing
	`
	trusted := func(p *scenario.Plan) { p.Servers[0].Trusted, p.CallWait = true, 5*time.Second }
	http := []string{"s1 kind=http"}
	runCases(t, "I2", []storyCase{
		{name: "nobody calls", want: invariant.Inconclusive, why: "No tool was called", story: `0s s2 open conn=1`},
		{name: "it is made again", servers: http, plan: trusted, want: invariant.Holds, story: lost + answered + `
		10.2s  s1 received conn=1 method=tools/call id=7 call=c1
		10.3s  s1 executed conn=1 tool=read call=c1 value=2
		10.3s  s1 answered conn=1 method=tools/call id=7 call=c1
		10.3s  s1 end call=c1 tool=read outcome=result value=2 conn=1
		` + over},
		{name: "it is not made again", servers: http, plan: trusted, want: invariant.Violated, why: "It was to be made again", story: lost + answered + unknown + over},
		{name: "the server does not answer", servers: http, plan: trusted, want: invariant.Holds, story: lost + unknown + over},
		{name: "the server answers an earlier ping alone, as on seeds 8000827 and 8001521", servers: http, plan: trusted, want: invariant.Holds, story: `
		9s     s1 received conn=1 method=ping id=4
		` + lost + `
		10.2s  s1 answered conn=1 method=ping id=4
		` + unknown + over},
		{name: "the server is not trusted", servers: http, want: invariant.Holds, story: lost + answered + unknown + over},
		{name: "a person was asked about it, as on seed 4000927", servers: http, plan: trusted, want: invariant.Holds, story: lost + `
		10.15s s1 received conn=1
		` + answered + unknown + over},
		{name: "a person was asked before it", servers: http, plan: trusted, want: invariant.Violated, why: "It was to be made again", story: `
		9s     s1 received conn=1
		` + lost + answered + unknown + over},
	})
}

// A call that was lost with its connection waits for the next one, to be made once more.
func TestALostCallWaitsForTheNextConnection(t *testing.T) {
	const received = `
		0s     s1 phase phase=pending step=dialing epoch=2
		0s     s1 open conn=1
		20ms   s1 phase phase=connected epoch=2
		10s    s1 call call=c1 tool=read
		10s    s1 received conn=1 method=tools/call id=5 call=c1
	`
	const brokenOff = `
		10.2s  s1 fired conn=1 fault=1 name=truncate
	`
	const failedAlone = `
		10.2s  s1 answered conn=1 method=tools/call id=5 call=c1 code=503
	`
	const down = `
		10.5s  s1 down conn=1 class=network
	`
	const lost = received + down
	const returning = `
		10.5s  s1 phase phase=pending step=restarting epoch=2 retry=at next=40s class=network text=gone
	`
	const over = `
		60s    - closing
	`
	trusted := func(p *scenario.Plan) {
		p.Servers[0].Trusted, p.CallWait, p.WithdrawAfter = true, 5*time.Second, time.Second
	}
	http := []string{"s1 kind=http"}
	end := func(at string) string { return at + " s1 end call=c1 tool=read outcome=unknown class=network" }
	runCases(t, "I2", []storyCase{
		{name: "nobody calls", want: invariant.Inconclusive, why: "No tool was called", story: `0s s2 open conn=1`},
		{name: "it waits in vain", servers: http, plan: trusted, want: invariant.Holds, story: lost + returning + end("15.5s") + over},
		{name: "it does not wait", servers: http, plan: trusted, want: invariant.Violated, why: "The server was on its way back", story: lost + returning + end("10.5s") + over},
		{name: "the manager publishes the end of the connection later, as on seed 20960921", servers: http, plan: trusted, want: invariant.Holds,
			story: lost + strings.Replace(returning, "10.5s", "10.7s", 1) + end("15.5s") + over},
		{name: "it was answered by a failure before the connection ended, as on seed 20991195", servers: http, plan: trusted, want: invariant.Holds,
			story: received + failedAlone + down + returning + end("15.2s") + over},
		{name: "it was answered by a failure and does not wait as long as it may", servers: http, plan: trusted, want: invariant.Violated, why: "The server was on its way back",
			story: received + failedAlone + down + returning + end("15s") + over},
		{name: "its stream was broken off before the connection ended, as on seed 20986893", servers: http, plan: trusted, want: invariant.Holds,
			story: received + brokenOff + down + returning + end("15.2s") + over},
		{name: "a stream was broken off on another connection", servers: http, plan: trusted, want: invariant.Violated, why: "The server was on its way back",
			story: received + strings.Replace(brokenOff, "conn=1", "conn=2", 1) + down + returning + end("15.2s") + over},
		{name: "another call was answered by a failure", servers: http, plan: trusted, want: invariant.Violated, why: "The server was on its way back",
			story: received + strings.Replace(failedAlone, "c1", "c2", 1) + down + returning + end("15.2s") + over},
		{name: "it does not wait as long as it may", servers: http, plan: trusted, want: invariant.Violated, why: "The server was on its way back", story: lost + returning + end("12s") + over},
		{name: "it had failed on the connection before, as on seed 20901674", servers: http, plan: trusted, want: invariant.Holds, story: `
		0s     s1 open conn=1
		20ms   s1 phase phase=connected epoch=2
		9s     s1 call call=c1 tool=read
		9s     s1 down conn=1 class=network
		9s     s1 phase phase=pending step=restarting epoch=2 retry=at next=10s class=network text=gone
		10s    s1 open conn=2
		10s    s1 phase phase=connected epoch=3
		10s    s1 received conn=2 method=tools/call id=5 call=c1
		10.5s  s1 down conn=2 class=network
		10.5s  s1 phase phase=pending step=restarting epoch=3 retry=at next=40s class=network text=gone
		` + end("10.5s") + over},
		{name: "the server is parked", servers: http, plan: trusted, want: invariant.Holds, story: lost + `
		10.5s  s1 phase phase=failed epoch=2 retry=parked next=5m class=network text=gone
		` + end("12s") + over},
		{name: "its owner has disabled the server", servers: http, plan: trusted, want: invariant.Holds, story: lost + returning + `
		11s    s1 command command=1 method=disable
		11s    s1 done command=1 method=disable
		` + end("12s") + over},
		{name: "it may have become a task, as on seed 20901788", servers: http, plan: func(p *scenario.Plan) {
			trusted(p)
			p.Servers[0].Tasks = "optional"
		}, want: invariant.Holds, story: lost + returning + end("10.5s") + over},
		{name: "a question was asked that nobody has answered, as on seed 20904684", servers: http, plan: trusted, want: invariant.Holds, story: received + `
		10.2s  s1 inquiry conn=1 method=sampling/createMessage id=ask-1 call=c2
		10.5s  s1 down conn=1 class=network
		` + returning + end("10.5s") + over},
		{name: "its time had passed, as on seed 20904767", servers: http, plan: func(p *scenario.Plan) {
			trusted(p)
			p.Servers[0].CallTimeout = time.Second
		}, want: invariant.Holds, story: lost + returning + end("11s") + over},
		{name: "the server is not trusted", servers: http, want: invariant.Holds, story: lost + returning + end("10.5s") + over},
		{name: "a person was asked about it", servers: http, plan: trusted, want: invariant.Holds, story: received + `
		10.2s  s1 received conn=1
		10.5s  s1 down conn=1 class=network
		` + returning + end("12s") + over},
	})
}
