// Package lifetime ends a connection that has no process: exactly once, with Down as its last call to the sink. A connection of
// web, websocket or inprocess has one [Lifetime]; a connection with a child ends by other steps (package stdio).
//
//	if !l.Enter() { return l.EndError() }   // a goroutine that may call the sink
//	defer l.LeaveRecovering()
//	…
//	l.End(cause)                            // from any goroutine, also from one that is inside
//
// # Guarantees
//
//   - The sink gets Down once, after every other call, with the cause of the first End.
//   - End does not wait; Close waits for Released or its context.
//   - An idle connection has no goroutine for this: End starts the one that calls Down.
//
// # Not promised
//
// Down waits for the goroutines inside. Each of them must end with Ctx, or with RequestCtx if it waits for an answer; one that does
// neither keeps the connection from being released for ever.
package lifetime

import (
	"context"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/admission"
	"github.com/mcpvisor/mcpvisor/transports/internal/errs"
)

// Lifetime ends a connection that has no process, exactly once. A goroutine that may still give something to the sink is inside
// (Enter, Leave). After End none enters, and when the last one has left, the lifetime calls Down: so Down comes once, and last.
//
//	Enter … Leave   ┐
//	Enter … Leave   ├─ End: no more Enter ─> last Leave ─> Down ─> AfterDown ─> Released
//	Enter … Leave   ┘
//
// An idle lifetime has no goroutine. End starts one, which ends when Released is closed.
type Lifetime struct {
	Sink transports.Sink
	// Ctx ends with the connection. Every wait of a goroutine that is inside also waits for it, so that Leave follows soon.
	Ctx    context.Context
	Cancel context.CancelFunc
	// RequestCtx is ctx for code that waits for the answer to a message. It ends with ctx, except when the session was lost: then
	// it ends lastAnswersTime later, so that the server refuses each message that is under way by itself, and its sender learns
	// that it did not run.
	RequestCtx     context.Context
	cancelRequests context.CancelFunc
	// AfterDown, if not nil, runs after Down, with its own bound: over HTTP the DELETE that ends the session. It is the last
	// thing that the connection does.
	AfterDown func(cause *transports.Error)

	// inside are the goroutines that entered. It is closed by the first End.
	inside admission.Counter

	// mu guards cause, and the order in which End sets cause and empty before it closes inside.
	mu    sync.Mutex
	cause *transports.Error // set once, by the first End
	// empty is closed when no goroutine is inside any more. End makes it before it closes inside, so that Leave always finds it.
	empty    chan struct{}
	Released chan struct{}
}

// lastAnswersTime is the time that messages which are under way when the session turns out to be lost get for their own
// refusal.
const lastAnswersTime = time.Second

// New makes the lifetime of a connection where nothing waits for the answer to a message: RequestCtx is ctx.
func New(sink transports.Sink) *Lifetime {
	l := &Lifetime{Sink: sink, Released: make(chan struct{})}
	l.Ctx, l.Cancel = context.WithCancel(context.Background())
	l.RequestCtx, l.cancelRequests = l.Ctx, l.Cancel
	return l
}

// NewForRequests makes the lifetime of a connection over HTTP, whose requests outlast ctx when the session is lost.
func NewForRequests(sink transports.Sink) *Lifetime {
	l := New(sink)
	l.RequestCtx, l.cancelRequests = context.WithCancel(context.Background())
	return l
}

// Enter lets the caller use the connection, and reports false if it has ended. After true the caller must call Leave.
func (l *Lifetime) Enter() bool { return l.inside.Enter() }

// Leave undoes Enter. The last one to leave an ended connection lets notifyDown go on.
func (l *Lifetime) Leave() {
	if l.inside.Leave() {
		close(l.empty)
	}
}

// EndError returns why the connection has ended, nil while it lives. It leaves out the status and the body of a refusal, because
// they are about the one message that was refused, and the caller asks about another.
func (l *Lifetime) EndError() *transports.Error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == nil || l.cause.Status == 0 && l.cause.Body == nil {
		return l.cause
	}
	e := *l.cause
	e.Status, e.Body = 0, nil
	return &e
}

// End ends the connection and does not wait. Only the cause of the first call counts.
func (l *Lifetime) End(cause *transports.Error) {
	l.mu.Lock()
	first := l.cause == nil
	if first {
		l.cause = cause
		l.empty = make(chan struct{})
		if _, empty := l.inside.Close(); empty {
			// No goroutine was inside, so that no leave will close it.
			close(l.empty)
		}
	}
	l.mu.Unlock()
	if first {
		l.Cancel()
		// After a lost session the requests keep their time to be refused; notifyDown ends it.
		if cause.Class != messages.ClassSession {
			l.cancelRequests()
		}
		go l.notifyDown()
	}
}

// notifyDown waits until no goroutine is inside, and then calls Down and AfterDown. It runs in the goroutine that End starts.
func (l *Lifetime) notifyDown() {
	defer close(l.Released)
	defer func() {
		// A sink that panics in Down, or a panic in AfterDown, must not keep Close waiting, nor end the program.
		_ = recover()
	}()
	// Those who wait for a last answer hold up Down for lastAnswersTime at most.
	timer := time.AfterFunc(lastAnswersTime, l.cancelRequests)
	<-l.empty
	timer.Stop()
	l.cancelRequests()
	l.Sink.Down(l.cause)
	if l.AfterDown != nil {
		l.AfterDown(l.cause)
	}
}

// Close ends the connection because its owner asked for it, and waits until it is released or ctx ends.
func (l *Lifetime) Close(ctx context.Context) error {
	l.End(&transports.Error{Class: messages.ClassCanceled, Text: "the connection was closed"})
	// A connection that is released already succeeds, also when ctx has ended.
	select {
	case <-l.Released:
		return nil
	default:
	}
	select {
	case <-l.Released:
		return nil
	case <-ctx.Done():
		return errs.ContextError(ctx, "closing the connection")
	}
}

// LeaveRecovering is deferred by every goroutine that is inside: a panic of the transport ends the connection and not the program.
func (l *Lifetime) LeaveRecovering() {
	if v := recover(); v != nil {
		l.End(errs.PanicError(v))
	}
	l.Leave()
}
