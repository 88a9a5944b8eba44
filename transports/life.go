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

// life tells the end of a connection that has no process. A goroutine that may still give something to the sink is inside (enter,
// leave). After end none enters, and when the last one has left, Down is called: so Down comes once, and last.
//
// An idle life has no goroutine. end starts one, which ends with released.
type life struct {
	sink Sink
	// ctx ends with the connection. Everything that waits inside waits for it too.
	ctx    context.Context
	cancel context.CancelFunc
	// asking is ctx for what waits for the answer to a message. It ends with ctx, but for a lost session, where it is
	// given lastAnswers first: each message that is under way is refused by itself then, and its sender knows that it did
	// not run.
	asking     context.Context
	stopAsking context.CancelFunc
	// farewell, if not nil, runs after Down, with its own bound. It is the last thing that the connection does.
	farewell func(cause *Error)

	// word is whether the connection has ended and how many are inside, in one, so that "ended and empty" is one moment.
	word atomic.Uint64

	mu       sync.Mutex
	cause    *Error        // set once, by the first end, before word says so
	empty    chan struct{} // closed when no goroutine is inside any more; made by end, before word says that it has ended
	released chan struct{}
}

// lifeOver is the bit of word that says that the connection has ended. The other bits count.
const lifeOver = 1 << 63

// lastAnswers is how long messages that are under way when the session turns out to be lost may wait for their own
// refusal.
const lastAnswers = time.Second

// newLife is the life of a connection where nothing waits for the answer to a message: asking is ctx.
func newLife(sink Sink) *life {
	l := &life{sink: sink, released: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.asking, l.stopAsking = l.ctx, l.cancel
	return l
}

// newAskingLife is the life of a connection over HTTP.
func newAskingLife(sink Sink) *life {
	l := newLife(sink)
	l.asking, l.stopAsking = context.WithCancel(context.Background())
	return l
}

// enter reports false if the connection has ended. Otherwise the caller must leave.
func (l *life) enter() bool {
	for {
		w := l.word.Load()
		if w&lifeOver != 0 {
			return false
		}
		if l.word.CompareAndSwap(w, w+1) {
			return true
		}
	}
}

func (l *life) leave() {
	if l.word.Add(^uint64(0)) == lifeOver {
		close(l.empty) // once: no goroutine enters an ended life, so the count reaches zero once
	}
}

// ended is why the connection has ended, nil while it lives. It is without the status and the body of a refusal: they
// are about the one message that was refused, and who asks is another.
func (l *life) ended() *Error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == nil || l.cause.Status == 0 && l.cause.Body == nil {
		return l.cause
	}
	e := *l.cause
	e.Status, e.Body = 0, nil
	return &e
}

// end ends the connection. Only the first cause counts. It does not wait.
func (l *life) end(cause *Error) {
	l.mu.Lock()
	first := l.cause == nil
	if first {
		l.cause = cause
		l.empty = make(chan struct{})
		if l.word.Or(lifeOver) == 0 {
			close(l.empty) // no goroutine was inside, so that leave cannot see the last one go
		}
	}
	l.mu.Unlock()
	if first {
		l.cancel()
		if cause.Class != messages.ClassSession {
			l.stopAsking()
		}
		go l.finish()
	}
}

func (l *life) finish() {
	defer close(l.released)
	defer func() {
		// A sink that panics in Down, or a farewell, must not keep Close waiting, nor end the program.
		_ = recover()
	}()
	timer := time.AfterFunc(lastAnswers, l.stopAsking)
	<-l.empty
	timer.Stop()
	l.stopAsking()
	l.sink.Down(l.cause)
	if l.farewell != nil {
		l.farewell(l.cause)
	}
}

// close ends the connection because its owner asked for it, and waits for the release.
func (l *life) close(ctx context.Context) error {
	l.end(&Error{Class: messages.ClassCanceled, Text: "the connection was closed"})
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

// guard is deferred by every goroutine that is inside: a panic of ours costs the connection, not the program.
func (l *life) guard() {
	if v := recover(); v != nil {
		l.end(panicError(v))
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
