package transports

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// lifetime tells the end of a connection that has no process. A goroutine that may still give something to the sink is inside (enter,
// leave). After end none enters, and when the last one has left, Down is called: so Down comes once, and last.
//
// An idle life has no goroutine. end starts one, which ends with released.
type lifetime struct {
	sink Sink
	// ctx ends with the connection. Everything that waits inside waits for it too.
	ctx    context.Context
	cancel context.CancelFunc
	// requestCtx is ctx for what waits for the answer to a message. It ends with ctx, but for a lost session, where it is
	// given lastAnswersTime first: each message that is under way is refused by itself then, and its sender knows that it did
	// not run.
	requestCtx     context.Context
	cancelRequests context.CancelFunc
	// afterDown, if not nil, runs after Down, with its own bound. It is the last thing that the connection does.
	afterDown func(cause *Error)

	// state is whether the connection has ended and how many are inside, in one, so that "ended and empty" is one moment.
	state atomic.Uint64

	mu       sync.Mutex
	cause    *Error        // set once, by the first end, before word says so
	empty    chan struct{} // closed when no goroutine is inside any more; made by end, before word says that it has ended
	released chan struct{}
}

// endedBit is the bit of word that says that the connection has ended. The other bits count.
const endedBit = 1 << 63

// lastAnswersTime is how long messages that are under way when the session turns out to be lost may wait for their own
// refusal.
const lastAnswersTime = time.Second

// newLifetime is the life of a connection where nothing waits for the answer to a message: asking is ctx.
func newLifetime(sink Sink) *lifetime {
	l := &lifetime{sink: sink, released: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.requestCtx, l.cancelRequests = l.ctx, l.cancel
	return l
}

// newRequestLifetime is the life of a connection over HTTP.
func newRequestLifetime(sink Sink) *lifetime {
	l := newLifetime(sink)
	l.requestCtx, l.cancelRequests = context.WithCancel(context.Background())
	return l
}

// enter reports false if the connection has ended. Otherwise the caller must leave.
func (l *lifetime) enter() bool {
	for {
		w := l.state.Load()
		if w&endedBit != 0 {
			return false
		}
		if l.state.CompareAndSwap(w, w+1) {
			return true
		}
	}
}

func (l *lifetime) leave() {
	if l.state.Add(^uint64(0)) == endedBit {
		close(l.empty) // once: no goroutine enters an ended life, so the count reaches zero once
	}
}

// endError is why the connection has ended, nil while it lives. It is without the status and the body of a refusal: they
// are about the one message that was refused, and who asks is another.
func (l *lifetime) endError() *Error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == nil || l.cause.Status == 0 && l.cause.Body == nil {
		return l.cause
	}
	e := *l.cause
	e.Status, e.Body = 0, nil
	return &e
}

// endConn ends the connection. Only the first cause counts. It does not wait.
func (l *lifetime) endConn(cause *Error) {
	l.mu.Lock()
	first := l.cause == nil
	if first {
		l.cause = cause
		l.empty = make(chan struct{})
		if l.state.Or(endedBit) == 0 {
			close(l.empty) // no goroutine was inside, so that leave cannot see the last one go
		}
	}
	l.mu.Unlock()
	if first {
		l.cancel()
		if cause.Class != messages.ClassSession {
			l.cancelRequests()
		}
		go l.notifyDown()
	}
}

func (l *lifetime) notifyDown() {
	defer close(l.released)
	defer func() {
		// A sink that panics in Down, or a farewell, must not keep Close waiting, nor end the program.
		_ = recover()
	}()
	timer := time.AfterFunc(lastAnswersTime, l.cancelRequests)
	<-l.empty
	timer.Stop()
	l.cancelRequests()
	l.sink.Down(l.cause)
	if l.afterDown != nil {
		l.afterDown(l.cause)
	}
}

// close ends the connection because its owner asked for it, and waits for the release.
func (l *lifetime) close(ctx context.Context) error {
	l.endConn(&Error{Class: messages.ClassCanceled, Text: "the connection was closed"})
	select {
	case <-l.released:
		return nil
	default:
	}
	select {
	case <-l.released:
		return nil
	case <-ctx.Done():
		return contextError(ctx, "closing the connection")
	}
}

// leaveRecovering is deferred by every goroutine that is inside: a panic of ours costs the connection, not the program.
func (l *lifetime) leaveRecovering() {
	if v := recover(); v != nil {
		l.endConn(panicError(v))
	}
	l.leave()
}

func panicError(v any) *Error {
	return &Error{
		Class: messages.ClassPanic,
		Text:  "panic: " + messages.Line(fmt.Sprint(v), 200),
		Err:   fmt.Errorf("panic: %v\n%s", v, debug.Stack()),
	}
}

// contextError says that ctx has ended while something was being done.
func contextError(ctx context.Context, doing string) *Error {
	if err := context.Cause(ctx); errors.Is(err, context.DeadlineExceeded) {
		return &Error{Class: messages.ClassTimeout, Text: doing + " took too long", Err: err}
	}
	return &Error{Class: messages.ClassCanceled, Text: doing + " was canceled", Err: ctx.Err()}
}
