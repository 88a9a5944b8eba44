package tasks

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/internal/pause"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/calltimeout"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/outcome"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/questions"
)

const (
	// firstPollPause is the wait before the first poll of a task for which the server gave no interval; it grows by
	// half with each poll, up to maxPollPause.
	firstPollPause = 500 * time.Millisecond
	maxPollPause   = 5 * time.Second
	// pollFloor and pollCeiling bound the interval that a server asks for. The ceiling is half of the default timeout
	// of a call, so that a task that is polled rarely does not run into it.
	pollFloor   = 100 * time.Millisecond
	pollCeiling = 30 * time.Second
	// pollFailures is the number of polls in a row that may fail before the task is given up; one lost packet is no
	// reason.
	pollFailures = 5
	// ttlGrace is the time for which a task is still polled after its time to live.
	ttlGrace = 30 * time.Second
)

// A Conversation is what a poller needs of the session.
type Conversation interface {
	// PerformTaskRequest sends a request about the task id with these members of params, without braces, and sees it through.
	PerformTaskRequest(ctx context.Context, method, id string, params []byte) (outcome.Answer, *messages.Error)
	// AnswerInputRequests has handlers answer the questions of a server and appends their results to b. problem is the fault
	// of a question that could not be answered, empty if there is none.
	AnswerInputRequests(ctx context.Context, b, inputRequests []byte) (_ []byte, problem string)
	// Spawn runs f on a goroutine of the session, and reports false if the session is over. Protect runs f here, and turns a
	// panic of it into the end of the session.
	Spawn(f func()) bool
	Protect(f func())
	// Dead is closed when the session has ended; EndedError returns the reason, nil while it lives.
	Dead() <-chan struct{}
	EndedError(op string) *messages.Error
	// Rand draws a number in [0,1).
	Rand() float64
}

// Options tell a Poller about its task and its caller.
type Options struct {
	// Modern is true in the modern era. Detailed is true if the first status came from tasks/get.
	Modern, Detailed bool
	// StatusHint receives when the task's status may have changed: the poller asks earlier then.
	StatusHint <-chan struct{}
	// OnTask gets each change of the status, the first one included; nil for none.
	OnTask func(messages.TaskStatus)
}

// A Poller polls one task until it ends, on its caller's goroutine, which owns all fields.
type Poller struct {
	conversation Conversation
	options      Options

	// lastStatus is the newest status; its ID is empty before the first.
	lastStatus messages.TaskStatus
	detailed   bool                // lastStatus came from tasks/get, which in the modern era contains the result or the error
	reported   messages.TaskStatus // the status that OnTask got last
	lastPolled time.Time           // when the server was polled last
	pause      time.Duration       // between polls, if the server gave no interval
	expires    time.Time           // the end of its time to live with ttlGrace; zero for never
	failures   int                 // failed polls in a row
	retryAfter time.Duration       // the wait that the server asked for when it refused the last poll; 0 for none

	// answeredInputs are the keys of the input requests that were answered, rounds the number of polls that had new
	// ones.
	answeredInputs map[string]struct{}
	rounds         int
	// pendingResult receives the answer to tasks/result while one is under way (legacy era), else nil; earlyResult is
	// an answer that came before the status was final; resultFetched is true if one was sent since the task last
	// asked for input.
	pendingResult chan requestEnd
	earlyResult   *requestEnd
	resultFetched bool
	stopResult    context.CancelFunc // ends the tasks/result that is under way; nil before the first
}

// requestEnd is the end of a request: an answer or an error.
type requestEnd struct {
	a outcome.Answer
	e *messages.Error
}

// NewPoller returns a poller of the task that has this status, and calls OnTask with it.
func NewPoller(c Conversation, status messages.TaskStatus, options Options) *Poller {
	p := &Poller{conversation: c, options: options, detailed: options.Detailed}
	p.noteStatus(status)
	return p
}

// HasEnded reports whether the newest status of the task is a final one.
func (p *Poller) HasEnded() bool { return p.lastStatus.State.Final() }

