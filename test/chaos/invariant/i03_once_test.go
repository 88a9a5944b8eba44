package invariant_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

func TestCallsAndTheirExecutions(t *testing.T) {
	const connected = `
		0s     s1 open conn=1
		10ms   s1 opened conn=1
	`
	const second = connected + `
		1s     s1 call call=c1 tool=TOOL
		1s     s1 received conn=1 method=tools/call call=c1 id=4
		1.01s  s1 executed conn=1 call=c1 tool=TOOL value=1
		1.01s  s1 down conn=1 class=exited
		1.03s  s1 released conn=1
		1.5s   s1 open conn=2
		1.51s  s1 opened conn=2
		1.6s   s1 received conn=2 method=tools/call call=c1 id=4
		1.61s  s1 executed conn=2 call=c1 tool=TOOL value=2
		1.61s  s1 end call=c1 tool=TOOL outcome=result conn=2 value=2
	`
	tool := func(name string) string { return strings.ReplaceAll(second, "TOOL", name) }
	answered := func(method string, code int) string {
		return strings.Replace(tool("read"), "1.01s  s1 executed", fmt.Sprintf("1.005s s1 inquired conn=1 method=%s call=c1 id=q1 code=%d\n1.01s  s1 executed", method, code), 1)
	}
	const lateTask = connected + `
			1s     s1 call call=c1 tool=put
			1s     s1 received conn=1 method=tools/call call=c1 id=3
			1.5s   s1 released conn=1
			1.6s   s1 open conn=2
			1.6s   s1 opened conn=2
			1.6s   s1 received conn=2 method=tools/call call=c1 id=3
			1.7s   s1 executed conn=2 call=c1 tool=put value=1
			1.7s   s1 end call=c1 tool=put outcome=result conn=2 value=1
			1.8s   s1 executed conn=1 call=c1 tool=put value=2
			2s     s1 call call=c2 tool=put
			2s     s1 received conn=2 method=tools/call call=c2 id=4
			2.1s   s1 executed conn=2 call=c2 tool=put value=3
			2.1s   s1 end call=c2 tool=put outcome=result conn=2 value=3
		`
	const refusedAndLost = `
			1s     s1 call call=c1 tool=read
			1s     s1 received conn=1 method=tools/call call=c1 id=3
			1.1s   s1 answered conn=1 method=tools/call call=c1 id=3 code=400
			1.2s   s1 received conn=1 method=tools/call call=c1 id=4
			1.5s   s1 down conn=1 class=network
			1.6s   s1 received conn=1 method=tools/call call=c1 id=5
	`
	runCases(t, "I3", []storyCase{
		{name: "once, and told so", want: invariant.Holds, story: connected + `
			1s     s1 call call=c1 tool=write
			1s     s1 received conn=1 method=tools/call call=c1
			1.01s  s1 executed conn=1 call=c1 tool=write value=1
			1.01s  s1 end call=c1 tool=write outcome=result conn=1 value=1
			2s     s1 call call=c2 tool=write
			2s     s1 received conn=1 method=tools/call call=c2
			2.01s  s1 executed conn=1 call=c2 tool=write value=2
			2.01s  s1 down conn=1 class=exited
			2.01s  s1 end call=c2 tool=write outcome=unknown class=exited
		`},
		{name: "a trusted server's read is repeated", servers: []string{"s1 trusted=true"}, want: invariant.Holds, story: tool("read")},
		{name: "a trusted server's put is repeated", servers: []string{"s1 trusted=true"}, want: invariant.Holds, story: tool("put")},
		{name: "a read is repeated over a connection that lives on", servers: []string{"s1 kind=http trusted=true"}, want: invariant.Holds,
			story: connected + `
			1s     s1 call call=c1 tool=read
			1s     s1 received conn=1 method=tools/call call=c1
			1.01s  s1 executed conn=1 call=c1 tool=read value=1
			1.01s  s1 received conn=1 method=tools/call call=c1
			1.02s  s1 executed conn=1 call=c1 tool=read value=2
			1.02s  s1 end call=c1 tool=read outcome=result conn=1 value=2
			2s     s1 call call=c2 tool=read
			2s     s1 received conn=1 method=tools/call call=c2
			2.01s  s1 executed conn=1 call=c2 tool=read value=3
			2.01s  s1 end call=c2 tool=read outcome=result conn=1 value=3
		`},
		{name: "a trusted server's write is repeated", servers: []string{"s1 trusted=true"}, want: invariant.Violated,
			why: "neither read-only nor idempotent", story: tool("write")},
		{name: "the read of a server that nobody trusts is repeated", want: invariant.Violated, why: "A caller made call c1 of tool read of s1 once, at 1s, and it ran 2 times: on connection 1 at 1.01s and on connection 2 at 1.61s. It may run once, because the server is not trusted. Connection 1 had ended at", story: tool("read")},
		{name: "a read is repeated about which a person has answered", servers: []string{"s1 trusted=true"}, want: invariant.Violated,
			why: "The server s1 asked about call c1 of tool read (elicitation/create), and had the answer at 1.005s. The call was sent again at 1.6s", story: answered("elicitation/create", 0)},
		{name: "a read is repeated whose question was refused", servers: []string{"s1 trusted=true"}, want: invariant.Holds, story: answered("elicitation/create", -1)},
		{name: "a read is repeated whose server has asked for the roots", servers: []string{"s1 trusted=true"}, want: invariant.Holds, story: answered("roots/list", 0)},
		{name: "no call reached anything", want: invariant.Inconclusive, why: "No call reached", story: connected},
		{name: "sent again after a death, and the first one never ran", want: invariant.Violated, why: "was sent 2 times", story: connected + `
			1s     s1 call call=c1 tool=write
			1s     s1 received conn=1 method=tools/call call=c1
			1s     s1 down conn=1 class=exited
			1.5s   s1 open conn=2
			1.6s   s1 received conn=2 method=tools/call call=c1
			1.61s  s1 executed conn=2 call=c1 tool=write value=1
			1.61s  s1 end call=c1 tool=write outcome=result conn=2 value=1
		`},
		{name: "refused, and then lost, as on seed 4004989", servers: []string{"s1 kind=http trusted=true"}, want: invariant.Holds, story: connected + refusedAndLost + `
			1.7s   s1 executed conn=1 call=c1 tool=read value=1
			1.7s   s1 answered conn=1 method=tools/call call=c1 id=5
			1.7s   s1 end call=c1 tool=read outcome=result conn=1 value=1
		`},
		{name: "refused, and lost twice", servers: []string{"s1 kind=http trusted=true"}, want: invariant.Violated, why: "was sent 4 times", story: connected + refusedAndLost + `
			1.65s  s1 received conn=1 method=tools/call call=c1 id=6
			1.7s   s1 executed conn=1 call=c1 tool=read value=1
			1.7s   s1 answered conn=1 method=tools/call call=c1 id=6
			1.7s   s1 end call=c1 tool=read outcome=result conn=1 value=1
		`},
		{name: "refused, and then lost, and it may not run twice", servers: []string{"s1 kind=http"}, want: invariant.Violated, why: "was sent 3 times", story: connected + refusedAndLost + `
			1.7s   s1 executed conn=1 call=c1 tool=read value=1
			1.7s   s1 answered conn=1 method=tools/call call=c1 id=5
			1.7s   s1 end call=c1 tool=read outcome=result conn=1 value=1
		`},
		{name: "sent again after a session was forgotten", servers: []string{"s1 kind=http"}, want: invariant.Holds, story: connected + `
			1s     s1 call call=c1 tool=write
			1s     s1 received conn=1 method=tools/call call=c1 id=3
			1s     s1 answered conn=1 method=tools/call call=c1 id=3 code=404
			1s     s1 down conn=1 class=session
			1.1s   s1 released conn=1
			1.5s   s1 open conn=2
			1.5s   s1 opened conn=2
			1.6s   s1 received conn=2 method=tools/call call=c1 id=3
			1.61s  s1 executed conn=2 call=c1 tool=write value=1
			1.61s  s1 end call=c1 tool=write outcome=result conn=2 value=1
		`},
		{name: "its session was forgotten before it was written", servers: []string{"s1 kind=http"}, want: invariant.Holds, story: connected + `
			500ms  s1 phase phase=connected epoch=1
			1s     s1 call call=c1 tool=write
			1.1s   s1 phase phase=pending step=restarting class=session epoch=1
			1.1s   s1 down conn=1 class=network
			1.1s   s1 released conn=1
			1.5s   s1 open conn=2
			1.5s   s1 opened conn=2
			1.6s   s1 received conn=2 method=tools/call call=c1 id=3
			1.61s  s1 executed conn=2 call=c1 tool=write value=1
			1.61s  s1 end call=c1 tool=write outcome=result conn=2 value=1
		`},
		{name: "another call was told that the session was forgotten", servers: []string{"s1 kind=http"}, want: invariant.Holds, story: connected + `
			1s     s1 call call=c1 tool=write
			1.1s   s1 answered conn=1 method=tools/call id=62 code=404
			1.1s   s1 phase phase=pending step=restarting class=network epoch=1
			1.1s   s1 down conn=1 class=network
			1.1s   s1 released conn=1
			1.5s   s1 open conn=2
			1.5s   s1 opened conn=2
			1.6s   s1 received conn=2 method=tools/call call=c1 id=3
			1.61s  s1 executed conn=2 call=c1 tool=write value=1
			1.61s  s1 end call=c1 tool=write outcome=result conn=2 value=1
		`},
		{name: "its session was forgotten before it began", servers: []string{"s1 kind=http"}, want: invariant.Violated, why: "admitted to another epoch",
			story: connected + `
			500ms  s1 phase phase=connected epoch=1
			1s     s1 phase phase=pending step=restarting class=session epoch=1
			1s     s1 down conn=1 class=network
			1s     s1 released conn=1
			1.1s   s1 call call=c1 tool=write
			1.3s   s1 phase phase=pending step=dialing class=session epoch=2
			1.5s   s1 open conn=2
			1.5s   s1 opened conn=2
			1.6s   s1 received conn=2 method=tools/call call=c1 id=3
			1.61s  s1 executed conn=2 call=c1 tool=write value=1
			1.61s  s1 end call=c1 tool=write outcome=result conn=2 value=1
		`},
		{name: "a call waits for another connection though it may not", want: invariant.Violated, why: "admitted to another epoch",
			story: connected + `
			1s     s1 down conn=1
			1s     s1 released conn=1
			1.1s   s1 call call=c1 tool=write
			1.5s   s1 open conn=2
			1.51s  s1 opened conn=2
			1.6s   s1 received conn=2 method=tools/call call=c1
			1.61s  s1 executed conn=2 call=c1 tool=write value=1
			1.61s  s1 end call=c1 tool=write outcome=result conn=2 value=1
		`},
		{name: "a call may wait for another connection", plan: func(p *scenario.Plan) { p.CallWait = 5e9 }, want: invariant.Holds,
			story: connected + `
			1s     s1 down conn=1
			1s     s1 released conn=1
			1.1s   s1 call call=c1 tool=write
			1.5s   s1 open conn=2
			1.51s  s1 opened conn=2
			1.6s   s1 received conn=2 method=tools/call call=c1
			1.61s  s1 executed conn=2 call=c1 tool=write value=1
			1.61s  s1 end call=c1 tool=write outcome=result conn=2 value=1
		`},
		{name: "not sent though it ran", want: invariant.Violated, why: "ended with not-sent, and the server executed it", story: connected + `
			1s     s1 call call=c1 tool=write
			1s     s1 received conn=1 method=tools/call call=c1
			1.01s  s1 executed conn=1 call=c1 tool=write value=1
			1.01s  s1 down conn=1
			1.01s  s1 end call=c1 tool=write outcome=not-sent class=network
		`},
		{name: "a task is refused when it is asked after", want: invariant.Holds, story: connected + `
			1s     s1 call call=c1 tool=write
			1s     s1 received conn=1 method=tools/call call=c1 id=3
			1.1s   s1 answered conn=1 method=tools/call id=3
			2s     s1 received conn=1 method=tasks/result id=4
			2.1s   s1 answered conn=1 method=tasks/result id=4 code=-32603
			2.1s   s1 end call=c1 tool=write outcome=rejected class=rejected
		`, plan: func(p *scenario.Plan) { p.Servers[0].Tasks = scenario.TasksRequired }},
		{name: "rejected though it ran", want: invariant.Violated, why: "ended with rejected, and the server executed it", story: connected + `
			1s     s1 call call=c1 tool=write
			1.01s  s1 executed conn=1 call=c1 tool=write value=1
			1.01s  s1 end call=c1 tool=write outcome=rejected class=rejected
		`},
		{name: "not sent though it was received", want: invariant.Violated, why: "ended with not-sent, and the server received it",
			story: connected + `
			1s     s1 call call=c1 tool=write
			1s     s1 received conn=1 method=tools/call call=c1
			1s     s1 down conn=1
			1s     s1 end call=c1 tool=write outcome=not-sent class=network
		`},
		{name: "a result out of nothing", want: invariant.Violated, why: "no server executed it", story: connected + `
			1s     s1 call call=c1 tool=write
			1.01s  s1 end call=c1 tool=write outcome=result conn=1 value=1
		`},
		{name: "a result of another connection", want: invariant.Violated, why: "execution 1 on connection 2", story: connected + `
			1s     s1 call call=c1 tool=write
			1s     s1 received conn=1 method=tools/call call=c1
			1.01s  s1 executed conn=1 call=c1 tool=write value=1
			1.01s  s1 end call=c1 tool=write outcome=result conn=2 value=1
		`},
		{name: "executed by a process that is no more", want: invariant.Violated, why: "which had ended", story: connected + `
			1s     s1 call call=c1 tool=write
			1s     s1 received conn=1 method=tools/call call=c1
			1.01s  s1 down conn=1
			1.02s  s1 executed conn=1 call=c1 tool=write value=1
			1.03s  s1 end call=c1 tool=write outcome=unknown
		`},
		{name: "executed for nobody", want: invariant.Violated, why: "nobody called it", story: connected + `
			1.02s  s1 executed conn=1 call=c7 tool=write value=1
		`},
		{name: "the count of a tool goes back", want: invariant.Violated, why: "call c1 ended at 1.01s with value 2 on connection 1, and call c2, which can only have run later, has value 1", story: connected + `
			1s     s1 call call=c1 tool=write
			1s     s1 received conn=1 method=tools/call call=c1
			1.01s  s1 executed conn=1 call=c1 tool=write value=2
			1.01s  s1 end call=c1 tool=write outcome=result conn=1 value=2
			2s     s1 call call=c2 tool=write
			2s     s1 received conn=1 method=tools/call call=c2
			2.01s  s1 executed conn=1 call=c2 tool=write value=1
			2.01s  s1 end call=c2 tool=write outcome=result conn=1 value=1
		`},
		{name: "a result of a connection that was over before the call began", want: invariant.Violated, why: "connection 1 was not open during the call",
			story: connected + `
			1s     s1 released conn=1
			2s     s1 open conn=2
			2s     s1 opened conn=2
			3s     s1 call call=c1 tool=write
			3s     s1 received conn=2 method=tools/call call=c1
			3.01s  s1 executed conn=1 call=c1 tool=write value=1
			3.01s  s1 end call=c1 tool=write outcome=result conn=1 value=1
		`},
		{name: "a task runs when its connection is gone", servers: []string{"s1 kind=http trusted=true"}, want: invariant.Holds,
			plan: func(p *scenario.Plan) { p.Servers[0].Tasks = scenario.TasksRequired }, story: lateTask},
		{name: "a server over HTTP runs what it received when the connection is gone", servers: []string{"s1 kind=http trusted=true"}, want: invariant.Holds,
			story: lateTask},
		{name: "a call that is no task does not run when its process is gone", servers: []string{"s1 kind=stdio trusted=true"}, want: invariant.Violated,
			why: "call c2 ended at 2.1s with value 3 on connection 2, and no call that reached the server s1 can be the one with value 2", story: lateTask},
		{name: "what nobody knows may have run or not", want: invariant.Holds, story: connected + `
			1s     s1 call call=c1 tool=write
			1s     s1 received conn=1 method=tools/call call=c1
			2s     s1 end call=c1 tool=write outcome=unknown class=timeout
			3s     s1 call call=c2 tool=write
			3s     s1 received conn=1 method=tools/call call=c2
			3s     s1 executed conn=1 call=c2 tool=write value=1
			3s     s1 end call=c2 tool=write outcome=result conn=1 value=1
			4s     s1 executed conn=1 call=c1 tool=write value=2
			5s     s1 call call=c3 tool=write
			5s     s1 received conn=1 method=tools/call call=c3
			5s     s1 executed conn=1 call=c3 tool=write value=3
			5s     s1 end call=c3 tool=write outcome=result conn=1 value=3
		`},
	})
}

