package session

import (
	"context"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// codeElicitRequired is the error code that refuses a request until a person has visited a URL (2025-11-25 only).
const codeElicitRequired = -32042

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
func (s *Session) retryAfterElicitation(ctx context.Context, r *request, refused answer) (answer, *messages.Error) {
	timeout := callTimeoutOf(ctx)
	alreadyAsked := map[string]bool{}
	for n := range maxElicitRetries {
		elicitations := requiredElicitations(refused)
		if elicitations == nil {
			return refused, nil
		}
		// The session listens before it asks: a server may announce the completion before the person's own answer is
		// back.
		done, forget := s.watchCompletions(elicitations)
		// The person's time is not the server's: the idle timeout stands still.
		timeout.pauseIdle()
		accepted := s.elicitURLs(ctx, elicitations, alreadyAsked)
		if accepted {
			accepted = s.waitForCompletion(ctx, done, min(elicitRetryPause<<min(n, 10), maxElicitRetryPause))
		}
		s.resumeTimeout(timeout)
		forget()
		if !accepted {
			return refused, nil
		}
		a, e := s.sendRequest(ctx, r, nil)
		if e != nil {
			return a, e
		}
		refused = a
	}
	return refused, nil
}

// A urlElicitation is one elicitation of the error: its id at the server, and its params.
type urlElicitation struct {
	id     string
	params []byte
}

// requiredElicitations returns the elicitations that the error demands; nil if the answer is not that error, or lists
// them in a way that cannot be used.
func requiredElicitations(a answer) (elicitations []urlElicitation) {
	if a.kind != answerRPCError || readRPCError(a.raw).code != codeElicitRequired {
		return nil
	}
	list := rawjson.Member(rawjson.Member(a.raw, "data"), "elicitations")
	if !rawjson.IsArray(list) {
		return nil
	}
	all := rawjson.ArrayAt(list, 0, 0)
	for all.Next() {
		params := all.Skip()
		mode, _ := rawjson.Text(rawjson.Member(params, "mode"))
		id, _ := rawjson.Text(rawjson.Member(params, "elicitationId"))
		// 2025-11-25: "Any elicitations returned in the error MUST be URL mode elicitations and have an elicitationId
		// property."
		if mode != messages.ElicitURL || id == "" || len(elicitations) == maxInputs {
			return nil
		}
		elicitations = append(elicitations, urlElicitation{id, params})
	}
	return elicitations
}

// elicitURLs asks the person about each URL that was not asked about before, one after the other, and reports whether
// the person accepted all of them. alreadyAsked grows over the retries of one request, so that no URL is asked about
// twice.
func (s *Session) elicitURLs(ctx context.Context, elicitations []urlElicitation, alreadyAsked map[string]bool) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.lifetime, cancel)()
	for _, p := range elicitations {
		if alreadyAsked[p.id] {
			continue
		}
		alreadyAsked[p.id] = true
		result, refused := s.runHandlerDetached(ctx, s.answerElicitation, p.params)
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

// watchCompletions returns a channel for each elicitation, which is closed when the server announces that the person
// is done. The caller must call forget when it does not wait any more, or the entries stay for the life of the
// session.
func (s *Session) watchCompletions(elicitations []urlElicitation) (done []<-chan struct{}, forget func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.completions == nil {
		s.completions = make(map[string]*elicitationCompletion)
	}
	// Several requests may wait for one elicitation: they share the channel.
	for _, p := range elicitations {
		v := s.completions[p.id]
		if v == nil {
			v = &elicitationCompletion{done: make(chan struct{})}
			s.completions[p.id] = v
		}
		v.waiting++
		done = append(done, v.done)
	}
	return done, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, p := range elicitations {
			if v := s.completions[p.id]; v != nil {
				// The last one that leaves removes the entry; a later notification then finds none and is ignored.
				if v.waiting--; v.waiting == 0 {
					delete(s.completions, p.id)
				}
			}
		}
	}
}

// An elicitationCompletion is shared by the requests that wait for the same elicitation. Session.mu guards it.
type elicitationCompletion struct {
	waiting int  // number of requests that wait; the entry goes at 0
	closed  bool // done is closed
	done    chan struct{}
}

// handleElicitComplete acts on notifications/elicitation/complete: it wakes the requests that wait for this
// elicitation. 2025-11-25: "Clients MUST ignore notifications referencing unknown or already-completed IDs".
func (s *Session) handleElicitComplete(params []byte) {
	id, _ := rawjson.Text(rawjson.Member(params, "elicitationId"))
	if id == "" {
		return
	}
	s.mu.Lock()
	if v := s.completions[id]; v != nil && !v.closed {
		v.closed = true
		close(v.done)
	}
	s.mu.Unlock()
}
