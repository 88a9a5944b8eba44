package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// Whatever error Config.Allow returns, the call is denied and was not sent: to the caller, to watchers, to the model.
func TestARefusalIsDeniedAndNotSent(t *testing.T) {
	plain := errors.New("not on Sundays")
	path := &fs.PathError{Op: "open", Path: "policy", Err: fs.ErrNotExist}
	for name, refusal := range map[string]error{
		"plain":           plain,
		"wrapped":         fmt.Errorf("policy: %w", plain),
		"sentinel":        fmt.Errorf("policy: %w", supervisor.ErrDenied),
		"typed":           path,
		"of a context":    context.Canceled,
		"hand-made":       &supervisor.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassDenied, Text: "not on Sundays"},
		"half hand-made":  &supervisor.Error{Text: "not on Sundays", Fix: "come on Monday"},
		"of another call": &supervisor.Error{Outcome: messages.OutcomeUnknown, Class: messages.ClassNetwork, Text: "the policy's server is gone"},
		"around another":  fmt.Errorf("policy: %w", &supervisor.Error{Outcome: messages.OutcomeRejected, Class: messages.ClassInvalid}),
		"joined":          errors.Join(plain, &supervisor.Error{Outcome: messages.OutcomeUnknown}),
		"empty":           errors.New(""),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake("x")
				m := start(t, supervisor.Config{Allow: func(context.Context, *supervisor.Tool, json.RawMessage) error {
					return refusal
				}}, map[string]*fake{"a": f})
				settled(t, m)
				w := m.Watch(0)
				defer w.Close()
				_, err := m.CallTool(t.Context(), "mcp__a__x", nil)
				var e *supervisor.Error
				if !errors.As(err, &e) || e.Outcome != messages.OutcomeNotSent || e.Class != messages.ClassDenied || e.Tool == "" && e.Server != "" {
					t.Fatalf("%#v", err)
				}
				if !errors.Is(err, supervisor.ErrDenied) || !errors.Is(err, supervisor.ErrNotSent) || errors.Is(err, supervisor.ErrOutcomeUnknown) ||
					errors.Is(err, supervisor.ErrRejected) || messages.OutcomeOf(err) != messages.OutcomeNotSent || messages.ClassOf(err) != messages.ClassDenied {
					t.Errorf("%v: its class and its outcome disagree with the sentinels", err)
				}
				if !errors.Is(err, refusal) {
					t.Errorf("%v does not wrap the program's error", err)
				}
				var other *supervisor.Error
				if errors.As(e.Err, &other) {
					t.Errorf("%v holds what is said of another call: %v", err, other)
				}
				if name == "typed" {
					var p *fs.PathError
					if !errors.As(err, &p) || !errors.Is(err, fs.ErrNotExist) {
						t.Errorf("%v has lost its type", err)
					}
				}
				if refusal.Error() != "" && !strings.Contains(err.Error(), "policy") && !strings.Contains(err.Error(), "Sundays") && name != "of a context" {
					t.Errorf("%v does not say why", err)
				}
				text := supervisor.ErrorResult(err)["content"].([]any)[0].(map[string]any)["text"].(string)
				if !strings.Contains(text, "(not sent)") || strings.Contains(text, "may have run") || !strings.Contains(text, `server "a"`) {
					t.Errorf("the model reads %q", text)
				}
				if n := f.calls.Load(); n != 0 {
					t.Errorf("the tool ran %d times", n)
				}
				for {
					ev, err := w.Next(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if ev.Kind == messages.EventCallEnded {
						if ev.Outcome != messages.OutcomeNotSent {
							t.Errorf("watchers are told %q", ev.Outcome)
						}
						break
					}
				}
			})
		})
	}
}
