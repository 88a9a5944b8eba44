package actors

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// Link leads from a catalog entry to the connection that serves it. It holds what a call needs and nothing that changes, so a call
// takes no lock. It is the Route of the server's catalog entries; each connection, and each change of the spec, makes a new one.
type Link struct {
	// Server, Epoch and Spec say whose connection it is; Spec is the one in force when the link was made.
	Server string
	Epoch  uint64
	Spec   *messages.Spec

	// gate admits calls to the session, until the actor or the death of the connection closes it.
	gate *session.Gate
	// callQueue lets calls wait before the gate; nil if the number of concurrent calls has no bound.
	callQueue *callQueue
	// lastUse is the time at which a call last began, in nanoseconds since processStart; nil if the server is never disconnected
	// for idleness and no call waits for its turn.
	lastUse *atomic.Int64
	// reportError sends the server's actor an error that says something about the connection.
	reportError func(error)
	// lastHeard returns when the server's last message came; silent counts the calls in a row that timed out without one.
	lastHeard func() time.Time
	silent    atomic.Int32
	// answers is the server's count of answers to its questions: see NoteAnswer.
	answers *atomic.Uint64
	// pings are those of stillServes.
	pings sharedPings
}

// processStart is the zero of lastUse, on the monotonic clock: the wall clock may be set while a server is idle.
var processStart = time.Now()

// maxSilent is the number of calls in a row that time out without any message of the server before the actor probes it.
const maxSilent = 2

// noteUse notes that the connection is used.
func (l *Link) noteUse() {
	if l.lastUse != nil {
		l.lastUse.Store(int64(time.Since(processStart)))
	}
}

// noteResult reports what the end of a use says about the connection. before is when the server's last message had come: one that came
// since then shows that the server is alive, however slow.
func (l *Link) noteResult(err error, before time.Time) {
	switch messages.ClassOf(err) {
	// Refused credentials, or a request that could not be sent, concern every later call: the actor decides. Credentials of one
	// caller concern that caller alone.
	case messages.ClassUnauthorized, messages.ClassNetwork:
		if !errors.Is(err, messages.ErrCallerRefused) {
			l.reportError(err)
		}
	case messages.ClassTimeout:
		switch {
		// A message came meanwhile, so the server is alive and only this call is slow.
		case l.lastHeard().After(before):
			l.silent.Store(0)
		case l.silent.Add(1) >= maxSilent:
			l.silent.Store(0)
			l.reportError(err)
		}
	default:
		// Every caller reads silent; writing it only when it changes keeps it in their processors' caches. What was answered from a cache
		// has asked nothing, and says nothing of the server.
		if err == nil && l.silent.Load() != 0 && l.lastHeard().After(before) {
			l.silent.Store(0)
		}
	}
}

// Open reports whether the connection admits calls. The gate closes before a call that ends with the connection returns.
func (l *Link) Open() bool { return l.gate.Open() }

// pingAgainAfter is the pause before a ping that was lost itself is sent again; it doubles.
const pingAgainAfter = 100 * time.Millisecond

// stillServes reports whether the connection on which a request was lost serves other requests all the same, because a stream of
// HTTP may break alone. It pings the server over the connection, for at most wait. What broke the request may break its ping as well, which
// says nothing of the connection while that stands: the ping is sent again then.
func (l *Link) stillServes(ctx context.Context, lost error, wait time.Duration) bool {
	if messages.ClassOf(lost) != messages.ClassNetwork || messages.OutcomeOf(lost) != messages.OutcomeUnknown {
		return false
	}
	return l.pings.ask(ctx, messages.CallerOf(ctx), wait, func(bounded context.Context) bool {
		for pause := pingAgainAfter; ; pause *= 2 {
			err := l.gate.Do(func(s *session.Session) error { return s.Ping(bounded) })
			if isAnswer(err) {
				return true
			}
			if messages.ClassOf(err) != messages.ClassNetwork || !l.Open() {
				return false
			}
			select {
			case <-bounded.Done():
				return false
			case <-time.After(pause):
			}
		}
	})
}

// isAnswer reports whether the outcome of a ping came from a server that still serves this connection: a result, or an error that
// it answered with, such as 429. handleProbeDone takes the same errors for a sign of life.
func isAnswer(err error) bool {
	switch messages.ClassOf(err) {
	case messages.ClassNone, messages.ClassRejected, messages.ClassThrottled, messages.ClassForbidden, messages.ClassProtocol:
		return true
	default:
		return false
	}
}

// enterQueue waits for a slot. in says that the caller must release it. The wait counts as a use, so that the server is not
// disconnected as idle meanwhile.
func (l *Link) enterQueue(ctx context.Context) (in bool, err error) {
	l.noteUse()
	return l.callQueue.acquireSlot(ctx, l.gate)
}
