package supervisor_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/mcpvisor/mcpvisor/supervisor"
)

// TestAGrantIsOneCallers: what a caller's own person allows for the session is allowed to that caller; what the person of
// the manager allows is allowed to all.
func TestAGrantIsOneCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		person := supervisor.AskNo
		cfg := supervisor.Config{Access: ownRules(t, "default ask"),
			Ask: func(context.Context, supervisor.AskRequest) (supervisor.AskAnswer, error) { return person, nil }}
		m := start(t, cfg, map[string]*fake{"a": newFake("get")})
		settled(t, m)
		call := func(caller string, answer supervisor.AskAnswer) bool {
			t.Helper()
			ctx := supervisor.ScopeGrants(t.Context(), caller)
			if answer != "" {
				ctx = supervisor.AskedBy(ctx, func(context.Context, supervisor.AskRequest) (supervisor.AskAnswer, error) {
					return answer, nil
				})
			}
			_, err := m.CallServerTool(ctx, "a", "get", nil)
			if err != nil && !errors.Is(err, supervisor.ErrDenied) {
				t.Fatal(err)
			}
			return err == nil
		}
		for i, step := range []struct {
			caller string
			answer supervisor.AskAnswer // of the caller's own person, empty if there is none
			person supervisor.AskAnswer
			made   bool
		}{
			{"one", supervisor.AskSession, supervisor.AskNo, true},
			{"one", supervisor.AskNo, supervisor.AskNo, true},
			{"one", "", supervisor.AskNo, true},
			{"two", supervisor.AskNo, supervisor.AskNo, false},
			{"two", "", supervisor.AskNo, false},
			{"", "", supervisor.AskNo, false},
			{"two", "", supervisor.AskSession, true},
			{"two", supervisor.AskNo, supervisor.AskNo, true},
			{"three", "", supervisor.AskNo, true},
		} {
			person = step.person
			if made := call(step.caller, step.answer); made != step.made {
				t.Errorf("step %d, of %q: the call was made: %v", i, step.caller, made)
			}
		}
	})
}
