package mcpgo

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// subscriptions has the topics that a client has subscribed to: in the modern era by requests subscriptions/listen, each for as
// long as it lasts, in the legacy era by resources/subscribe.
type subscriptions struct {
	// mu guards the fields here, and those of every subscription.
	mu     sync.Mutex
	modern bool // true after the first request of the modern era
	open   []*subscription
	uris   map[string]bool // subscriptions of the legacy era
}

// subscription is one request subscriptions/listen. To mcp-go it is the session of that request: the connection's session, with a
// filter of its own. The mutex of subscriptions guards its fields.
type subscription struct {
	*session
	id    json.RawMessage // of the request
	wants mcp.SubscriptionFilter
	uris  map[string]bool
	// acknowledged is true after the first message of the subscription; notifications before it wait in queued, at most one
	// for each list and each resource.
	acknowledged bool
	queued       []mcp.JSONRPCNotification
}

var (
	_ server.SessionWithSubscriptionFilter    = (*session)(nil)
	_ server.SessionWithResourceSubscriptions = (*session)(nil)
	_ server.SessionWithSubscriptionFilter    = (*subscription)(nil)
	_ server.SessionWithResourceSubscriptions = (*subscription)(nil)
)

// addSubscription makes the session for one request subscriptions/listen. The caller calls removeSubscription at its end.
func (s *session) addSubscription(id json.RawMessage) *subscription {
	// The id is a part of the message, which is used again.
	sub := &subscription{session: s, id: slices.Clone(id), uris: map[string]bool{}}
	s.subscriptions.mu.Lock()
	defer s.subscriptions.mu.Unlock()
	s.subscriptions.open = append(s.subscriptions.open, sub)
	return sub
}

// removeSubscription ends a subscription; later notifications do not reach it.
func (s *session) removeSubscription(sub *subscription) {
	s.subscriptions.mu.Lock()
	defer s.subscriptions.mu.Unlock()
	s.subscriptions.open = slices.DeleteFunc(s.subscriptions.open, func(o *subscription) bool { return o == sub })
}

// becomeModern notes that the client speaks the modern era, in which it gets only notifications that it has asked for.
func (s *session) becomeModern() {
	s.subscriptions.mu.Lock()
	defer s.subscriptions.mu.Unlock()
	s.subscriptions.modern = true
}

// SetSubscriptionFilter implements server.SessionWithSubscriptionFilter. It does nothing: only a subscription has a filter to
// set.
func (s *session) SetSubscriptionFilter(mcp.SubscriptionFilter) {}

// SubscriptionFilter implements server.SessionWithSubscriptionFilter. It joins the filters of the open subscriptions. Without
// one, a client of the modern era gets no notification, and one of the legacy era every one.
func (s *session) SubscriptionFilter() (all mcp.SubscriptionFilter, active bool) {
	s.subscriptions.mu.Lock()
	defer s.subscriptions.mu.Unlock()
	for _, sub := range s.subscriptions.open {
		all.ToolsListChanged = all.ToolsListChanged || sub.wants.ToolsListChanged
		all.PromptsListChanged = all.PromptsListChanged || sub.wants.PromptsListChanged
		all.ResourcesListChanged = all.ResourcesListChanged || sub.wants.ResourcesListChanged
	}
	return all, s.subscriptions.modern
}

// SubscribeToResource implements server.SessionWithResourceSubscriptions.
func (s *session) SubscribeToResource(uri string) {
	s.subscriptions.mu.Lock()
	defer s.subscriptions.mu.Unlock()
	// Most clients never subscribe, and need no map.
	if s.subscriptions.uris == nil {
		s.subscriptions.uris = make(map[string]bool)
	}
	s.subscriptions.uris[uri] = true
}

// UnsubscribeFromResource implements server.SessionWithResourceSubscriptions.
func (s *session) UnsubscribeFromResource(uri string) {
	s.subscriptions.mu.Lock()
	defer s.subscriptions.mu.Unlock()
	delete(s.subscriptions.uris, uri)
}

// SubscribedResources implements server.SessionWithResourceSubscriptions. It returns those of both eras.
func (s *session) SubscribedResources() []string {
	s.subscriptions.mu.Lock()
	defer s.subscriptions.mu.Unlock()
	// The result is sorted, so that equal sets give equal answers.
	all := maps.Clone(s.subscriptions.uris)
	if all == nil {
		all = make(map[string]bool)
	}
	for _, sub := range s.subscriptions.open {
		maps.Copy(all, sub.uris)
	}
	return slices.Sorted(maps.Keys(all))
}

// IsSubscribedToResource implements server.SessionWithResourceSubscriptions.
func (s *session) IsSubscribedToResource(uri string) bool {
	s.subscriptions.mu.Lock()
	defer s.subscriptions.mu.Unlock()
	return s.subscriptions.uris[uri] ||
		slices.ContainsFunc(s.subscriptions.open, func(sub *subscription) bool { return sub.uris[uri] })
}

