package actors

import (
	"context"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
)

// A server that needs credentials is not retried by time. Its actor connects it again when there may be others than those that it
// refused: a sign-in by another process, or a new token file. AwaitCredentials waits for that in a goroutine.

// credentialsChanged says that there may be other credentials; number is that of the wait that ended.
type credentialsChanged struct{ number int }

// awaitCredentials starts the wait when the server enters needs-auth, and cancels it when it leaves that phase. applyEvent calls it
// after every step.
func (s *Server) awaitCredentials() {
	need := s.state.Phase == messages.NeedsAuth && s.cfg.AwaitCredentials != nil
	switch {
	case need && s.cancelAwait == nil:
		ctx, cancel := context.WithCancel(context.Background())
		s.cancelAwait = cancel
		s.awaitCount++
		root, self, number := s.root, s.self, s.awaitCount
		wait, name, spec := s.cfg.AwaitCredentials, s.cfg.Name, s.spec
		go func() { // ends with ctx: the phase's end, or the actor's
			defer func() { _ = recover() }() // then only a command of a person helps
			labelGoroutine(name, spec)
			if wait(ctx, name, spec) == nil && ctx.Err() == nil {
				root.Send(self, credentialsChanged{number})
			}
		}()
	case !need && s.cancelAwait != nil:
		s.cancelAwait()
		s.cancelAwait = nil
	}
}

// retryCredentials connects the server again. A server that refuses the new credentials as well enters needs-auth with a new wait.
func (s *Server) retryCredentials(m credentialsChanged) {
	if s.cancelAwait == nil || m.number != s.awaitCount {
		return
	}
	s.cfg.Cell.History.Add(Entry{Time: time.Now(), Epoch: s.state.Epoch, Phase: s.state.Phase,
		Text: "other credentials have appeared"})
	s.applyEvent(lifecycle.Reconnect{})
}