// noteStatus records a status and calls OnTask if the state or the message is another one.
func (p *Poller) noteStatus(status messages.TaskStatus) {
	// The server may change the time to live; it counts from the status that changed it, by our clock.
	if ttl := time.Duration(status.TTL); ttl != time.Duration(p.lastStatus.TTL) || p.lastStatus.ID == "" {
		p.expires = time.Time{}
		if ttl > 0 {
			p.expires = time.Now().Add(ttl + ttlGrace)
		}
	}
	if status.State != messages.TaskInputRequired {
		p.resultFetched = false
	}
	p.lastStatus, p.lastPolled = status, time.Now()
	if p.options.OnTask != nil && (p.reported.State != status.State || p.reported.Message != status.Message) {
		p.reported = status
		// A panic of the caller's function ends the session, as that of any other callback does.
		p.conversation.Protect(func() { p.options.OnTask(status) })
	}
}

// Run polls the task until it has ended, and provides the input that it asks for.
//
// 2026-07-28, Task Polling: "Clients SHOULD continue polling until the task reaches a terminal status or until
// invoking tasks/cancel."
func (p *Poller) Run(ctx context.Context) (a outcome.Answer, e *messages.Error) {
	defer func() {
		if p.stopResult != nil {
			p.stopResult()
		}
	}()
	for {
		// In the modern era only tasks/get brings the result, so a final status from elsewhere needs one more poll.
		if p.lastStatus.State.Final() && (p.detailed || !p.options.Modern) {
			return p.finalAnswer(ctx)
		}
		if p.lastStatus.State == messages.TaskInputRequired {
			if e := p.provideInput(ctx); e != nil {
				return outcome.Answer{}, e
			}
			if p.lastStatus.State.Final() {
				continue
			}
		}
		if !p.lastStatus.State.Final() && p.earlyResult == nil {
			done, e := p.waitForPoll(ctx)
			if e != nil {
				return outcome.Answer{}, e
			}
			if done != nil {
				return done.a, done.e
			}
		}
		if e := p.pollStatus(ctx); e != nil {
			return outcome.Answer{}, e
		}
		// The answer to tasks/result was an error, and the poll shows that the task goes on: the error was about the
		// request and not about the task.
		if p.earlyResult != nil && !p.lastStatus.State.Final() {
			p.earlyResult = nil // it was about tasks/result, and not about the task
		}
	}
}

// pollInterval returns the time until the next poll: the server's interval within our bounds, longer after failures, and
// never before the time that it asked for when it refused a poll.
//
// 2026-07-28: "Clients SHOULD respect the pollIntervalMs provided in responses". A jitter of a tenth keeps many tasks
// of one server apart.
func (p *Poller) pollInterval() time.Duration {
	d := time.Duration(p.lastStatus.Poll)
	if d <= 0 {
		p.pause = min(max(p.pause*3/2, firstPollPause), maxPollPause)
		d = p.pause
	}
	d = max(min(max(d, pollFloor), pollCeiling)<<min(p.failures, 3), p.retryAfter)
	return d + time.Duration(p.conversation.Rand()*float64(d/10+1))
}

// waitForPoll waits until it is time to poll again: after the interval, after a hint that the status changed, or when
// tasks/result was answered. The returned requestEnd is the end of the task, if that came; the error is that of a
// caller that left, of a session that ended, or of a task whose time to live has passed.
func (p *Poller) waitForPoll(ctx context.Context) (*requestEnd, *messages.Error) {
	if !p.expires.IsZero() && time.Now().After(p.expires) {
		// 2026-07-28: "if the task's observable status has not reflected the update after createdAt plus ttlMs has
		// elapsed, the client MAY consider the task to no longer be usable."
		return nil, p.taskError(messages.ClassTimeout, "the task's time to live has passed, and it has not ended")
	}
	timer := time.NewTimer(p.pollInterval())
	defer timer.Stop()
	woken := p.options.StatusHint
	if p.retryAfter > 0 {
		woken = nil // a hint is no leave to ask earlier
	}
	for {
		select {
		case <-timer.C:
			return nil, nil
		case <-woken:
			// Hints that come faster than pollFloor count as one hint.
			woken = nil
			timer.Reset(max(pollFloor-time.Since(p.lastPolled), 0))
		case end := <-p.pendingResult:
			p.pendingResult = nil
			if end.e == nil && end.a.Kind == outcome.AnswerResult {
				return &end, nil
			}
			p.earlyResult = &end // the next status shows whether the task failed or only this request
			return nil, nil
		case <-p.conversation.Dead():
			return nil, p.interruptedError(ctx)
		case <-ctx.Done():
			return nil, p.interruptedError(ctx)
		}
	}
}

