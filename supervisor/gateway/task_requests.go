package gateway

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/serve"
	wire "github.com/mcpvisor/mcpvisor/transports/session"
)

// taskGone is the answer about a task that this gateway does not have. Which tasks an earlier one had is not known.
const taskGone = "Task not found: its time to live has passed, or mcpvisor was started anew since. A task that you had may have run: " +
	"look at what it would have changed before calling again"

// errNoTasks is the error of a request about tasks by an agent of the modern era that does not say it takes them.
func errNoTasks() *serve.Error {
	return &serve.Error{Code: serve.CodeMissingCapability, Message: "Missing required client capability",
		Data: []byte(`{"requiredCapabilities":{"extensions":{"` + wire.TasksExtension + `":{}}}}`)}
}

// handleTask answers a request about tasks. What another principal has, or is of a tool that is not shown any more, does not exist.
func (g *Gateway) handleTask(ctx context.Context, v *view, r *serve.Request) ([]byte, *serve.Error) {
	principal := r.Session.Principal.Name
	what := strings.TrimPrefix(r.Method, "tasks/")
	switch modern := r.Modern(); {
	case modern && (what == "result" || what == "list"), !modern && (what == "update" || r.Session.Version < tasksSince),
		what == "list" && principal == "": // agents without a name cannot be told apart, and would see each other's
		return nil, serve.MethodNotFound(r.Method)
	case modern && !declaresTasks(r):
		return nil, errNoTasks()
	case what == "list":
		return g.listTasks(v, r)
	}
	id, _ := rawjson.Text(rawjson.Member(r.Params, "taskId"))
	t := g.tasks.find(principal, id)
	if t == nil || !v.showsTask(t) {
		return nil, serve.InvalidParams(taskGone)
	}
	switch what {
	case "get":
		return t.describe(r.Modern()), nil
	case "result":
		return g.awaitTask(ctx, r, t)
	case "update":
		return g.updateTask(r, t)
	case "cancel":
		return g.cancelTask(r, t)
	default:
		return nil, serve.MethodNotFound(r.Method)
	}
}

// showsTask reports whether a view shows the tool that a task runs.
func (v *view) showsTask(t *task) bool {
	to := t.call.to
	return (v.server == "" || v.server == to.server) && v.g.all.Has(to.server) && v.scope.Load().showsTool(to.server, to.name)
}

// listTasks answers tasks/list. All tasks of a principal are one page.
func (g *Gateway) listTasks(v *view, r *serve.Request) ([]byte, *serve.Error) {
	if !rawjson.IsNull(rawjson.Member(r.Params, "cursor")) {
		return nil, serve.InvalidParams("the cursor is not one of this list")
	}
	b := []byte(`{"tasks":[`)
	empty := len(b)
	for _, t := range g.tasks.list(r.Session.Principal.Name) {
		if !v.showsTask(t) {
			continue
		}
		if len(b) > empty {
			b = append(b, ',')
		}
		b = append(b, t.describe(false)...)
	}
	return append(b, "]}"...), nil
}

// describe returns the task as tasks/get tells it: in the modern era with its questions, or with its answer.
func (t *task) describe(modern bool) []byte {
	c := t.call
	c.mu.Lock()
	defer c.mu.Unlock()
	b := []byte{'{'}
	if modern {
		b = append(b, `"resultType":"complete",`...)
	}
	return append(t.appendDetails(b, modern), '}')
}

// appendDetails appends the members of describe. The caller holds the lock of the call.
func (t *task) appendDetails(b []byte, modern bool) []byte {
	c := t.call
	state := t.shown(modern, len(c.open) > 0)
	b = t.appendTask(b, modern, state)
	if !modern {
		return b
	}
	switch state {
	case messages.TaskInputRequired:
		open := slices.Clone(c.open)
		for i := range open {
			open[i].params = retieTask(open[i].params, t.id)
		}
		b = appendQuestions(append(b, `,"inputRequests":`...), open)
	case messages.TaskCompleted:
		b = append(append(b, `,"result":`...), retieTask(c.result, t.id)...)
	case messages.TaskFailed:
		b = appendProblem(append(b, `,"error":`...), c.problem)
	default:
	}
	return b
}

