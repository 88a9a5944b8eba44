package invariant_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// TestATaskIsAskedForUntilRequestsFailInARow has stories of a call that runs as a task, at a server that refuses some of the requests about it.
func TestATaskIsAskedForUntilRequestsFailInARow(t *testing.T) {
	task := func(p *scenario.Plan) {
		p.Servers[0].Kind, p.Servers[0].Tasks, p.Servers[0].CallTimeout = messages.HTTP, scenario.TasksRequired, time.Minute
	}
	// polls answers one request a second: r refuses it, and g gives a status.
	polls := func(answers string) string {
		text := `
			0s     s1 open conn=1
			1s     s1 call call=c1 tool=write deadline=61s
			1s     s1 received conn=1 method=tools/call id=5 call=c1
			1.1s   s1 answered conn=1 method=tools/call id=5 task=task-1
		`
		for i, answer := range answers {
			text += fmt.Sprintf("%ds s1 received conn=1 method=tasks/get id=%d task=task-1\n%d.1s s1 answered conn=1 method=tasks/get id=%d task=task-1 code=%d\n", i+2, i+6, i+2, i+6,
				map[rune]int{'r': 503}[answer])
		}
		return text
	}
	const over = "90s - closing\n"
	gaveUp := func(at int) string {
		return fmt.Sprintf("%d.1s s1 end call=c1 tool=write outcome=unknown class=network\n", at)
	}
	runCases(t, "I2", []storyCase{
		{name: "no tool is called", plan: task, want: invariant.Inconclusive, story: `0s s1 open conn=1`},
		{name: "five in a row are refused", plan: task, want: invariant.Holds, story: polls("grrrrr") + gaveUp(7) + over},
		{name: "four in a row are refused", plan: task, want: invariant.Violated, why: "of the last ones 4 had failed in a row", story: polls("rgrrrr") + gaveUp(7) + over},
		{name: "five are refused in all", plan: task, want: invariant.Violated, why: "of the last ones 1 had failed in a row", story: polls("rgrgrrgr") + gaveUp(9) + over},
		{name: "a program that has listed the tasks is told of it, as on seed 20984876", plan: task, want: invariant.Holds,
			story: polls("rrgrrr") + "3.9s s1 received conn=1 method=tasks/list id=90\n" + gaveUp(7) + over},
		{name: "a program had listed the tasks long before", plan: task, want: invariant.Violated, why: "of the last ones 3 had failed in a row",
			story: polls("rrgrrr") + "2.5s s1 received conn=1 method=tasks/list id=90\n" + gaveUp(7) + over},
		{name: "all are refused", plan: task, want: invariant.Holds, story: polls("rrrrr") + gaveUp(6) + over},
		{name: "the connection ends", plan: task, want: invariant.Holds, story: polls("gr") + "3.1s s1 down conn=1 class=network\n3.1s s1 end call=c1 tool=write outcome=unknown class=network\n" + over},
		{name: "answers may have been lost", plan: task, want: invariant.Holds, story: polls("gg") + "2s s1 fault-on fault=1 name=truncate\n4s s1 fault-off fault=1 name=truncate\n" + gaveUp(4) + over},
	})
}
