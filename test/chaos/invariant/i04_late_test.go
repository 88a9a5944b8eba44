package invariant_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

func TestNothingIsSentForACallerWhoHasLeft(t *testing.T) {
	const given = `
		0s     s1 open conn=1
		10ms   s1 opened conn=1
		1s     s1 call call=c1 tool=write
		1s     s1 received conn=1 method=tools/call call=c1 id=3
		61s    s1 end call=c1 tool=write outcome=unknown class=timeout
	`
	const begunTask = `
		2s     s1 answered conn=1 method=tools/call id=3 task=task-1
	`
	tasks := func(p *scenario.Plan) { p.Servers[0].Tasks = scenario.TasksRequired }
	runCases(t, "I4", []storyCase{
		{name: "given up and cancelled", want: invariant.Holds, story: given + `
			61s    s1 received conn=1 method=notifications/cancelled about=3
			99s    - closing
		`},
		{name: "given up because the connection died", want: invariant.Holds, story: given + `
			62s    s1 down conn=1
			99s    - closing
		`},
		{name: "answered at the very end", want: invariant.Holds, story: given + `
			61s    s1 answered conn=1 method=tools/call call=c1 id=3
			99s    - closing
		`},
		{name: "over HTTP the end of the exchange says it", servers: []string{"s1 kind=http era=modern"}, want: invariant.Holds, story: given + `
			99s    - closing
		`},
		{name: "a server that does not read hears of it later", want: invariant.Holds, story: `
			0s     s1 fault-on fault=1 name=deaf
			80s    s1 fault-off fault=1 name=deaf
		` + given + `
			99s    - closing
		`},
		{name: "a task goes on alone", plan: tasks, want: invariant.Violated, why: "its server was never told", story: given + `
			62s    s1 executed conn=1 call=c1 tool=write value=1
			99s    - closing
		`},
		{name: "its task is cancelled", plan: tasks, want: invariant.Holds, story: given + `
			2s     s1 answered conn=1 method=tools/call id=3 task=task-1
			61s    s1 received conn=1 method=tasks/cancel id=9 task=task-1
			99s    - closing
		`},
		// Seed 20340052: the first task was cancelled before its caller had asked for the end, and took the cancellation of the second.
		{name: "two tasks are cancelled, and one caller learns it late", plan: tasks, want: invariant.Holds, story: given + `
			1s     s1 call call=c2 tool=write
			1s     s1 received conn=1 method=tools/call call=c2 id=4
			2s     s1 answered conn=1 method=tools/call id=3 task=task-1
			2s     s1 answered conn=1 method=tools/call id=4 task=task-2
			60s    s1 received conn=1 method=tasks/cancel id=8 task=task-1
			61.5s  s1 received conn=1 method=tasks/cancel id=9 task=task-2
			61.5s  s1 end call=c2 tool=write outcome=unknown class=canceled
			99s    - closing
		`},
		// Seed 20351497: each call became a task only when it was given up, and one of them took the cancellation of another as its agent learnt of the end later.
		{name: "two requests are cancelled, and one agent learns it late", plan: tasks, want: invariant.Holds, story: given + `
			1s     s1 call call=c2 tool=write
			1s     s1 received conn=1 method=tools/call call=c2 id=4
			60s    s1 received conn=1 method=notifications/cancelled about=3
			61.5s  s1 received conn=1 method=notifications/cancelled about=4
			61.5s  s1 end call=c2 tool=write outcome=unknown class=timeout
			99s    - closing
		`},
		{name: "another request is cancelled", want: invariant.Violated, why: "Call c1", story: given + `
			61s    s1 received conn=1 method=notifications/cancelled about=4
			99s    - closing
		`},
		{name: "another task is cancelled", plan: tasks, want: invariant.Violated, why: "its server was never told", story: given + `
			2s     s1 answered conn=1 method=tools/call id=3 task=task-1
			61s    s1 received conn=1 method=tasks/cancel id=9 task=task-2
			99s    - closing
		`},
		{name: "a task that has run may have told so", plan: tasks, want: invariant.Holds, story: `
			0s     s1 open conn=1
			10ms   s1 opened conn=1
			1s     s1 call call=c1 tool=write
			1s     s1 received conn=1 method=tools/call call=c1 id=3
			60.9s  s1 executed conn=1 call=c1 tool=write value=1
			61s    s1 end call=c1 tool=write outcome=unknown class=timeout
			99s    - closing
		`},
		// Seed 20396050: the task failed without having run, and its caller gave it up while the client asked for the error.
		{name: "a task that has failed may have told so", plan: tasks, want: invariant.Holds, story: given + begunTask + `
			61s    s1 notified conn=1 method=notifications/tasks/status task=task-1 name=failed
			99s    - closing
		`},
		{name: "a task fails after it was given up", plan: tasks, want: invariant.Violated, why: "its server was never told", story: given + begunTask + `
			62s    s1 notified conn=1 method=notifications/tasks/status task=task-1 name=failed
			99s    - closing
		`},
		{name: "another task fails", plan: tasks, want: invariant.Violated, why: "its server was never told", story: given + begunTask + `
			60s    s1 notified conn=1 method=notifications/tasks/status task=task-2 name=failed
			99s    - closing
		`},
		{name: "a task waits for input", plan: tasks, want: invariant.Violated, why: "its server was never told", story: given + begunTask + `
			60s    s1 notified conn=1 method=notifications/tasks/status task=task-1 name=input_required
			99s    - closing
		`},
		{name: "nothing was received", want: invariant.Inconclusive, why: "No call of a server", story: `1s s1 call call=c1 tool=write`},
		{name: "nobody tells the server", want: invariant.Violated, why: "its server was never told", story: given + `
			99s    - closing
		`},
		{name: "one cancellation for two calls", want: invariant.Violated, why: "Call c2", story: given + `
			1s     s1 call call=c2 tool=write
			1s     s1 received conn=1 method=tools/call call=c2 id=4
			61s    s1 received conn=1 method=notifications/cancelled about=3
			61.5s  s1 end call=c2 tool=write outcome=unknown class=timeout
			99s    - closing
		`},
		{name: "a queued request is written after its caller has left", want: invariant.Violated, why: "was first sent to its server at 4s", story: `
			1s     s1 call call=c1 tool=write
			3s     s1 end call=c1 tool=write outcome=not-sent class=timeout
			4s     s1 received conn=1 method=tools/call call=c1 id=3
		`},
		{name: "a repetition after the outcome", want: invariant.Violated, why: "was sent again at 5s", story: `
			1s     s1 call call=c1 tool=read
			1s     s1 received conn=1 method=tools/call call=c1 id=3
			3s     s1 end call=c1 tool=read outcome=unknown class=exited
			5s     s1 received conn=2 method=tools/call call=c1 id=3
		`},
		// Seed 20702964: a task goes on without its agent, also after the end of a connection.
		{name: "a repetition of a call whose agent may come back", want: invariant.Holds, story: taskOfTheAbsent + `
			9s     s1 told method=call-ended tool=read outcome=result took=8s
		`},
		{name: "a repetition after the end of a call whose agent may come back", want: invariant.Violated, why: "was sent again at 5s", story: taskOfTheAbsent + `
			4s     s1 told method=call-ended tool=read outcome=unknown took=3s
		`},
	})
}

// taskOfTheAbsent is a call that became a task, whose agent asks no more, and that was sent twice.
const taskOfTheAbsent = `
			1s     s1 call call=c1 tool=read agent=agent-1 by=anna
			1s     s1 received conn=1 method=tools/call call=c1 id=3
			1.1s   - tasked agent=agent-1 by=anna about=c1 deadline=1h
			2s     s1 end call=c1 tool=read outcome=unknown class=canceled agent=agent-1 by=anna name=unseen
			5s     s1 received conn=2 method=tools/call call=c1 id=3
`
