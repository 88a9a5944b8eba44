package session

import (
	"cmp"
	"context"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/calltimeout"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/outcome"
)

// A pendingRequest waits for its answer, from its registration until its caller has taken the answer.
//
// The goroutine that removes it from Session.pending, under mu, decides how it ends: the reader with an answer, the session
// with its end, the timer with a timeout, or the caller that stops waiting. The first three send exactly one answer; if the
// caller removes it, no goroutine can send one any more. So every request ends once, and a pendingRequest can be reused as
// soon as its caller returns.
type pendingRequest struct {
	id     int64
	answer chan outcome.Answer // capacity 1: sending never blocks
	// body is the buffer of the message. The transport may read it until Send returns, or until Leave does for a posted
	// message.
	body []byte
	// progress and timeout are the caller's; nil if it wants no progress, or has no CallTimeout.
	progress *progressReporter
	timeout  *CallTimeout
	// ctx is the caller's context if the server may ask questions about the request, else nil. Session.mu guards it.
	ctx context.Context //nolint:containedctx // it is as long as the request
	// watched is true if the caller's context is a CallTimeout itself: then requestTimer ends the request when a deadline
	// passes, and the caller listens to the parent only.
	watched bool
	// posted is the request's own, if anybody waits for it.
	posted func()
	// longLived marks a standing request (a subscription), which the server ends when it likes: an answer that names no
	// request is never taken for its answer. Session.mu guards it.
	longLived bool
}

const (
	// maxReusedBuffer is the largest request buffer that is kept for reuse, in bytes, and maxIdleRequests the number of
	// requests that are kept: an idle session holds at most 1 MiB because of them, and usually a few KiB.
	maxReusedBuffer = 16 << 10
	maxIdleRequests = 64
)

// sendRequest sends a request once, under a fresh id, and returns its answer. extra are further members of params, without
// braces. If the caller's context has ended already, nothing is sent.
func (s *Session) sendRequest(ctx context.Context, r *request, extra []byte) (outcome.Answer, *messages.Error) {
	if e := outcome.CallerLeftError(ctx); e != nil {
		return outcome.Answer{}, e
	}
	p := newProgressReporter(r.opts)
	if p != nil && r.task == nil { // a task reports progress after its first answer, too; endFollowing finishes its reporter
		defer p.finish(ctx)
	}
	f, e := s.registerRequest(ctx, p, allowsServerRequests(r.method))
	if e != nil {
		return outcome.Answer{}, e
	}
	// The id is the progress token, and a task keeps that token after this request has been answered.
	if r.task != nil && p != nil {
		s.mu.Lock()
		r.task.token, r.task.progress = f.id, p
		s.mu.Unlock()
	}
	m := r.era
	if m == nil {
		m = s.modern.Load()
	}
	f.body, f.posted = r.appendTo(f.body, f.id, m, extra), r.posted
	msg := transports.Message{ID: f.id, Method: r.method, Name: r.name, Body: f.body, Header: r.header, Caller: cmp.Or(messages.CallerOf(ctx), s.caller)}
	if m != nil {
		msg.Version = m.version
	}
	return s.exchangeMessage(ctx, f, &msg)
}

// registerRequest makes a request with a fresh id and registers it with the reader, or returns the reason for which
// nothing can be sent any more (a not-sent error). With mayAsk the request keeps ctx, so that a question of the
// server finds its caller.
//
// Idle requests are kept per session and not in a sync.Pool of the package: a channel that was made inside a
// testing/synctest bubble must not be used by another one.
func (s *Session) registerRequest(ctx context.Context, p *progressReporter, mayAsk bool) (*pendingRequest, *messages.Error) {
	timeout := calltimeout.Of(ctx)
	// A context that is only derived from a CallTimeout may end for other reasons, so its Done must be listened to.
	_, watched := ctx.(*CallTimeout)
	s.mu.Lock()
	if s.pending == nil || s.closing {
		s.mu.Unlock()
		return nil, outcome.MarkNotSent(s.endedError(""))
	}
	var f *pendingRequest
	if n := len(s.idleRequests); n > 0 {
		f, s.idleRequests = s.idleRequests[n-1], s.idleRequests[:n-1]
	} else {
		f = &pendingRequest{answer: make(chan outcome.Answer, 1)}
	}
	// Ids are never reused, so the answer to an abandoned request cannot end a later one.
	s.lastID++
	f.id, f.timeout, f.progress, f.watched = s.lastID, timeout, p, watched
	if mayAsk {
		f.ctx = ctx
	}
	s.pending[f.id] = f
	// Still under mu: otherwise expireRequests could run between the two and leave this deadline without a timer.
	if watched {
		s.armRequestTimer(timeout.NextDue())
	}
	s.mu.Unlock()
	return f, nil
}

