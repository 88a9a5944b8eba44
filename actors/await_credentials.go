package actors

import (
	"context"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
)

// A server that needs credentials is not retried. It is connected again when there are others than those that it
// refused, whoever brought them, which somebody else looks out for.

// credentialsChanged says that there may be other credentials; number is that of the wait.
type credentialsChanged struct{ number int }

// awaitCredentials begins to wait when the server has come to need credentials, and ends the wait when it does no more.
func (s *Server) awaitCredentials() {
	need := s.state.Phase == messages.NeedsAuth && s.cfg.AwaitCredentials != nil
	switch {
	case need && s.cancelAwait == nil:
		ctx, cancel := context.WithCancel(context.Background())
		s.cancelAwait = cancel
		s.awaitCount++
		root, self, number := s.root, s.self, s.awaitCount
		wait, name, spec := s.cfg.AwaitCredentials, s.cfg.Name, s.spec
		go func() { // ends with ctx: await, or the actor's end
			defer func() { _ = recover() }() // the server waits for a person then
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

// retryCredentials tries again, once for each time that other credentials are found.
func (s *Server) retryCredentials(m credentialsChanged) {
	if s.cancelAwait == nil || m.number != s.awaitCount {
		return
	}
	s.cfg.Cell.History.Add(Entry{Time: time.Now(), Epoch: s.state.Epoch, Phase: s.state.Phase,
		Text: "other credentials have appeared"})
	s.applyEvent(lifecycle.Reconnect{})
}
