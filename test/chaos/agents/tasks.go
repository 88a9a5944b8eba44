package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// agentTask is a call that its agent has taken over as a task. The task outlives the session in which it was begun.
type agentTask struct {
	id, call, principal string
	// number is that of the call's operation, by which its agent chooses what it does with the task. retimed says that the call may be sent again, as a
	// task with another time to live, which an agent that asks no more does not learn.
	number  int
	retimed bool
	// changed has room for the news that the task has changed.
	changed chan struct{}

	// mu guards the newest status, and whether the agent has cancelled the task.
	mu        sync.Mutex
	status    taskStatus
	expires   time.Duration
	cancelled bool
	// over is when the agent had the result, 0 before. Of a task that was cancelled it says nothing: the call may go on.
	over time.Duration
	// listened is set once the gateway has said, at since, that it tells the agent of the task, and news once it has told of its end.
	listened, news bool
	since          time.Time
}

// clockUnit is more than the difference between the times that the gateway tells and its own.
const clockUnit = 2 * time.Millisecond

// allTasks are the tasks that the gateway has made for agents, by the ids that it gave them.
type allTasks struct {
	mu   sync.Mutex
	byID map[string]*agentTask
}

// noteTask notes a task that a call has become. Its id is never one that there was before.
func (f *Fleet) noteTask(call, principal string, result []byte) {
	s := readTask(result)
	number, retimed := f.operationOf(call)
	t := &agentTask{id: s.ID, call: call, principal: principal, number: number, retimed: retimed, changed: make(chan struct{}, 1)}
	f.tasks.mu.Lock()
	twice := f.tasks.byID[s.ID] != nil || s.ID == ""
	if !twice {
		f.tasks.byID[s.ID] = t
	}
	f.tasks.mu.Unlock()
	if twice {
		f.reportFinding("I24", "", "the call "+call+" became a task without an id, or with the id of another one")
		return
	}
	f.checkStatus(t, s)
	f.checkTaskCount()
	if s.State != messages.TaskWorking {
		f.reportFinding("I25", "", "the task of the call "+call+" began as "+string(s.State)+", and tasks begin as working")
	}
}

// operationOf returns the number of the operation that a call is, 0 for one that has ended, and whether the manager may send the call again.
func (f *Fleet) operationOf(call string) (number int, repeatable bool) {
	for _, a := range f.agents {
		a.mu.Lock()
		c := a.calls[call]
		a.mu.Unlock()
		if c != nil {
			return c.operation, c.event.Tool != "write" && slices.ContainsFunc(f.Plan.Servers, func(s scenario.Server) bool { return s.Name == c.event.Server && s.Trusted })
		}
	}
	return 0, false
}

// findTask returns the task with an id, nil if there never was one.
func (f *Fleet) findTask(id string) *agentTask {
	f.tasks.mu.Lock()
	defer f.tasks.mu.Unlock()
	return f.tasks.byID[id]
}

// countTasks counts the tasks that the gateway may still have: their time to live has not passed, or is not known.
func (f *Fleet) countTasks() (n int) {
	f.tasks.mu.Lock()
	defer f.tasks.mu.Unlock()
	for _, t := range f.tasks.byID {
		t.mu.Lock()
		if f.Now() <= t.expires+clockUnit || t.retimed {
			n++
		}
		t.mu.Unlock()
	}
	return n
}

// tasksOfOne is how many tasks a principal may have. One more takes the place of its oldest one that has ended.
const tasksOfOne = 64

// checkTaskRefused judges that a call may not become a task only while so many of its principal's run: those of which an agent has had the result for a
// while have ended. making are the requests of the principal that are being served, each of which may be about to become a task.
func (f *Fleet) checkTaskRefused(principal string, making int) {
	f.tasks.mu.Lock()
	running := making
	for _, t := range f.tasks.byID {
		if t.principal != principal {
			continue
		}
		t.mu.Lock()
		if t.over == 0 || f.Now() < t.over+clockUnit {
			running++
		}
		t.mu.Unlock()
	}
	f.tasks.mu.Unlock()
	if running < tasksOfOne {
		f.reportFinding("I25", "", fmt.Sprintf("a call of %s was not let become a task, because too many of its tasks run: at most %d do, and %d may", principal, running, tasksOfOne))
	}
}