// cancelTask answers tasks/cancel: the call is cancelled, and with it the task of the server, if it can do that.
//
// 2025-11-25: "Receivers MUST reject cancellation requests for tasks already in a terminal status … with error code -32602". 2026-07-28:
// "On success, the server MUST acknowledge the request with an empty result."
func (g *Gateway) cancelTask(r *serve.Request, t *task) ([]byte, *serve.Error) {
	t.call.mu.Lock()
	cancelled := t.cancel(time.Now())
	t.call.mu.Unlock()
	if !cancelled && !r.Modern() {
		return nil, serve.InvalidParams("the task has ended already")
	}
	if cancelled {
		t.call.cancel(errTaskCancelled)
		g.tellTask(t)
	}
	if r.Modern() {
		return []byte(`{"resultType":"complete"}`), nil
	}
	return t.describe(false), nil
}

// awaitTask answers tasks/result: it waits for the end of the task, and meanwhile asks the agent what the server asks about it. The end
// of the request ends nothing else.
//
// 2025-11-25: "When the requestor encounters the input_required status, it SHOULD preemptively call tasks/result."
func (g *Gateway) awaitTask(ctx context.Context, r *serve.Request, t *task) ([]byte, *serve.Error) {
	c := t.call
	for {
		if q, asking := c.takeQuestion(ctx, r.Capabilities); asking != nil {
			if e := c.relayQuestion(asking, r, t, q); e != nil {
				return nil, e
			}
			continue
		}
		select {
		case <-c.done:
			if c.problem != nil {
				return nil, c.problem
			}
			return withRelatedTask(c.result, t.id), nil
		case <-c.wakeFor(r.Capabilities):
		case <-ctx.Done():
			return nil, &serve.Error{Code: serve.CodeInternal, Message: "the request was ended, and the task goes on"}
		}
	}
}

// wakeFor returns what tells of questions; an agent that cannot be asked anything takes no news from one that can.
func (c *modernCall) wakeFor(capabilities []byte) <-chan struct{} {
	for _, ability := range []string{"elicitation", "sampling", "roots"} {
		if !rawjson.IsNull(rawjson.Member(capabilities, ability)) {
			return c.wake
		}
	}
	return nil
}

// takeQuestion returns an open question that the agent can be asked and that no request asks it yet, and the context to do so: it ends
// when the question is taken back.
func (c *modernCall) takeQuestion(ctx context.Context, capabilities []byte) (q question, asking context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, q := range c.open {
		if c.asking[q.id] == nil && canBeAsked(capabilities, abilityFor(q.method), q.params) {
			asking, cancel := context.WithCancel(ctx)
			if c.asking == nil {
				c.asking = map[string]context.CancelFunc{}
			}
			c.asking[q.id] = cancel
			return q, asking
		}
	}
	return q, nil
}

// abilityFor returns the capability that a question needs.
func abilityFor(method string) string {
	ability, _, _ := strings.Cut(method, "/")
	return ability
}

// relayQuestion asks an agent on the stream of its tasks/result, and brings the answer. If the agent goes away, another request can ask.
func (c *modernCall) relayQuestion(ctx context.Context, r *serve.Request, t *task, q question) *serve.Error {
	result, e := r.Ask(ctx, q.method, withRelatedTask(q.params, t.id))
	c.mu.Lock()
	c.asking[q.id]()
	delete(c.asking, q.id)
	answer, open := c.answers[q.id]
	switch {
	case !open: // it was taken back
	case e != nil && e.Raw == nil:
		c.mu.Unlock()
		c.wakeUp()
		return e
	case e != nil:
		answer <- agentAnswer{err: &messages.Error{Op: "answer", Class: messages.ClassRejected,
			Text: "the agent gave no answer: " + messages.Line(e.Error(), 200), Reply: e.Raw}}
	case !rawjson.IsObject(result):
		answer <- agentAnswer{err: &messages.Error{Op: "answer", Class: messages.ClassProtocol, Text: "the agent's answer is no object"}}
	default:
		answer <- agentAnswer{result: result}
	}
	if open {
		c.closeQuestion(t, q.id)
	}
	c.mu.Unlock()
	if open {
		c.agents.g.tellTask(t)
	}
	return nil
}

