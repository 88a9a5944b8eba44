package session_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// TestSessionLostWhileAtWork guards against a bug: a call that the server was working on when another message was told
// that the session is gone was reported as not sent, and would have been sent again.
func TestSessionLostWhileAtWork(t *testing.T) {
	for name, c := range map[string]struct {
		d      transports.Delivery
		status int
		class  messages.Class
		want   messages.Outcome
	}{
		"refused itself":                {transports.Written, 404, messages.ClassSession, messages.OutcomeNotSent},
		"cut off":                       {transports.MaybeWritten, 0, messages.ClassSession, messages.OutcomeUnknown},
		"cut off in its answer":         {transports.Written, 0, messages.ClassSession, messages.OutcomeUnknown},
		"the rest of its answer":        {transports.MaybeWritten, 404, messages.ClassSession, messages.OutcomeUnknown},
		"the rest asks for credentials": {transports.MaybeWritten, 401, messages.ClassUnauthorized, messages.OutcomeUnknown},
		"not sent":                      {transports.NotWritten, 0, messages.ClassUnauthorized, messages.OutcomeNotSent},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &wire{}
				hello(w, func(context.Context, transports.Message) (transports.Delivery, error) {
					return c.d, &transports.Error{Class: c.class, Status: c.status, Text: "no"}
				})
				s := connected(t, w, session.Config{})
				_, err := s.OpenGate().Call(t.Context(), "tool", nil)
				if got := messages.OutcomeOf(err); got != c.want || messages.ClassOf(err) != c.class {
					t.Errorf("%s, %v", got, err)
				}
			})
		})
	}
}
