package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// A server may write the _meta of our own outcomes, with any content beside it.
func TestOutcomeText(t *testing.T) {
	ours, _ := failedCall(&messages.Error{Outcome: messages.OutcomeUnknown, Text: "the server is gone"})
	for result, want := range map[string]string{
		string(ours): "the server is gone (outcome unknown: it may have run). It may have run: look at what it would have changed before calling again.",
		`{"content":[{"type":"text","text":"a server's"}],"isError":true}`: "",
		`{"content":[5],"_meta":{"mcpvisor/outcome":"x"}}`:                 "",
		`{"content":[{"text":7}],"_meta":{"mcpvisor/outcome":"x"}}`:        "",
		`{"content":[],"_meta":{"mcpvisor/outcome":"x"}}`:                  "",
		`{"content":{},"_meta":{"mcpvisor/outcome":"x"}}`:                  "",
		`{"_meta":{"mcpvisor/outcome":"x"}}`:                               "",
		`{"_meta":5}`:                                                      "",
	} {
		if got := outcomeText([]byte(result)); got != want {
			t.Errorf("%s: %q", result, got)
		}
	}
}

// The gateway tells an agent of a failure in words that hide nothing but the names of others, and never calls an outcome more certain
// than it is.
func TestTheErrorThatAnAgentIsTold(t *testing.T) {
	known := &messages.Error{Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid, Text: "no such tool", Nearest: "secret__tool", Fix: "did you mean secret__tool?"}
	if e := errorOf(fmt.Errorf("it failed: %w", known)); e.Nearest != "" || strings.Contains(e.Error(), "secret") || e.Outcome != known.Outcome || e.Text != known.Text {
		t.Errorf("with a name of another: %+v", e)
	}
	if known.Nearest == "" {
		t.Error("the error of the manager, which others have, is changed")
	}
	plain := &messages.Error{Outcome: messages.OutcomeRejected, Text: "no"}
	if e := errorOf(fmt.Errorf("it failed: %w", plain)); e != plain {
		t.Errorf("without one: %+v", e)
	}
	if e := errorOf(errors.New("ouch")); e.Outcome != messages.OutcomeUnknown || e.Class != messages.ClassNetwork || e.Text != "ouch" {
		t.Errorf("a foreign one: %+v", e)
	}
	if e := errorOf(context.DeadlineExceeded); e.Outcome != messages.OutcomeUnknown || e.Class != messages.ClassTimeout || e.Text == "" {
		t.Errorf("the end of a context: %+v", e)
	}
}

// A read that fails is always an error, with the code that the era has for what no server has.
func TestTheErrorOfARead(t *testing.T) {
	for _, c := range []struct {
		what   string
		err    error
		modern bool
		code   int
		raw    string
	}{
		{"a resource that no server has", &messages.Error{Err: messages.ErrUnknownResource}, false, -32002, ""},
		{"in the modern era", &messages.Error{Err: messages.ErrUnknownResource}, true, serve.CodeInvalidParams, ""},
		{"a prompt that no server has", &messages.Error{Err: messages.ErrUnknownPrompt}, true, serve.CodeInvalidParams, ""},
		{"what the server does not declare", &messages.Error{Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid}, false, serve.CodeInvalidParams, ""},
		{"a lost connection", &messages.Error{Outcome: messages.OutcomeUnknown, Class: messages.ClassNetwork}, false, serve.CodeInternal, ""},
		{"a server that is away", &messages.Error{Outcome: messages.OutcomeNotSent, Class: messages.ClassNetwork}, false, serve.CodeInternal, ""},
		{"the server's own error", &messages.Error{Outcome: messages.OutcomeRejected, Reply: []byte(`{"code":7}`)}, false, 0, `{"code":7}`},
		{"one of the server without words", &messages.Error{Outcome: messages.OutcomeRejected}, false, serve.CodeInternal, ""},
	} {
		if e := failedRead(c.err, c.modern); e.Code != c.code || string(e.Raw) != c.raw {
			t.Errorf("%s: %d %s", c.what, e.Code, e.Raw)
		}
	}
}

// The words for a model say whether calling again is safe, what a person can do, and when it can succeed.
func TestTheWordsOfAFailedCall(t *testing.T) {
	const safe, refused, unsure = ". Nothing was sent to the server, so calling again cannot run it twice", ". The server refused the request without running it",
		". It may have run: look at what it would have changed before calling again"
	for _, c := range []struct {
		e    messages.Error
		want []string
	}{
		{messages.Error{Outcome: messages.OutcomeNotSent, Class: messages.ClassNetwork, Server: "one", Text: "away"}, []string{"away", safe}},
		{messages.Error{Outcome: messages.OutcomeRejected, Class: messages.ClassRejected, Server: "one", Text: "no"}, []string{"no", refused}},
		{messages.Error{Outcome: messages.OutcomeUnknown, Class: messages.ClassNetwork, Server: "one", Text: "lost"}, []string{"lost", unsure}},
		{messages.Error{Outcome: messages.OutcomeNotSent, Class: messages.ClassUnauthorized, Server: "one", Text: "closed"},
			[]string{"; a person must sign in: mcpvisor login one", safe}},
		{messages.Error{Outcome: messages.OutcomeNotSent, Class: messages.ClassUnauthorized, Server: "one", Text: "closed", Fix: "then reconnect it"},
			[]string{": mcpvisor reconnect one", safe}},
		{messages.Error{Outcome: messages.OutcomeNotSent, Class: messages.ClassNetwork, Server: "one", Text: "away", RetryAfter: 1234 * time.Millisecond},
			[]string{safe, "begins in 1.2s"}},
	} {
		text := textFor(&c.e)
		for _, part := range c.want {
			if !strings.Contains(text, part) {
				t.Errorf("there is no %q in %q", part, text)
			}
		}
		if strings.Contains(text, "mcpvisor login") != (c.e.Class == messages.ClassUnauthorized && c.e.Fix == "") || strings.Contains(text, "begins in") != (c.e.RetryAfter > 0) {
			t.Errorf("too much is said: %q", text)
		}
		result, e := failedCall(&c.e)
		if e != nil || !strings.Contains(string(result), `"isError":true`) || outcomeText(result) != text {
			t.Errorf("the result is %s, %v", result, e)
		}
	}
	for _, cause := range []error{messages.ErrUnknownTool, messages.ErrUnknownServer} {
		if result, e := failedCall(&messages.Error{Outcome: messages.OutcomeNotSent, Err: cause}); result != nil || e.Code != serve.CodeInvalidParams {
			t.Errorf("%v: %s, %v", cause, result, e)
		}
	}
	if result, e := failedCall(&messages.Error{Outcome: messages.OutcomeRejected, Reply: []byte(`{"code":7}`)}); result != nil || string(e.Raw) != `{"code":7}` {
		t.Errorf("the server's own: %s, %v", result, e)
	}
}
