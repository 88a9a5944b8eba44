package session

import (
	"encoding/json"
	"testing"
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
