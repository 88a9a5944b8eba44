package transports

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// lifetime ends a connection that has no process, exactly once. A goroutine that may still give something to the sink is inside
// (enter, leave). After endConn none enters, and when the last one has left, the lifetime calls Down: so Down comes once, and
// last.
//
//	enter … leave   ┐
//	enter … leave   ├─ endConn: no more enter ─> last leave ─> Down ─> afterDown ─> released
//	enter … leave   ┘
//
// An idle lifetime has no goroutine. endConn starts one, which ends when released is closed.
type lifetime struct {
	sink Sink
	// ctx ends with the connection. Every wait of a goroutine that is inside also waits for it, so that leave follows soon.
	ctx    context.Context
	cancel context.CancelFunc
	// requestCtx is ctx for code that waits for the answer to a message. It ends with ctx, except when the session was lost: then
	// it ends lastAnswersTime later, so that the server refuses each message that is under way by itself, and its sender learns
	// that it did not run.
	requestCtx     context.Context
	cancelRequests context.CancelFunc
	// afterDown, if not nil, runs after Down, with its own bound: over HTTP the DELETE that ends the session. It is the last
	// thing that the connection does.
	afterDown func(cause *Error)

	// state holds in one word the bit that the connection has ended and the number of goroutines inside, so that "ended and
	// empty" becomes true at one moment.
	state atomic.Uint64

	// mu guards cause, and the order in which endConn sets cause and empty before the bit in state.
	mu    sync.Mutex
	cause *Error // set once, by the first endConn
	// empty is closed when no goroutine is inside any more. endConn makes it before state shows the end, so that leave always
	// finds it.
	empty    chan struct{}
	released chan struct{}
}

// endedBit is the bit of state that says that the connection has ended. The other bits count the goroutines inside.
const endedBit = 1 << 63

// lastAnswersTime is the time that messages which are under way when the session turns out to be lost get for their own
// refusal.
const lastAnswersTime = time.Second

// newLifetime makes the lifetime of a connection where nothing waits for the answer to a message: requestCtx is ctx.
func newLifetime(sink Sink) *lifetime {
	l := &lifetime{sink: sink, released: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.requestCtx, l.cancelRequests = l.ctx, l.cancel
	return l
}

// newRequestLifetime makes the lifetime of a connection over HTTP, whose requests outlast ctx when the session is lost.
func newRequestLifetime(sink Sink) *lifetime {
	l := newLifetime(sink)
	l.requestCtx, l.cancelRequests = context.WithCancel(context.Background())
	return l
}

// enter lets the caller use the connection, and reports false if it has ended. After true the caller must call leave.
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

// leave undoes enter. The last one to leave an ended connection lets notifyDown go on.
func (l *lifetime) leave() {
	if l.state.Add(^uint64(0)) == endedBit {
		// This happens once: no goroutine enters an ended connection, so that the count reaches zero once.
		close(l.empty)
	}
}

// endError returns why the connection has ended, nil while it lives. It leaves out the status and the body of a refusal, because
// they are about the one message that was refused, and the caller asks about another.
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

// endConn ends the connection and does not wait. Only the cause of the first call counts.
func (l *lifetime) endConn(cause *Error) {
	l.mu.Lock()
	first := l.cause == nil
	if first {
		l.cause = cause
		l.empty = make(chan struct{})
		if l.state.Or(endedBit) == 0 {
			// No goroutine was inside, so that no leave will close it.
			close(l.empty)
		}
	}
	l.mu.Unlock()
	if first {
		l.cancel()
		// After a lost session the requests keep their time to be refused; notifyDown ends it.
		if cause.Class != messages.ClassSession {
			l.cancelRequests()
		}
		go l.notifyDown()
	}
}

// notifyDown waits until no goroutine is inside, and then calls Down and afterDown. It runs in the goroutine that endConn starts.
func (l *lifetime) notifyDown() {
	defer close(l.released)
	defer func() {
		// A sink that panics in Down, or a panic in afterDown, must not keep Close waiting, nor end the program.
		_ = recover()
	}()
	// Those who wait for a last answer hold up Down for lastAnswersTime at most.
	timer := time.AfterFunc(lastAnswersTime, l.cancelRequests)
	<-l.empty
	timer.Stop()
	l.cancelRequests()
	l.sink.Down(l.cause)
	if l.afterDown != nil {
		l.afterDown(l.cause)
	}
}

// close ends the connection because its owner asked for it, and waits until it is released or ctx ends.
func (l *lifetime) close(ctx context.Context) error {
	l.endConn(&Error{Class: messages.ClassCanceled, Text: "the connection was closed"})
	// A connection that is released already succeeds, also when ctx has ended.
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

// leaveRecovering is deferred by every goroutine that is inside: a panic in this package ends the connection and not the program.
func (l *lifetime) leaveRecovering() {
	if v := recover(); v != nil {
		l.endConn(panicError(v))
	}
	l.leave()
}
