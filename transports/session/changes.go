package session

import (
	"sync"

	"github.com/mcpvisor/mcpvisor/transports/session/internal/definitions"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/serial"
)

// notifications are the changes that are waiting for their callbacks.
type notifications struct {
	tools, prompts, resources serial.CoalescedCall
	updates                   updates
}

// StreamReopened treats everything as changed: notifications may have been lost between two streams. The server still
// knows our subscriptions, because in the legacy era they belong to the session and not to the stream.
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
	for _, uri := range s.watches.URIList() {
		s.notifyResourceUpdated(uri)
	}
}

// maxUpdates bounds the URIs that wait for OnResourceUpdated, not counting those that are subscribed to.
const maxUpdates = 1024

// updates are the resources that were updated and whose callback has not begun.
type updates struct {
	mu      sync.Mutex
	waiting map[string]struct{} // the elements of order
	order   []string            // in the order of the first update of each
}

// notifyResourceUpdated schedules OnResourceUpdated for a resource that was subscribed to, or for one inside it.
// Several updates of one resource become one call; the first of several resources schedules the call for all.
//
// 2025-11-25, schema: the uri "might be a sub-resource of the one that the client actually subscribed to".
func (s *Session) notifyResourceUpdated(uri string) {
	if s.cfg.OnResourceUpdated == nil || uri == "" || len(uri) > definitions.MaxURI {
		return
	}
	u := &s.notifications.updates
	// Before u.mu is taken: watches has a lock that comes earlier in the order.
	subscribed := s.watches.Contains(uri)
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, waits := u.waiting[uri]; waits {
		return
	}
	if len(u.order) >= maxUpdates && !subscribed {
		s.counts.unmatched.Add(1) // a server that invents URIs fills no memory
		return
	}
	if u.waiting == nil {
		u.waiting = make(map[string]struct{})
	}
	u.waiting[uri] = struct{}{}
	u.order = append(u.order, uri)
	if len(u.order) == 1 {
		s.callbacks.Put(0, true, s.publishUpdates)
	}
}

// publishUpdates calls OnResourceUpdated for every resource that waits now. Updates that come meanwhile wait for the
// next run, behind other callbacks.
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
