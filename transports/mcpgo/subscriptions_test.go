package mcpgo

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
)

// TestNotificationsBeforeTheAcknowledgement checks that a subscription gets every change that came before its acknowledgement, and
// each of them once.
func TestNotificationsBeforeTheAcknowledgement(t *testing.T) {
	s := newSession(t.Context(), nil)
	s.becomeModern()
	sub := s.addSubscription(json.RawMessage("7"))
	sub.SetSubscriptionFilter(mcp.SubscriptionFilter{ToolsListChanged: true})
	notify := func(method, key string, value any) []mcp.JSONRPCNotification {
		n := mcp.JSONRPCNotification{Notification: mcp.Notification{Method: method}}
		n.Params.AdditionalFields = map[string]any{key: value}
		n.Params.Meta = map[string]any{mcp.MetaKeySubscriptionID: 7}
		return s.subscriptionCopies(n)
	}
	const resources = 3 * maxWaiting
	for i := range resources {
		sub.SubscribeToResource(fmt.Sprint("file:///", i))
	}
	for range 2 {
		for i := range resources {
			notify(mcp.MethodNotificationResourceUpdated, "uri", fmt.Sprint("file:///", i))
		}
		if out := notify(mcp.MethodNotificationToolsListChanged, "", nil); len(out) != 0 {
			t.Fatalf("%d messages before the acknowledgement", len(out))
		}
	}
	out := notify(mcp.MethodNotificationSubscriptionsAcknowledged, "", nil)
	if len(out) != 1+resources+1 || out[0].Method != mcp.MethodNotificationSubscriptionsAcknowledged {
		t.Fatalf("%d messages, want the acknowledgement, %d resources and the tools", len(out), resources)
	}
	for i, n := range out[1 : 1+resources] {
		if resourceURI(n) != fmt.Sprint("file:///", i) {
			t.Errorf("message %d is about %q", i+1, resourceURI(n))
		}
	}
}
