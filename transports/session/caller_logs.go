package session

import (
	"context"

	"github.com/mcpvisor/mcpvisor/messages"
)

// logCaller returns the caller to which a log message of the server belongs, by the rule for questions (requestOrigin), and the
// context of its request; nil if none is known, or it wants no messages.
func (s *Session) logCaller(streamID int64, params []byte) (*messages.Answerer, context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A message may come for each line that a program writes; without a caller who wants them it costs no search.
	wanted := false
	for _, f := range s.pending {
		if f.ctx != nil {
			if a := messages.AnswererOf(f.ctx); a != nil && a.Log != nil {
				wanted = true
				break
			}
		}
	}
	if !wanted {
		return nil, nil
	}
	origin := s.originOf(streamID, params)
	if origin.callerCtx == nil {
		return nil, nil
	}
	if a := messages.AnswererOf(origin.callerCtx); a != nil && a.Log != nil {
		return a, origin.callerCtx
	}
	return nil, nil
}

// awaitLogs waits until the log messages that came before the answer of a request have reached its caller, if it wants them.
func (s *Session) awaitLogs(ctx context.Context) {
	if a := messages.AnswererOf(ctx); a == nil || a.Log == nil || ctx.Err() != nil || !s.callbacks.Busy() {
		return
	}
	done := make(chan struct{})
	s.callbacks.Put(0, true, func() { close(done) }) // mandatory: there are no more of them than calls in flight
	select {
	case <-done:
	case <-ctx.Done():
	case <-s.lifetime.Done():
	}
}