// pollStatus gets the status of the task. It returns nil also after a failure that a later poll may not have.
func (p *Poller) pollStatus(ctx context.Context) *messages.Error {
	// The answer is newer than every hint so far, so that none of them may hasten the poll after it.
	select {
	case <-p.options.StatusHint:
	default:
	}
	id := p.lastStatus.ID
	a, e := p.conversation.PerformTaskRequest(ctx, "tasks/get", id, Params(id))
	if retry, e := p.checkAnswer(ctx, a, e, "tasks/get"); retry || e != nil {
		return e
	}
	status, problem := ReadStatus(a.Raw)
	if problem == "" && status.ID != id {
		problem = "is about another task"
	}
	if problem != "" {
		return p.taskError(messages.ClassProtocol, "the server's answer to tasks/get "+problem)
	}
	// An answer is a sign of life, as progress is.
	calltimeout.Of(ctx).RestartIdle()
	p.failures, p.retryAfter, p.detailed = 0, 0, true
	p.noteStatus(status)
	return nil
}

// checkAnswer evaluates the answer to a request about the task. retry is true if the request is worth repeating, up
// to pollFailures times in a row; every request about a task can be repeated, because the second has the effect of
// the first. Both results are zero for a usable answer.
func (p *Poller) checkAnswer(ctx context.Context, a outcome.Answer, e *messages.Error, method string) (retry bool, _ *messages.Error) {
	switch {
	case e != nil:
		if ctx.Err() != nil || p.conversation.EndedError("") != nil {
			return false, p.interruptedError(ctx)
		}
		switch e.Class {
		// These may pass; every other failure would repeat.
		case messages.ClassNetwork, messages.ClassThrottled, messages.ClassTimeout:
			retry = true
		}
		p.retryAfter = e.RetryAfter
		e.Outcome, e.Task = messages.OutcomeUnknown, p.lastStatus.ID
	case a.Kind == outcome.AnswerRPCError:
		// "Invalid or nonexistent taskId …: -32602", which is also the answer for an expired task.
		f := jsonrpc.ReadError(a.Raw)
		retry = f.Code == jsonrpc.CodeInternal
		e = p.taskError(messages.ClassRejected, "the server rejected "+method+" for the task of this call: "+f.String())
		e.Code, e.Data = f.Code, f.Data
		if f.Code == jsonrpc.CodeInvalidParams {
			e.Task = "" // the server does not know the task: the caller could not ask for it later
		}
	case a.Kind == outcome.AnswerUnusable:
		e = p.taskError(messages.ClassProtocol, "the server's answer to "+method+" "+a.Detail)
	case a.Kind == outcome.AnswerNoMemory:
		e = p.taskError(messages.ClassExhausted, "the server's answer to "+method+" "+a.Detail)
		e.Err = messages.ErrMemory
	default:
		return false, nil
	}
	if p.failures++; retry && p.failures < pollFailures {
		p.lastPolled = time.Now()
		return true, nil
	}
	return false, e
}