// checkTaskCount judges that no principal has more tasks than it may.
func (f *Fleet) checkTaskCount() {
	f.tasks.mu.Lock()
	made := len(f.tasks.byID)
	f.tasks.mu.Unlock()
	if made <= tasksOfOne {
		return
	}
	principals := map[string]bool{}
	for _, a := range f.agents {
		principals[a.plan.As] = true
	}
	if n := f.gateway.Held().Tasks; n > tasksOfOne*len(principals) {
		f.reportFinding("I28", "", fmt.Sprintf("the gateway keeps %d tasks of %d principals, each of which may have %d", n, len(principals), tasksOfOne))
	}
}

// checkStatus judges a status that came in an answer, and keeps it.
func (f *Fleet) checkStatus(t *agentTask, s taskStatus) {
	t.mu.Lock()
	before := t.status
	t.status = s
	if before.ID == "" {
		before.Created = s.Created
		t.expires = f.Now() - time.Since(s.Created) + s.ttl()
	} else {
		t.expires += s.ttl() - before.ttl()
	}
	expires := t.expires
	t.mu.Unlock()
	if before.ID != "" && s.ttl() != before.ttl() {
		f.recordEvent(history.Event{Side: history.Agent, Kind: history.Retimed, By: t.principal, About: t.call, Deadline: expires})
	}
	if problem := s.problemAfter(&before); problem != "" {
		f.reportFinding("I25", "", "the task of the call "+t.call+": "+problem)
	}
	if s.ID != t.id {
		f.reportFinding("I24", "", "who asked for the task of the call "+t.call+" was told of another one")
	}
}

// What an agent does with a task, by turns: most wait for the result, some ask for the status before, some cancel, and some come back for the result once
// they have it.
func (t *agentTask) polls() bool     { return t.number>>10%3 == 0 }
func (t *agentTask) cancels() bool   { return t.number>>12%5 == 0 }
func (t *agentTask) asksAgain() bool { return t.number>>14%2 == 0 }

// wishesTask reports whether a call is to become a task.
func wishesTask(p scenario.Plan, op operation) bool {
	return op.asTask && slices.ContainsFunc(p.Servers, func(s scenario.Server) bool { return s.Name == op.server && s.Tasks != "" })
}

// isUnfollowed takes the right to follow the task of a call, once.
func (a *agent) isUnfollowed(call string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.calls[call]
	if c == nil || c.followed {
		return false
	}
	c.followed = true
	return true
}

// adoptTask goes on with the task of a call whose agent saw no answer: it finds it with tasks/list, as a program does that comes back. What it has
// taken back it does not look for.
func (a *agent) adoptTask(call string, result []byte) {
	a.mu.Lock()
	c := a.calls[call]
	taken := c != nil && c.givenUp
	a.mu.Unlock()
	if taken {
		a.endParked(call)
		return
	}
	a.fleet.running.Go(func() { a.followTask(call, result) })
}

// followTask asks for the task that a call has become, until there is its result or the agent ends. It does so in whichever session the agent
// has.
func (a *agent) followTask(call string, result []byte) {
	t := a.fleet.findTask(readTask(result).ID)
	if t == nil || t.call != call || !a.isUnfollowed(call) {
		return
	}
	t.mu.Lock()
	e := history.Event{Kind: history.Tasked, About: call, Deadline: t.expires}
	t.mu.Unlock()
	a.recordEvent(e)
	a.exposeTask(t)
	if t.cancels() {
		a.pauseFor(t, time.Duration(t.number%2000)*time.Millisecond)
		a.cancelTask(t)
	}
	for {
		s := a.openSession()
		switch {
		case s != nil && a.askTask(s, t):
			return
		case a.isEnding():
			a.endUnseen(call)
			return
		}
		a.pauseFor(t, askTaskAgain)
	}
}

// askTaskAgain is the pause of an agent whose session ended while it waited for a task.
const askTaskAgain = 500 * time.Millisecond

// isEnding reports whether the agent has no more sessions.
func (a *agent) isEnding() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ended || a.fleet.lifetime.Err() != nil
}