// SetSubscriptionFilter implements server.SessionWithSubscriptionFilter. mcp-go calls it with the filter of the request.
func (sub *subscription) SetSubscriptionFilter(filter mcp.SubscriptionFilter) {
	sub.subscriptions.mu.Lock()
	defer sub.subscriptions.mu.Unlock()
	sub.wants = filter
}

// SubscriptionFilter implements server.SessionWithSubscriptionFilter.
func (sub *subscription) SubscriptionFilter() (mcp.SubscriptionFilter, bool) {
	sub.subscriptions.mu.Lock()
	defer sub.subscriptions.mu.Unlock()
	return sub.wants, true
}

// SubscribeToResource implements server.SessionWithResourceSubscriptions.
func (sub *subscription) SubscribeToResource(uri string) {
	sub.subscriptions.mu.Lock()
	defer sub.subscriptions.mu.Unlock()
	sub.uris[uri] = true
}

// UnsubscribeFromResource implements server.SessionWithResourceSubscriptions.
func (sub *subscription) UnsubscribeFromResource(uri string) {
	sub.subscriptions.mu.Lock()
	defer sub.subscriptions.mu.Unlock()
	delete(sub.uris, uri)
}

// subscriptionCopies returns the messages that the client gets for one notification of the server: the notification itself, or a
// copy for each subscription that wants it, tagged with the subscription's id.
//
// 2026-07-28, Subscriptions: the acknowledgement is the first message of a subscription, and every notification of one carries
// io.modelcontextprotocol/subscriptionId.
func (s *session) subscriptionCopies(n mcp.JSONRPCNotification) []mcp.JSONRPCNotification {
	s.subscriptions.mu.Lock()
	defer s.subscriptions.mu.Unlock()
	// A legacy client gets every notification as it is, and so do requests their progress.
	if !s.subscriptions.modern || !isSubscriptionMethod(n.Method) {
		return []mcp.JSONRPCNotification{n}
	}
	// The acknowledgement goes first, and then what has waited for it.
	if n.Method == mcp.MethodNotificationSubscriptionsAcknowledged {
		out := []mcp.JSONRPCNotification{n}
		for _, sub := range s.subscriptions.open {
			if sameID(n.Params.Meta[mcp.MetaKeySubscriptionID], sub.id) {
				sub.acknowledged = true
				out, sub.queued = append(out, sub.queued...), nil
			}
		}
		return out
	}
	var out []mcp.JSONRPCNotification
	for _, sub := range s.subscriptions.open {
		switch {
		case !sub.wantsNotification(n):
		case sub.acknowledged:
			out = append(out, sub.tagNotification(n))
		default:
			sub.queueNotification(sub.tagNotification(n))
		}
	}
	return out
}

// queueNotification keeps a notification until the acknowledgement. It replaces one about the same list or resource, which tells
// the client nothing more: so the queue is bounded by what the subscription asks for, and no change is lost.
func (sub *subscription) queueNotification(n mcp.JSONRPCNotification) {
	i := slices.IndexFunc(sub.queued, func(q mcp.JSONRPCNotification) bool {
		return q.Method == n.Method && resourceURI(q) == resourceURI(n)
	})
	if i < 0 {
		sub.queued = append(sub.queued, n)
		return
	}
	sub.queued[i] = n
}

// isSubscriptionMethod reports whether notifications of this method belong to subscriptions, and not to a request.
func isSubscriptionMethod(method string) bool {
	switch method {
	case mcp.MethodNotificationSubscriptionsAcknowledged, mcp.MethodNotificationToolsListChanged,
		mcp.MethodNotificationPromptsListChanged, mcp.MethodNotificationResourcesListChanged,
		mcp.MethodNotificationResourceUpdated:
		return true
	}
	return false
}

// wantsNotification reports whether the subscription's filter or its resources ask for n.
func (sub *subscription) wantsNotification(n mcp.JSONRPCNotification) bool {
	switch n.Method {
	case mcp.MethodNotificationToolsListChanged:
		return sub.wants.ToolsListChanged
	case mcp.MethodNotificationPromptsListChanged:
		return sub.wants.PromptsListChanged
	case mcp.MethodNotificationResourcesListChanged:
		return sub.wants.ResourcesListChanged
	}
	// resources/updated: the empty URI is in no set.
	return sub.uris[resourceURI(n)]
}

// resourceURI returns the resource that n is about, the empty string for a list.
func resourceURI(n mcp.JSONRPCNotification) string {
	uri, _ := n.Params.AdditionalFields["uri"].(string)
	return uri
}

// tagNotification returns a copy with the subscription's id. It copies because a broadcast shares the notification with other
// sessions.
func (sub *subscription) tagNotification(n mcp.JSONRPCNotification) mcp.JSONRPCNotification {
	meta := make(map[string]any, len(n.Params.Meta)+1)
	// The handler's own metadata stays.
	maps.Copy(meta, n.Params.Meta)
	meta[mcp.MetaKeySubscriptionID] = sub.id
	n.Params.Meta = meta
	return n
}

// sameID compares an id that mcp-go has decoded with one as it was sent.
func sameID(decoded any, raw json.RawMessage) bool {
	b, err := json.Marshal(decoded)
	return err == nil && string(b) == string(raw)
}
