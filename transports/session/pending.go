package session

import (
	"context"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// pendingRequest is one request on its way, from its registration until its caller has taken the answer.
//
// Whoever removes it from Session.pending, under the lock, decides how it ends: the reader with an answer, the end of
// the session, or the caller who stops waiting. The first two send exactly one answer, the last makes sure that nobody
// does. So every request ends once, and a flight can be reused as soon as its caller returns.
type pendingRequest struct {
	id     int64
	answer chan answer // capacity 1: sending never blocks
	body   []byte
	// progress and patience are the caller's, or nil.
	progress *progressReporter
	timeout  *CallTimeout
	// ctx is the caller's if the server may ask questions about the request, else nil. Session.mu guards it.
	ctx context.Context //nolint:containedctx // it is as long as the request
	// watched says that the caller waits for the answer alone: the session ends the flight when its patience does.
	watched bool
	// longLived says that the request ends when it likes: what cannot be told whose answer it is, is not its answer.
	// Session.mu guards it.
	longLived bool
}

// answer is what came back for a request.
type answer struct {
	kind    answerKind
	isError bool
	// toolRan says of an answerUnusable that it is the answer of a tool that has run.
	toolRan bool
	// raw is the result, or the error object.
	raw []byte
	// detail is the member resultType of a result, without quotes: empty for "complete" and if there is none. Of an answerUnusable
	// or answerNoMemory it says what is wrong. They share a field because every frame of a call holds an answer: with net/http's, those of one
	// fit into 8 KiB of stack, or take 16.
	detail string
}

type answerKind uint8

const (
	// answerResult: raw is the result, a JSON object.
	answerResult answerKind = iota
	// answerRPCError: raw is the member error.
	answerRPCError
	// answerUnusable: the server answered with something that cannot be used.
	answerUnusable
	// answerNoMemory: there was no memory for the answer; word says so.
	answerNoMemory
	// answerSessionEnded: the session ended before there was an answer.
	answerSessionEnded
	// answerTimedOut: the caller's patience ended before there was an answer.
	answerTimedOut
)

const (
	// maxReusedBuffer is the largest request buffer that is kept for reuse, in bytes, and maxIdleRequests how many flights are kept: an
	// idle session holds at most 1 MiB because of them, and usually a few KiB.
	maxReusedBuffer = 16 << 10
	maxIdleRequests = 64
)

// registerRequest makes a flight with a fresh id, known to the reader, or says why nothing can be sent any more.
//
// Flights are kept per session and not in a sync.Pool of the package: a channel that was made inside a testing/synctest
// bubble must not be used by another one.
func (s *Session) registerRequest(ctx context.Context, p *progressReporter, mayAsk bool) (*pendingRequest, *messages.Error) {
	timeout := callTimeoutOf(ctx)
	_, watched := ctx.(*CallTimeout)
	s.mu.Lock()
	if s.pending == nil || s.closing {
		s.mu.Unlock()
		return nil, asNotSent(s.endedError(""))
	}
	var f *pendingRequest
	if n := len(s.idleRequests); n > 0 {
		f, s.idleRequests = s.idleRequests[n-1], s.idleRequests[:n-1]
	} else {
		f = &pendingRequest{answer: make(chan answer, 1)}
	}
	s.lastID++
	f.id, f.timeout, f.progress, f.watched = s.lastID, timeout, p, watched
	if mayAsk {
		f.ctx = ctx
	}
	s.pending[f.id] = f
	if watched {
		s.armRequestTimer(timeout.nextDue())
	}
	s.mu.Unlock()
	return f, nil
}

// recycleRequest gives f back. Its id must not be in pending and its channel must be empty.
func (s *Session) recycleRequest(f *pendingRequest) {
	s.mu.Lock()
	if len(s.serverRequests) > 0 && f.ctx != nil {
		defer s.withdrawQuestions(f.id, nil)()
	}
	f.ctx, f.longLived, f.watched, f.timeout, f.progress = nil, false, false, nil, nil
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

// freeIdleRequests gives up what is kept for reuse. A list, which is rare, needs larger buffers than calls do, and a server that has been
// listed may rest for days.
func (s *Session) freeIdleRequests() {
	s.mu.Lock()
	s.idleRequests = nil
	if s.pending != nil && len(s.pending) == 0 {
		s.pending = make(map[int64]*pendingRequest) // a map keeps the room that it once needed
	}
	s.mu.Unlock()
}

// takePending removes the flight with this id. Exactly one of those who ask for it gets it.
func (s *Session) takePending(id int64) (*pendingRequest, bool) {
	s.mu.Lock()
	f, ok := s.pending[id]
	if ok {
		delete(s.pending, id)
	}
	s.mu.Unlock()
	return f, ok
}

// takeOnlyPending removes the flight if it is the only one.
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

// exchangeMessage sends f.body, waits for what comes back and lands f. It gives an answer of any kind but answerSessionEnded, or an
// error with its outcome.
func (s *Session) exchangeMessage(ctx context.Context, f *pendingRequest, m *transports.Message) (answer, *messages.Error) {
	a, e := s.sendAndWait(ctx, f, m)
	s.recycleRequest(f) // not deferred: if the transport panics, f is still known to the reader
	return a, e
}

func (s *Session) sendAndWait(ctx context.Context, f *pendingRequest, m *transports.Message) (answer, *messages.Error) {
	var delivery transports.Delivery
	var err error
	if s.poster == nil {
		delivery, err = s.conn.Send(ctx, *m)
	} else {
		var posting transports.PendingPost
		if posting, delivery, err = s.poster.Post(*m); posting != nil {
			return s.awaitPosted(ctx, f, m, posting)
		}
	}
	var a answer
	if err != nil {
		err = withoutForeignBody(f.id, err)
		if _, ours := s.takePending(f.id); ours {
			return answer{}, s.sendFailedError(ctx, f.id, m.Method, delivery, err)
		}
		// Answered, or ended with the session, before Send came back with its error: that is the truth.
		if a = <-f.answer; a.kind == answerTimedOut {
			return answer{}, s.sendFailedError(ctx, f.id, m.Method, delivery, err)
		}
	} else {
		select {
		case a = <-f.answer:
		case <-f.callerDone(ctx):
			if _, ours := s.takePending(f.id); ours {
				return answer{}, s.abandonRequest(ctx, f.id, m.Method)
			}
			a = <-f.answer // it is there, or about to be: who took the flight came first
		}
		if a.kind == answerTimedOut {
			return answer{}, s.abandonRequest(ctx, f.id, m.Method)
		}
	}
	if a.kind != answerSessionEnded {
		return a, nil
	}
	return answer{}, s.sessionLostError(delivery, err)
}

// sessionLostError is the error of a request that the session ended before. err is why it was not written, nil if it was.
func (s *Session) sessionLostError(delivery transports.Delivery, err error) *messages.Error {
	outcome := messages.OutcomeUnknown
	if err != nil {
		outcome = outcomeOf(delivery, err)
	}
	// Why the session ended says more than why this one message was not sent, unless the server refused this one itself.
	e := s.endedError("")
	if outcome != messages.OutcomeUnknown && delivery != transports.NotWritten {
		e = translateError("", err)
	}
	e.Outcome = outcome
	return e
}

// callerDone is closed when the caller does not wait any more. If the session looks after the caller's patience, only what the
// patience was made from is left to listen to.
func (f *pendingRequest) callerDone(ctx context.Context) <-chan struct{} {
	if f.watched {
		return f.timeout.parent.Done()
	}
	return ctx.Done()
}

// abandonRequest tells the server that nobody waits any more, and is the error of that.
func (s *Session) abandonRequest(ctx context.Context, id int64, method string) *messages.Error {
	s.cancelRequest(ctx, id, method)
	e := contextError(ctx, "before there was an answer")
	e.Outcome = messages.OutcomeUnknown
	return e
}

// sendFailedError is the error of a request that the transport gave up on and nobody answered.
func (s *Session) sendFailedError(
	ctx context.Context, id int64, method string, d transports.Delivery, err error,
) *messages.Error {
	e := translateError("", err)
	e.Outcome = outcomeOf(d, err)
	if ctx.Err() != nil && (e.Class == messages.ClassTimeout || e.Class == messages.ClassCanceled) {
		outcome := e.Outcome
		if d == transports.NotWritten {
			e = contextError(ctx, "before the request was sent")
		} else {
			e = contextError(ctx, "before there was an answer")
		}
		e.Outcome = outcome
		if outcome == messages.OutcomeUnknown {
			s.cancelRequest(ctx, id, method)
		}
	}
	if e.Class == messages.ClassSession {
		// 2025-11-25: "When a client receives HTTP 404 in response to a request containing an MCP-Session-Id, it MUST
		// start a new session". This conversation is over; the caller of the session dials the next one.
		s.failSession(e)
	}
	return e
}

func asNotSent(e *messages.Error) *messages.Error {
	e.Outcome = messages.OutcomeNotSent
	return e
}