// provideInput gives a task the input that it requires.
//
// 2025-11-25: "When the requestor encounters the input_required status, it SHOULD preemptively call tasks/result":
// the questions then come as requests of the server, and are answered like any other. 2026-07-28: "the client SHOULD
// fulfill the outstanding requests in inputRequests by sending one or more tasks/update requests with corresponding
// inputResponses."
func (p *Poller) provideInput(ctx context.Context) *messages.Error {
	if !p.options.Modern {
		p.fetchResult(ctx)
		return nil
	}
	if !p.detailed {
		return nil // the answer that creates a task does not list its input requests; the next poll does
	}
	// The same question is in every poll until the server has taken the answer.
	inputRequests, problem := p.newInputRequests()
	if problem != "" {
		return p.taskError(messages.ClassProtocol, "the task "+problem)
	}
	if inputRequests == nil {
		return nil
	}
	fields := append(Params(p.lastStatus.ID), `,"inputResponses":{`...)
	fields, problem = p.conversation.AnswerInputRequests(ctx, fields, inputRequests)
	switch {
	case ctx.Err() != nil || p.conversation.EndedError("") != nil:
		return p.interruptedError(ctx)
	case problem != "":
		return p.taskError(messages.ClassProtocol, "the task "+problem)
	}
	const method = "tasks/update"
	fields = append(fields, '}')
	for {
		a, e := p.conversation.PerformTaskRequest(ctx, method, p.lastStatus.ID, fields)
		retry, e := p.checkAnswer(ctx, a, e, method)
		switch {
		case retry:
			if !pause.For(ctx, p.pollInterval()) {
				return p.interruptedError(ctx)
			}
		case e != nil && a.Kind == outcome.AnswerRPCError && ctx.Err() == nil:
			// The refusal may only mean that the task has just ended.
			if p.pollStatus(ctx) == nil && p.lastStatus.State.Final() {
				return nil
			}
			return e
		default:
			return e
		}
	}
}

// newInputRequests returns the input requests that were not answered yet, as a JSON object; nil if there are none. It
// marks them as answered: if answering fails, the call fails.
//
// 2026-07-28: "Clients SHOULD deduplicate inputRequests keys across consecutive polls to avoid presenting the same
// request to the user or model more than once." and "Each request key in inputRequests MUST be unique over the
// lifetime of a single task."
func (p *Poller) newInputRequests() (inputRequests []byte, problem string) {
	all := rawjson.Member(p.lastStatus.Raw, "inputRequests")
	if !rawjson.IsObject(all) {
		return nil, "asks for input and does not say which"
	}
	b, n := []byte{'{'}, 0
	m := rawjson.ObjectAt(all, 0, 0)
	for m.Next() {
		value, key := m.Skip(), string(m.Name)
		if _, done := p.answeredInputs[key]; done {
			continue
		}
		if p.answeredInputs == nil {
			p.answeredInputs = make(map[string]struct{})
		}
		p.answeredInputs[key] = struct{}{}
		b = append(jsonrpc.AppendString(jsonrpc.AppendComma(b, 1), key), ':')
		b = append(b, value...)
		n++
	}
	if n == 0 {
		return nil, ""
	}
	// Only polls with new questions count: a task may be polled for hours.
	if p.rounds++; p.rounds > questions.MaxRounds {
		return nil, fmt.Sprintf("asked for input more than %d times", questions.MaxRounds)
	}
	return append(b, '}'), ""
}

// fetchResult sends tasks/result in the background, unless one is under way or was answered since the task last asked
// for input. The polling goes on meanwhile.
func (p *Poller) fetchResult(ctx context.Context) {
	if p.pendingResult != nil || p.resultFetched {
		return
	}
	if p.stopResult != nil {
		p.stopResult()
	}
	ctx, p.stopResult = context.WithCancel(ctx)
	result := make(chan requestEnd, 1)
	id := p.lastStatus.ID // read here, because the goroutine does not own the fields
	if p.conversation.Spawn(func() {
		a, e := p.conversation.PerformTaskRequest(ctx, "tasks/result", id, Params(id))
		result <- requestEnd{a, e}
	}) {
		p.pendingResult, p.resultFetched = result, true
	}
}

