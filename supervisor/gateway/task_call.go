package gateway

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/serve"
	wire "github.com/mcpvisor/mcpvisor/transports/session"
)

// tasksSince is the version of the legacy era that has tasks.
const tasksSince = "2025-11-25"

// taskWish describes, before a call, the task that it may become for its agent.
type taskWish struct {
	view  *view
	agent *serve.Session
	ttl   time.Duration
}

// declaresTasks reports whether an agent of the modern era takes tasks, which it says with each request.
func declaresTasks(r *serve.Request) bool {
	return !rawjson.IsNull(rawjson.Member(rawjson.Member(r.Capabilities, "extensions"), wire.TasksExtension))
}

// taskWishOf returns the task that a call may become for its agent, nil if it stays a call. shown is the tool's name as the agent knows
// it, wish the member task of its params. Tools that want tasks are called as such for agents that know none, and the agent then waits.
//
// 2025-11-25: "If execution.taskSupport is not present or "forbidden", clients MUST NOT attempt to invoke the tool as a task. Servers
// SHOULD return a -32601 (Method not found) error if a client attempts to do so." 2026-07-28: "A server MUST NOT return CreateTaskResult
// to a client that did not include the extension capability on its request".
func (v *view) taskWishOf(r *serve.Request, shown string, to named, wish []byte) (*taskWish, *serve.Error) {
	if r.Modern() {
		if !declaresTasks(r) || !v.runsTasks(shown, to) {
			return nil, nil
		}
		return &taskWish{view: v}, nil
	}
	if rawjson.IsNull(wish) || r.Session.Version < tasksSince {
		return nil, nil
	}
	if !rawjson.IsObject(wish) {
		return nil, serve.InvalidParams("task must be an object")
	}
	if !v.runsTasks(shown, to) {
		return nil, &serve.Error{Code: serve.CodeMethodNotFound, Message: "the tool " + messages.Line(shown, 200) + " cannot run as a task"}
	}
	return &taskWish{view: v, agent: r.Session, ttl: readTTL(rawjson.Member(wish, "ttl"))}, nil
}

// readTTL reads a number of milliseconds; 0 for anything else.
func readTTL(value []byte) time.Duration {
	ms, err := strconv.ParseFloat(string(value), 64)
	if err != nil || !(ms > 0) {
		return 0
	}
	return time.Duration(math.Min(ms, float64(maxTaskTime/time.Millisecond)) * float64(time.Millisecond))
}

// runsTasks reports whether a call of a tool can become a task: in the legacy era its definition says so, in the modern one its server
// decides with each call. What a server that is away would say is not known: there the definition counts.
func (v *view) runsTasks(shown string, to named) bool {
	c := v.g.all.Of(to.server).Capabilities(to.server)
	if c != nil && !c.ToolTasks {
		return false
	}
	if v.g.all.Of(to.server).EraOf(to.server) == messages.EraModern {
		return true
	}
	now := v.currentTools()
	e := now.entries[shown]
	if e == nil {
		e = now.bare[shown]
	}
	return e != nil && (e.Tool.TaskSupport == "optional" || e.Tool.TaskSupport == "required")
}

// performTask performs a call of the legacy era that its agent wants as a task. The answer is the task, as soon as the server has made it
// one, or asks; a call that fails before answers with its error.
func (g *Gateway) performTask(ctx context.Context, q *outgoing) ([]byte, *serve.Error) {
	r := q.r
	wishes, e := g.forwardOptions(q)
	if e != nil {
		return nil, e
	}
	c := g.newCall(q)
	own := c.detach(ctx, q)
	// A task without a place must not begin: its result could not be given.
	if g.addTask(c, r.Session.Principal, q.wish) == nil {
		c.cancel(nil)
		return nil, &serve.Error{Code: serve.CodeBusy, Message: "too many tasks of this agent run, or large ones, and nothing was sent: cancel one, or wait for its end"}
	}
	if c.token != nil {
		wishes.ProgressParams = c.passProgress
	}
	g.startCall(own, q, c, wishes)
	select {
	case <-c.tasked:
	case <-c.wake:
		c.wakeUp() // the request that waits for the result carries the question
	case <-c.done:
		if c.problem != nil {
			g.tasks.dropTask(c.task)
			return nil, c.problem
		}
	case <-ctx.Done():
		c.mu.Lock()
		c.leave()
		c.closeCall(endedLeft)
		c.mu.Unlock()
		c.cancel(errAgentLeft)
		g.tasks.dropTask(c.task)
		<-c.done
		return c.result, c.problem
	}
	return g.handOver(r, c), nil
}

