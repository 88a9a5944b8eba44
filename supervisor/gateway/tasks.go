package gateway

import (
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/serve"
)

const (
	// maxTasksOf and maxTasks bound the tasks of one principal and of all. One more takes the place of the principal's oldest task that has
	// ended; while all of them run it is refused.
	maxTasksOf, maxTasks = 64, 1024
	// maxTaskBytes bounds the results that are kept for one principal: the oldest are forgotten for the sake of the newest, which is kept
	// whatever its size.
	maxTaskBytes = 32 << 20
)

var (
	errTaskCancelled = errors.New("the agent has cancelled the task")
	errTaskExpired   = errors.New("the time to live of the task has passed")
	errTaskWithdrawn = errors.New("the tokens of the agent were taken away")
)

// A task is a call that goes on without the request that began it: its agent asks for the rest by the task's id. Another one of the same
// principal may do so as well, in another session, of either era.
type task struct {
	call *modernCall
	// view is the one by which it was begun; agent is the session of the legacy era that is told of it, or nil.
	view  *view
	agent *serve.Session
	// given is true once an agent has the id, over once the call has ended, and size is what its answer takes. tasks.mu guards them.
	given, over bool
	size        int

	// What follows is guarded by the lock of the call. unbind parts the task from the tokens of its principal.
	taskState
	expiry *time.Timer
	unbind func() bool
}

// tasks are those of a gateway, by the names of their principals, the oldest first. mu guards everything, and is taken before the lock of
// a call.
type tasks struct {
	mu          sync.Mutex
	byPrincipal map[string][]*task
	count       int
	closed      bool
}

// addTask makes a task of a call; nil if there is no place for one, or the call is over.
func (g *Gateway) addTask(c *modernCall, p serve.Principal, w *taskWish) *task {
	t := &task{call: c, view: w.view, agent: w.agent}
	g.tasks.mu.Lock()
	defer g.tasks.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.task != nil || c.stage == over || g.tasks.closed {
		return c.task
	}
	var replaced *task
	if mine := g.tasks.byPrincipal[p.Name]; len(mine) >= maxTasksOf || g.tasks.count >= maxTasks {
		i := slices.IndexFunc(mine, func(t *task) bool { return t.over })
		if i < 0 {
			return nil
		}
		replaced = mine[i]
	}
	// What is counted here is given back when the call ends: a call that is refused never begins.
	if !c.keepArguments() {
		return nil
	}
	if replaced != nil {
		g.tasks.forget(replaced)
	}
	if g.tasks.byPrincipal == nil {
		g.tasks.byPrincipal = map[string][]*task{}
	}
	t.taskState = newTaskState(rand.Text(), w.ttl, time.Now())
	t.expiry = time.AfterFunc(t.ttl, func() { g.expireTask(t) })
	t.unbind = p.AfterWithdrawal(func() { g.endTask(t, errTaskWithdrawn) })
	g.tasks.byPrincipal[p.Name] = append(g.tasks.byPrincipal[p.Name], t)
	g.tasks.count++
	c.task = t
	return t
}

// forget takes a task out of the table. The caller holds tasks.mu.
func (ts *tasks) forget(t *task) bool {
	principal := t.call.agents.principal
	i := slices.Index(ts.byPrincipal[principal], t)
	if i < 0 {
		return false
	}
	if ts.byPrincipal[principal] = slices.Delete(ts.byPrincipal[principal], i, i+1); len(ts.byPrincipal[principal]) == 0 {
		delete(ts.byPrincipal, principal)
	}
	ts.count--
	t.expiry.Stop()
	t.unbind()
	return true
}

// giveTask lets the agents of the principal find a task.
func (ts *tasks) giveTask(t *task) {
	ts.mu.Lock()
	t.given = true
	ts.mu.Unlock()
}

// find returns the task of a principal with this id, nil if it has none.
func (ts *tasks) find(principal, id string) *task {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, t := range ts.byPrincipal[principal] {
		if t.given && t.id == id {
			return t
		}
	}
	return nil
}

// list returns the tasks of a principal, the newest first.
func (ts *tasks) list(principal string) []*task {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	all := slices.DeleteFunc(slices.Clone(ts.byPrincipal[principal]), func(t *task) bool { return !t.given })
	slices.Reverse(all)
	return all
}

// dropTask forgets a task that no agent has got, and will not get any more.
func (ts *tasks) dropTask(t *task) {
	if t != nil {
		ts.mu.Lock()
		ts.forget(t)
		ts.mu.Unlock()
	}
}

// endTask forgets a task, and cancels its call.
func (g *Gateway) endTask(t *task, cause error) {
	g.tasks.mu.Lock()
	known := g.tasks.forget(t)
	g.tasks.mu.Unlock()
	if known {
		t.call.cancel(cause)
	}
}

// expireTask ends a task whose time to live has passed, unless its server has given it more time.
//
// 2025-11-25: "After a task's ttl lifetime has elapsed, receivers MAY delete the task and its results, regardless of the task status."
func (g *Gateway) expireTask(t *task) {
	t.call.mu.Lock()
	left := time.Until(t.expires())
	if left > 0 {
		t.expiry.Reset(left)
	}
	t.call.mu.Unlock()
	if left <= 0 {
		g.endTask(t, errTaskExpired)
	}
}

// keepResult records that the call of a task has ended, with an answer of this size.
func (ts *tasks) keepResult(t *task, size int) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t.over, t.size = true, size
	sum := 0
	for _, other := range ts.byPrincipal[t.call.agents.principal] {
		sum += other.size
	}
	for _, old := range slices.Clone(ts.byPrincipal[t.call.agents.principal]) {
		if sum <= maxTaskBytes {
			return
		}
		if old != t && old.over && ts.forget(old) {
			sum -= old.size
		}
	}
}

// closeTasks forgets all tasks; their calls end with the lifetime of the gateway.
func (ts *tasks) closeTasks() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.closed = true
	for _, mine := range ts.byPrincipal {
		for _, t := range slices.Clone(mine) {
			ts.forget(t)
		}
	}
}
