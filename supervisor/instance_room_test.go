package supervisor_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// A caller for whom there is no room may come again when the first of the instances may end, and not when the last one may.
func TestThereIsRoomWhenTheFirstInstanceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := startPersonal(t, func(_ *supervisor.Config, s *supervisor.Spec) {
			s.MaxInstances, s.InstanceIdle = 2, messages.Duration(time.Minute)
		})
		callAs(t, m, "anna")
		time.Sleep(20 * time.Second)
		callAs(t, m, "ben")
		time.Sleep(10 * time.Second)
		_, err := m.CallServerTool(supervisor.WithCaller(t.Context(), "carl"), "box", "count", nil)
		var e *supervisor.Error
		if !errors.Is(err, supervisor.ErrTooManyInstances) || !errors.As(err, &e) {
			t.Fatalf("the third principal's call ended as %v", err)
		}
		at, ok := e.MayRetry()
		if in := time.Until(at); !ok || in < 29*time.Second || in > 31*time.Second {
			t.Fatalf("it may be repeated: %v, in %v", ok, in)
		}
		time.Sleep(time.Until(at) + time.Second)
		callAs(t, m, "carl")
	})
}

// A spec that says disabled ends the instances as the command does, although their connections do not depend on it.
func TestASpecThatDisablesEndsTheInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := startPersonal(t, func(_ *supervisor.Config, s *supervisor.Spec) { s.Name = "box" })
		callAs(t, m, "anna")
		spec := supervisor.Spec{Type: messages.SDK, Name: "box", Share: messages.SharePrincipal, Disabled: true}
		if _, err := m.Configure(t.Context(), map[string]supervisor.Spec{"box": spec}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		_, err := m.CallServerTool(supervisor.WithCaller(t.Context(), "anna"), "box", "count", nil)
		if !errors.Is(err, supervisor.ErrDisabled) || !errors.Is(err, supervisor.ErrNotSent) {
			t.Errorf("while it is disabled: %v", err)
		}
		if got := m.Instances("box"); got != nil || p.alive.Load() != 1 { // the own connection stays warm
			t.Errorf("while it is disabled the instances are %v, and %d connections live", got, p.alive.Load())
		}
	})
}

// What Ready says is not about the state from before a spec that was accepted.
func TestReadyIsOfTheSpecThatWasAccepted(t *testing.T) {
	m, _ := startPersonal(t, func(_ *supervisor.Config, s *supervisor.Spec) { s.Name = "box" })
	spec := supervisor.Spec{Type: messages.SDK, Name: "box", Share: messages.SharePrincipal}
	for range 300 {
		for _, spec.Disabled = range []bool{true, false} {
			if _, err := m.Configure(t.Context(), map[string]supervisor.Spec{"box": spec}); err != nil {
				t.Fatal(err)
			}
			if err := m.Ready(t.Context(), "box"); errors.Is(err, supervisor.ErrDisabled) != spec.Disabled {
				t.Fatalf("after the spec that says disabled: %v: %v", spec.Disabled, err)
			}
		}
	}
}
