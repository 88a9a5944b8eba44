package actors

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// Request is a request to a server that is no tool call.
type Request struct {
	Server string
	// Repeatable lets the request be sent a second time, on a new connection, when the first one was lost on it: it changes
	// nothing at the server. It is not sent again after somebody has answered a question of the server about it
	// (NoteAnswer): a person is not asked twice for one thing.
	Repeatable bool
	// SkipsQueue is for what is about requests that are under way, or about the connection: it does not wait for its turn where
	// only so many may be in flight, and does not count.
	SkipsQueue bool
	// Trace is told of the connections that it is given to; nil for nobody.
	Trace *Trace
	// Send makes the request. ctx is bounded as the server's spec says.
	Send func(ctx context.Context, s *session.Session) error
}

// SendRequest is the way of every request that is no tool call: server → its link → admission gate → session. As a call does it
// wakes a lazy server, waits for one that is just restarting (Wait), and is bounded by the server's call timeouts. The
// error, if any, is a *messages.Error with Op "read".
func (c *Calls) SendRequest(ctx context.Context, q Request) error {
	answered := new(atomic.Bool)
	err := c.sendOrRepeat(context.WithValue(ctx, answeredKey{}, answered), q, answered)
	if err == nil {
		return nil
	}
	err = c.completeError(err, q.Server, "")
	var e *messages.Error
	if errors.As(err, &e) {
		read := *e
		read.Op = "read"
		return &read
	}
	return err
}

// sendOrRepeat sends the question once, and a second time if that was lost and may be repeated. Here and nowhere else is decided
// what is sent again; for tool calls, repeatable decides.
func (c *Calls) sendOrRepeat(ctx context.Context, q Request, answered *atomic.Bool) error {
	link, err := c.linkOf(ctx, q.Server, 0, c.Wait)
	if err != nil {
		return err
	}
	if p := withCallTimeout(ctx, link.Spec); p != nil {
		defer p.Stop()
		ctx = p
	}
	ask := func(s *session.Session) error { return q.Send(ctx, s) }
	answers, before := new(atomic.Uint64), uint64(0)
	if cell := c.Cell(q.Server); cell != nil {
		answers = &cell.answers
		before = answers.Load()
	}
	q.Trace.noteConnection(link)
	err = link.runAdmitted(ctx, q.SkipsQueue, ask)
	if err == nil || ctx.Err() != nil || !mayRepeatRequest(err, q.Repeatable && !answered.Load() && answers.Load() == before) {
		return err
	}
	wait := max(c.Wait, c.RetryWait)
	class := messages.ClassOf(err)
	closed := messages.OutcomeOf(err) == messages.OutcomeNotSent && class != messages.ClassSession
	if closed {
		wait = c.Wait // the gate was closed under our feet: waiting is the caller's choice
	}
	next, unreachable := link, error(nil)
	if until := time.Now().Add(wait); !link.stillServes(ctx, err, wait) {
		next, unreachable = c.linkOf(ctx, q.Server, link.Epoch, time.Until(until))
	}
	if unreachable != nil {
		if closed && class == messages.ClassCanceled {
			return unreachable // a closed gate knows nothing; the status knows why
		}
		return err // the first error says more than "it did not come back"
	}
	q.Trace.noteConnection(next)
	return next.runAdmitted(ctx, q.SkipsQueue, ask)
}

// mayRepeatRequest reports whether an error leaves it possible, and allowed, to send a question a second time.
func mayRepeatRequest(err error, harmless bool) bool {
	if errors.Is(err, messages.ErrQueueFull) {
		return false // another connection has no more room
	}
	class := messages.ClassOf(err)
	switch messages.OutcomeOf(err) {
	case messages.OutcomeNotSent:
		return class != messages.ClassInvalid && class != messages.ClassDenied && class != messages.ClassUnauthorized
	case messages.OutcomeUnknown:
		switch class {
		case messages.ClassNetwork, messages.ClassExited, messages.ClassSession, messages.ClassCanceled:
			return harmless
		}
	}
	return false
}

// answeredKey finds the note of the request that a question is about, answersKey the answers that its server was given
// about no request in particular.
type (
	answeredKey struct{}
	answersKey  struct{}
)

// NoteAnswer is said by whoever has answered a question that a server asked while it dealt with a request. ctx is the one
// that the answer was asked with. In the legacy era nothing says which request that is: then it may be any that the server
// deals with.
func NoteAnswer(ctx context.Context) {
	if answered, ok := ctx.Value(answeredKey{}).(*atomic.Bool); ok {
		answered.Store(true)
	} else if answers, ok := ctx.Value(answersKey{}).(*atomic.Uint64); ok {
		answers.Add(1)
	}
}

// trackAnswers is h with contexts that find answers.
func trackAnswers(h session.Handlers, answers *atomic.Uint64) session.Handlers {
	mark := func(ctx context.Context) context.Context { return context.WithValue(ctx, answersKey{}, answers) }
	if sample := h.Sample; sample != nil {
		h.Sample = func(ctx context.Context, r messages.SampleRequest) (json.RawMessage, error) {
			return sample(mark(ctx), r)
		}
	}
	if elicit := h.Elicit; elicit != nil {
		h.Elicit = func(ctx context.Context, r messages.ElicitRequest) (messages.ElicitResult, error) {
			return elicit(mark(ctx), r)
		}
	}
	return h
}

// linkOf finds the connection of a server: that which is open if it is newer than after, else the one that appears within
// wait. A server that rests is woken and may take its connect timeout.
func (c *Calls) linkOf(ctx context.Context, server string, after uint64, wait time.Duration) (*Link, error) {
	cell := c.Cell(server)
	if cell == nil {
		return nil, c.notConnectedError(server, "", nil)
	}
	if v := cell.View(); connectedSince(v, after) && v.Link != nil {
		return v.Link, nil
	}
	if after == 0 {
		if err := c.wakeServer(ctx, server, ""); err != nil {
			return nil, err
		}
	}
	v := cell.View()
	if !connectedSince(v, after) && wait > 0 {
		var err error
		if v, err = c.awaitConnected(ctx, cell, server, "", after, max(wait, time.Second)); err != nil {
			return nil, err
		}
	}
	if !connectedSince(v, after) || v.Link == nil {
		return nil, c.notConnectedError(server, "", ctx.Err())
	}
	return v.Link, nil
}
