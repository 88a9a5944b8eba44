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
	// firstPoll is the wait before the first question after a task that came without a wish of the server; it grows by
	// half with each, up to mostPoll.
	firstPoll = 500 * time.Millisecond
	mostPoll  = 5 * time.Second
	// pollFloor and pollCeiling bound what a server wishes. The ceiling is half of the default timeout of a call, so that
	// a server that wants to be asked rarely does not run into it.
	pollFloor   = 100 * time.Millisecond
	pollCeiling = 30 * time.Second
	// pollFailures is how many questions in a row may fail before the task is given up; one lost packet is no reason.
	pollFailures = 5
	// ttlGrace is how long after its time to live a task is still asked for.
	ttlGrace = 30 * time.Second
	// abandonBound is how long the cancellation of a task may take that nobody waits for any more.
	abandonBound = 10 * time.Second
)

// following is how the reader finds a call that is, or may become, a task. Session.mu guards it once it is in
// Session.follows.
type following struct {
	id string
	// token is the progress token of the request that began the task, 0 if there is none.
	//
	// 2025-11-25: "The progressToken provided in the initial request remains valid throughout the task lifetime."
	token    int64
	progress *progress
	patience *Patience
	ctx      context.Context //nolint:containedctx // that of the caller, as long as the task is followed
	// woken has room for one remark that the task's status may have changed.
	woken chan struct{}
}

