package session

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// A request that passes on what another client asks has that client's capabilities and level, and its input; everything else is ours.
func TestRequestOfAnotherClient(t *testing.T) {
	m := &modernParams{identity: []byte(`"v":1`), capabilities: []byte(`{"ours":{}}`), logLevel: "error"}
	m.meta = m.appendFor(nil, &Options{})
	for name, c := range map[string]struct {
		o     *Options
		extra []byte
		want  string
	}{
		"ours": {&Options{}, nil, `{"name":"t","arguments":{},"_meta":{"v":1,"io.modelcontextprotocol/clientCapabilities":{"ours":{}},"io.modelcontextprotocol/logLevel":"error"}}`},
		"theirs": {&Options{Capabilities: json.RawMessage(`{}`), LogLevel: "debug", Meta: json.RawMessage(`{"a/b":1}`)}, []byte(`"requestState":"s"`),
			`{"name":"t","arguments":{},"requestState":"s","_meta":{"v":1,"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"debug","a/b":1}}`},
		"progress": {&Options{ProgressParams: func(json.RawMessage) {}, Capabilities: json.RawMessage(`{}`)}, nil,
			`{"name":"t","arguments":{},"_meta":{"v":1,"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"error","progressToken":7}}`},
	} {
		r := &request{method: "tools/call", name: "t", opts: c.o}
		want := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":` + c.want + `}`
		if got := string(r.appendTo(nil, 7, m, c.extra)); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, want)
		}
	}
}

// A session announces the abilities of the client behind it as far as a handler passes questions on to that client. Before, a gateway without
// handlers announced all of them, and refused the questions that came then. With PassInput the client takes the questions itself, and all are announced.
func TestOnlyWhatCanBeAnsweredIsAnnounced(t *testing.T) {
	elicit := func(context.Context, messages.ElicitRequest) (messages.ElicitResult, error) {
		return messages.ElicitResult{}, nil
	}
	sample := func(context.Context, messages.SampleRequest) (json.RawMessage, error) { return nil, nil }
	roots := func(context.Context) ([]messages.Root, error) { return nil, nil }
	const all = `{"roots":{},"sampling":{"tools":{},"context":{}},"elicitation":{"form":{},"url":{}},"extensions":{"x":{}}}`
	for name, c := range map[string]struct {
		h              Handlers
		declared, want string
		passed         bool
	}{
		"none":            {Handlers{}, all, `{"extensions":{"x":{}}}`, false},
		"passed":          {Handlers{}, all, all, true},
		"everything":      {Handlers{Roots: roots, Sample: sample, SampleTools: true, Elicit: elicit, ElicitURL: true}, all, all, false},
		"the simple ones": {Handlers{Sample: sample, Elicit: elicit}, all, `{"sampling":{"context":{}},"elicitation":{"form":{}},"extensions":{"x":{}}}`, false},
		"only addresses":  {Handlers{Elicit: elicit}, `{"elicitation":{"url":{}}}`, `{}`, false},
		"older forms":     {Handlers{Elicit: elicit}, `{"elicitation":{}}`, `{"elicitation":{}}`, false},
	} {
		m := &modernParams{identity: []byte(`"v":1`), handlers: c.h}
		want := `"v":1,"io.modelcontextprotocol/clientCapabilities":` + c.want
		if got := string(m.appendFor(nil, &Options{Capabilities: json.RawMessage(c.declared), PassInput: c.passed})); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, want)
		}
	}
}
