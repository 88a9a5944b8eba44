package session

import (
	"sync"
	"sync/atomic"
)

// coalescedCall is a callback that several events become one call of, as long as it has not begun. The last event is never lost.
type coalescedCall struct{ scheduled atomic.Bool }

func (n *coalescedCall) scheduleCall(s *Session, f func()) {
	if f == nil || !n.scheduled.CompareAndSwap(false, true) {
		return
	}
	s.callbacks.put(0, true, func() {
		// First the flag, then the call: a change during the call is another call.
		n.scheduled.Store(false)
		f()
	})
}

// notifications are the events that callers are told of.
type notifications struct {
	tools, prompts, resources coalescedCall
	updates                   updates
}

// notifyToolsChanged sees to it that whoever holds the tool list hears that it is old.
func (s *Session) notifyToolsChanged() { s.notifications.tools.scheduleCall(s, s.cfg.OnToolsChanged) }

func (s *Session) notifyPromptsChanged() {
	s.listCaches.Load().invalidateLists(false, true)
	s.notifications.prompts.scheduleCall(s, s.cfg.OnPromptsChanged)
}

// notifyResourcesChanged is for resources and templates: there is one notification for both.
func (s *Session) notifyResourcesChanged() {
	s.listCaches.Load().invalidateLists(true, false)
	s.notifications.resources.scheduleCall(s, s.cfg.OnResourcesChanged)
}

// StreamReopened says that notifications may have been lost: every list may be another one, and every watched resource.
// The server remembers our subscriptions: in the legacy era they belong to the session.
func (k *sink) StreamReopened() {
	s := (*Session)(k)
	defer s.recoverPanic()
	info := s.info.Load()
	if info == nil {
		return
	}
	c := &info.Capabilities
	if c.Tools {
		s.notifyToolsChanged()
	}
	if c.Prompts {
		s.notifyPromptsChanged()
	}
	if c.Resources {
		s.notifyResourcesChanged()
	}
	for _, uri := range s.subscribedURIs() {
		s.notifyResourceUpdated(uri)
	}
}

// maxUpdates bounds the URIs that wait to be told as updated, beside those that are subscribed to.
const maxUpdates = 1024

// updates are the resources that were updated and of which the caller has not been told.
type updates struct {
	mu      sync.Mutex
	waiting map[string]struct{}
	order   []string
}

// notifyResourceUpdated takes the news that a resource is another one: one that was subscribed to, or something inside it.
//
// 2025-11-25, schema: the uri "might be a sub-resource of the one that the client actually subscribed to".
func (s *Session) notifyResourceUpdated(uri string) {
	if s.cfg.OnResourceUpdated == nil || uri == "" || len(uri) > maxURI {
		return
	}
	u := &s.notifications.updates
	subscribed := s.isSubscribed(uri)
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, waits := u.waiting[uri]; waits {
		return
	}
	if len(u.order) >= maxUpdates && !subscribed {
		s.counts.unmatched.Add(1) // nobody asked for so many
		return
	}
	if u.waiting == nil {
		u.waiting = make(map[string]struct{})
	}
	u.waiting[uri] = struct{}{}
	u.order = append(u.order, uri)
	if len(u.order) == 1 {
		s.callbacks.put(0, true, s.publishUpdates)
	}
}

// publishUpdates tells of what waits now. What comes meanwhile is told after what else waits to be told.
func (s *Session) publishUpdates() {
	u := &s.notifications.updates
	u.mu.Lock()
	uris := u.order
	u.order, u.waiting = nil, nil
	u.mu.Unlock()
	for _, uri := range uris {
		s.cfg.OnResourceUpdated(uri)
	}
}
