package session

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

const (
	// firstPollPause is the wait before the first question after a task that came without a wish of the server; it grows by
	// half with each, up to maxPollPause.
	firstPollPause = 500 * time.Millisecond
	maxPollPause   = 5 * time.Second
	// pollFloor and pollCeiling bound what a server wishes. The ceiling is half of the default timeout of a call, so that
	// a server that wants to be asked rarely does not run into it.
	pollFloor   = 100 * time.Millisecond
	pollCeiling = 30 * time.Second
	// pollFailures is how many questions in a row may fail before the task is given up; one lost packet is no reason.
	pollFailures = 5
	// ttlGrace is how long after its time to live a task is still asked for.
	ttlGrace = 30 * time.Second
	// taskCancelTimeout is how long the cancellation of a task may take that nobody waits for any more.
	taskCancelTimeout = 10 * time.Second
)

// followedTask is how the reader finds a call that is, or may become, a task. Session.mu guards it once it is in
// Session.follows.
type followedTask struct {
	id string
	// token is the progress token of the request that began the task, 0 if there is none.
	//
	// 2025-11-25: "The progressToken provided in the initial request remains valid throughout the task lifetime."
	token    int64
	progress *progressReporter
	timeout  *CallTimeout
	ctx      context.Context //nolint:containedctx // that of the caller, as long as the task is followed
	// statusHint has room for one remark that the task's status may have changed.
	statusHint chan struct{}
}