// recycleRequest keeps f for reuse. Its id must not be in pending and its channel must be empty. Questions that the server
// asked about this request are withdrawn: their caller is gone.
func (s *Session) recycleRequest(f *pendingRequest) {
	s.mu.Lock()
	if len(s.serverRequests) > 0 && f.ctx != nil {
		defer s.withdrawQuestions(f.id, nil)()
	}
	f.ctx, f.longLived, f.watched, f.timeout, f.progress, f.posted = nil, false, false, nil, nil, nil
	// A single large call must not make the session hold its buffer for days.
	if cap(f.body) > maxReusedBuffer {
		s.mu.Unlock()
		return
	}
	f.body = f.body[:0]
	if len(s.idleRequests) < maxIdleRequests && s.pending != nil {
		s.idleRequests = append(s.idleRequests, f)
	}
	s.mu.Unlock()
}

// freeIdleRequests drops the requests that are kept for reuse. ListTools calls it at its end: a list needs larger buffers
// than calls do, and a server that has been listed may rest for days.
func (s *Session) freeIdleRequests() {
	s.mu.Lock()
	s.idleRequests = nil
	if s.pending != nil && len(s.pending) == 0 {
		s.pending = make(map[int64]*pendingRequest) // a Go map never shrinks: it keeps the buckets that it once needed
	}
	s.mu.Unlock()
}

// takePending removes the request with this id and reports whether there was one. Exactly one of the goroutines that ask for
// it gets it, and must end it.
func (s *Session) takePending(id int64) (*pendingRequest, bool) {
	s.mu.Lock()
	f, ok := s.pending[id]
	if ok {
		delete(s.pending, id)
	}
	s.mu.Unlock()
	return f, ok
}

// takeOnlyPending removes the request if it is the only one that is not long-lived. An answer without a usable id can only
// belong to that one.
func (s *Session) takeOnlyPending() (only *pendingRequest, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.pending {
		switch {
		case f.longLived:
		case only != nil:
			return nil, false
		default:
			only = f
		}
	}
	if only == nil {
		return nil, false
	}
	delete(s.pending, only.id)
	return only, true
}

// exchangeMessage sends f.body, waits for the answer and recycles f. It returns an answer of any kind but AnswerSessionEnded
// and AnswerTimedOut, or an error with its outcome.
func (s *Session) exchangeMessage(ctx context.Context, f *pendingRequest, m *transports.Message) (outcome.Answer, *messages.Error) {
	a, e := s.sendAndWait(ctx, f, m)
	s.recycleRequest(f) // not deferred: if the transport ends the goroutine, f is still in pending and must not be reused
	return a, e
}

// sendAndWait sends the message and waits until the request has one end. For a connection that takes a message without
// waiting (poster) it only posts: the answer itself shows that the message was written, so the caller wakes once instead of
// twice.
func (s *Session) sendAndWait(ctx context.Context, f *pendingRequest, m *transports.Message) (outcome.Answer, *messages.Error) {
	var delivery transports.Delivery
	var err error
	if s.poster == nil {
		f.notePosted()
		delivery, err = s.sendMessage(ctx, *m)
	} else {
		var posting transports.PendingPost
		posting, delivery, err = s.postToConn(*m)
		if f.notePosted(); posting != nil {
			return s.awaitPosted(ctx, f, m, posting)
		}
	}
	var a outcome.Answer
	if err != nil {
		err = outcome.WithoutForeignBody(f.id, err)
		// Nothing has answered: the failure of the send is the end of the request.
		if _, ours := s.takePending(f.id); ours {
			return outcome.Answer{}, s.sendFailedError(ctx, f.id, m.Method, delivery, err)
		}
		// The request was answered, timed out, or ended with the session, before Send returned its error. An answer is the
		// truth, also if Send failed.
		if a = <-f.answer; a.Kind == outcome.AnswerTimedOut {
			return outcome.Answer{}, s.sendFailedError(ctx, f.id, m.Method, delivery, err)
		}
	} else {
		select {
		case a = <-f.answer:
		case <-f.callerDone(ctx):
			if _, ours := s.takePending(f.id); ours {
				return outcome.Answer{}, s.abandonRequest(ctx, f.id, m.Method)
			}
			a = <-f.answer // the answer is there, or about to be: its sender removed the request first
		}
		if a.Kind == outcome.AnswerTimedOut {
			return outcome.Answer{}, s.abandonRequest(ctx, f.id, m.Method)
		}
	}
	if a.Kind != outcome.AnswerSessionEnded {
		return a, nil
	}
	return outcome.Answer{}, s.sessionLostError(delivery, err)
}