// A long history is judged from its first call to its last.
func TestTheOrderOfManyCalls(t *testing.T) {
	story := func(invalid int) string {
		b := new(strings.Builder)
		fmt.Fprintln(b, "0s s1 open conn=1\n1ms s1 opened conn=1")
		for i := 1; i <= 1500; i++ {
			value := i
			if i == invalid || i == invalid+1 {
				value = 2*invalid + 1 - i // two results that are exchanged, long after each other
			}
			fmt.Fprintf(b, "%ds s1 call call=c%d tool=write\n%ds s1 received conn=1 call=c%d\n%ds s1 executed conn=1 call=c%d tool=write value=%d\n",
				i, i, i, i, i, i, value)
			fmt.Fprintf(b, "%ds s1 end call=c%d tool=write outcome=result conn=1 value=%d\n", i, i, value)
		}
		return b.String()
	}
	check, _ := invariant.Find("I3")
	if v := check.Judge(&history.History{Plan: simPlan(t, "s1"), Events: parseEvents(t, story(-9))}); v.Answer != invariant.Holds {
		t.Errorf("%s: %s", v.Answer, v.Why)
	}
	for _, invalid := range []int{3, 700, 1499} {
		v := check.Judge(&history.History{Plan: simPlan(t, "s1"), Events: parseEvents(t, story(invalid))})
		if v.Answer != invariant.Violated || !strings.Contains(v.Why, fmt.Sprintf("call c%d ended at", invalid)) {
			t.Errorf("exchanged at %d: %s: %s", invalid, v.Answer, v.Why)
		}
	}
}
