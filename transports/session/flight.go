package session

import (
	"context"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// flight is one request on its way, from its registration until its caller has taken the answer.
//
// Whoever removes it from Session.pending, under the lock, decides how it ends: the reader with an answer, the end of
// the session, or the caller who stops waiting. The first two send exactly one answer, the last makes sure that nobody
// does. So every request ends once, and a flight can be reused as soon as its caller returns.
type flight struct {
	id     int64
	answer chan answer // capacity 1: sending never blocks
	body   []byte
	// progress and patience are the caller's, or nil.
	progress *progress
	patience *Patience
	// ctx is the caller's if the server may ask questions about the request, else nil. Session.mu guards it.
	ctx context.Context //nolint:containedctx // it is as long as the request
	// watched says that the caller waits for the answer alone: the session ends the flight when its patience does.
	watched bool
	// standing says that the request ends when it likes: what cannot be told whose answer it is, is not its answer.
	// Session.mu guards it.
	standing bool
}

// answer is what came back for a request.
type answer struct {
	kind    answerKind
	isError bool
	// ran says of an answerBroken that it is the answer of a tool that has run.
	ran bool
	// raw is the result, or the error object.
	raw []byte
	// word is the member resultType of a result, without quotes: empty for "complete" and if there is none. Of an answerBroken
	// or answerUnheld it says what is wrong. They share a field because every frame of a call holds an answer: with net/http's, those of one
	// fit into 8 KiB of stack, or take 16.
	word string
}

type answerKind uint8

const (
	// answerResult: raw is the result, a JSON object.
	answerResult answerKind = iota
	// answerFault: raw is the member error.
	answerFault
	// answerBroken: the server answered with something that cannot be used.
	answerBroken
	// answerUnheld: there was no memory for the answer; word says so.
	answerUnheld
	// answerLost: the session ended before there was an answer.
	answerLost
	// answerLate: the caller's patience ended before there was an answer.
	answerLate
)

const (
	// maxKept is the largest request buffer that is kept for reuse, in bytes, and maxIdle how many flights are kept: an
	// idle session holds at most 1 MiB because of them, and usually a few KiB.
	maxKept = 16 << 10
	maxIdle = 64
)

// depart makes a flight with a fresh id, known to the reader, or says why nothing can be sent any more.
//
// Flights are kept per session and not in a sync.Pool of the package: a channel that was made inside a testing/synctest
// bubble must not be used by another one.
func (s *Session) depart(ctx context.Context, p *progress, asking bool) (*flight, *messages.Error) {
	patience := patienceOf(ctx)
	_, watched := ctx.(*Patience)
	s.mu.Lock()
	if s.pending == nil || s.closing {
		s.mu.Unlock()
		return nil, notSent(s.ended(""))
	}
	var f *flight
	if n := len(s.idle); n > 0 {
		f, s.idle = s.idle[n-1], s.idle[:n-1]
	} else {
		f = &flight{answer: make(chan answer, 1)}
	}
	s.lastID++
	f.id, f.patience, f.progress, f.watched = s.lastID, patience, p, watched
	if asking {
		f.ctx = ctx
	}
	s.pending[f.id] = f
	if watched {
		s.wakeBy(patience.moment())
	}
	s.mu.Unlock()
	return f, nil
}

// land gives f back. Its id must not be in pending and its channel must be empty.
func (s *Session) land(f *flight) {
	s.mu.Lock()
	if len(s.asks) > 0 && f.ctx != nil {
		defer s.takeBack(f.id, nil)()
	}
	f.ctx, f.standing, f.watched, f.patience, f.progress = nil, false, false, nil, nil
	if cap(f.body) > maxKept {
		s.mu.Unlock()
		return
	}
	f.body = f.body[:0]
	if len(s.idle) < maxIdle && s.pending != nil {
		s.idle = append(s.idle, f)
	}
	s.mu.Unlock()
}

// rest gives up what is kept for reuse. A list, which is rare, needs larger buffers than calls do, and a server that has been
// listed may rest for days.
func (s *Session) rest() {
	s.mu.Lock()
	s.idle = nil
	if s.pending != nil && len(s.pending) == 0 {
		s.pending = make(map[int64]*flight) // a map keeps the room that it once needed
	}
	s.mu.Unlock()
}

// take removes the flight with this id. Exactly one of those who ask for it gets it.
func (s *Session) take(id int64) (*flight, bool) {
	s.mu.Lock()
	f, ok := s.pending[id]
	if ok {
		delete(s.pending, id)
	}
	s.mu.Unlock()
	return f, ok
}

// takeOnly removes the flight if it is the only one.
func (s *Session) takeOnly() (only *flight, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.pending {
		switch {
		case f.standing:
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

// exchange sends f.body, waits for what comes back and lands f. It gives an answer of any kind but answerLost, or an
// error with its outcome.
func (s *Session) exchange(ctx context.Context, f *flight, m *transports.Message) (answer, *messages.Error) {
	a, e := s.fly(ctx, f, m)
	s.land(f) // not deferred: if the transport panics, f is still known to the reader
	return a, e
}

func (s *Session) fly(ctx context.Context, f *flight, m *transports.Message) (answer, *messages.Error) {
	var delivery transports.Delivery
	var err error
	if s.poster == nil {
		delivery, err = s.conn.Send(ctx, *m)
	} else {
		var posting transports.Posting
		if posting, delivery, err = s.poster.Post(*m); posting != nil {
			return s.await(ctx, f, m, posting)
		}
	}
	var a answer
	if err != nil {
		err = onlyOf(f.id, err)
		if _, ours := s.take(f.id); ours {
			return answer{}, s.sendFailed(ctx, f.id, m.Method, delivery, err)
		}
		// Answered, or ended with the session, before Send came back with its error: that is the truth.
		if a = <-f.answer; a.kind == answerLate {
			return answer{}, s.sendFailed(ctx, f.id, m.Method, delivery, err)
		}
	} else {
		select {
		case a = <-f.answer:
		case <-f.end(ctx):
			if _, ours := s.take(f.id); ours {
				return answer{}, s.abandoned(ctx, f.id, m.Method)
			}
			a = <-f.answer // it is there, or about to be: who took the flight came first
		}
		if a.kind == answerLate {
			return answer{}, s.abandoned(ctx, f.id, m.Method)
		}
	}
	if a.kind != answerLost {
		return a, nil
	}
	return answer{}, s.lost(delivery, err)
}

// lost is the error of a request that the session ended before. err is why it was not written, nil if it was.
func (s *Session) lost(delivery transports.Delivery, err error) *messages.Error {
	outcome := messages.OutcomeUnknown
	if err != nil {
		outcome = outcomeOf(delivery, err)
	}
	// Why the session ended says more than why this one message was not sent, unless the server refused this one itself.
	e := s.ended("")
	if outcome != messages.OutcomeUnknown && delivery != transports.NotWritten {
		e = translate("", err)
	}
	e.Outcome = outcome
	return e
}

// end is closed when the caller does not wait any more. If the session looks after the caller's patience, only what the
// patience was made from is left to listen to.
func (f *flight) end(ctx context.Context) <-chan struct{} {
	if f.watched {
		return f.patience.parent.Done()
	}
	return ctx.Done()
}

// abandoned tells the server that nobody waits any more, and is the error of that.
func (s *Session) abandoned(ctx context.Context, id int64, method string) *messages.Error {
	s.cancel(ctx, id, method)
	e := contextError(ctx, "before there was an answer")
	e.Outcome = messages.OutcomeUnknown
	return e
}

// sendFailed is the error of a request that the transport gave up on and nobody answered.
func (s *Session) sendFailed(
	ctx context.Context, id int64, method string, d transports.Delivery, err error,
) *messages.Error {
	e := translate("", err)
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
			s.cancel(ctx, id, method)
		}
	}
	if e.Class == messages.ClassSession {
		// 2025-11-25: "When a client receives HTTP 404 in response to a request containing an MCP-Session-Id, it MUST
		// start a new session". This conversation is over; the caller of the session dials the next one.
		s.fail(e)
	}
	return e
}

func notSent(e *messages.Error) *messages.Error {
	e.Outcome = messages.OutcomeNotSent
	return e
}