// sendMessage gives a message to the connection. It runs in the goroutine of the caller of a request, who must not end with a transport of
// the program's own: one that panics, ends its goroutine or returns an error that cannot be read ends the session, and the message may
// have been written. The goroutine of a caller that Send has ended (runtime.Goexit) cannot be kept.
func (s *Session) sendMessage(ctx context.Context, m transports.Message) (d transports.Delivery, err error) {
	hasReturned := false
	defer func() {
		if !hasReturned {
			d, err = transports.MaybeWritten, s.failSend(recover())
		}
	}()
	if d, err = s.conn.Send(ctx, m); err != nil {
		err = readableError(err)
	}
	hasReturned = true
	return d, err
}

// postToConn is sendMessage for a connection that takes a message without waiting.
func (s *Session) postToConn(m transports.Message) (posting transports.PendingPost, d transports.Delivery, err error) {
	hasReturned := false
	defer func() {
		if !hasReturned {
			posting, d, err = nil, transports.MaybeWritten, s.failSend(recover())
		}
	}()
	if posting, d, err = s.poster.Post(m); err != nil {
		err = readableError(err)
	}
	hasReturned = true
	return posting, d, err
}

// notePosted tells who waits for it that the connection has the message, as far as it takes one without waiting.
func (f *pendingRequest) notePosted() {
	if f.posted != nil {
		f.posted()
	}
}

// sessionLostError is the error of a request that had no answer when the session ended. err is the reason for which it was
// not written, nil if it was.
func (s *Session) sessionLostError(delivery transports.Delivery, err error) *messages.Error {
	result := messages.OutcomeUnknown
	if err != nil {
		result = outcome.OfSend(delivery, err)
	}
	// The session's end explains more than the failure of this one message, unless the server refused this message itself.
	e := s.endedError("")
	if result != messages.OutcomeUnknown && delivery != transports.NotWritten {
		e = outcome.TranslateError("", err)
	}
	e.Outcome = result
	return e
}

// callerDone returns a channel that is closed when the caller does not wait any more. For a watched request requestTimer
// observes the CallTimeout, so that its Done, which costs a timer, is never called; only the parent is left to listen to.
func (f *pendingRequest) callerDone(ctx context.Context) <-chan struct{} {
	if f.watched {
		return f.timeout.ParentDone()
	}
	return ctx.Done()
}

// abandonRequest notifies the server that the caller does not wait any more, and returns the caller's error: the outcome is
// unknown.
func (s *Session) abandonRequest(ctx context.Context, id int64, method string) *messages.Error {
	s.cancelRequest(ctx, id, method)
	e := outcome.ContextError(ctx, "before there was an answer")
	e.Outcome = messages.OutcomeUnknown
	return e
}

// sendFailedError returns the error of a request that the transport gave up on and that has no answer. If the caller's
// context ended, the error says that instead of the transport's symptom, and the server gets a cancellation if the message
// may have reached it.
func (s *Session) sendFailedError(
	ctx context.Context, id int64, method string, d transports.Delivery, err error,
) *messages.Error {
	e := outcome.TranslateError("", err)
	e.Outcome = outcome.OfSend(d, err)
	if ctx.Err() != nil && (e.Class == messages.ClassTimeout || e.Class == messages.ClassCanceled) {
		result := e.Outcome
		if d == transports.NotWritten {
			e = outcome.ContextError(ctx, "before the request was sent")
		} else {
			e = outcome.ContextError(ctx, "before there was an answer")
		}
		e.Outcome = result
		if result == messages.OutcomeUnknown {
			s.cancelRequest(ctx, id, method)
		}
	}
	// The server has forgotten the session: every further request would fail the same way.
	if e.Class == messages.ClassSession {
		// 2025-11-25: "When a client receives HTTP 404 in response to a request containing an MCP-Session-Id, it MUST
		// start a new session". This conversation is over; the caller of the session dials the next one.
		s.failSession(e)
	}
	return e
}