func (s *Session) beginFollowing(ctx context.Context, f *followedTask) {
	f.statusHint, f.ctx, f.timeout = make(chan struct{}, 1), ctx, callTimeoutOf(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.followedTasks == nil {
		s.followedTasks = make(map[*followedTask]struct{})
	}
	s.followedTasks[f] = struct{}{}
}

func (s *Session) endFollowing(f *followedTask) {
	s.mu.Lock()
	delete(s.followedTasks, f)
	p := f.progress
	withdraw := s.withdrawQuestions(0, f)
	s.mu.Unlock()
	withdraw()
	if p != nil {
		p.finish()
	}
}

// handleTaskStatus takes the notification that a task's status changed, of either era. It only hastens the next question,
// because "Requestors MUST NOT rely on receiving" it (2025-11-25), and nobody tells that it is newer than the last
// answer.
func (s *Session) handleTaskStatus(params []byte) {
	id, _ := rawjson.Text(rawjson.Member(params, "taskId"))
	if id == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.followedTasks {
		if f.id != id {
			continue
		}
		select {
		case f.statusHint <- struct{}{}:
		default:
		}
	}
}

// taskPoller sees one task through to its end, on its caller's goroutine.
type taskPoller struct {
	s    *Session
	f    *followedTask
	opts *Options
	// own says that the task is this call's own: it is cancelled when nobody waits for it any more.
	own    bool
	modern bool

	lastStatus messages.TaskStatus
	detailed   bool // last came from tasks/get, which brings result and error in the modern era
	reported   messages.TaskStatus
	lastPolled time.Time     // when the server was asked last
	pause      time.Duration // between questions, if the server has no wish
	expires    time.Time     // zero for never
	failures   int

	// answeredInputs are the keys of the input requests that have their answer, rounds how often there were new ones.
	answeredInputs map[string]struct{}
	rounds         int
	// pendingResult is where the answer to tasks/result arrives while one is under way (legacy era); early is one that came
	// before the status was final, and fetched says that there was one since the task last asked for input.
	pendingResult chan requestEnd
	earlyResult   *requestEnd
	resultFetched bool
	stopResult    context.CancelFunc // of tasks/result
}

// requestEnd is how a request ended.
type requestEnd struct {
	a answer
	e *messages.Error
}

// pollTask follows a task whose first status is raw.
func (s *Session) pollTask(ctx context.Context, r *request, raw []byte) (answer, *messages.Error) {
	status, problem := readTask(raw)
	if problem != "" {
		return answer{kind: answerUnusable, detail: problem}, nil
	}
	f := r.task
	if f == nil { // a task that came unasked
		f = &followedTask{}
		s.beginFollowing(ctx, f)
		defer s.endFollowing(f)
	}
	r.becameTask = true
	p := &taskPoller{s: s, f: f, opts: r.opts, own: true, modern: s.modern.Load() != nil}
	p.noteStatus(status)
	return p.run(ctx)
}

// noteStatus notes a status and tells whoever wants to know.
func (p *taskPoller) noteStatus(status messages.TaskStatus) {
	if p.lastStatus.ID == "" {
		p.s.mu.Lock()
		p.f.id = status.ID
		p.s.mu.Unlock()
	}
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
	if p.opts != nil && p.opts.OnTask != nil && (p.reported.State != status.State || p.reported.Message != status.Message) {
		p.reported = status
		p.reportStatus(status)
	}
}

// reportStatus calls a function of the caller. A panic of it ends the session, as that of any other does.
func (p *taskPoller) reportStatus(status messages.TaskStatus) {
	defer p.s.recoverPanic()
	p.opts.OnTask(status)
}

// run asks for the task until it has ended.
//
// 2026-07-28, Task Polling: "Clients SHOULD continue polling until the task reaches a terminal status or until invoking
// tasks/cancel."
func (p *taskPoller) run(ctx context.Context) (a answer, e *messages.Error) {
	defer func() {
		if p.stopResult != nil {
			p.stopResult()
		}
		if e != nil && p.own && !p.lastStatus.State.Final() && e.Class != messages.ClassRejected {
			p.s.abandonTask(p.lastStatus.ID)
		}
	}()
	for {
		if p.lastStatus.State.Final() && (p.detailed || !p.modern) {
			return p.finalAnswer(ctx)
		}
		if p.lastStatus.State == messages.TaskInputRequired {
			if e := p.provideInput(ctx); e != nil {
				return answer{}, e
			}
			if p.lastStatus.State.Final() {
				continue
			}
		}
		if !p.lastStatus.State.Final() && p.earlyResult == nil {
			done, e := p.waitForPoll(ctx)
			if e != nil {
				return answer{}, e
			}
			if done != nil {
				return done.a, done.e
			}
		}
		if e := p.pollStatus(ctx); e != nil {
			return answer{}, e
		}
		if p.earlyResult != nil && !p.lastStatus.State.Final() {
			p.earlyResult = nil // it was about tasks/result, and not about the task
		}
	}
}

// pollInterval is how long to wait before the next question.
//
// 2026-07-28: "Clients SHOULD respect the pollIntervalMs provided in responses". A jitter of a tenth keeps many tasks
// of one server apart.
func (p *taskPoller) pollInterval() time.Duration {
	d := time.Duration(p.lastStatus.Poll)
	if d <= 0 {
		p.pause = min(max(p.pause*3/2, firstPollPause), maxPollPause)
		d = p.pause
	}
	d = min(max(d, pollFloor), pollCeiling) << min(p.failures, 3)
	return d + time.Duration(p.s.cfg.Rand()*float64(d/10+1))
}

// waitForPoll waits until it is time to ask again: the interval, a hint that the status changed, or an answer to tasks/result.
// What it gives is the end of the task, if that came.
func (p *taskPoller) waitForPoll(ctx context.Context) (*requestEnd, *messages.Error) {
	if !p.expires.IsZero() && time.Now().After(p.expires) {
		// 2026-07-28: "if the task's observable status has not reflected the update after createdAt plus ttlMs has elapsed,
		// the client MAY consider the task to no longer be usable."
		return nil, p.taskError(messages.ClassTimeout, "the task's time to live has passed, and it has not ended")
	}
	timer := time.NewTimer(p.pollInterval())
	defer timer.Stop()
	woken := p.f.statusHint
	for {
		select {
		case <-timer.C:
			return nil, nil
		case <-woken:
			// Hints that come faster than the floor are one hint.
			woken = nil
			timer.Reset(max(pollFloor-time.Since(p.lastPolled), 0))
		case end := <-p.pendingResult:
			p.pendingResult = nil
			if end.e == nil && end.a.kind == answerResult {
				return &end, nil
			}
			p.earlyResult = &end // the status says what it means
			return nil, nil
		case <-p.s.dead:
			return nil, p.interruptedError(ctx)
		case <-ctx.Done():
			return nil, p.interruptedError(ctx)
		}
	}
}

// pollStatus gets the status, unless the question failed in a way that another one may not.
func (p *taskPoller) pollStatus(ctx context.Context) *messages.Error {
	id := p.lastStatus.ID
	a, e := p.s.performRequest(ctx, &request{method: "tasks/get", name: id, fields: taskFields(id)})
	if retry, e := p.checkAnswer(ctx, a, e, "tasks/get"); retry || e != nil {
		return e
	}
	status, problem := readTask(a.raw)
	if problem == "" && status.ID != id {
		problem = "is about another task"
	}
	if problem != "" {
		return p.taskError(messages.ClassProtocol, "the server's answer to tasks/get "+problem)
	}
	callTimeoutOf(ctx).restartIdle()
	p.failures, p.detailed = 0, true
	p.noteStatus(status)
	return nil
}

// checkAnswer judges the answer to a request about the task. again says that it is worth repeating: all of them are, because
// none changes what another of the same kind has changed.
func (p *taskPoller) checkAnswer(ctx context.Context, a answer, e *messages.Error, method string) (retry bool, _ *messages.Error) {
	switch {
	case e != nil:
		if ctx.Err() != nil || p.s.endedError("") != nil {
			return false, p.interruptedError(ctx)
		}
		switch e.Class {
		case messages.ClassNetwork, messages.ClassThrottled, messages.ClassTimeout:
			retry = true
		}
		e.Outcome, e.Task = messages.OutcomeUnknown, p.lastStatus.ID
	case a.kind == answerRPCError:
		// "Invalid or nonexistent taskId …: -32602", which is also what is said of an expired one.
		f := readRPCError(a.raw)
		retry = f.code == codeInternal
		e = p.taskError(messages.ClassRejected, "the server rejected "+method+" for the task of this call: "+f.String())
		e.Code, e.Data = f.code, f.data
		if f.code == codeInvalidParams {
			e.Task = "" // there is nothing to go on with
		}
	case a.kind == answerUnusable:
		e = p.taskError(messages.ClassProtocol, "the server's answer to "+method+" "+a.detail)
	case a.kind == answerNoMemory:
		e = p.taskError(messages.ClassExhausted, "the server's answer to "+method+" "+a.detail)
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
// 2025-11-25: "When the requestor encounters the input_required status, it SHOULD preemptively call tasks/result": the
// questions come as requests of the server then, and are answered like any other. 2026-07-28: "the client SHOULD
// fulfill the outstanding requests in inputRequests by sending one or more tasks/update requests with corresponding
// inputResponses."
func (p *taskPoller) provideInput(ctx context.Context) *messages.Error {
	if !p.modern {
		p.fetchResult(ctx)
		return nil
	}
	if !p.detailed {
		return nil // a task that was just created does not say what it wants
	}
	inputRequests, problem := p.newInputRequests()
	if problem != "" {
		return p.taskError(messages.ClassProtocol, "the task "+problem)
	}
	if inputRequests == nil {
		return nil
	}
	fields := append(taskFields(p.lastStatus.ID), `,"inputResponses":{`...)
	fields, problem = p.s.answerInputRequests(ctx, fields, inputRequests)
	switch {
	case ctx.Err() != nil || p.s.endedError("") != nil:
		return p.interruptedError(ctx)
	case problem != "":
		return p.taskError(messages.ClassProtocol, "the task "+problem)
	}
	r := &request{method: "tasks/update", name: p.lastStatus.ID, fields: append(fields, '}')}
	for {
		a, e := p.s.performRequest(ctx, r)
		retry, e := p.checkAnswer(ctx, a, e, r.method)
		switch {
		case retry:
			if e := pauseFor(ctx, p.pollInterval()); e != nil {
				return p.interruptedError(ctx)
			}
		case e != nil && a.kind == answerRPCError && ctx.Err() == nil:
			// It may be refused because the task has just ended.
			if p.pollStatus(ctx) == nil && p.lastStatus.State.Final() {
				return nil
			}
			return e
		default:
			return e
		}
	}
}

// newInputRequests are the input requests that have no answer yet, as a JSON object; nil if there are none.
//
// 2026-07-28: "Clients SHOULD deduplicate inputRequests keys across consecutive polls to avoid presenting the same
// request to the user or model more than once." and "Each request key in inputRequests MUST be unique over the lifetime
// of a single task."
func (p *taskPoller) newInputRequests() (inputRequests []byte, problem string) {
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
		b = append(appendString(appendComma(b, 1), key), ':')
		b = append(b, value...)
		n++
	}
	if n == 0 {
		return nil, ""
	}
	if p.rounds++; p.rounds > maxRounds {
		return nil, fmt.Sprintf("asked for input more than %d times", maxRounds)
	}
	return append(b, '}'), ""
}

// fetchResult begins tasks/result in the background, unless it is under way or was answered since the task last asked for
// input.
func (p *taskPoller) fetchResult(ctx context.Context) {
	if p.pendingResult != nil || p.resultFetched {
		return
	}
	if p.stopResult != nil {
		p.stopResult()
	}
	ctx, p.stopResult = context.WithCancel(ctx)
	result := make(chan requestEnd, 1)
	r := &request{method: "tasks/result", name: p.lastStatus.ID, fields: taskFields(p.lastStatus.ID)}
	if p.s.spawn(func() {
		a, e := p.s.performRequest(ctx, r)
		result <- requestEnd{a, e}
	}) {
		p.pendingResult, p.resultFetched = result, true
	}
}

// finalAnswer gives what the task came to.
func (p *taskPoller) finalAnswer(ctx context.Context) (answer, *messages.Error) {
	if p.lastStatus.State == messages.TaskCancelled {
		return answer{}, p.taskError(messages.ClassRejected, p.withServerMessage("the task was cancelled at the server"))
	}
	if p.modern {
		return p.inlinedAnswer()
	}
	for {
		var end requestEnd
		switch {
		case p.earlyResult != nil:
			end, p.earlyResult = *p.earlyResult, nil
		case p.pendingResult != nil:
			select {
			case end = <-p.pendingResult:
				p.pendingResult = nil
			case <-ctx.Done():
				return answer{}, p.interruptedError(ctx)
			}
		default:
			end.a, end.e = p.s.performRequest(ctx, &request{method: "tasks/result", name: p.lastStatus.ID, fields: taskFields(p.lastStatus.ID)})
		}
		if end.e == nil && end.a.kind == answerRPCError && p.lastStatus.State == messages.TaskFailed {
			// 2025-11-25: "If the underlying request resulted in a JSON-RPC error, tasks/result MUST return that same JSON-RPC
			// error": what it means is what it would have meant without a task.
			return end.a, nil
		}
		retry, e := p.checkAnswer(ctx, end.a, end.e, "tasks/result")
		if !retry {
			return end.a, e
		}
		if pauseFor(ctx, p.pollInterval()) != nil {
			return answer{}, p.interruptedError(ctx)
		}
	}
}

// inlinedAnswer is the result or the error that stands in the status of a task of the modern era.
//
// 2026-07-28: "The tasks/get endpoint returns exactly what the underlying request would have returned: If the
// underlying request resulted in a JSON-RPC error, the task uses failed status and the error field MUST contain that
// JSON-RPC error."
func (p *taskPoller) inlinedAnswer() (answer, *messages.Error) {
	if p.lastStatus.State == messages.TaskFailed {
		if errorObject := rawjson.Member(p.lastStatus.Raw, "error"); !rawjson.IsNull(errorObject) {
			return answer{kind: answerRPCError, raw: errorObject}, nil
		}
		return answer{}, p.taskError(messages.ClassProtocol, p.withServerMessage("the task failed, and the server does not say with which error"))
	}
	result := rawjson.Member(p.lastStatus.Raw, "result")
	if !rawjson.IsObject(result) {
		return answer{kind: answerUnusable, detail: "is not in the task that it completed", toolRan: true}, nil
	}
	a := answer{kind: answerResult, raw: result, isError: isTrue(rawjson.Member(result, "isError"))}
	if kind, _ := rawjson.Text(rawjson.Member(result, "resultType")); kind != "" && kind != "complete" {
		return answer{kind: answerUnusable, detail: "has the result type " + strconv.Quote(messages.Line(kind, 60)) +
			" in a completed task", toolRan: true}, nil
	}
	return a, nil
}

// withServerMessage adds the server's own to a text.
func (p *taskPoller) withServerMessage(text string) string {
	if message := messages.Line(p.lastStatus.Message, maxText); message != "" {
		text += ": " + message
	}
	return text
}

// taskError is the error of a call whose task does not come to a result.
func (p *taskPoller) taskError(class messages.Class, text string) *messages.Error {
	e := &messages.Error{Outcome: messages.OutcomeUnknown, Class: class, Text: text}
	if !p.lastStatus.State.Final() {
		e.Task = p.lastStatus.ID
	}
	return e
}

// interruptedError is the error of a call that ends before its task does: the connection died, or the caller left.
func (p *taskPoller) interruptedError(ctx context.Context) *messages.Error {
	e := p.s.endedError("")
	if e == nil || ctx.Err() != nil {
		e = contextError(ctx, "before the task had ended")
	} else {
		e.Text = "the connection ended, and the task may go on at the server: " + e.Text
	}
	e.Outcome, e.Task = messages.OutcomeUnknown, p.lastStatus.ID
	return e
}

// abandonTask cancels a task in the background that nobody waits for any more.
//
// 2026-07-28: "The notifications/cancelled notification MUST NOT be used for task cancellation." 2025-11-25 has
// tasks/cancel if the server declares it, and nothing else.
func (s *Session) abandonTask(id string) {
	if s.endedError("") != nil || s.modern.Load() == nil && !s.info.Load().Capabilities.TasksCancel {
		return
	}
	s.spawn(func() {
		ctx, stop := context.WithTimeout(s.lifetime, taskCancelTimeout)
		defer stop()
		// A task that has ended meanwhile refuses it.
		_, _ = s.performRequest(ctx, &request{method: "tasks/cancel", name: id, fields: taskFields(id)})
	})
}
