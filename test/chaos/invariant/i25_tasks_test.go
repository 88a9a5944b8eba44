package invariant_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// TestTasksOfAgents judges calls that agents have taken over as tasks.
func TestTasksOfAgents(t *testing.T) {
	const began = joinedAgents + `
		2s s1 call call=a1-1 tool=read agent=agent-1 by=anna
		2s s1 received conn=1 method=tools/call id=5 call=a1-1
		2s s1 told method=call-started tool=read
		3s s1 answered conn=1 method=tools/call id=5 task=task-1 deadline=1h
		3s - replied agent=agent-1 by=anna epoch=1 id=1 method=tools/call task=task
		3s - tasked agent=agent-1 by=anna about=a1-1 deadline=1h
		4s - replied agent=agent-2 by=ben epoch=1 id=1 method=tools/call about=a2-1
	`
	const opened = `
		0s s1 open conn=1
		0s s1 opened conn=1
	`
	const sentAgain = `
		6s s1 down conn=1 class=network
		6s s1 released conn=1
		7s s1 open conn=2
		7s s1 opened conn=2
		7s s1 received conn=2 method=tools/call id=3 call=a1-1
		8s s1 answered conn=2 method=tools/call id=3 task=task-2 deadline=12s
	`
	withTasks := func(p *scenario.Plan) { p.Servers[0].Tasks = scenario.TasksOptional }
	// 63 further calls of the principal, which fail.
	failing := func(end string) string {
		var b strings.Builder
		for n := range 63 {
			fmt.Fprintf(&b, "1.5s s1 call call=a1-%d tool=read agent=agent-1 by=anna\n%s s1 end call=a1-%d tool=read outcome=not-sent class=busy agent=agent-1 by=anna\n", n+100, end, n+100)
		}
		return b.String()
	}
	runCases(t, "I25", []storyCase{
		{name: "the result is there soon", want: invariant.Holds, plan: withTasks, story: opened + began + `
			5s s1 told method=call-ended tool=read outcome=result took=3s
			6s s1 end call=a1-1 tool=read outcome=result agent=agent-1 by=anna
			20s - closing`},
		{name: "the result comes late", want: invariant.Violated, why: "ended at 5s with result, and agent-1 had that only at 11s", plan: withTasks, story: opened + began + `
			5s s1 told method=call-ended tool=read outcome=result took=3s
			11s s1 end call=a1-1 tool=read outcome=result agent=agent-1 by=anna
			20s - closing`},
		{name: "a result before the end", want: invariant.Violated, why: "and its call had not ended", plan: withTasks, story: opened + began + `
			6s s1 end call=a1-1 tool=read outcome=result agent=agent-1 by=anna
			20s - closing`},
		{name: "a cancelled task", want: invariant.Holds, plan: withTasks, story: opened + began + `
			5s s1 left call=a1-1 tool=read agent=agent-1 by=anna
			5s s1 told method=call-ended tool=read outcome=unknown took=3s
			5s s1 received conn=1 method=tasks/cancel id=6 task=task-1
			5s s1 end call=a1-1 tool=read outcome=unknown class=canceled agent=agent-1 by=anna
			20s - closing`},
		{name: "a cancelled task goes on at its server", want: invariant.Violated, why: "its server was not told by 6s", plan: withTasks, story: opened + began + `
			5s s1 left call=a1-1 tool=read agent=agent-1 by=anna
			5s s1 told method=call-ended tool=read outcome=unknown took=3s
			5s s1 end call=a1-1 tool=read outcome=unknown class=canceled agent=agent-1 by=anna
			20s - closing`},
		{name: "a cancelled task fails before its server is told", want: invariant.Holds, plan: withTasks, story: opened + began + `
			5s s1 left call=a1-1 tool=read agent=agent-1 by=anna
			5s s1 told method=call-ended tool=read outcome=unknown took=3s
			5s s1 end call=a1-1 tool=read outcome=unknown class=canceled agent=agent-1 by=anna
			5.5s s1 notified conn=1 method=notifications/tasks/status task=task-1 name=failed
			20s - closing`},
		{name: "a cancelled task fails later than its server is to be told", want: invariant.Violated, why: "its server was not told by 6s", plan: withTasks, story: opened + began + `
			5s s1 left call=a1-1 tool=read agent=agent-1 by=anna
			5s s1 told method=call-ended tool=read outcome=unknown took=3s
			5s s1 end call=a1-1 tool=read outcome=unknown class=canceled agent=agent-1 by=anna
			6.5s s1 notified conn=1 method=notifications/tasks/status task=task-1 name=failed
			20s - closing`},
		{name: "a task that lives is not known", want: invariant.Violated, why: "was told that there is none", plan: withTasks, story: opened + began + `
			4s - asked agent=agent-1 by=anna epoch=1 id=2 method=tasks/get about=a1-1
			4s - replied agent=agent-1 by=anna epoch=1 id=2 method=tasks/get code=-32602`},
		// Seed 20850829: each of the calls had a place until it failed, and one of them took that of the task.
		{name: "a task whose place was taken by a call that failed is not known", want: invariant.Holds, plan: withTasks, story: opened + began + failing("3.5s") + `
			4s - asked agent=agent-1 by=anna epoch=1 id=2 method=tasks/get about=a1-1
			4s - replied agent=agent-1 by=anna epoch=1 id=2 method=tasks/get code=-32602`},
		{name: "a task is not known, and all other calls had failed before it began", want: invariant.Violated, why: "was told that there is none", plan: withTasks,
			story: opened + failing("1.9s") + began + `
			4s - asked agent=agent-1 by=anna epoch=1 id=2 method=tasks/get about=a1-1
			4s - replied agent=agent-1 by=anna epoch=1 id=2 method=tasks/get code=-32602`},
		{name: "a task whose time has passed is not known", want: invariant.Holds, plan: withTasks, story: opened + began + `
			3601s - asked agent=agent-1 by=anna epoch=1 id=2 method=tasks/get about=a1-1
			3601s - replied agent=agent-1 by=anna epoch=1 id=2 method=tasks/get code=-32602`},
		// Seed 20350913: the call was sent again, and became a task that its server gave another time.
		{name: "a task whose time has become another one is not known", want: invariant.Holds, plan: withTasks, story: opened + began + sentAgain + `
			9s - retimed by=anna about=a1-1 deadline=12s
			13s - asked agent=agent-1 by=anna epoch=1 id=2 method=tasks/get about=a1-1
			13s - replied agent=agent-1 by=anna epoch=1 id=2 method=tasks/get code=-32602`},
		// Seed 20870234: the same, and no agent had asked for the task before that time had passed.
		{name: "a task whose time has become another one is not known, and no agent heard of that", want: invariant.Holds, plan: withTasks, story: opened + began + sentAgain + `
			13s - asked agent=agent-1 by=anna epoch=1 id=2 method=tasks/get about=a1-1
			13s - replied agent=agent-1 by=anna epoch=1 id=2 method=tasks/get code=-32602`},
		{name: "a task is not known before its other time has passed", want: invariant.Violated, why: "was told that there is none", plan: withTasks, story: opened + began + sentAgain + `
			9s - retimed by=anna about=a1-1 deadline=12s
			11s - asked agent=agent-1 by=anna epoch=1 id=2 method=tasks/get about=a1-1
			11s - replied agent=agent-1 by=anna epoch=1 id=2 method=tasks/get code=-32602`},
		{name: "the time of the server's second task is counted from the first", want: invariant.Violated, why: "keeps its task until 12s, and its agent was told at 9s that the task lives until 7s", plan: withTasks,
			story: opened + began + sentAgain + `
			9s - retimed by=anna about=a1-1 deadline=7s
			20s s1 end call=a1-1 tool=read outcome=unknown class=canceled agent=agent-1 by=anna name=unseen`},
		// Seed 20882996: half of the answer came.
		{name: "the time of a task of which no answer could be read", want: invariant.Holds, plan: withTasks,
			story: opened + began + sentAgain + `
			9s s1 end call=a1-1 tool=read outcome=unknown class=protocol agent=agent-1 by=anna
			9s - retimed by=anna about=a1-1 deadline=7s`},
		{name: "the task of another principal", want: invariant.Violated, why: "had to be refused with the code -32602", plan: withTasks, story: opened + began + `
			4s - asked agent=agent-2 by=ben epoch=1 id=2 method=tasks/get name=foreign-task
			4s - replied agent=agent-2 by=ben epoch=1 id=2 method=tasks/get`},
		{name: "nobody came", want: invariant.Inconclusive, story: opened},
	})
	runCases(t, "I24", []storyCase{
		{name: "the result of another task", want: invariant.Violated, why: "was given the answer to call a2-1", plan: withTasks, story: opened + began + `
			4s - asked agent=agent-1 by=anna epoch=1 id=2 method=tasks/result about=a1-1
			5s - replied agent=agent-1 by=anna epoch=1 id=2 method=tasks/result about=a2-1`},
		{name: "the progress of an own task", want: invariant.Holds, plan: withTasks, story: opened + began + `
			5s - noticed agent=agent-1 by=anna epoch=1 method=notifications/progress about=a1-1`},
		{name: "the news of a task", want: invariant.Holds, plan: withTasks, story: opened + began + `
			4s - asked agent=agent-1 by=anna epoch=1 id=2 method=subscriptions/listen about=a1-1
			5s - noticed agent=agent-1 by=anna epoch=1 id=2 method=notifications/tasks about=a1-1`},
		{name: "the news of another task", want: invariant.Violated, why: "which is to another task", plan: withTasks, story: opened + began + `
			4s - asked agent=agent-1 by=anna epoch=1 id=2 method=subscriptions/listen about=a1-1
			5s - noticed agent=agent-1 by=anna epoch=1 id=2 method=notifications/tasks about=a2-1`},
		{name: "an answer that is its own", want: invariant.Holds, plan: withTasks, story: opened + began},
		{name: "nobody came", want: invariant.Inconclusive, story: opened},
	})
	const waited = joinedAgents + opened + `
		2s s1 call call=a1-1 tool=read agent=agent-1 by=anna
		2.1s s1 call call=a1-2 tool=read agent=agent-1 by=anna
		2.5s s1 received conn=1 method=tools/call id=5 call=a1-2
		2.5s s1 told method=call-started tool=read
		2.6s s1 received conn=1 method=tools/call id=6 call=a1-1
		2.6s s1 told method=call-started tool=read
		3s s1 answered conn=1 method=tools/call id=5 task=task-1 deadline=1h
		3s s1 answered conn=1 method=tools/call id=6 task=task-2 deadline=1h
		3s - replied agent=agent-1 by=anna epoch=1 id=1 method=tools/call task=task
		3s - tasked agent=agent-1 by=anna about=a1-1 deadline=1h
		3s - replied agent=agent-1 by=anna epoch=1 id=2 method=tools/call task=task
		3s - tasked agent=agent-1 by=anna about=a1-2 deadline=1h
		6s s1 told method=call-ended tool=read outcome=unknown took=3.5s
	`
	const learnt = `
		8s s1 end call=a1-1 tool=read outcome=unknown class=network agent=agent-1 by=anna
		9s s1 end call=a1-2 tool=read outcome=unknown class=network agent=agent-1 by=anna
		20s - closing
		20s - closed`
	runCases(t, "I19", []storyCase{
		// Seed 20601026: the first of two like calls was given the end of the second.
		{name: "two like tasks, sent in the other order, lose their connection", want: invariant.Holds, plan: withTasks, story: waited + `
			6.001s s1 told method=call-ended tool=read outcome=unknown took=3.401s` + learnt},
		// Seed 20703479: a task was given the end of a call that its agent had left.
		{name: "a call ends in the time of a task that began with it", want: invariant.Holds, plan: withTasks, story: joinedAgents + opened + `
			2s s1 call call=a1-1 tool=read agent=agent-1 by=anna
			2s s1 received conn=1 method=tools/call id=5 call=a1-1
			2s s1 told method=call-started tool=read
			2s s1 call call=a1-2 tool=read agent=agent-1 by=anna
			2s s1 received conn=1 method=tools/call id=6 call=a1-2
			2s s1 told method=call-started tool=read
			2.1s s1 answered conn=1 method=tools/call id=6 task=task-2 deadline=1h
			2.1s - replied agent=agent-1 by=anna epoch=1 id=2 method=tools/call task=task
			2.1s - tasked agent=agent-1 by=anna about=a1-2 deadline=1h
			3s s1 left call=a1-1 tool=read agent=agent-1 by=anna
			3s s1 told method=call-ended tool=read outcome=unknown took=1s
			3s s1 end call=a1-1 tool=read outcome=unknown class=canceled agent=agent-1 by=anna
			4s s1 told method=call-ended tool=read outcome=result took=2s
			4s s1 end call=a1-2 tool=read outcome=result agent=agent-1 by=anna
			20s - closing
			20s - closed`},
		// Seed 20750037: a task was given the end of a call that was sent in the same moment.
		{name: "a task and a call, sent in one moment", want: invariant.Holds, plan: withTasks, story: joinedAgents + opened + `
			2s s1 call call=a1-1 tool=read agent=agent-1 by=anna
			2.5s s1 call call=a2-1 tool=read agent=agent-2 by=ben
			2.6s s1 received conn=1 method=tools/call id=5 call=a2-1
			2.6s s1 received conn=1 method=tools/call id=6 call=a1-1
			2.6s s1 told method=call-started tool=read
			2.6s s1 told method=call-started tool=read
			2.7s s1 answered conn=1 method=tools/call id=5 call=a2-1
			2.7s s1 told method=call-ended tool=read outcome=result took=100ms
			2.7s s1 end call=a2-1 tool=read outcome=result agent=agent-2 by=ben
			3s s1 answered conn=1 method=tools/call id=6 task=task-1 deadline=1h
			3s - replied agent=agent-1 by=anna epoch=1 id=1 method=tools/call task=task
			3s - tasked agent=agent-1 by=anna about=a1-1 deadline=1h
			6s s1 told method=call-ended tool=read outcome=result took=3.4s
			6.5s s1 end call=a1-1 tool=read outcome=result agent=agent-1 by=anna
			20s - closing
			20s - closed`},
		{name: "watchers are told of one of two ends", want: invariant.Violated, why: "call of tool read began at 2.6s, and never that it ended", plan: withTasks, story: waited + learnt},
		{name: "nobody came", want: invariant.Inconclusive, story: opened},
	})
}