// finalAnswer returns the answer of a task that has ended: an answer that the call would have had without a task, or
// an error.
func (p *Poller) finalAnswer(ctx context.Context) (outcome.Answer, *messages.Error) {
	if p.lastStatus.State == messages.TaskCancelled {
		return outcome.Answer{}, p.taskError(messages.ClassRejected, p.withServerMessage("the task was cancelled at the server"))
	}
	if p.options.Modern {
		return p.inlinedAnswer()
	}
	for {
		var end requestEnd
		switch {
		case p.earlyResult != nil:
			end, p.earlyResult = *p.earlyResult, nil
		// One tasks/result is under way: its answer is the one to wait for.
		case p.pendingResult != nil:
			select {
			case end = <-p.pendingResult:
				p.pendingResult = nil
			case <-ctx.Done():
				return outcome.Answer{}, p.interruptedError(ctx)
			}
		default:
			end.a, end.e = p.conversation.PerformTaskRequest(ctx, "tasks/result", p.lastStatus.ID, Params(p.lastStatus.ID))
		}
		if end.e == nil && end.a.Kind == outcome.AnswerRPCError && p.lastStatus.State == messages.TaskFailed {
			// 2025-11-25: "If the underlying request resulted in a JSON-RPC error, tasks/result MUST return that same
			// JSON-RPC error": so it means the same as without a task.
			return end.a, nil
		}
		retry, e := p.checkAnswer(ctx, end.a, end.e, "tasks/result")
		if !retry {
			return end.a, e
		}
		if !pause.For(ctx, p.pollInterval()) {
			return outcome.Answer{}, p.interruptedError(ctx)
		}
	}
}

// inlinedAnswer returns the result or the error that stands in the final status of a task of the modern era.
//
// 2026-07-28: "The tasks/get endpoint returns exactly what the underlying request would have returned: If the
// underlying request resulted in a JSON-RPC error, the task uses failed status and the error field MUST contain that
// JSON-RPC error."
func (p *Poller) inlinedAnswer() (outcome.Answer, *messages.Error) {
	if p.lastStatus.State == messages.TaskFailed {
		if errorObject := rawjson.Member(p.lastStatus.Raw, "error"); !rawjson.IsNull(errorObject) {
			return outcome.Answer{Kind: outcome.AnswerRPCError, Raw: errorObject}, nil
		}
		return outcome.Answer{}, p.taskError(messages.ClassProtocol, p.withServerMessage("the task failed, and the server does not say with which error"))
	}
	result := rawjson.Member(p.lastStatus.Raw, "result")
	if !rawjson.IsObject(result) {
		return outcome.Answer{Kind: outcome.AnswerUnusable, Detail: "is not in the task that it completed", ToolRan: true}, nil
	}
	a := outcome.Answer{Kind: outcome.AnswerResult, Raw: result, IsError: jsonrpc.IsTrue(rawjson.Member(result, "isError"))}
	if kind, _ := rawjson.Text(rawjson.Member(result, "resultType")); kind != "" && kind != "complete" {
		return outcome.Answer{Kind: outcome.AnswerUnusable, Detail: "has the result type " + strconv.Quote(messages.Line(kind, 60)) +
			" in a completed task", ToolRan: true}, nil
	}
	return a, nil
}

// withServerMessage adds the status message of the server to a text.
func (p *Poller) withServerMessage(text string) string {
	if message := messages.Line(p.lastStatus.Message, jsonrpc.MaxText); message != "" {
		text += ": " + message
	}
	return text
}

// taskError returns the error of a call whose task gives no result. It names the task if the task may still run, so
// that the caller can ask for it with TaskResult of package session.
func (p *Poller) taskError(class messages.Class, text string) *messages.Error {
	e := &messages.Error{Outcome: messages.OutcomeUnknown, Class: class, Text: text}
	if !p.lastStatus.State.Final() {
		e.Task = p.lastStatus.ID
	}
	return e
}

// interruptedError returns the error of a call that ends before its task: because the connection died, or the caller
// left.
func (p *Poller) interruptedError(ctx context.Context) *messages.Error {
	e := p.conversation.EndedError("")
	if e == nil || ctx.Err() != nil {
		e = outcome.ContextError(ctx, "before the task had ended")
	} else {
		e.Text = "the connection ended, and the task may go on at the server: " + e.Text
	}
	e.Outcome, e.Task = messages.OutcomeUnknown, p.lastStatus.ID
	return e
}
