package session

import (
	"context"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// codeVisitRequired refuses a request until a person has been somewhere (2025-11-25 only).
const codeVisitRequired = -32042

const (
	// maxVisits bounds how often a request is sent again for a person's sake.
	maxVisits = 12
	// visitPause is the wait before a request is sent again for which the server did not say that the person is done. It
	// doubles up to visitPauseMost.
	visitPause     = 2 * time.Second
	visitPauseMost = 30 * time.Second
)

// visit asks the person to go where the server wants her to be before it does what it was asked, and sends the request
// again when she has been there: when the server says so, which it need not, and now and then until it does. refused is
// the server's answer, and what becomes of the request if nobody goes, or the caller does not wait. The server did not run
// what it refused: to send it again is no repetition.
//
// 2025-11-25, URL Elicitation Required Error: "When a request cannot be processed until an elicitation is completed, the
// server MAY return a URLElicitationRequiredError (code -32042) … The error MUST include a list of elicitations that are
// required to complete before the original can be retried." And notifications/elicitation/complete: "Clients MAY use the
// notification to automatically retry requests that received a URLElicitationRequiredError".
func (s *Session) visit(ctx context.Context, r *request, refused answer) (answer, *messages.Error) {
	patience := patienceOf(ctx)
	asked := map[string]bool{}
	for n := range maxVisits {
		places := visitsIn(refused)
		if places == nil {
			return refused, nil
		}
		done, forget := s.arrivals(places)
		patience.pause()
		goes := s.sendThere(ctx, places, asked)
		if goes {
			goes = s.waitFor(ctx, done, min(visitPause<<min(n, 10), visitPauseMost))
		}
		s.goesOn(patience)
		forget()
		if !goes {
			return refused, nil
		}
		a, e := s.send(ctx, r, nil)
		if e != nil {
			return a, e
		}
		refused = a
	}
	return refused, nil
}

// place is one elicitation of the error.
type place struct {
	id     string
	params []byte
}

// visitsIn is where the person must go; nil if the answer is not that error, or says it in a way that cannot be used.
func visitsIn(a answer) (places []place) {
	if a.kind != answerFault || readFault(a.raw).code != codeVisitRequired {
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
		if mode != messages.ElicitURL || id == "" || len(places) == maxInputs {
			return nil
		}
		places = append(places, place{id, params})
	}
	return places
}

// sendThere asks the person about each place that she was not asked about before, one after the other, and reports
// whether she goes to all of them.
func (s *Session) sendThere(ctx context.Context, places []place, asked map[string]bool) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	for _, p := range places {
		if asked[p.id] {
			continue
		}
		asked[p.id] = true
		result, refused := s.guarded(ctx, s.elicit, p.params)
		if action, _ := rawjson.Text(rawjson.Member(result, "action")); refused != nil || action != messages.ElicitAccept {
			return false
		}
	}
	return true
}

// waitFor waits until the person is done everywhere, at most for d, and reports false if the caller or the session ended.
func (s *Session) waitFor(ctx context.Context, done []<-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for _, arrived := range done {
		select {
		case <-arrived:
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false
		case <-s.life.Done():
			return false
		}
	}
	return true
}

// arrivals are closed as the server says that the person is done; forget must be called when nobody waits for them.
func (s *Session) arrivals(places []place) (done []<-chan struct{}, forget func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.visits == nil {
		s.visits = make(map[string]*arrival)
	}
	for _, p := range places {
		v := s.visits[p.id]
		if v == nil {
			v = &arrival{done: make(chan struct{})}
			s.visits[p.id] = v
		}
		v.waiting++
		done = append(done, v.done)
	}
	return done, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, p := range places {
			if v := s.visits[p.id]; v != nil {
				if v.waiting--; v.waiting == 0 {
					delete(s.visits, p.id)
				}
			}
		}
	}
}

// arrival is what those who wait for one elicitation share.
type arrival struct {
	waiting int
	closed  bool
	done    chan struct{}
}

// arrived takes notifications/elicitation/complete. "Clients MUST ignore notifications referencing unknown or
// already-completed IDs": nobody waits for those here, and a handler is told of what it was not asked about never.
func (s *Session) arrived(params []byte) {
	id, _ := rawjson.Text(rawjson.Member(params, "elicitationId"))
	if id == "" {
		return
	}
	s.mu.Lock()
	if v := s.visits[id]; v != nil && !v.closed {
		v.closed = true
		close(v.done)
	}
	s.mu.Unlock()
}
