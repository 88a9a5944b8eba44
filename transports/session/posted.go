package session

import (
	"context"
	"errors"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// errNobodyWaits is why a message was not written whose sender did not wait for that any more.
var errNobodyWaits = errors.New("nobody waits for the message to be written any more")

// awaitPosted is what fly does when the connection has taken the request and not written it yet. The answer says that it was
// written, so one wait is for both. The request's memory is ours again when await returns.
func (s *Session) awaitPosted(
	ctx context.Context, f *pendingRequest, m *transports.Message, posting transports.PendingPost,
) (a answer, _ *messages.Error) {
	answered := false
	select {
	case a = <-f.answer:
		answered = true
	case <-f.callerDone(ctx):
	case <-posting.Failed():
	}
	delivery, err := posting.Leave()
	if delivery == transports.Written {
		err = nil
	} else if err == nil {
		err = errNobodyWaits
	}
	if !answered {
		a.kind = answerTimedOut
		if _, ours := s.takePending(f.id); !ours {
			a = <-f.answer
		}
	}
	switch {
	case a.kind == answerSessionEnded:
		return answer{}, s.sessionLostError(delivery, err)
	case a.kind != answerTimedOut:
		return a, nil
	case err == nil:
		return answer{}, s.abandonRequest(ctx, f.id, m.Method)
	case errors.Is(err, errNobodyWaits):
		err = ctx.Err()
	}
	return answer{}, s.sendFailedError(ctx, f.id, m.Method, delivery, err)
}
