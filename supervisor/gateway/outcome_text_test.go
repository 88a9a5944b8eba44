package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

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

// An agent is told what has happened in words that hide nothing but the names of others, and what happened is never called more certain
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
