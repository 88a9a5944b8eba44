package session

import (
	"context"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// codeElicitRequired refuses a request until a person has been somewhere (2025-11-25 only).
const codeElicitRequired = -32042

const (
	// maxElicitRetries bounds how often a request is sent again for a person's sake.
	maxElicitRetries = 12
	// elicitRetryPause is the wait before a request is sent again for which the server did not say that the person is done. It
	// doubles up to maxElicitRetryPause.
	elicitRetryPause    = 2 * time.Second
	maxElicitRetryPause = 30 * time.Second
)

// retryAfterElicitation asks the person to go where the server wants her to be before it does what it was asked, and sends the request
// again when she has been there: when the server says so, which it need not, and now and then until it does. refused is
// the server's answer, and what becomes of the request if nobody goes, or the caller does not wait. The server did not run
// what it refused: to send it again is no repetition.
//
// 2025-11-25, URL Elicitation Required Error: "When a request cannot be processed until an elicitation is completed, the
// server MAY return a URLElicitationRequiredError (code -32042) … The error MUST include a list of elicitations that are
// required to complete before the original can be retried." And notifications/elicitation/complete: "Clients MAY use the
// notification to automatically retry requests that received a URLElicitationRequiredError".
func (s *Session) retryAfterElicitation(ctx context.Context, r *request, refused answer) (answer, *messages.Error) {
	timeout := callTimeoutOf(ctx)
	alreadyAsked := map[string]bool{}
	for n := range maxElicitRetries {
		elicitations := requiredElicitations(refused)
		if elicitations == nil {
			return refused, nil
		}
		done, forget := s.watchCompletions(elicitations)
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

// urlElicitation is one elicitation of the error.
type urlElicitation struct {
	id     string
	params []byte
}

// requiredElicitations is where the person must go; nil if the answer is not that error, or says it in a way that cannot be used.
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
		// "Any elicitations returned in the error MUST be URL mode elicitations and have an elicitationId property."
		if mode != messages.ElicitURL || id == "" || len(elicitations) == maxInputs {
			return nil
		}
		elicitations = append(elicitations, urlElicitation{id, params})
	}
	return elicitations
}

// elicitURLs asks the person about each place that she was not asked about before, one after the other, and reports
// whether she goes to all of them.
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

// waitForCompletion waits until the person is done everywhere, at most for d, and reports false if the caller or the session ended.
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

// watchCompletions are closed as the server says that the person is done; forget must be called when nobody waits for them.
func (s *Session) watchCompletions(elicitations []urlElicitation) (done []<-chan struct{}, forget func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.completions == nil {
		s.completions = make(map[string]*elicitationCompletion)
	}
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
				if v.waiting--; v.waiting == 0 {
					delete(s.completions, p.id)
				}
			}
		}
	}
}

// elicitationCompletion is what those who wait for one elicitation share.
type elicitationCompletion struct {
	waiting int
	closed  bool
	done    chan struct{}
}

// handleElicitComplete takes notifications/elicitation/complete. "Clients MUST ignore notifications referencing unknown or
// already-completed IDs": nobody waits for those here, and a handler is told of what it was not asked about never.
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