func (s *Session) beginFollowing(ctx context.Context, f *following) {
	f.woken, f.ctx, f.patience = make(chan struct{}, 1), ctx, patienceOf(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.follows == nil {
		s.follows = make(map[*following]struct{})
	}
	s.follows[f] = struct{}{}
}

func (s *Session) endFollowing(f *following) {
	s.mu.Lock()
	delete(s.follows, f)
	p := f.progress
	takeBack := s.takeBack(0, f)
	s.mu.Unlock()
	takeBack()
	if p != nil {
		p.finish()
	}
}

// taskChanged takes the notification that a task's status changed, of either era. It only hastens the next question,
// because "Requestors MUST NOT rely on receiving" it (2025-11-25), and nobody tells that it is newer than the last
// answer.
func (s *Session) taskChanged(params []byte) {
	id, _ := rawjson.Text(rawjson.Member(params, "taskId"))
	if id == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.follows {
		if f.id != id {
			continue
		}
		select {
		case f.woken <- struct{}{}:
		default:
		}
	}
}

// pursuit sees one task through to its end, on its caller's goroutine.
type pursuit struct {
	s    *Session
	f    *following
	opts *Options
	// own says that the task is this call's own: it is cancelled when nobody waits for it any more.
	own    bool
	modern bool

	last     messages.TaskStatus
	detailed bool // last came from tasks/get, which brings result and error in the modern era
	told     messages.TaskStatus
	asked    time.Time     // when the server was asked last
	pause    time.Duration // between questions, if the server has no wish
	expires  time.Time     // zero for never
	failures int

	// answered are the keys of the input requests that have their answer, rounds how often there were new ones.
	answered map[string]struct{}
	rounds   int
	// result is where the answer to tasks/result arrives while one is under way (legacy era); early is one that came
	// before the status was final, and fetched says that there was one since the task last asked for input.
	result  chan ending
	early   *ending
	fetched bool
	stop    context.CancelFunc // of tasks/result
}

// ending is how a request ended.
type ending struct {
	a answer
	e *messages.Error
}

// pursue follows a task whose first status is raw.
func (s *Session) pursue(ctx context.Context, r *request, raw []byte) (answer, *messages.Error) {
	status, wrong := readTask(raw)
	if wrong != "" {
		return answer{kind: answerBroken, word: wrong}, nil
	}
	f := r.task
	if f == nil { // a task that came unasked
		f = &following{}
		s.beginFollowing(ctx, f)
		defer s.endFollowing(f)
	}
	r.pursued = true
	p := &pursuit{s: s, f: f, opts: r.opts, own: true, modern: s.modern.Load() != nil}
	p.take(status)
	return p.run(ctx)
}

// take notes a status and tells whoever wants to know.
func (p *pursuit) take(status messages.TaskStatus) {
	if p.last.ID == "" {
		p.s.mu.Lock()
		p.f.id = status.ID
		p.s.mu.Unlock()
	}
	if ttl := time.Duration(status.TTL); ttl != time.Duration(p.last.TTL) || p.last.ID == "" {
		p.expires = time.Time{}
		if ttl > 0 {
			p.expires = time.Now().Add(ttl + ttlGrace)
		}
	}
	if status.State != messages.TaskInputRequired {
		p.fetched = false
	}
	p.last, p.asked = status, time.Now()
	if p.opts != nil && p.opts.OnTask != nil && (p.told.State != status.State || p.told.Message != status.Message) {
		p.told = status
		p.tell(status)
	}
}

// tell calls a function of the caller. A panic of it ends the session, as that of any other does.
func (p *pursuit) tell(status messages.TaskStatus) {
	defer p.s.caught()
	p.opts.OnTask(status)
}

// run asks for the task until it has ended.
//
// 2026-07-28, Task Polling: "Clients SHOULD continue polling until the task reaches a terminal status or until invoking
// tasks/cancel."
func (p *pursuit) run(ctx context.Context) (a answer, e *messages.Error) {
	defer func() {
		if p.stop != nil {
			p.stop()
		}
		if e != nil && p.own && !p.last.State.Final() && e.Class != messages.ClassRejected {
			p.s.abandon(p.last.ID)
		}
	}()
	for {
		if p.last.State.Final() && (p.detailed || !p.modern) {
			return p.end(ctx)
		}
		if p.last.State == messages.TaskInputRequired {
			if e := p.provide(ctx); e != nil {
				return answer{}, e
			}
			if p.last.State.Final() {
				continue
			}
		}
		if !p.last.State.Final() && p.early == nil {
			done, e := p.rest(ctx)
			if e != nil {
				return answer{}, e
			}
			if done != nil {
				return done.a, done.e
			}
		}
		if e := p.ask(ctx); e != nil {
			return answer{}, e
		}
		if p.early != nil && !p.last.State.Final() {
			p.early = nil // it was about tasks/result, and not about the task
		}
	}
}

// interval is how long to wait before the next question.
//
// 2026-07-28: "Clients SHOULD respect the pollIntervalMs provided in responses". A jitter of a tenth keeps many tasks
// of one server apart.
func (p *pursuit) interval() time.Duration {
	d := time.Duration(p.last.Poll)
	if d <= 0 {
		p.pause = min(max(p.pause*3/2, firstPoll), mostPoll)
		d = p.pause
	}
	d = min(max(d, pollFloor), pollCeiling) << min(p.failures, 3)
	return d + time.Duration(p.s.cfg.Rand()*float64(d/10+1))
}

// rest waits until it is time to ask again: the interval, a hint that the status changed, or an answer to tasks/result.
// What it gives is the end of the task, if that came.
func (p *pursuit) rest(ctx context.Context) (*ending, *messages.Error) {
	if !p.expires.IsZero() && time.Now().After(p.expires) {
		// 2026-07-28: "if the task's observable status has not reflected the update after createdAt plus ttlMs has elapsed,
		// the client MAY consider the task to no longer be usable."
		return nil, p.lost(messages.ClassTimeout, "the task's time to live has passed, and it has not ended")
	}
	timer := time.NewTimer(p.interval())
	defer timer.Stop()
	woken := p.f.woken
	for {
		select {
		case <-timer.C:
			return nil, nil
		case <-woken:
			// Hints that come faster than the floor are one hint.
			woken = nil
			timer.Reset(max(pollFloor-time.Since(p.asked), 0))
		case end := <-p.result:
			p.result = nil
			if end.e == nil && end.a.kind == answerResult {
				return &end, nil
			}
			p.early = &end // the status says what it means
			return nil, nil
		case <-p.s.dead:
			return nil, p.interrupted(ctx)
		case <-ctx.Done():
			return nil, p.interrupted(ctx)
		}
	}
}

// ask gets the status, unless the question failed in a way that another one may not.
func (p *pursuit) ask(ctx context.Context) *messages.Error {
	id := p.last.ID
	a, e := p.s.perform(ctx, &request{method: "tasks/get", name: id, fields: taskFields(id)})
	if again, e := p.failed(ctx, a, e, "tasks/get"); again || e != nil {
		return e
	}
	status, wrong := readTask(a.raw)
	if wrong == "" && status.ID != id {
		wrong = "is about another task"
	}
	if wrong != "" {
		return p.lost(messages.ClassProtocol, "the server's answer to tasks/get "+wrong)
	}
	patienceOf(ctx).begin()
	p.failures, p.detailed = 0, true
	p.take(status)
	return nil
}

// failed judges the answer to a request about the task. again says that it is worth repeating: all of them are, because
// none changes what another of the same kind has changed.
func (p *pursuit) failed(ctx context.Context, a answer, e *messages.Error, method string) (again bool, _ *messages.Error) {
	switch {
	case e != nil:
		if ctx.Err() != nil || p.s.ended("") != nil {
			return false, p.interrupted(ctx)
		}
		switch e.Class {
		case messages.ClassNetwork, messages.ClassThrottled, messages.ClassTimeout:
			again = true
		}
		e.Outcome, e.Task = messages.OutcomeUnknown, p.last.ID
	case a.kind == answerFault:
		// "Invalid or nonexistent taskId …: -32602", which is also what is said of an expired one.
		f := readFault(a.raw)
		again = f.code == codeInternal
		e = p.lost(messages.ClassRejected, "the server rejected "+method+" for the task of this call: "+f.String())
		e.Code, e.Data = f.code, f.data
		if f.code == codeInvalidParams {
			e.Task = "" // there is nothing to go on with
		}
	case a.kind == answerBroken:
		e = p.lost(messages.ClassProtocol, "the server's answer to "+method+" "+a.word)
	case a.kind == answerUnheld:
		e = p.lost(messages.ClassExhausted, "the server's answer to "+method+" "+a.word)
		e.Err = messages.ErrMemory
	default:
		return false, nil
	}
	if p.failures++; again && p.failures < pollFailures {
		p.asked = time.Now()
		return true, nil
	}
	return false, e
}

// provide gives a task the input that it requires.
//
// 2025-11-25: "When the requestor encounters the input_required status, it SHOULD preemptively call tasks/result": the
// questions come as requests of the server then, and are answered like any other. 2026-07-28: "the client SHOULD
// fulfill the outstanding requests in inputRequests by sending one or more tasks/update requests with corresponding
// inputResponses."
func (p *pursuit) provide(ctx context.Context) *messages.Error {
	if !p.modern {
		p.fetch(ctx)
		return nil
	}
	if !p.detailed {
		return nil // a task that was just created does not say what it wants
	}
	asks, wrong := p.news()
	if wrong != "" {
		return p.lost(messages.ClassProtocol, "the task "+wrong)
	}
	if asks == nil {
		return nil
	}
	fields := append(taskFields(p.last.ID), `,"inputResponses":{`...)
	fields, wrong = p.s.answerAll(ctx, fields, asks)
	switch {
	case ctx.Err() != nil || p.s.ended("") != nil:
		return p.interrupted(ctx)
	case wrong != "":
		return p.lost(messages.ClassProtocol, "the task "+wrong)
	}
	r := &request{method: "tasks/update", name: p.last.ID, fields: append(fields, '}')}
	for {
		a, e := p.s.perform(ctx, r)
		again, e := p.failed(ctx, a, e, r.method)
		switch {
		case again:
			if e := pauseFor(ctx, p.interval()); e != nil {
				return p.interrupted(ctx)
			}
		case e != nil && a.kind == answerFault && ctx.Err() == nil:
			// It may be refused because the task has just ended.
			if p.ask(ctx) == nil && p.last.State.Final() {
				return nil
			}
			return e
		default:
			return e
		}
	}
}

// news are the input requests that have no answer yet, as a JSON object; nil if there are none.
//
// 2026-07-28: "Clients SHOULD deduplicate inputRequests keys across consecutive polls to avoid presenting the same
// request to the user or model more than once." and "Each request key in inputRequests MUST be unique over the lifetime
// of a single task."
func (p *pursuit) news() (asks []byte, wrong string) {
	all := rawjson.Member(p.last.Raw, "inputRequests")
	if !rawjson.IsObject(all) {
		return nil, "asks for input and does not say which"
	}
	b, n := []byte{'{'}, 0
	m := rawjson.ObjectAt(all, 0, 0)
	for m.Next() {
		value, key := m.Skip(), string(m.Name)
		if _, done := p.answered[key]; done {
			continue
		}
		if p.answered == nil {
			p.answered = make(map[string]struct{})
		}
		p.answered[key] = struct{}{}
		b = append(appendString(comma(b, 1), key), ':')
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

// fetch begins tasks/result in the background, unless it is under way or was answered since the task last asked for
// input.
func (p *pursuit) fetch(ctx context.Context) {
	if p.result != nil || p.fetched {
		return
	}
	if p.stop != nil {
		p.stop()
	}
	ctx, p.stop = context.WithCancel(ctx)
	result := make(chan ending, 1)
	r := &request{method: "tasks/result", name: p.last.ID, fields: taskFields(p.last.ID)}
	if p.s.spawn(func() {
		a, e := p.s.perform(ctx, r)
		result <- ending{a, e}
	}) {
		p.result, p.fetched = result, true
	}
}

// end gives what the task came to.
func (p *pursuit) end(ctx context.Context) (answer, *messages.Error) {
	if p.last.State == messages.TaskCancelled {
		return answer{}, p.lost(messages.ClassRejected, p.words("the task was cancelled at the server"))
	}
	if p.modern {
		return p.inlined()
	}
	for {
		var end ending
		switch {
		case p.early != nil:
			end, p.early = *p.early, nil
		case p.result != nil:
			select {
			case end = <-p.result:
				p.result = nil
			case <-ctx.Done():
				return answer{}, p.interrupted(ctx)
			}
		default:
			end.a, end.e = p.s.perform(ctx, &request{method: "tasks/result", name: p.last.ID, fields: taskFields(p.last.ID)})
		}
		if end.e == nil && end.a.kind == answerFault && p.last.State == messages.TaskFailed {
			// 2025-11-25: "If the underlying request resulted in a JSON-RPC error, tasks/result MUST return that same JSON-RPC
			// error": what it means is what it would have meant without a task.
			return end.a, nil
		}
		again, e := p.failed(ctx, end.a, end.e, "tasks/result")
		if !again {
			return end.a, e
		}
		if pauseFor(ctx, p.interval()) != nil {
			return answer{}, p.interrupted(ctx)
		}
	}
}

// inlined is the result or the error that stands in the status of a task of the modern era.
//
// 2026-07-28: "The tasks/get endpoint returns exactly what the underlying request would have returned: If the
// underlying request resulted in a JSON-RPC error, the task uses failed status and the error field MUST contain that
// JSON-RPC error."
func (p *pursuit) inlined() (answer, *messages.Error) {
	if p.last.State == messages.TaskFailed {
		if fault := rawjson.Member(p.last.Raw, "error"); !rawjson.IsNull(fault) {
			return answer{kind: answerFault, raw: fault}, nil
		}
		return answer{}, p.lost(messages.ClassProtocol, p.words("the task failed, and the server does not say with which error"))
	}
	result := rawjson.Member(p.last.Raw, "result")
	if !rawjson.IsObject(result) {
		return answer{kind: answerBroken, word: "is not in the task that it completed", ran: true}, nil
	}
	a := answer{kind: answerResult, raw: result, isError: isTrue(rawjson.Member(result, "isError"))}
	if kind, _ := rawjson.Text(rawjson.Member(result, "resultType")); kind != "" && kind != "complete" {
		return answer{kind: answerBroken, word: "has the result type " + strconv.Quote(messages.Line(kind, 60)) +
			" in a completed task", ran: true}, nil
	}
	return a, nil
}

// words adds the server's own to a text.
func (p *pursuit) words(text string) string {
	if message := messages.Line(p.last.Message, maxText); message != "" {
		text += ": " + message
	}
	return text
}

// lost is the error of a call whose task does not come to a result.
func (p *pursuit) lost(class messages.Class, text string) *messages.Error {
	e := &messages.Error{Outcome: messages.OutcomeUnknown, Class: class, Text: text}
	if !p.last.State.Final() {
		e.Task = p.last.ID
	}
	return e
}

// interrupted is the error of a call that ends before its task does: the connection died, or the caller left.
func (p *pursuit) interrupted(ctx context.Context) *messages.Error {
	e := p.s.ended("")
	if e == nil || ctx.Err() != nil {
		e = contextError(ctx, "before the task had ended")
	} else {
		e.Text = "the connection ended, and the task may go on at the server: " + e.Text
	}
	e.Outcome, e.Task = messages.OutcomeUnknown, p.last.ID
	return e
}

// abandon cancels a task in the background that nobody waits for any more.
//
// 2026-07-28: "The notifications/cancelled notification MUST NOT be used for task cancellation." 2025-11-25 has
// tasks/cancel if the server declares it, and nothing else.
func (s *Session) abandon(id string) {
	if s.ended("") != nil || s.modern.Load() == nil && !s.info.Load().Capabilities.TasksCancel {
		return
	}
	s.spawn(func() {
		ctx, stop := context.WithTimeout(s.life, abandonBound)
		defer stop()
		// A task that has ended meanwhile refuses it.
		_, _ = s.perform(ctx, &request{method: "tasks/cancel", name: id, fields: taskFields(id)})
	})
}
