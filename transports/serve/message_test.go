package serve

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The endpoint reads a request, a notification or an answer as one, or refuses the message with the code that JSON-RPC has for it, and with its id where that can be read.
func TestWhatAMessageIsReadAs(t *testing.T) {
	const parse, invalid, params = CodeParse, CodeInvalidRequest, CodeInvalidParams
	for body, want := range map[string]struct {
		code       int
		id, method string
	}{
		`{"jsonrpc":"2.0","id":1,"method":"a"}`:                                {0, "1", "a"},
		" {\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":{\"x\":1}} ":        {0, "", "a"},
		`{"jsonrpc":"2.0","id":"x","method":"a","params":{"_meta":{"k":1}}}`:   {0, `"x"`, "a"},
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":null},"x":[]}`: {0, "1", "a"},
		`{"jsonrpc":"2.0","id":1,"result":{}}`:                                 {0, "1", ""},
		`{"jsonrpc":"2.0","id":1,"error":{}}`:                                  {0, "1", ""},
		``:                                                                     {parse, "", ""},
		`   `:                                                                  {parse, "", ""},
		`x`:                                                                    {parse, "", ""},
		`{"jsonrpc":"2.0"`:                                                     {parse, "", ""},
		`{"jsonrpc":"2.0"} x`:                                                  {parse, "", ""},
		"{\"jsonrpc\":\"\xff\"}":                                               {parse, "", ""},
		`5`:                                                                    {invalid, "", ""},
		`"x"`:                                                                  {invalid, "", ""},
		`null`:                                                                 {invalid, "", ""},
		`[{"jsonrpc":"2.0"}]`:                                                  {invalid, "", ""},
		`{"jsonrpc":"2.0","id":{},"method":"a"}`:                               {invalid, "", ""},
		`{"jsonrpc":"2.0","id":"` + strings.Repeat("x", maxID) + `","method":"a"}`: {invalid, "", ""},
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}`:                             {invalid, "2", ""},
		`{"jsonrpc":"1.0","id":1,"method":"a"}`:                                    {invalid, "1", ""},
		`{"id":1,"method":"a"}`:                                                    {invalid, "1", ""},
		`{"jsonrpc":"2.0","id":1}`:                                                 {invalid, "1", ""},
		`{"jsonrpc":"2.0","result":{}}`:                                            {invalid, "", ""},
		`{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`:                          {invalid, "1", ""},
		`{"jsonrpc":"2.0","id":1,"method":""}`:                                     {invalid, "1", ""},
		`{"jsonrpc":"2.0","id":1,"method":7}`:                                      {invalid, "1", ""},
		`{"jsonrpc":"2.0","id":1,"method":"a","params":[]}`:                        {params, "1", "a"},
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":5}}`:               {params, "1", "a"},
	} {
		m, e := readMessage([]byte(body))
		code := 0
		if e != nil {
			code = e.Code
			if e.httpStatus(false) != http.StatusBadRequest || e.Message == "" {
				t.Errorf("%.60s: status %d, %q", body, e.httpStatus(false), e.Message)
			}
		}
		if code != want.code || string(m.id) != want.id || m.method != want.method {
			t.Errorf("%.60s: code %d, id %s, method %q", body, code, m.id, m.method)
		}
	}
}

// 2026-07-28: the headers of a request name its version, its method and, for some methods, its subject, each once, as the message does.
func TestTheHeadersMatchTheMessage(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`
	headers := func(pairs ...string) http.Header {
		h := http.Header{"Mcp-Protocol-Version": {"2026-07-28"}}
		for i := 0; i < len(pairs); i += 2 {
			h.Add(pairs[i], pairs[i+1])
		}
		return h
	}
	for _, c := range []struct {
		what, method, params string
		h                    http.Header
		refused              string
	}{
		{"a tool", "tools/call", `"name":"t",` + meta, headers("Mcp-Method", "tools/call", "Mcp-Name", "t"), ""},
		{"a prompt", "prompts/get", `"name":"t",` + meta, headers("Mcp-Method", "prompts/get", "Mcp-Name", "t"), ""},
		{"a resource", "resources/read", `"uri":"x:///1",` + meta, headers("Mcp-Method", "resources/read", "Mcp-Name", "x:///1"), ""},
		{"a task", "tasks/get", `"taskId":"1",` + meta, headers("Mcp-Method", "tasks/get", "Mcp-Name", "1"), ""},
		{"an update of a task", "tasks/update", `"taskId":"1",` + meta, headers("Mcp-Method", "tasks/update", "Mcp-Name", "2"), "Mcp-Name"},
		{"the end of a task", "tasks/cancel", `"taskId":"1",` + meta, headers("Mcp-Method", "tasks/cancel"), "Mcp-Name"},
		{"a list", "tools/list", meta, headers("Mcp-Method", "tools/list"), ""},
		{"a list with a name", "tools/list", `"name":"t",` + meta, headers("Mcp-Method", "tools/list", "Mcp-Name", "other"), ""},
		{"another tool", "tools/call", `"name":"t",` + meta, headers("Mcp-Method", "tools/call", "Mcp-Name", "other"), "Mcp-Name"},
		{"no name", "tools/call", `"name":"t",` + meta, headers("Mcp-Method", "tools/call"), "Mcp-Name"},
		{"two names", "tools/call", `"name":"t",` + meta, headers("Mcp-Method", "tools/call", "Mcp-Name", "t", "Mcp-Name", "t"), "Mcp-Name"},
		{"another resource", "resources/read", `"uri":"x:///1",` + meta, headers("Mcp-Method", "resources/read", "Mcp-Name", "x:///2"), "Mcp-Name"},
		{"another method", "tools/call", `"name":"t",` + meta, headers("Mcp-Method", "tools/list", "Mcp-Name", "t"), "Mcp-Method"},
		{"no method", "tools/list", meta, headers(), "Mcp-Method"},
		{"another version", "tools/list", meta, http.Header{"Mcp-Protocol-Version": {"2025-11-25"}, "Mcp-Method": {"tools/list"}}, "MCP-Protocol-Version"},
		{"no version", "tools/list", meta, http.Header{"Mcp-Method": {"tools/list"}}, "MCP-Protocol-Version"},
		{"a message without one is refused for that", "tools/list", `"x":1`, headers("Mcp-Method", "other"), ""},
		{"a message without a name as well", "tools/call", meta, headers("Mcp-Method", "tools/call", "Mcp-Name", "t"), ""},
	} {
		m, e := readMessage([]byte(`{"jsonrpc":"2.0","id":1,"method":"` + c.method + `","params":{` + c.params + `}}`))
		if e != nil {
			t.Fatal(e)
		}
		switch e := checkHeaders(c.h, &m); {
		case c.refused == "" && e != nil:
			t.Errorf("%s: %v", c.what, e)
		case c.refused != "" && (e == nil || e.Code != CodeHeaderMismatch || !strings.Contains(e.Message, c.refused) || e.httpStatus(true) != http.StatusBadRequest):
			t.Errorf("%s: %v", c.what, e)
		}
	}
}

// unready is a service that cannot serve yet.
type unready struct{ *service }

func (unready) Ready() bool { return false }

// What watches the process asks whether it lives and whether it can serve, without a token.
func TestWhetherTheEndpointIsReady(t *testing.T) {
	tokens := NewTokens(map[string]Principal{"word": {Name: "anna"}})
	for _, c := range []struct {
		path    string
		service Service
		status  int
		body    string
	}{
		{"/healthz", newService(), 200, "ok\n"}, {"/healthz", unready{newService()}, 200, "ok\n"},
		{"/readyz", newService(), 200, "ok\n"}, {"/readyz", unready{newService()}, 503, "not ready\n"}, {"/mcp", newService(), 401, ""}, {"/other", newService(), 404, ""},
	} {
		h := NewHandler(Options{Service: c.service, Authenticate: tokens.Authenticate})
		w := do(h, httptest.NewRequest(http.MethodGet, "http://localhost"+c.path, nil))
		if w.Code != c.status || c.body != "" && w.Body.String() != c.body {
			t.Errorf("%s: %d %s", c.path, w.Code, w.Body)
		}
		_ = h.Close(t.Context())
	}
}

// A token comes in one header, as a bearer's; nothing else is one.
func TestWhichTokenARequestHas(t *testing.T) {
	tokens := NewTokens(map[string]Principal{"word": {Name: "anna"}, "other": {Name: "bert"}})
	for _, c := range []struct {
		values []string
		want   string
	}{
		{[]string{"Bearer word"}, "anna"}, {[]string{"bearer word"}, "anna"}, {[]string{"BEARER other"}, "bert"},
		{[]string{"Bearer wor"}, ""}, {[]string{"Bearer words"}, ""}, {[]string{"Bearer  word"}, ""}, {[]string{"Bearer "}, ""}, {[]string{"Bearer"}, ""},
		{[]string{"word"}, ""}, {[]string{"Basic word"}, ""}, {nil, ""}, {[]string{"Bearer word", "Bearer word"}, ""},
	} {
		r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", nil)
		r.Header["Authorization"] = c.values
		if p, err := tokens.Authenticate(r); p.Name != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q: %q, %v", c.values, p.Name, err)
		}
	}
}