// pauseFor waits before the next request about a task, or until there is news of it. No two tasks of an agent wait equally long, so that what was told of
// several in one instant is answered in the same order in each run.
func (a *agent) pauseFor(t *agentTask, d time.Duration) {
	timer := time.NewTimer(d + a.turnOf(t.call))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-a.fleet.lifetime.Done():
	}
}

// turnOf returns a short time that only one call of the agent has.
func (a *agent) turnOf(call string) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.calls[call]; c != nil {
		c.turn++
		return time.Duration(c.number)*time.Microsecond + time.Duration(c.turn)
	}
	return 0
}

// askTask asks for a task in one session, until it has ended. It returns false if the session ends before.
func (a *agent) askTask(s *session, t *agentTask) (ended bool) {
	if a.modern() {
		return a.pollTask(s, t)
	}
	if t.number%3 == 0 {
		a.listTasks(s, t)
	}
	for t.polls() {
		status, known, ok := a.askStatus(s, t)
		switch {
		case !ok:
			return false
		case !known:
			a.endGoneTask(t)
			return true
		}
		// 2025-11-25: "When the requestor encounters the input_required status, it SHOULD preemptively call tasks/result."
		if status.hasEnded() || status.State == messages.TaskInputRequired {
			break
		}
		a.pauseFor(t, status.interval())
	}
	got, ok := s.askEndpoint("tasks/result", taskParams(t), t.call, "")
	if !ok || isPassing(got) {
		return false
	}
	if isTaskGone(got.problem) {
		a.endGoneTask(t)
		return true
	}
	if got.problem == nil && string(rawjson.Member(rawjson.Member(rawjson.Member(got.result, "_meta"), "io.modelcontextprotocol/related-task"), "taskId")) != `"`+t.id+`"` {
		a.fleet.reportFinding("I25", "", "the result of the call "+t.call+" does not say of which task it is")
	}
	a.endTask(s, t, got)
	return true
}

// isPassing reports whether an answer says nothing of the task: the session has ended, or the endpoint has too much to do.
func isPassing(got answer) bool {
	if got.problem == nil {
		return got.result == nil
	}
	text := errorText(got.problem)
	return codeOf(got) == sessionNotFound || strings.HasPrefix(text, "the request was ended") || strings.HasPrefix(text, "the session has ended") || strings.HasPrefix(text, "the endpoint is being closed")
}

// sessionNotFound is the code with which the endpoint answers a request in a session that it does not know.
const sessionNotFound = -32001

func taskParams(t *agentTask) string { return `{"taskId":"` + t.id + `"}` }

// askStatus asks tasks/get; known is false for a task that does not exist any more, ok for a session that ends.
func (a *agent) askStatus(s *session, t *agentTask) (status taskStatus, known, ok bool) {
	got, ok := s.askEndpoint("tasks/get", taskParams(t), t.call, "")
	switch {
	case !ok || isPassing(got):
		return status, false, false
	case got.problem != nil:
		return status, false, true
	}
	status = readTask(got.result)
	a.fleet.checkStatus(t, status)
	return status, true, true
}

// pollTask asks for a task of the modern era, which holds its questions and its result. Who does not only poll is told when it changes.
func (a *agent) pollTask(s *session, t *agentTask) (ended bool) {
	if !t.polls() {
		defer a.listenToTask(s, t)()
	}
	given := map[string]bool{}
	for {
		status, known, ok := a.askStatus(s, t)
		a.checkNews(t, &status)
		switch {
		case !ok:
			return false
		case !known:
			a.endGoneTask(t)
			return true
		case status.State == messages.TaskCompleted:
			a.endTask(s, t, answer{result: status.Result})
			return true
		case status.State == messages.TaskFailed:
			a.endTask(s, t, answer{problem: status.Error})
			return true
		case status.State == messages.TaskCancelled:
			a.checkCancelled(t)
			a.endParked(t.call)
			return true
		}
		a.giveInput(s, t, status, given)
		select {
		case <-t.changed:
			a.pauseFor(t, 0)
		case <-time.After(status.interval() + a.turnOf(t.call)):
		case <-s.over:
			return false
		}
	}
}

// newsBound is the time in which an agent that listens to a task is told that it has ended, also of an end before it listened.
const newsBound = 100 * time.Millisecond

