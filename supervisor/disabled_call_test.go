package supervisor_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// A call that was admitted before its server was disabled goes on when it is enabled, and is waited for like every other one when the
// connection is let go then.
func TestACallFromBeforeADisableIsWaitedFor(t *testing.T) {
	for name, letGo := range map[string]func(m *supervisor.Manager) error{
		"reconnect": func(m *supervisor.Manager) error { return m.Reconnect(context.Background(), "a") },
		"remove":    func(m *supervisor.Manager) error { return m.Remove(context.Background(), "a") },
		"idle":      func(*supervisor.Manager) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{"f": {Type: messages.SDK, Disabled: true}}},
					map[string]*fake{"f": tardy(newFake("x"), 4*time.Second)})
				spec := supervisor.Spec{Type: messages.SDK, Name: "f"}
				if name == "idle" {
					spec.Connect, spec.IdleTimeout = messages.Lazy, messages.Duration(500*time.Millisecond)
				}
				if err := m.Connect(t.Context(), "a", spec); err != nil {
					t.Fatal(err)
				}
				ended := call(t, m, "a", "x")
				if err := errors.Join(m.Toggle(t.Context(), "a", false), m.Toggle(t.Context(), "a", true), letGo(m)); err != nil {
					t.Fatal(err)
				}
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
