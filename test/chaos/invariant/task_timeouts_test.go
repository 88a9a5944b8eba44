package invariant_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// TestTheTimeoutOfATask has stories of a call that runs as a task, with a timeout of 2 s and a status each second.
func TestTheTimeoutOfATask(t *testing.T) {
	const statuses = `
		0s     s1 open conn=1
		1s     s1 call call=c1 tool=write deadline=3s
		1s     s1 received conn=1 method=tools/call id=5 call=c1
		1.1s   s1 answered conn=1 method=tools/call id=5 task=task-1
		2s     s1 received conn=1 method=tasks/get id=6 task=task-1
		2.1s   s1 answered conn=1 method=tasks/get id=6 task=task-1
		3s     s1 received conn=1 method=tasks/get id=7 task=task-1
		3.1s   s1 answered conn=1 method=tasks/get id=7 task=task-1
	`
	gaveUp := func(at string) string {
		return "\n" + at + " s1 end call=c1 tool=write outcome=unknown class=timeout\n90s - closing\n"
	}
	task := func(p *scenario.Plan) {
		p.Servers[0].Tasks, p.Servers[0].CallTimeout = scenario.TasksRequired, 2*time.Second
	}
	impatient := func(p *scenario.Plan) {
		task(p)
		p.Load = []scenario.PlannedLoad{{Server: "s1", Tool: "write", Timeout: 3 * time.Second}}
	}
	bounded := func(p *scenario.Plan) {
		task(p)
		p.Servers[0].MaxCallTimeout = 3 * time.Second
	}
	lazy := func(p *scenario.Plan) {
		bounded(p)
		p.Servers[0].Connect = messages.Lazy
	}
	// The task of this call lives for 4 s, and the call has a minute.
	patient := func(p *scenario.Plan) {
		p.Servers[0].Tasks, p.Servers[0].CallTimeout = scenario.TasksRequired, time.Minute
	}
	const lived = `
		0s     s1 open conn=1
		1s     s1 call call=c1 tool=write deadline=61s
		1s     s1 received conn=1 method=tools/call id=5 call=c1
		1.1s   s1 answered conn=1 method=tools/call id=5 task=task-1 deadline=5.1s
	`
	patientPolls := ""
	for at := 4; at < 37; at++ {
		patientPolls += fmt.Sprintf("%ds s1 received conn=1 method=tasks/get id=%d task=task-1\n%d.1s s1 answered conn=1 method=tasks/get id=%d task=task-1\n", at, at+4, at, at+4)
	}
	runCases(t, "I2", []storyCase{
		{name: "no tool is called", plan: task, want: invariant.Inconclusive, story: `0s s1 open conn=1`},
		{name: "it is given up two seconds after its last status", plan: task, want: invariant.Holds, story: statuses + gaveUp("5.1s")},
		{name: "it is given up after the timeout of a call", plan: task, want: invariant.Violated, why: "at 3.1s that the task is at work", story: statuses + gaveUp("4s")},
		{name: "as its caller has no more time", plan: impatient, want: invariant.Holds, story: statuses + gaveUp("4s")},
		{name: "as no call may last longer", plan: bounded, want: invariant.Holds, story: statuses + gaveUp("4s")},
		// Seeds 6003343 and 6003660: the call waited for its server.
		{name: "as no call may last longer since it found its server", plan: lazy, want: invariant.Holds,
			story: strings.Replace(statuses, "1s     s1 call", "500ms  s1 call", 1) + gaveUp("4s")},
		{name: "the status is about another task", plan: task, want: invariant.Holds, story: strings.ReplaceAll(statuses, "method=tasks/get id=7 task=task-1",
			"method=tasks/get id=7 task=task-2") + gaveUp("4.1s")},
		// Seed 20320835.
		{name: "its task has outlived its time", plan: patient, want: invariant.Holds, story: lived + gaveUp("35.2s")},
		{name: "before its task has", plan: patient, want: invariant.Violated, why: "the server's call timeout passes at", story: lived + gaveUp("20s")},
		{name: "at the end of a task's time, without a task", plan: patient, want: invariant.Violated, why: "the server's call timeout passes at",
			story: strings.ReplaceAll(lived, " task=task-1", "") + gaveUp("35.2s")},
		{name: "at the time of another task than its own, which lives for an hour", plan: patient, want: invariant.Violated, why: "the server's call timeout passes at",
			story: strings.ReplaceAll(lived, "deadline=5.1s", "deadline=3601.1s") + gaveUp("35.2s")},
		// Seed 20360344: the server did not answer for long, and its task was asked for when its time had passed.
		{name: "its task has long outlived its time when the server answers again", plan: patient, want: invariant.Holds, story: lived + gaveUp("50s")},
		// Seed 20360471: the call was given up with the answer that showed that its task goes on.
		{name: "it is given up with a status, after the time of its task", plan: task, want: invariant.Holds, story: strings.ReplaceAll(statuses, "task=task-1\n\t\t2s ",
			"task=task-1 deadline=5.1s\n\t\t2s ") + patientPolls + gaveUp("36.2s")},
		{name: "it is given up with a status, before the time of its task", plan: task, want: invariant.Violated, why: "the timeout of 2s runs from then",
			story: strings.ReplaceAll(statuses, "task=task-1\n\t\t2s ", "task=task-1 deadline=9.1s\n\t\t2s ") + patientPolls + gaveUp("36.2s")},
	})
}
