package session

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/internal/admission"
)

// Gate admits calls to a session until it is closed, and is never opened again. A session may have several gates, one after
// the other: a server that is disabled and enabled again gets a new one on the same connection, and calls that the old one
// admitted finish by themselves. All methods are safe for concurrent use.
type Gate struct {
	session *Session
	// calls are the admitted ones.
	calls admission.Counter
	// closed and drained are made by the first caller of Shut and Drained, nil before; Session.mu guards them.
	closed, drained chan struct{}
}

// OpenGate opens a gate. If the session has ended, or is being closed, the gate is closed from the beginning.
func (s *Session) OpenGate() *Gate {
	g := &Gate{session: s}
	s.mu.Lock()
	over := s.closing || s.endReason != nil
	if !over {
		s.gates = append(s.gates, g)
	}
	s.mu.Unlock()
	if over {
		g.markClosed()
	}
	return g
}

// Call calls a tool and waits for its answer, the end of ctx or the end of the connection. args is a JSON object, or
// empty for one without members; nothing of it is changed but newlines between its tokens, which become spaces.
//
// Every error is a *messages.Error with an Outcome. A result whose IsError is set is a result.
func (g *Gate) Call(ctx context.Context, tool string, args json.RawMessage) (Result, error) {
	return g.CallWith(ctx, tool, args, nil)
}

// Do runs f, which uses the session, as one admitted call: Drained waits for it. If the gate is closed it returns a not-sent
// error and does not run f.
func (g *Gate) Do(f func(*Session) error) error {
	if !g.calls.Enter() {
		return g.session.gateClosedError("")
	}
	defer g.leave()
	return f(g.session)
}

// Close refuses every further call. It does not wait; calls that were admitted finish by themselves, and Drained is closed
// after the last. It is idempotent.
func (g *Gate) Close() {
	g.session.mu.Lock()
	g.session.gates = slices.DeleteFunc(g.session.gates, func(open *Gate) bool { return open == g })
	g.session.mu.Unlock()
	g.markClosed()
}

// Open reports whether calls are admitted.
func (g *Gate) Open() bool { return !g.calls.Closed() }

// InFlight returns the number of admitted calls that have not returned.
func (g *Gate) InFlight() int { return g.calls.Inside() }

// Shut returns a channel that is closed once the gate is.
func (g *Gate) Shut() <-chan struct{} {
	return g.signalChannel(&g.closed, (*admission.Counter).Closed)
}

// Drained returns a channel that is closed once the gate is closed and no admitted call is left.
func (g *Gate) Drained() <-chan struct{} {
	return g.signalChannel(&g.drained, (*admission.Counter).Drained)
}

// signalChannel returns the channel *c, which it makes on first use. If happened is true of the calls by then, the channel is
// closed at once; otherwise closeSignal closes it. Both run under Session.mu, so one of them sees the other's work.
func (g *Gate) signalChannel(c *chan struct{}, happened func(*admission.Counter) bool) <-chan struct{} {
	g.session.mu.Lock()
	defer g.session.mu.Unlock()
	if *c == nil {
		*c = make(chan struct{})
		if happened(&g.calls) {
			close(*c)
		}
	}
	return *c
}

// closeSignal closes the channel *c if there is one. The caller does not hold Session.mu.
func (g *Gate) closeSignal(c *chan struct{}) {
	g.session.mu.Lock()
	defer g.session.mu.Unlock()
	if *c == nil {
		return // a later signalChannel sees the state and closes its channel itself
	}
	select {
	case <-*c: // signalChannel made it after the state had changed
	default:
		close(*c)
	}
}

// leave ends one admitted call. After a close the last one to leave closes drained.
func (g *Gate) leave() {
	if g.calls.Leave() {
		g.closeSignal(&g.drained)
	}
}

// markClosed closes the gate, and the channels that depend on it. It does not remove the gate from the session: Close does, and the
// end of the session drops all of them.
func (g *Gate) markClosed() {
	first, empty := g.calls.Close()
	if !first {
		return
	}
	g.closeSignal(&g.closed)
	if empty {
		g.closeSignal(&g.drained) // no call will leave
	}
}

// gateClosedError returns the error of a call that a closed gate did not admit: the session's own end if it has ended, else
// that the gate was closed on a living connection.
func (s *Session) gateClosedError(tool string) *messages.Error {
	e := s.endedError("call")
	if e == nil {
		e = &messages.Error{Op: "call", Class: messages.ClassCanceled, Text: "the server's tools are withdrawn"}
	}
	e.Outcome, e.Tool = messages.OutcomeNotSent, tool
	return e
}
