package session_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// TestSessionLostWhileAtWork guards against a bug: while the server worked on a call, the refusal of another message
// reported that the session was gone. The call was reported as not-sent, and would have been sent again.
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

// TestAnswerOfAnotherRequest guards against a bug: an HTTP answer with the error of another request was taken for the
// refusal of this one, which promises that nothing ran. An error without an id, or with one that is no request of
// ours, is about the posted message.
func TestAnswerOfAnotherRequest(t *testing.T) {
	for id, want := range map[string]messages.Outcome{
		"99": messages.OutcomeUnknown, "null": messages.OutcomeRejected, `"server-error"`: messages.OutcomeRejected,
	} {
		w := &wire{kind: messages.HTTP}
		w.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
			switch m.Method {
			case "initialize":
				w.receive(helloAnswer)
			case "tools/call":
				return transports.Written, &transports.Error{Class: messages.ClassProtocol, Status: http.StatusOK,
					Text: "it answered with something else", Body: []byte(`{"id":` + id + `,"error":{"code":-32602,"message":"no"}}`)}
			}
			return transports.Written, nil
		}
		s, err := session.Dial(t.Context(), w, session.Config{Era: messages.EraLegacy})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Handshake(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err = s.OpenGate().Call(t.Context(), "t", nil)
		if got := messages.OutcomeOf(err); got != want {
			t.Errorf("id %s: %s, want %s: %v", id, got, want, err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
