package drills

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// ownTask is a task of an agent: when it is complete, or that it was cancelled.
type ownTask struct {
	id, principal string
	ends          time.Time
	isCancelled   bool
}

// pollTime is the time within which it is not known whether a task that ends then has been seen to.
const pollTime = 10 * time.Second

// playTasks lets agents of two principals have calls as tasks, ask about them, wait for their results and cancel them, their own and those of others.
func playTasks(s *stage) {
	work := newTaskServer("work")
	work.asksNothing = true
	m := s.connectServers(supervisor.Config{}, work.server)
	if m == nil {
		return
	}
	g := s.openGateway(gateway.Config{})
	agents := map[string][]*agent{}
	for _, principal := range []string{"anna", "anna", "ben"} {
		agents[principal] = append(agents[principal], s.joinAgent(g, serve.Principal{Name: principal}, serve.Path{}, nil))
	}
	var tasks []*ownTask
	for range 12 + s.rng.IntN(12) {
		s.letPass(s.drawSpan(0, 20*time.Second))
		principal := pickOne(s, "anna", "ben")
		a := pickOne(s, agents[principal]...)
		if len(tasks) == 0 || s.isOneIn(4) {
			seconds := 5 + s.rng.IntN(60)
			result, err := a.callMethod(s.ctx, "tools/call", map[string]any{"name": "work__work", "arguments": map[string]any{"seconds": seconds}, "task": map[string]any{"ttl": 3_600_000}})
			var made struct {
				Task struct{ TaskID, Status string }
			}
			if _ = json.Unmarshal(result, &made); err != nil || made.Task.TaskID == "" || made.Task.Status != "working" {
				s.reportFinding("I25", "work", "a call that its agent wants as a task was answered with %s %v", result, err)
				return
			}
			tasks = append(tasks, &ownTask{id: made.Task.TaskID, principal: principal, ends: time.Now().Add(time.Duration(seconds) * time.Second)})
			s.addStory("task %d of %s for %d s", len(tasks), principal, seconds)
			continue
		}
		n := s.rng.IntN(len(tasks))
		if !askAboutTask(s, a, principal, tasks[n], tasks) {
			return
		}
	}
	s.letPass(5*time.Second + time.Millisecond) // a cancellation is on its way, and no task ends at such a time
	checkServerTasks(s, m, work)
}

// askAboutTask lets an agent ask about a task in one of the ways that there are.
func askAboutTask(s *stage, a *agent, principal string, t *ownTask, tasks []*ownTask) bool {
	params, isOwn := map[string]any{"taskId": t.id}, t.principal == principal
	method := pickOne(s, "tasks/get", "tasks/get", "tasks/list", "tasks/result", "tasks/cancel")
	left := time.Until(t.ends)
	if left.Abs() < pollTime && !t.isCancelled && method != "tasks/list" {
		return true
	}
	state := "working"
	switch {
	case t.isCancelled:
		state = "cancelled"
	case left < 0:
		state = "completed"
	}
	s.addStory("%s by %s about a task of %s that is %s", method, principal, t.principal, state)
	ctx, cancel := context.WithTimeout(s.ctx, 5*time.Minute)
	defer cancel()
	result, err := a.callMethod(ctx, method, params)
	var got struct {
		Status string
		Tasks  []struct{ TaskID string }
	}
	_ = json.Unmarshal(result, &got)
	var protocol *rpcError
	isRefused := errors.As(err, &protocol) && protocol.Code == -32602
	switch {
	case method == "tasks/list":
		var ids, want []string
		for _, one := range got.Tasks {
			ids = append(ids, one.TaskID)
		}
		for _, one := range tasks {
			if one.principal == principal {
				want = append(want, one.id)
			}
		}
		slices.Sort(ids)
		if slices.Sort(want); slices.Equal(ids, want) {
			return true
		}
		s.reportFinding("I25", "work", "the tasks of %s are listed as %q, and are %q", principal, ids, want)
		return false
	case !isOwn && isRefused, method == "tasks/get" && isOwn && err == nil && got.Status == state:
		return true
	case method == "tasks/result" && isOwn && err == nil && strings.Contains(string(result), map[bool]string{true: `"isError":true`, false: "done"}[state == "cancelled"]):
		return true
	case method == "tasks/cancel" && isOwn && state == "working" && err == nil && got.Status == "cancelled":
		t.isCancelled = true
		return true
	case method == "tasks/cancel" && isOwn && state != "working" && isRefused:
		return true
	}
	s.reportFinding("I25", "work", "%s of %s about a task of %s that is %s was answered with %s %v", method, principal, t.principal, state, result, err)
	return false
}

// checkServerTasks compares what the manager says of the server's tasks with what they are.
func checkServerTasks(s *stage, m *supervisor.Manager, work *taskServer) {
	all, err := m.Tasks(s.ctx, "work")
	work.mu.Lock()
	states := map[string]string{}
	for id, t := range work.tasks {
		states[id] = t.state
	}
	work.mu.Unlock()
	if err != nil || len(all) != len(states) {
		s.reportFinding("I20", "work", "it has %d tasks, and its list has %d: %v", len(states), len(all), err)
		return
	}
	for _, t := range all {
		one, err := m.Task(s.ctx, "work", t.ID)
		if string(t.State) != states[t.ID] || err != nil || one.State != t.State {
			s.reportFinding("I20", "work", "its task %s is %s, and the manager says %s and %s: %v", t.ID, states[t.ID], t.State, one.State, err)
			return
		}
		if t.State == messages.TaskWorking {
			err := m.CancelTask(s.ctx, "work", t.ID)
			work.mu.Lock()
			state := work.tasks[t.ID].state
			work.mu.Unlock()
			if err != nil || state != "cancelled" {
				s.reportFinding("I20", "work", "its task %s was to be cancelled, and is %s: %v", t.ID, state, err)
			}
			continue
		}
		res, err := m.TaskResult(s.ctx, "work", t.ID)
		want := "cancelled"
		if t.State == messages.TaskCompleted {
			want = "done " + t.ID
		}
		if t.State == messages.TaskCompleted && (err != nil || res.Text() != want) {
			s.reportFinding("I20", "work", "the result of its task %s, which is %s, is %s", t.ID, t.State, fmt.Sprint(err))
		}
	}
}
