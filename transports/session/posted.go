package session

import (
	"context"
	"errors"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/outcome"
)

// errNobodyWaits is the error of a message that was not written because its sender stopped waiting first.
var errNobodyWaits = errors.New("nobody waits for the message to be written any more")

// awaitPosted is the second half of sendAndWait when the connection has taken the request and not written it yet. The answer
// shows that it was written, so one wait serves for both. When awaitPosted returns, the connection does not use the request's
// body any more.
func (s *Session) awaitPosted(
	ctx context.Context, f *pendingRequest, m *transports.Message, posting transports.PendingPost,
) (a outcome.Answer, _ *messages.Error) {
	answered := false
	select {
	case a = <-f.answer:
		answered = true
	case <-f.callerDone(ctx):
	case <-posting.Failed():
	}
	// Leave takes an unwritten message back and says how far it got.
	delivery, err := posting.Leave()
	// A message that was written has no error of its own, even if the connection failed right afterwards.
	if delivery == transports.Written {
		err = nil
	} else if err == nil {
		err = errNobodyWaits
	}
	if !answered {
		// If the request cannot be taken, another goroutine has ended it: its answer is in the channel, or about to be.
		a.Kind = outcome.AnswerTimedOut
		if _, ours := s.takePending(f.id); !ours {
			a = <-f.answer
		}
	}
	switch {
	case a.Kind == outcome.AnswerSessionEnded:
		return outcome.Answer{}, s.sessionLostError(delivery, err)
	case a.Kind != outcome.AnswerTimedOut:
		return a, nil
	case err == nil:
		return outcome.Answer{}, s.abandonRequest(ctx, f.id, m.Method)
	// The message was taken back for the caller's sake: its context is the reason.
	case errors.Is(err, errNobodyWaits):
		err = ctx.Err()
	}
	return outcome.Answer{}, s.sendFailedError(ctx, f.id, m.Method, delivery, err)
}
