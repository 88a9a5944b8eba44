package serve

import (
	"container/list"
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"time"
)

// sessions holds all sessions of the legacy era over HTTP. Those of a principal stand in a list, the one that was used last in
// front, so that the oldest are found without looking at all. mu guards everything.
type sessions struct {
	idle  time.Duration
	most  int
	ended func(*Session)

	mu     sync.Mutex
	byID   map[string]*Session
	orders map[string]*list.List
	sweep  *time.Timer // runs while there are sessions
	closed bool
}

// addSession puts a new session into the table. If the principal has too many, its oldest idle one is ended; if all are in use, the
// new one is refused.
func (t *sessions) addSession(s *Session) bool {
	s.id = rand.Text() + rand.Text() // 52 characters: nobody guesses another one's
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return false
	}
	var displaced *Session
	most := t.most
	if s.Principal.MaxSessions > 0 {
		most = s.Principal.MaxSessions
	}
	if order := t.orders[s.Principal.Name]; order != nil && order.Len() >= most {
		if displaced = oldestIdle(order); displaced == nil {
			t.mu.Unlock()
			return false
		}
		t.removeSession(displaced)
	}
	// The maps are dropped with their last session, which may have been the displaced one.
	if t.byID == nil {
		t.byID, t.orders = map[string]*Session{}, map[string]*list.List{}
	}
	order := t.orders[s.Principal.Name]
	if order == nil {
		order = list.New()
		t.orders[s.Principal.Name] = order
	}
	t.byID[s.id] = s
	s.place, s.lastUsed = order.PushFront(s), time.Now()
	if c := s.Principal.credential; c != nil {
		s.unbind = context.AfterFunc(c.known, func() { t.dropSession(s) })
	}
	if t.sweep == nil {
		t.sweep = time.AfterFunc(t.idle/4, t.endIdle)
	}
	t.mu.Unlock()
	t.endSession(displaced)
	return true
}

// oldestIdle returns the session that was used least recently among the last hundred, and is not in use.
func oldestIdle(order *list.List) *Session {
	for e, n := order.Back(), 0; e != nil && n < 100; e, n = e.Prev(), n+1 {
		if s := e.Value.(*Session); !s.isBusy() {
			return s
		}
	}
	return nil
}

// findSession returns the session with an id, if it belongs to the principal and the path, and marks it as used.
func (t *sessions) findSession(id string, p Principal, path Path) *Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.byID[id]
	if s == nil || !s.Principal.isSame(p) || s.Path != path {
		return nil
	}
	s.lastUsed = time.Now()
	t.orders[p.Name].MoveToFront(s.place)
	return s
}

// dropSession takes a session out of the table and ends it.
func (t *sessions) dropSession(s *Session) {
	t.mu.Lock()
	t.removeSession(s)
	t.mu.Unlock()
	t.endSession(s)
}

// removeSession takes a session out of the table. The caller holds mu.
func (t *sessions) removeSession(s *Session) {
	if t.byID[s.id] != s {
		return
	}
	delete(t.byID, s.id)
	if s.unbind != nil {
		s.unbind()
	}
	order := t.orders[s.Principal.Name]
	order.Remove(s.place)
	if order.Len() == 0 {
		delete(t.orders, s.Principal.Name)
	}
	if len(t.byID) == 0 {
		t.byID, t.orders = nil, nil // a map keeps the memory of its most members
	}
}

// endSession ends a session that is out of the table. The caller does not hold mu.
func (t *sessions) endSession(s *Session) {
	if s != nil && s.closeSession() {
		t.ended(s)
	}
}

// endIdle ends what was not used for the time of idleness, and comes back while there are sessions.
func (t *sessions) endIdle() {
	before := time.Now().Add(-t.idle)
	var idle []*Session
	t.mu.Lock()
	for _, order := range t.orders {
		for e := order.Back(); e != nil; {
			s := e.Value.(*Session)
			if e = e.Prev(); s.lastUsed.After(before) {
				break
			}
			if s.isBusy() {
				s.lastUsed = time.Now()
				order.MoveToFront(s.place)
				continue
			}
			idle = append(idle, s)
		}
	}
	for _, s := range idle {
		t.removeSession(s)
	}
	if t.sweep = nil; len(t.byID) > 0 && !t.closed {
		t.sweep = time.AfterFunc(t.idle/4, t.endIdle)
	}
	t.mu.Unlock()
	for _, s := range idle {
		t.endSession(s)
	}
}

// inOrder returns all sessions, by principal, the one that was used least recently first: the order in which they end is the same each time.
// The caller holds mu.
func (t *sessions) inOrder() []*Session {
	all := make([]*Session, 0, len(t.byID))
	for _, principal := range slices.Sorted(maps.Keys(t.orders)) {
		for e := t.orders[principal].Back(); e != nil; e = e.Prev() {
			all = append(all, e.Value.(*Session))
		}
	}
	return all
}

// cutRequests cancels the requests of all sessions; no more are begun.
func (t *sessions) cutRequests() {
	t.mu.Lock()
	all := t.inOrder()
	t.mu.Unlock()
	for _, s := range all {
		s.cutRequests()
	}
}

// closeAll ends all sessions; no more are opened.
func (t *sessions) closeAll() {
	t.mu.Lock()
	all := t.inOrder()
	t.byID, t.orders, t.closed = nil, nil, true
	if t.sweep != nil {
		t.sweep.Stop()
		t.sweep = nil
	}
	t.mu.Unlock()
	for _, s := range all {
		t.endSession(s)
	}
}

// countSessions returns how many sessions there are.
func (t *sessions) countSessions() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID)
}