// closeQuestion forgets a question that has its answer. The caller holds the lock of the call.
func (c *modernCall) closeQuestion(t *task, id string) {
	delete(c.answers, id)
	c.dropQuestion(id)
	t.updated = time.Now()
}

// updateTask answers tasks/update: it brings the answers of an agent to the server.
//
// 2026-07-28: "A server SHOULD ignore any inputResponses responses mapped to a key that is not currently outstanding for the task".
func (g *Gateway) updateTask(r *serve.Request, t *task) ([]byte, *serve.Error) {
	responses := rawjson.Member(r.Params, "inputResponses")
	if !rawjson.IsObject(responses) {
		return nil, serve.InvalidParams("inputResponses must be an object")
	}
	answers, e := readResponses(responses)
	if e != nil {
		return nil, e
	}
	c := t.call
	c.mu.Lock()
	for id, result := range answers {
		if answer := c.answers[id]; answer != nil {
			answer <- agentAnswer{result: result}
			c.closeQuestion(t, id)
		}
	}
	c.mu.Unlock()
	g.tellTask(t)
	return []byte(`{"resultType":"complete"}`), nil
}

// tellTask tells the agents of a task of its state: the session that began it, and those of its principal that listen.
func (g *Gateway) tellTask(t *task) {
	g.tasks.mu.Lock()
	given := t.given
	g.tasks.mu.Unlock()
	if !given {
		return
	}
	if t.agent != nil && t.view.showsTask(t) {
		t.agent.Notify("task "+t.id, "notifications/tasks/status", t.describe(false))
	}
	g.mu.Lock()
	var listens []*listening
	for key, v := range g.views {
		if key.principal != t.call.agents.principal || !v.showsTask(t) {
			continue
		}
		v.mu.Lock()
		for l := range v.listens {
			if l.tasks[t.id] {
				listens = append(listens, l)
			}
		}
		v.mu.Unlock()
	}
	g.mu.Unlock()
	slices.SortFunc(listens, compareListens)
	for _, l := range listens {
		l.notifyTask(t)
	}
}

// notifyTask tells a listener of the state of a task.
func (l *listening) notifyTask(t *task) {
	t.call.mu.Lock()
	members := t.appendDetails(nil, true)
	t.call.mu.Unlock()
	l.notifyListener("notifications/tasks", members)
}

// tellEndedTasks tells a listener of those of its tasks that have ended before it listened: they change no more.
func (g *Gateway) tellEndedTasks(l *listening) {
	for _, id := range slices.Sorted(maps.Keys(l.tasks)) {
		t := g.tasks.find(l.request.Session.Principal.Name, id)
		if t == nil {
			continue
		}
		t.call.mu.Lock()
		ended := t.end != notEnded
		t.call.mu.Unlock()
		if ended {
			l.notifyTask(t)
		}
	}
}

// listenToTasks notes the tasks that an agent wants to be told of, and returns the ids of those that it has, as JSON.
func (v *view) listenToTasks(l *listening, ids []byte) []byte {
	l.tasks = map[string]bool{}
	b := []byte{'['}
	for a := rawjson.ArrayAt(ids, 0, 0); a.Next() && len(l.tasks) < maxTasksOf; {
		id, _ := rawjson.Text(a.Skip())
		if t := v.g.tasks.find(l.request.Session.Principal.Name, id); t == nil || l.tasks[id] || !v.showsTask(t) {
			continue
		}
		if len(l.tasks) > 0 {
			b = append(b, ',')
		}
		l.tasks[id] = true
		b = rawjson.AppendText(b, id)
	}
	return append(b, ']')
}
