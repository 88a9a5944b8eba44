package actors

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// Link is the way from a catalog entry to the connection that serves it: what a call needs and nothing that can change.
// It is the catalog's Route.
type Link struct {
	Server string
	Epoch  uint64
	Spec   *messages.Spec

	gate *session.Gate
	// callQueue is where calls wait before the gate, nil if as many may be in flight as like.
	callQueue *callQueue
	// lastUse is when a call last began, as a time since begun; kept only if the server can be let go when idle.
	lastUse *atomic.Int64
	// reportError tells the server's actor of an error that says something about the connection.
	reportError func(error)
	// lastHeard is when the server's last message came; silent counts the calls in a row that timed out without one.
	lastHeard func() time.Time
	silent    atomic.Int32
}

// processStart is what lastUse counts from, on the monotonic clock: the other one may be set while a server is idle.
var processStart = time.Now()

// maxSilent is how many calls in a row may time out without any message of the server before it is asked whether it lives.
const maxSilent = 2

// noteUse notes that the connection is used, and is when its server was last heard.
func (l *Link) noteUse() (heard time.Time) {
	if l.lastUse != nil {
		l.lastUse.Store(int64(time.Since(processStart)))
	}
	return l.lastHeard() // not the time, which costs more to ask for
}

// noteResult tells the server's actor what the end of a use says about the connection. before is when it was heard when the use
// began.
func (l *Link) noteResult(err error, before time.Time) {
	switch messages.ClassOf(err) {
	case messages.ClassUnauthorized, messages.ClassNetwork:
		l.reportError(err)
	case messages.ClassTimeout:
		switch {
		case l.lastHeard().After(before):
			l.silent.Store(0)
		case l.silent.Add(1) >= maxSilent:
			l.silent.Store(0)
			l.reportError(err)
		}
	default:
		if err == nil && l.silent.Load() != 0 { // written rarely: all callers look at it
			l.silent.Store(0)
		}
	}
}

// stillServes reports whether the connection on which a request was lost serves others all the same: a stream of HTTP may break alone.
// The server is asked for a sign of life over it, for at most wait.
func (l *Link) stillServes(ctx context.Context, lost error, wait time.Duration) bool {
	if messages.ClassOf(lost) != messages.ClassNetwork || messages.OutcomeOf(lost) != messages.OutcomeUnknown {
		return false
	}
	bounded, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return isAnswer(l.gate.Do(func(s *session.Session) error { return s.Ping(bounded) }))
}

// isAnswer reports whether the outcome of a ping came from a server that goes on serving this connection: a result, or an error that
// it answered with, such as 429. Server.probed takes the same for a sign of life.
func isAnswer(err error) bool {
	switch messages.ClassOf(err) {
	case messages.ClassNone, messages.ClassRejected, messages.ClassThrottled, messages.ClassForbidden, messages.ClassProtocol:
		return true
	default:
		return false
	}
}

// callTool runs one tool through the link's admission gate.
func (l *Link) callTool(ctx context.Context, tool string, args json.RawMessage, o *session.Options) (session.Result, error) {
	if l.callQueue != nil {
		return l.callQueued(ctx, tool, args, o)
	}
	return l.callNow(ctx, tool, args, o)
}

func (l *Link) callQueued(ctx context.Context, tool string, args json.RawMessage, o *session.Options) (session.Result, error) {
	in, err := l.enterQueue(ctx)
	if err != nil {
		return session.Result{}, err
	}
	if in {
		defer l.callQueue.releaseSlot()
	}
	return l.callNow(ctx, tool, args, o)
}

func (l *Link) callNow(ctx context.Context, tool string, args json.RawMessage, o *session.Options) (session.Result, error) {
	before := l.noteUse()
	res, err := l.gate.CallWith(ctx, tool, args, o)
	l.noteResult(err, before)
	return res, err
}

// runAdmitted runs f on the link's session, as a call that its admission gate admitted. aside is for what does not wait for its turn.
func (l *Link) runAdmitted(ctx context.Context, skipsQueue bool, f func(*session.Session) error) error {
	if l.callQueue != nil && !skipsQueue {
		in, err := l.enterQueue(ctx)
		if err != nil {
			return err
		}
		if in {
			defer l.callQueue.releaseSlot()
		}
	}
	before := l.noteUse()
	err := l.gate.Do(f)
	l.noteResult(err, before)
	return err
}

// enterQueue waits for a turn. Who waits wants the connection, so it is not let go as idle meanwhile.
func (l *Link) enterQueue(ctx context.Context) (in bool, err error) {
	if l.lastUse != nil {
		l.lastUse.Store(int64(time.Since(processStart)))
	}
	return l.callQueue.acquireSlot(ctx, l.gate)
}
