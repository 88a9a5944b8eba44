package session_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// A server that knows its callers by their credentials is told by the same caller that a request is taken back: from another one it would not take
// that.
func TestARequestIsTakenBackByItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		hello(w, nil)
		s := connected(t, w, session.Config{})
		gate := s.OpenGate()
		for _, caller := range []string{"anna", "ben", ""} {
			w.takeSent()
			ctx, cancel := context.WithCancel(messages.WithCaller(t.Context(), caller))
			go func() {
				synctest.Wait()
				cancel()
			}()
			if _, err := gate.Call(ctx, "tool", nil); messages.ClassOf(err) != messages.ClassCanceled {
				t.Errorf("a call that was given up ended with %v", err)
			}
			synctest.Wait()
			var callers []string
			for _, m := range w.takeSent() {
				callers = append(callers, m.Method+" of "+m.Caller)
			}
			if want := []string{"tools/call of " + caller, "notifications/cancelled of " + caller}; !slices.Equal(callers, want) {
				t.Errorf("sent were %q, not %q", callers, want)
			}
		}
	})
}
