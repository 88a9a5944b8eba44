package agents

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// TestWhatIsSaidOfATask goes through what a status of a task may say after another one.
func TestWhatIsSaidOfATask(t *testing.T) {
	at := func(s int) time.Time { return time.Date(2026, 1, 1, 0, 0, s, 0, time.UTC) }
	status := func(state messages.TaskState, updated int) taskStatus {
		return taskStatus{ID: "t", State: state, Created: at(1), Updated: at(updated), TTL: 1000, Interval: 100}
	}
	for _, c := range []struct {
		name, want    string
		before, after taskStatus
	}{
		{"the first", "", taskStatus{}, status(messages.TaskWorking, 1)},
		{"it works on", "", status(messages.TaskWorking, 1), status(messages.TaskInputRequired, 2)},
		{"it ends", "", status(messages.TaskInputRequired, 1), status(messages.TaskCompleted, 2)},
		{"a failure in the eyes of two eras", "", status(messages.TaskFailed, 2), status(messages.TaskCompleted, 2)},
		{"it ends twice", "was cancelled, which is the end of it, and was told later to be completed", status(messages.TaskCancelled, 2), status(messages.TaskCompleted, 2)},
		{"it goes on after its end", "was completed, which is the end of it, and was told later to be working", status(messages.TaskCompleted, 2), status(messages.TaskWorking, 2)},
		{"time goes back", "its last update is before that of the status before", status(messages.TaskWorking, 3), status(messages.TaskWorking, 2)},
		{"no such status", "has the status odd", status(messages.TaskWorking, 3), status("odd", 3)},
		{"no time to live", "no time to live", taskStatus{}, taskStatus{ID: "t", State: messages.TaskWorking}},
		{"another creation", "created at another time", taskStatus{ID: "t", State: messages.TaskWorking, TTL: 1, Interval: 1}, status(messages.TaskWorking, 2)},
	} {
		if got := c.after.problemAfter(&c.before); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestATaskHasAnIDOfItsOwn: a task with the id of another one, and one that has ended before it began, are reported.
func TestATaskHasAnIDOfItsOwn(t *testing.T) {
	var got []string
	f := &Fleet{Options: Options{Record: func(e history.Event) { got = append(got, e.Name+" "+e.Text) }, Now: func() time.Duration { return time.Second }},
		tasks: allTasks{byID: map[string]*agentTask{}}}
	a := newAgent(f, scenario.PlannedAgent{Name: "agent-1", As: "anna"}, 1)
	f.agents = []*agent{a}
	const task = `{"resultType":"task","taskId":"t","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":1000,"pollIntervalMs":100}`
	f.noteTask("a1-1", "anna", []byte(task))
	if len(got) > 0 {
		t.Fatal(got)
	}
	f.noteTask("a1-2", "anna", []byte(task))
	f.noteTask("a1-3", "anna", []byte(strings.NewReplacer(`"t"`, `"u"`, "working", "failed").Replace(task)))
	if len(got) != 2 || !strings.Contains(got[0], "I24 the call a1-2 became a task without an id, or with the id of another one") || !strings.Contains(got[1], "began as failed") {
		t.Error(got)
	}
}

// TestATaskIsRefusedOnlyWhileManyRun: a call may not become a task while 64 of its principal's run. One of which an agent has had the result runs no more,
// and those of another principal count for that one.
func TestATaskIsRefusedOnlyWhileManyRun(t *testing.T) {
	for name, c := range map[string]struct {
		running, over, foreign, making int
		reported                       bool
	}{
		"as many run as may":              {running: 64},
		"some are about to become tasks":  {running: 60, making: 4},
		"one has ended":                   {running: 63, over: 1, reported: true},
		"another principal has the tasks": {foreign: 64, reported: true},
	} {
		var got []string
		f := &Fleet{Options: Options{Record: func(e history.Event) { got = append(got, e.Name) }, Now: func() time.Duration { return time.Minute }}, tasks: allTasks{byID: map[string]*agentTask{}}}
		add := func(n int, principal string, over time.Duration) {
			for range n {
				f.tasks.byID[itoa(len(f.tasks.byID))] = &agentTask{principal: principal, over: over}
			}
		}
		add(c.running, "anna", 0)
		add(c.over, "anna", time.Second)
		add(c.foreign, "ben", 0)
		if f.checkTaskRefused("anna", c.making); (len(got) > 0) != c.reported {
			t.Errorf("%s: %q", name, got)
		}
	}
}
