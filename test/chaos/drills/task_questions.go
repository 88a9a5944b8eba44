package drills

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// taskServer answers each call that wants a task with one, asks about it, and completes it with the answer.
type taskServer struct {
	*server
	// asksNothing completes each task after the number of seconds that its arguments say.
	asksNothing bool
	mu          sync.Mutex
	tasks       map[string]*serverTask
}

type serverTask struct {
	id     string
	state  string
	result any
	done   chan struct{}
}

// describe returns the task as the protocol writes it.
func (t *serverTask) describe() map[string]any {
	return map[string]any{"taskId": t.id, "status": t.state, "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": 3_600_000, "pollInterval": 1000}
}

// newTaskServer makes the server, with one tool that wants tasks.
func newTaskServer(name string) *taskServer {
	t := &taskServer{server: newServer(name), tasks: map[string]*serverTask{}}
	t.tools = []map[string]any{{"name": "work", "inputSchema": map[string]any{"type": "object"}, "execution": map[string]any{"taskSupport": "optional"}}}
	t.declared = map[string]any{"tasks": map[string]any{"list": struct{}{}, "cancel": struct{}{}, "requests": map[string]any{"tools": map[string]any{"call": struct{}{}}}}}
	t.others = t.handleTask
	t.handle = func(_ context.Context, c *toolCall) (any, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		task := &serverTask{id: fmt.Sprintf("%s-%d", name, len(t.tasks)), state: "working", done: make(chan struct{})}
		t.tasks[task.id] = task
		var p struct{ Seconds int }
		_ = json.Unmarshal(c.arguments, &p)
		c.conn.work.Go(func() {
			if t.asksNothing {
				t.completeAfter(c.conn, task, time.Duration(p.Seconds)*time.Second)
			} else {
				t.workOn(c.conn, task)
			}
		})
		return map[string]any{"task": task.describe()}, nil
	}
	return t
}

// workOn asks about a task and completes it with the answer.
func (t *taskServer) workOn(c *conn, task *serverTask) {
	time.Sleep(2 * time.Second)
	t.mu.Lock()
	task.state = "input_required"
	t.mu.Unlock()
	answer, err := c.askClient(c.ctx, "elicitation/create", map[string]any{"message": "May it go on?", "requestedSchema": map[string]any{"type": "object",
		"properties": map[string]any{"go": map[string]any{"type": "boolean"}}}, "_meta": map[string]any{"io.modelcontextprotocol/related-task": map[string]any{"taskId": task.id}}})
	t.mu.Lock()
	defer t.mu.Unlock()
	task.endTask("completed", textResult(fmt.Sprintf("answered %s %v", answer, err)))
}

// endTask ends a task that has not ended. The caller holds mu.
func (t *serverTask) endTask(state string, result any) {
	if t.result == nil {
		t.state, t.result = state, result
		close(t.done)
	}
}

// completeAfter completes a task after a time.
func (t *taskServer) completeAfter(c *conn, task *serverTask, d time.Duration) {
	select {
	case <-time.After(d):
	case <-task.done:
	case <-c.ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	task.endTask("completed", textResult("done "+task.id))
}

// handleTask answers what the client asks about tasks.
func (t *taskServer) handleTask(c *conn, m message) bool {
	var p struct {
		TaskID string `json:"taskId"`
	}
	_ = json.Unmarshal(m.Params, &p)
	t.mu.Lock()
	task := t.tasks[p.TaskID]
	listed := []map[string]any{}
	for n := range len(t.tasks) {
		listed = append(listed, t.tasks[fmt.Sprintf("%s-%d", t.name, n)].describe())
	}
	t.mu.Unlock()
	switch {
	case m.Method == "tasks/list":
		c.sendResult(m, map[string]any{"tasks": listed})
	case task == nil:
		return false
	case m.Method == "tasks/get":
		t.mu.Lock()
		described := task.describe()
		t.mu.Unlock()
		c.sendResult(m, described)
	case m.Method == "tasks/cancel":
		t.mu.Lock()
		task.endTask("cancelled", textResult("cancelled"))
		described := task.describe()
		t.mu.Unlock()
		c.sendResult(m, described)
	case m.Method == "tasks/result":
		c.work.Go(func() {
			select {
			case <-task.done:
				c.sendResult(m, task.result)
			case <-c.ctx.Done():
			}
		})
	default:
		return false
	}
	return true
}

// playTaskQuestions lets an agent ask for the result of a task about which its server asks, go away with the question open, and come again.
func playTaskQuestions(s *stage) {
	work := newTaskServer("work")
	cfg := supervisor.Config{}
	gateway.PassQuestions(&cfg)
	if s.connectServers(cfg, work.server) == nil {
		return
	}
	g := s.openGateway(gateway.Config{})
	a := s.joinAgent(g, serve.Principal{Name: "anna"}, serve.Path{}, map[string]any{"elicitation": struct{}{}})
	result, err := a.callMethod(s.ctx, "tools/call", map[string]any{"name": "work__work", "arguments": struct{}{}, "task": map[string]any{"ttl": 3_600_000}})
	var made struct{ Task struct{ TaskID string } }
	if _ = json.Unmarshal(result, &made); err != nil || made.Task.TaskID == "" {
		s.reportFinding("I25", "work", "a call that its agent wants as a task was answered with %s %v", result, err)
		return
	}
	params := map[string]any{"taskId": made.Task.TaskID}
	a.answerWith(func(string, json.RawMessage) any { return nil }) // the question stays open
	for visit := range 1 + s.rng.IntN(3) {
		s.letPass(s.drawSpan(0, 5*time.Second))
		asked := a.countAsked()
		ctx, cancel := context.WithTimeout(s.ctx, 20*time.Second)
		_, err := a.callMethod(ctx, "tasks/result", params)
		cancel()
		if s.letPass(time.Second); a.countAsked() != asked+1 || err == nil {
			s.reportFinding("I25", "work", "request %d for the result of a task that wants input: its agent was asked %d times within 20 s, and got %v", visit+1, a.countAsked()-asked, err)
			return
		}
	}
	a.answerWith(func(string, json.RawMessage) any { return serverQuestions["elicitation"].answer })
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	if result, err = a.callMethod(ctx, "tasks/result", params); err != nil || !strings.Contains(string(result), "accept") {
		s.reportFinding("I25", "work", "the result of a task whose question was answered is %s %v", result, err)
	}
}