// noteTask takes what the server says of the task that a call has become.
func (c *modernCall) noteTask(p serve.Principal, s messages.TaskStatus) {
	g := c.agents.g
	if c.unplaced {
		return
	}
	t := g.addTask(c, p, c.wish)
	if t == nil {
		// The agent waits for the result, as for that of any call, also if there is a place later: it would be told of a task that begins then, and its
		// server's time has run since.
		c.unplaced = true
		return
	}
	c.mu.Lock()
	changed := t.noteStatus(s, time.Now())
	t.expiry.Reset(time.Until(t.expires()))
	c.mu.Unlock()
	c.becameTask()
	if changed {
		g.tellTask(t)
	}
}

// handOver answers the request of a call with its task. From here on the call is asked about by the task's id.
//
// 2026-07-28: "A server MUST NOT return CreateTaskResult until the task is durably created — that is, until a tasks/get for the returned
// taskId would resolve." 2025-11-25: "Tasks MUST begin in the working status when created."
func (g *Gateway) handOver(r *serve.Request, c *modernCall) []byte {
	t := c.task
	g.tasks.giveTask(t)
	c.mu.Lock()
	c.handed = true
	c.closeCall(endedTask)
	var b []byte
	if r.Modern() {
		b = append(t.appendTask([]byte(`{"resultType":"task",`), true, messages.TaskWorking), '}')
	} else {
		b = append(t.appendTask([]byte(`{"task":{`), false, messages.TaskWorking), "}}"...)
	}
	c.mu.Unlock()
	g.suspended.release(c)
	return b
}

// noteAsked records that the open questions of a task are others now, and tells of it.
func (c *modernCall) noteAsked() {
	c.mu.Lock()
	t := c.task
	if t != nil && t.end == notEnded {
		t.updated = time.Now()
	}
	c.mu.Unlock()
	if t != nil {
		c.agents.g.tellTask(t)
	}
}

// finishTask records how the call of a task has ended, and tells of it. The result is set, and nobody changes it any more.
func (c *modernCall) finishTask() {
	t := c.task
	end, size, message := endedResult, len(c.result), ""
	switch {
	case c.problem != nil:
		end, size, message = endedError, problemSize(c.problem), problemText(c.problem)
	case string(rawjson.Member(c.result, "isError")) == "true":
		end, message = endedFault, outcomeText(c.result)
	}
	c.mu.Lock()
	t.finish(end, message, time.Now())
	c.mu.Unlock()
	c.agents.g.tasks.keepResult(t, size)
}

const (
	// lostAttempts and lostPause bound how a task is looked for whose connection is gone: the server may come back and know it.
	lostAttempts = 10
	lostPause    = 3 * time.Second
)

// isOurEnd reports whether a call ended for its time, or because its agent has cancelled it: then its task was cancelled at the server as well.
func isOurEnd(err error) bool {
	switch errorOf(err).Class {
	case messages.ClassTimeout:
		return errors.Is(err, context.DeadlineExceeded) // a server that does not answer tasks/get may know the task after its next start
	case messages.ClassCanceled:
		return true
	default:
		return false
	}
}

// outliveConnection makes a request one that asks for the result of a task again after its connection has ended. Nothing is called again:
// a server that does not know the task any more leaves the outcome unknown.
func (g *Gateway) outliveConnection(q *outgoing) {
	send, to := q.send, q.to
	q.send = func(ctx context.Context, o *wire.Options) ([]byte, error) {
		result, err := send(ctx, o)
		if err == nil || errorOf(err).Task == "" || isOurEnd(err) {
			return result, err
		}
		id := errorOf(err).Task
		for range lostAttempts {
			if !waitFor(ctx, lostPause) {
				return nil, err
			}
			m, ctx := g.all.Owner(ctx, to.server)
			if _, problem := m.Task(ctx, to.server, id); problem != nil {
				if e := errorOf(problem); e.Outcome == messages.OutcomeRejected || e.Class == messages.ClassInvalid {
					return nil, err
				}
				continue
			}
			r, problem := m.TaskResult(ctx, to.server, id, func(to *wire.Options) { to.OnTask = o.OnTask })
			if problem == nil {
				return r.Raw, nil
			}
			if errorOf(problem).Task == "" {
				return nil, problem
			}
		}
		return nil, err
	}
}