// checkNews judges that an agent which listens to a task was told of the end that it finds.
func (a *agent) checkNews(t *agentTask, status *taskStatus) {
	t.mu.Lock()
	untold := t.listened && !t.news && status.hasEnded() && time.Since(status.Updated) > newsBound && time.Since(t.since) > newsBound
	t.mu.Unlock()
	if untold {
		a.fleet.reportFinding("I24", "", a.plan.Name+" listens to the task of the call "+t.call+", and was not told of its end")
	}
}

// checkCancelled judges that only a task is cancelled which its agent has cancelled.
func (a *agent) checkCancelled(t *agentTask) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.cancelled {
		a.fleet.reportFinding("I24", "", "the task of the call "+t.call+" is cancelled, and its agent has not cancelled it")
	}
}

// listenToTask lets the agent be told when a task changes, until end is called.
func (a *agent) listenToTask(s *session, t *agentTask) (end func()) {
	ctx, cancel := context.WithCancel(s.lifetime)
	r, body := s.newRequest("subscriptions/listen", `{"notifications":{"taskIds":["`+t.id+`"]}}`, t.call, "")
	if r == nil {
		return cancel
	}
	a.fleet.running.Go(func() { s.sendRequest(ctx, r, body) })
	return func() {
		t.mu.Lock()
		t.listened = false
		t.mu.Unlock()
		a.recordEvent(history.Event{Kind: history.Ended, Epoch: s.epoch, ID: r.id, Method: "subscriptions/listen", About: t.call})
		if a.plan.Over != scenario.OverHTTP {
			s.takeBack(r.id, "")
		}
		cancel()
	}
}

// giveInput answers what a task of the modern era asks, once.
func (a *agent) giveInput(s *session, t *agentTask, status taskStatus, given map[string]bool) {
	answers := map[string]json.RawMessage{}
	for key, q := range status.Asked {
		if !given[key] {
			given[key] = true
			answers[key] = json.RawMessage(a.answerTo(q.Method, a.serverOf(t.call)))
		}
	}
	if len(answers) == 0 {
		return
	}
	b, err := json.Marshal(answers)
	if err != nil {
		return // the answers are the harness's own
	}
	s.askEndpoint("tasks/update", `{"taskId":"`+t.id+`","inputResponses":`+string(b)+`}`, t.call, "")
}

// serverOf returns the server of a call that has not ended.
func (a *agent) serverOf(call string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.calls[call]; c != nil {
		return c.event.Server
	}
	return ""
}

// listTasks asks for all tasks of the principal: that of the agent is one of them, and none is another principal's.
func (a *agent) listTasks(s *session, t *agentTask) {
	got, ok := s.askEndpoint("tasks/list", "", t.call, "")
	if !ok || got.problem != nil {
		return
	}
	for list := rawjson.ArrayAt(rawjson.Member(got.result, "tasks"), 0, 0); list.Next(); {
		status := readTask(list.Skip())
		switch other := a.fleet.findTask(status.ID); {
		case other == nil:
			a.fleet.reportFinding("I24", "", a.plan.Name+" was shown a task that nobody was given")
		case other.principal != a.plan.As:
			a.fleet.reportFinding("I24", "", a.plan.Name+" was shown the task of the call "+other.call+", which is one of "+other.principal)
		default:
			a.fleet.checkStatus(other, status)
		}
	}
}

// cancelTask cancels a task. What comes of the call is asked as ever.
func (a *agent) cancelTask(t *agentTask) {
	s := a.openSession()
	if s == nil {
		return
	}
	t.mu.Lock()
	t.cancelled = true
	t.mu.Unlock()
	got, ok := s.askEndpoint("tasks/cancel", taskParams(t), t.call, "")
	if !ok || got.result == nil || a.modern() {
		return
	}
	status := readTask(got.result)
	a.fleet.checkStatus(t, status)
	if status.State != messages.TaskCancelled {
		a.fleet.reportFinding("I25", "", "the task of the call "+t.call+" was cancelled, and is "+string(status.State))
	}
}

