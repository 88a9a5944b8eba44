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

// repeat sends a request a second time, on the same connection if that still serves, else on the next one. The first one failed
// with err on r.link. There is never a third time.
func (c *Calls) repeat(ctx context.Context, r *Request, err error, next Handler) error {
	// A repetition is worth a short wait even if the caller allows none for lost servers.
	wait := max(c.Wait, c.RetryWait)
	// A session that the server has ended is replaced at once; a closed gate says nothing about when another opens.
	closed := messages.OutcomeOf(err) == messages.OutcomeNotSent && messages.ClassOf(err) != messages.ClassSession
	if closed {
		// The gate was closed before the request was sent: waiting for another connection is the caller's choice.
		wait = c.Wait
	}
	link, repeatErr := r.link, error(nil)
	if until := time.Now().Add(wait); !link.stillServes(ctx, err, wait) {
		r.mayWake = closed && c.hasGoneToRest(ctx, link) && !r.AwakeOnly
		link, repeatErr = c.connectionFor(ctx, r, link.Epoch, time.Until(until))
	}
	// There is no connection for a second attempt.
	if repeatErr != nil {
		if closed && messages.ClassOf(err) == messages.ClassCanceled {
			// A closed gate has no reason to give; the server's status has.
			return repeatErr
		}
		return err // the first error says more than "it did not come back"
	}
	r.link = link
	r.Trace.noteConnection(link)
	repeatErr = next(ctx, r)
	if messages.OutcomeOf(err) == messages.OutcomeUnknown {
		repeatErr = stillUnknown(repeatErr)
	}
	return repeatErr
}

// publishTime bounds the wait for what a server's actor publishes in the step in which it closes a gate.
const publishTime = 100 * time.Millisecond

// hasGoneToRest returns when the server's view shows why the gate of a connection was closed, and reports whether its server, which is lazy,
// was let go in the very moment in which a request had found it. The request then wakes the server, as one that comes a moment later does.
func (c *Calls) hasGoneToRest(ctx context.Context, link *Link) bool {
	cell := c.Cell(link.Server)
	if cell == nil {
		return false
	}
	// The end of a session closes its gates before the actor hears of it, which may be busy.
	bounded, cancel := context.WithTimeout(ctx, publishTime)
	defer cancel()
	v, err := cell.Wait(bounded, func(v *View) bool { return v.Link != link })
	return err == nil && v.Spec.Connect == messages.Lazy && v.State.Phase == messages.Pending && v.State.EverConnected && v.State.Cause == nil
}

// stillUnknown returns the error of a repetition whose first call may have run. If the second one was not sent, or was rejected,
// that does not undo the first: the outcome stays unknown.
func stillUnknown(err error) error {
	switch messages.OutcomeOf(err) {
	case messages.OutcomeNotSent, messages.OutcomeRejected:
	default:
		return err
	}
	var e *messages.Error
	if !errors.As(err, &e) {
		// This cannot occur: every error with such an outcome is a *messages.Error.
		return err
	}
	// The error is copied, because the original may be shared.
	unknown := *e
	unknown.Outcome = messages.OutcomeUnknown
	unknown.Text = "it was sent twice, the first one may have run, and of the second: " + e.Text
	return &unknown
}

// mayRepeat implements the promise that nothing is sent again that may already have run. A request that was not sent may be repeated
// unless the error would be the same. One whose outcome is unknown may be only if it is harmless and was lost with its connection: a
// server that gave an unusable answer over a connection that lives would give the same again.
func mayRepeat(err error, harmless, connected bool) bool {
	if errors.Is(err, messages.ErrQueueFull) {
		return false // the next connection uses the same queue
	}
	class := messages.ClassOf(err)
	switch class {
	// Another attempt would be refused for the same reason.
	case messages.ClassInvalid, messages.ClassDenied, messages.ClassUnauthorized:
		return false
	}
	switch messages.OutcomeOf(err) {
	case messages.OutcomeNotSent:
		return true
	case messages.OutcomeUnknown:
		switch class {
		case messages.ClassNetwork, messages.ClassExited, messages.ClassSession, messages.ClassCanceled:
			return harmless
		}
		return harmless && !connected
	}
	return false
}

// newCallTimeout returns a context with the timeouts of the server's spec, which may be none. The caller stops it.
func newCallTimeout(ctx context.Context, spec *messages.Spec) *session.CallTimeout {
	// A negative value in a spec means no bound.
	timeout := max(orDefault(spec.CallTimeout, DefaultCallTimeout), 0)
	most := time.Duration(spec.MaxCallTimeout)
	if most == 0 && timeout > 0 {
		most = max(DefaultMaxCallTimeout, timeout)
	}
	return session.NewCallTimeout(ctx, timeout, most)
}

// answersKey finds, in a context, the server's count of answers to questions that name no request.
type answersKey struct{}

// NoteAnswer is called by the function that has answered a server's question. ctx is the one that the function got. In the modern
// era it belongs to one request. In the legacy era the question names none, so every request that the server has at the time
// counts as asked about.
func NoteAnswer(ctx context.Context) {
	if request := session.CallTimeoutOf(ctx); request != nil {
		request.NoteAnswer()
	} else if answers, ok := ctx.Value(answersKey{}).(*atomic.Uint64); ok {
		answers.Add(1)
	}
}

// trackAnswers returns h with contexts in which NoteAnswer finds the server's count. What an instance asks, about whichever request,
// is asked in the name of its principal.
func trackAnswers(h session.Handlers, answers *atomic.Uint64, principal string) session.Handlers {
	mark := func(ctx context.Context) context.Context {
		if principal != "" && messages.CallerOf(ctx) == "" {
			ctx = messages.WithCaller(ctx, principal)
		}
		return context.WithValue(ctx, answersKey{}, answers)
	}
	if roots := h.Roots; roots != nil && principal != "" {
		h.Roots = func(ctx context.Context) ([]messages.Root, error) { return roots(mark(ctx)) }
	}
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
