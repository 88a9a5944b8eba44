package outcome_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/calltimeout"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/outcome"
)

// Only what left no byte, or what the server does not know, may be sent again; a doubt is unknown.
func TestTheOutcomeOfASendThatFailed(t *testing.T) {
	const refusal = `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no"}}`
	for name, c := range map[string]struct {
		delivery transports.Delivery
		err      error
		want     messages.Outcome
	}{
		"not written":                    {transports.NotWritten, errors.New("cut"), messages.OutcomeNotSent},
		"a foreign error":                {transports.MaybeWritten, errors.New("cut"), messages.OutcomeUnknown},
		"the network":                    {transports.MaybeWritten, &transports.Error{Class: messages.ClassNetwork}, messages.OutcomeUnknown},
		"the session is unknown":         {transports.Written, &transports.Error{Class: messages.ClassSession, Status: 404}, messages.OutcomeNotSent},
		"the session may be unknown":     {transports.MaybeWritten, &transports.Error{Class: messages.ClassSession, Status: 404}, messages.OutcomeUnknown},
		"no credentials":                 {transports.Written, &transports.Error{Class: messages.ClassUnauthorized, Status: 401}, messages.OutcomeRejected},
		"credentials later in the day":   {transports.Written, &transports.Error{Class: messages.ClassForbidden}, messages.OutcomeUnknown},
		"a bad request":                  {transports.Written, &transports.Error{Status: 400}, messages.OutcomeRejected},
		"the server did not wait":        {transports.Written, &transports.Error{Status: 408}, messages.OutcomeUnknown},
		"the server failed":              {transports.Written, &transports.Error{Status: 500}, messages.OutcomeUnknown},
		"the server failed and says why": {transports.Written, &transports.Error{Status: 500, Body: []byte(refusal)}, messages.OutcomeRejected},
	} {
		if got := outcome.OfSend(c.delivery, c.err); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// An error says whether time or the caller ended the wait, for either deadline of a call.
func TestTheEndOfAContextHasItsCause(t *testing.T) {
	left, leave := context.WithCancel(t.Context())
	leave()
	late := calltimeout.New(t.Context(), 0, time.Nanosecond)
	defer late.Stop()
	<-late.Done()
	for _, c := range []struct {
		ctx  context.Context
		want messages.Class
		text string
	}{
		{left, messages.ClassCanceled, "the caller gave up before it was done"},
		{late, messages.ClassTimeout, "the deadline passed before it was done"},
	} {
		e := outcome.ContextError(c.ctx, "before it was done")
		if e.Class != c.want || e.Text != c.text || e.Outcome != "" {
			t.Errorf("%+v, want %s", e, c.text)
		}
		if sent := outcome.CallerLeftError(c.ctx); sent == nil || sent.Outcome != messages.OutcomeNotSent {
			t.Errorf("before anything was sent: %v", sent)
		}
	}
	if e := outcome.ContextError(late, "x"); !strings.Contains(e.Err.Error(), "longest time") {
		t.Errorf("the cause is %v", e.Err)
	}
	if e := outcome.CallerLeftError(t.Context()); e != nil {
		t.Errorf("a caller that waits: %v", e)
	}
}

// An answer that is not a result becomes an error whose outcome follows from its kind.
func TestAnAnswerThatIsNoResultIsAnError(t *testing.T) {
	for _, c := range []struct {
		answer  outcome.Answer
		outcome messages.Outcome
		text    string
	}{
		{outcome.Answer{Kind: outcome.AnswerRPCError, Raw: []byte(`{"code":-32602,"message":"no\nsuch"}`)}, messages.OutcomeRejected,
			"the server rejected tools/call: no such (code -32602)"},
		{outcome.Answer{Kind: outcome.AnswerUnusable, Detail: "is not valid JSON"}, messages.OutcomeUnknown,
			"the server's answer to tools/call is not valid JSON"},
		{outcome.Answer{Kind: outcome.AnswerUnusable, Detail: "is too long", ToolRan: true}, messages.OutcomeUnknown,
			"the tool ran, but its answer is too long"},
		{outcome.Answer{Kind: outcome.AnswerNoMemory, Detail: "was discarded"}, messages.OutcomeUnknown,
			"the server's answer to tools/call was discarded"},
	} {
		e := c.answer.AsError("tools/call")
		if e == nil || e.Outcome != c.outcome || e.Text != c.text {
			t.Errorf("%+v, want %s: %s", e, c.outcome, c.text)
		}
		if memory := errors.Is(e, messages.ErrMemory); memory != (c.answer.Kind == outcome.AnswerNoMemory) {
			t.Errorf("%v: it is about memory: %v", e, memory)
		}
	}
	if e := (outcome.Answer{Kind: outcome.AnswerResult, Raw: []byte(`{}`)}).AsError("tools/call"); e != nil {
		t.Errorf("a result: %v", e)
	}
}
