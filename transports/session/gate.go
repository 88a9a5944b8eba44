package session

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Gate admits calls to a session, until it is closed, for ever. A session may have several gates, one after the other:
// a server that is disabled and enabled again gets a new one on the same connection, and calls that were admitted by
// the old one finish by themselves. All methods are safe for concurrent use.
type Gate struct {
	session *Session
	// state is the open flag and the number of calls inside, in one, so that "closed and empty" is one moment.
	state atomic.Uint64
	// closed and drained are made by whoever waits for them; Session.mu guards them.
	closed, drained chan struct{}
}

// gateClosed is the bit of word that says that the gate is closed. The other bits count.
const gateClosed = 1 << 63

// OpenGate opens an admission gate. The gate of a session that has ended, or that is being closed, is closed already.
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

// CallWith is Call with further wishes. The timeout of a Patience that ctx was made from pauses while a handler answers the
// server, and begins anew with each progress notification.
func (g *Gate) CallWith(ctx context.Context, tool string, args json.RawMessage, o *Options) (Result, error) {
	if !g.enter() {
		return Result{}, g.session.gateClosedError(tool)
	}
	defer g.leave()
	return g.session.callTool(ctx, tool, args, o)
}

// Do runs f, which uses the session, as a call that the gate admitted. It reports a not-sent error without running f if
// the gate is closed.
func (g *Gate) Do(f func(*Session) error) error {
	if !g.enter() {
		return g.session.gateClosedError("")
	}
	defer g.leave()
	return f(g.session)
}

// Close refuses every further call. It does not wait; calls that were admitted finish by themselves. It is idempotent.
func (g *Gate) Close() {
	g.session.mu.Lock()
	g.session.gates = slices.DeleteFunc(g.session.gates, func(open *Gate) bool { return open == g })
	g.session.mu.Unlock()
	g.markClosed()
}

// Open reports whether calls are admitted.
func (g *Gate) Open() bool { return g.state.Load()&gateClosed == 0 }

// InFlight is the number of admitted calls that have not returned.
func (g *Gate) InFlight() int { return int(g.state.Load() &^ gateClosed) }

// Shut is closed once the gate is.
func (g *Gate) Shut() <-chan struct{} {
	return g.signalChannel(&g.closed, func(w uint64) bool { return w&gateClosed != 0 })
}

// Drained is closed once the gate is closed and no admitted call is left.
func (g *Gate) Drained() <-chan struct{} {
	return g.signalChannel(&g.drained, func(w uint64) bool { return w == gateClosed })
}

func (g *Gate) signalChannel(c *chan struct{}, happened func(word uint64) bool) <-chan struct{} {
	g.session.mu.Lock()
	defer g.session.mu.Unlock()
	if *c == nil {
		*c = make(chan struct{})
		if happened(g.state.Load()) {
			close(*c)
		}
	}
	return *c
}

// closeSignal ends the wait for a signal, if anybody waits. Session.mu must not be held.
func (g *Gate) closeSignal(c *chan struct{}) {
	g.session.mu.Lock()
	defer g.session.mu.Unlock()
	if *c == nil {
		return // who comes now sees it
	}
	select {
	case <-*c: // made in the same moment
	default:
		close(*c)
	}
}

func (g *Gate) enter() bool {
	for {
		w := g.state.Load()
		if w&gateClosed != 0 {
			return false
		}
		if g.state.CompareAndSwap(w, w+1) {
			return true
		}
	}
}

func (g *Gate) leave() {
	if g.state.Add(^uint64(0)) == gateClosed {
		g.closeSignal(&g.drained) // once: nothing enters a closed gate, so the count reaches zero once
	}
}

func (g *Gate) markClosed() {
	before := g.state.Or(gateClosed)
	if before&gateClosed != 0 {
		return
	}
	g.closeSignal(&g.closed)
	if before == 0 {
		g.closeSignal(&g.drained) // it was open and empty, so that leave cannot see the last one go
	}
}

// gateClosedError is the error of a call that a closed gate did not admit.
func (s *Session) gateClosedError(tool string) *messages.Error {
	e := s.endedError("call")
	if e == nil {
		e = &messages.Error{Op: "call", Class: messages.ClassCanceled, Text: "the server's tools are withdrawn"}
	}
	e.Outcome, e.Tool = messages.OutcomeNotSent, tool
	return e
}
