package session

import (
	"context"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/calltimeout"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/outcome"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/questions"
)

const (
	// maxElicitRetries bounds how often a request is sent again after the person's visit.
	maxElicitRetries = 12
	// elicitRetryPause is the wait before a request is sent again if the server does not announce that the person is
	// done. It doubles up to maxElicitRetryPause.
	elicitRetryPause    = 2 * time.Second
	maxElicitRetryPause = 30 * time.Second
)

// retryAfterElicitation sends the person to the URLs that the server requires before it runs the request, and sends
// the request again afterwards: when the server announces that the person is done, which it need not do, and from
// time to time until then. refused is the server's answer, and stays the answer if the person declines or the caller
// does not wait. The server did not run the refused request, so sending it again is no repetition.
//
// 2025-11-25, URL Elicitation Required Error: "When a request cannot be processed until an elicitation is completed,
// the server MAY return a URLElicitationRequiredError (code -32042) … The error MUST include a list of elicitations
// that are required to complete before the original can be retried." And notifications/elicitation/complete: "Clients
// MAY use the notification to automatically retry requests that received a URLElicitationRequiredError".
func (s *Session) retryAfterElicitation(ctx context.Context, r *request, refused outcome.Answer) (outcome.Answer, *messages.Error) {
	timeout := calltimeout.Of(ctx)
	alreadyAsked := map[string]bool{}
	for n := range maxElicitRetries {
		var elicitations []questions.URLElicitation
		if refused.Kind == outcome.AnswerRPCError {
			elicitations = questions.RequiredElicitations(refused.Raw)
		}
		if elicitations == nil {
			return refused, nil
		}
		// The session listens before it asks: a server may announce the completion before the person's own answer is
		// back.
		done, forget := s.completions.Watch(elicitations)
		// The person's time is not the server's: the idle timeout stands still.
		timeout.PauseIdle()
		accepted := s.elicitURLs(ctx, elicitations, alreadyAsked)
		if accepted {
			accepted = s.waitForCompletion(ctx, done, min(elicitRetryPause<<min(n, 10), maxElicitRetryPause))
		}
		s.resumeTimeout(timeout)
		forget()
		if !accepted {
			return refused, nil
		}
		a, e := s.sendRequest(ctx, r, r.furtherParams(nil))
		if e != nil {
			return a, e
		}
		refused = a
	}
	return refused, nil
}

// elicitURLs asks the person about each URL that was not asked about before, one after the other, and reports whether
// the person accepted all of them. alreadyAsked grows over the retries of one request, so that no URL is asked about
// twice.
func (s *Session) elicitURLs(ctx context.Context, elicitations []questions.URLElicitation, alreadyAsked map[string]bool) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.lifetime, cancel)()
	handle := s.cfg.Handlers.findHandler("elicitation/create")
	for _, p := range elicitations {
		if alreadyAsked[p.ID] {
			continue
		}
		alreadyAsked[p.ID] = true
		result, refused := s.runHandlerDetached(ctx, handle, p.Params)
		if action, _ := rawjson.Text(rawjson.Member(result, "action")); refused != nil || action != messages.ElicitAccept {
			return false
		}
	}
	return true
}

// waitForCompletion waits until the server has announced that the person is done at every URL, at most for d. It
// reports false if the caller or the session ended first; after d it reports true, and the next attempt shows whether
// the server is content.
func (s *Session) waitForCompletion(ctx context.Context, done []<-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for _, completed := range done {
		select {
		case <-completed:
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false
		case <-s.lifetime.Done():
			return false
		}
	}
	return true
}

// handleElicitComplete acts on notifications/elicitation/complete: it wakes the requests that wait for this
// elicitation.
func (s *Session) handleElicitComplete(params []byte) {
	if id, _ := rawjson.Text(rawjson.Member(params, "elicitationId")); id != "" {
		s.completions.Complete(id)
	}
}
