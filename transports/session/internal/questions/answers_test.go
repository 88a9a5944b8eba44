package questions

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
)

// The roots are an array, also of nothing; one that a client wrote itself stays as it is, on one line.
func TestRootsAreWrittenAsTheyAre(t *testing.T) {
	for _, c := range []struct {
		roots []messages.Root
		want  string
	}{
		{nil, `{"roots":[]}`},
		{[]messages.Root{{URI: "file:///a"}}, `{"roots":[{"uri":"file:///a"}]}`},
		{[]messages.Root{{URI: "file:///a", Name: "n"}, {URI: "file:///b"}}, `{"roots":[{"uri":"file:///a","name":"n"},{"uri":"file:///b"}]}`},
		{[]messages.Root{{URI: "x", Raw: json.RawMessage("{\"uri\":\"file:///a\",\n\"k\":1.50}")}, {URI: "file:///b", Raw: json.RawMessage(`[]`)}},
			`{"roots":[{"uri":"file:///a", "k":1.50},{"uri":"file:///b"}]}`},
	} {
		got, e := AnswerRoots(t.Context(), func(context.Context) ([]messages.Root, error) { return c.roots, nil })
		if e != nil || string(got) != c.want {
			t.Errorf("%s, %v, not %s", got, e, c.want)
		}
	}
	if got, e := AnswerRoots(t.Context(), func(context.Context) ([]messages.Root, error) { return nil, errors.New("secret") }); got != nil || e == nil {
		t.Errorf("of a handler that fails: %s", got)
	}
}

// A request for a sample is checked before a handler gets it, and what the handler returns before the server does.
func TestASampleIsCheckedOnBothWays(t *testing.T) {
	for _, c := range []struct {
		params     string
		tools      bool
		result     string
		err        error
		code       int
		wantsAsked bool
	}{
		{`{"messages":[]}`, false, `{"role":"assistant"}`, nil, 0, true},
		{`{"messages":[],"tools":null}`, false, `{"role":"assistant"}`, nil, 0, true},
		{`{"messages":[],"tools":[]}`, true, `{"role":"assistant"}`, nil, 0, true},
		{`{"messages":[],"tools":[]}`, false, `{}`, nil, jsonrpc.CodeInvalidParams, false},
		{`{"messages":[],"toolChoice":{}}`, false, `{}`, nil, jsonrpc.CodeInvalidParams, false},
		{`[]`, true, `{}`, nil, jsonrpc.CodeInvalidParams, false},
		{``, true, `{}`, nil, jsonrpc.CodeInvalidParams, false},
		{`{}`, false, `5`, nil, jsonrpc.CodeInternal, true},
		{`{}`, false, `{"a":1} {}`, nil, jsonrpc.CodeInternal, true},
		{`{}`, false, ``, nil, jsonrpc.CodeInternal, true},
		{`{}`, false, `{}`, errors.New("secret"), HandlerError(errors.New("secret")).Code, true},
	} {
		asked := false
		got, e := AnswerSampling(t.Context(), []byte(c.params), c.tools, func(_ context.Context, r messages.SampleRequest) (json.RawMessage, error) {
			asked = string(r.Params) == c.params
			return json.RawMessage(c.result), c.err
		})
		if asked != c.wantsAsked || (e == nil) != (c.code == 0) || e != nil && e.Code != c.code || e == nil && string(got) != c.result {
			t.Errorf("%s, tools %v, answered %s: %s, %+v, asked %v", c.params, c.tools, c.result, got, e, asked)
		}
	}
}