// endTask ends the call of a task with its result. One that was cancelled, or whose time to live has passed, was given up by its agent.
func (a *agent) endTask(s *session, t *agentTask, got answer) {
	t.mu.Lock()
	ends := t.cancelled || a.fleet.Now() >= t.expires-clockUnit
	if !ends {
		t.over = a.fleet.Now()
	}
	t.mu.Unlock()
	if ends && got.problem == nil && readCall(got.result).class == messages.ClassCanceled {
		a.giveUp(t.call)
	}
	turn := a.turnOf(t.call)
	a.endCall(t.call, got)
	a.askTaskOnceMore(s, t, got, turn)
	a.exposeTask(t)
}

// endGoneTask ends the call of a task that does not exist for the agent any more; whether that may be is judged by the record.
func (a *agent) endGoneTask(t *agentTask) {
	t.mu.Lock()
	expired := a.fleet.Now() >= t.expires-clockUnit
	t.mu.Unlock()
	if expired {
		a.endParked(t.call)
		return
	}
	a.endUnseen(t.call)
}

// endUnseen ends a call for its agent, which can ask about its task no more, or took it back when it asked for input: the call may go on.
func (a *agent) endUnseen(call string) {
	a.giveUp(call)
	a.endCall(call, answer{result: []byte(leftAlone), unseen: true})
}

// askTaskOnceMore asks every second time for the result that the agent has: a task ends once, and its result is what it is.
func (a *agent) askTaskOnceMore(s *session, t *agentTask, had answer, turn time.Duration) {
	if !t.asksAgain() {
		return
	}
	select {
	case <-time.After(200*time.Millisecond + turn):
	case <-s.over:
		return
	}
	method := "tasks/result"
	if a.modern() {
		method = "tasks/get"
	}
	got, ok := s.askEndpoint(method, taskParams(t), t.call, "")
	if !ok || isPassing(got) || isTaskGone(got.problem) {
		return
	}
	if a.modern() {
		status := readTask(got.result)
		a.fleet.checkStatus(t, status)
		got = answer{result: status.Result, problem: status.Error}
	}
	if !bytes.Equal(got.result, had.result) || !bytes.Equal(got.problem, had.problem) {
		a.fleet.reportFinding("I25", "", "the task of the call "+t.call+" had two results")
	}
}

// exposeTask lets the first agent of another principal that has a session see and end the task of this one, as whoever has its id could, and an agent of
// the same principal ask for it, which it may.
func (a *agent) exposeTask(t *agentTask) {
	isShown := false
	for i := range a.fleet.agents {
		other := a.fleet.agents[(a.number+i)%len(a.fleet.agents)]
		other.mu.Lock()
		s := other.session
		other.mu.Unlock()
		switch {
		case s == nil || other == a || other.plan.View != a.plan.View || other.plan.Held != a.plan.Held:
		case other.plan.As != a.plan.As:
			methods := []string{"tasks/get", "tasks/cancel", "tasks/result"}
			if other.modern() {
				methods[2] = "tasks/update"
			}
			s.askEndpoint(methods[t.number%3], `{"taskId":"`+t.id+`","inputResponses":{}}`, "", "foreign-task")
			return
		case !isShown && t.number%2 == 0:
			isShown = true
			other.askStatus(s, t)
		}
	}
}

// noteTaskNews takes a notification about a task, and returns the call that it is about.
func (a *agent) noteTaskNews(params json.RawMessage) (call string) {
	status := readTask(params)
	t := a.fleet.findTask(status.ID)
	if t == nil {
		return "" // it comes before the answer that gives the task
	}
	if t.principal != a.plan.As {
		a.fleet.reportFinding("I24", "", a.plan.Name+" was told of the task of the call "+t.call+", which is one of "+t.principal)
	}
	t.mu.Lock()
	t.news = t.news || status.hasEnded()
	t.mu.Unlock()
	select {
	case t.changed <- struct{}{}:
	default:
	}
	return t.call
}

// noteListened notes of which tasks the gateway says that it tells the agent.
func (a *agent) noteListened(params json.RawMessage) {
	for ids := rawjson.ArrayAt(rawjson.Member(rawjson.Member(params, "notifications"), "taskIds"), 0, 0); ids.Next(); {
		id, _ := rawjson.Text(ids.Skip())
		if t := a.fleet.findTask(id); t != nil && t.principal == a.plan.As {
			t.mu.Lock()
			t.listened, t.since = true, time.Now()
			t.mu.Unlock()
		}
	}
}
