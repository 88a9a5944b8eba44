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
	// Repeatable lets the request be sent a second time, on a new connection, when the first one was lost with its connection: it
	// changes nothing at the server. It is not sent again after the program has answered a question of the server about it
	// (NoteAnswer), because the same person would be asked twice.
	Repeatable bool
	// SkipsQueue is for requests about other requests, or about the connection itself: they take no slot and wait for none, where
	// the server has a bound.
	SkipsQueue bool
	// Trace notes the connections that get the request; nil notes nothing.
	Trace *Trace
	// Send sends the request. ctx is bounded as the server's spec says. It may be called twice.
	Send func(ctx context.Context, s *session.Session) error
}

// SendRequest is the path of every request that is no tool call: server → its link → slot → admission gate → session. Like a call
// it wakes a lazy server, waits for one that is restarting (Wait), and is bounded by the server's call timeouts. The
// error, if any, is a *messages.Error with Op "read".
func (c *Calls) SendRequest(ctx context.Context, q Request) error {
	// A question of the server about this request reaches the program with this context, and NoteAnswer sets the flag.
	answered := new(atomic.Bool)
	err := c.sendOrRepeat(context.WithValue(ctx, answeredKey{}, answered), q, answered)
	if err == nil {
		return nil
	}
	// The server's name and its advice are added as for a call.
	err = c.completeError(err, q.Server, "")
	var e *messages.Error
	if errors.As(err, &e) {
		// The error is copied, because the original may be shared; only its Op differs from a call's.
		read := *e
		read.Op = "read"
		return &read
	}
	return err
}

// sendOrRepeat sends the request once, and a second time if it was lost and may be repeated. Only this function decides what is sent
// again, with mayRepeatRequest; for tool calls, mayRepeatCall decides.
func (c *Calls) sendOrRepeat(ctx context.Context, q Request, answered *atomic.Bool) error {
	link, err := c.linkOf(ctx, q.Server, 0, c.Wait)
	if err != nil {
		return err
	}
	if p := withCallTimeout(ctx, link.Spec); p != nil {
		defer p.Stop()
		ctx = p
	}
	// The timeout bounds both attempts together.
	ask := func(s *session.Session) error { return q.Send(ctx, s) }
	// In the legacy era an answer may belong to any request that the server has; the count shows whether one was given meanwhile.
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
	// A session that the server has ended is replaced at once; a closed gate says nothing about when another opens.
	class := messages.ClassOf(err)
	closed := messages.OutcomeOf(err) == messages.OutcomeNotSent && class != messages.ClassSession
	if closed {
		// The gate was closed before the request was sent: waiting for another connection is the caller's choice.
		wait = c.Wait
	}
	next, unreachable := link, error(nil)
	if until := time.Now().Add(wait); !link.stillServes(ctx, err, wait) {
		next, unreachable = c.linkOf(ctx, q.Server, link.Epoch, time.Until(until))
	}
	if unreachable != nil {
		if closed && class == messages.ClassCanceled {
			// A closed gate has no reason to give; the server's status has.
			return unreachable
		}
		return err // the first error says more than "it did not come back"
	}
	q.Trace.noteConnection(next)
	return next.runAdmitted(ctx, q.SkipsQueue, ask)
}

// mayRepeatRequest reports whether a request may be sent a second time after an error. harmless says that it may even have run.
func mayRepeatRequest(err error, harmless bool) bool {
	if errors.Is(err, messages.ErrQueueFull) {
		return false // the next connection uses the same queue
	}
	class := messages.ClassOf(err)
	switch messages.OutcomeOf(err) {
	// The request did not reach the server, so only refusals that would repeat are final.
	case messages.OutcomeNotSent:
		return class != messages.ClassInvalid && class != messages.ClassDenied && class != messages.ClassUnauthorized
	case messages.OutcomeUnknown:
		switch class {
		// The connection went while the request ran: the server may have answered a lost message.
		case messages.ClassNetwork, messages.ClassExited, messages.ClassSession, messages.ClassCanceled:
			return harmless
		}
	}
	return false
}

// answeredKey finds, in a context, whether a question about this one request was answered; answersKey finds the server's count of
// answers to questions that name no request.
type (
	answeredKey struct{}
	answersKey  struct{}
)

// NoteAnswer is called by the function that has answered a server's question. ctx is the one that the function got. In the modern
// era it belongs to one request. In the legacy era the question names none, so every request that the server has at the time
// counts as asked about.
func NoteAnswer(ctx context.Context) {
	if answered, ok := ctx.Value(answeredKey{}).(*atomic.Bool); ok {
		answered.Store(true)
	} else if answers, ok := ctx.Value(answersKey{}).(*atomic.Uint64); ok {
		answers.Add(1)
	}
}

// trackAnswers returns h with contexts in which NoteAnswer finds the server's count.
func trackAnswers(h session.Handlers, answers *atomic.Uint64) session.Handlers {
	// Roots need no mark: no person answers them.
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

// linkOf returns the connection of a server: the open one if it is newer than after, else the one that appears within
// wait. A server that rests is woken and may take its whole connect timeout.
func (c *Calls) linkOf(ctx context.Context, server string, after uint64, wait time.Duration) (*Link, error) {
	cell := c.Cell(server)
	if cell == nil {
		return nil, c.notConnectedError(server, "", nil)
	}
	// Nearly every request finds its connection here, without a lock.
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
