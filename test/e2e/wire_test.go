package e2e_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/test/servers"
	"github.com/mcpvisor/mcpvisor/test/servers/web"
)

const recordingRole = "e2e-scribe"

// The scribe is a good server that appends every line it is sent to a file.
func init() {
	roles[recordingRole] = func(args []string) int {
		file, err := os.OpenFile(args[0], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return 1
		}
		r, w, err := os.Pipe()
		if err != nil {
			return 1
		}
		stdin := os.Stdin
		os.Stdin = r
		go func() {
			_, _ = io.Copy(io.MultiWriter(file, w), stdin) // its end is the end of the server
			w.Close()
		}()
		servers.Main(servers.Args("good"))
		return 1
	}
}

func recordingServer(t *testing.T, file string) supervisor.Spec {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return supervisor.Spec{Command: self, Args: []string{recordingRole, file}, Era: messages.EraLegacy}
}

// What a child is sent, byte for byte: the handshake, the list, the calls; every request with "jsonrpc", an integer id
// of its own that rises, a method and params. The program that calls sees none of it.
func TestWhatAChildIsSent(t *testing.T) {
	seeds.Shows(t, "000.1.json-rpc", "000.7.stdio-ids", "000.9.request", "000.9.initialize", "000.9.tools-call",
		"000.10.call", "001.2.handshake", "003.3.jsonrpc-field", "003.3.request-id", "003.3.initialize-request",
		"003.3.tools-call", "004.fr4.call", "004.fr1.ac-stdio", "004.fr1.ac-discover")
	checkLeaks(t)
	dir := t.TempDir()
	files := map[string]string{
		"one": filepath.Join(dir, "one"), "two": filepath.Join(dir, "two"), "asked": filepath.Join(dir, "asked"),
	}
	spec := recordingServer(t, files["asked"]) // which era it speaks, because the configuration does not say
	spec.Era = messages.EraAuto
	m := startManager(t, supervisor.Config{ClientName: "genie", ClientVersion: "1.0.0", Servers: map[string]supervisor.Spec{
		"one": recordingServer(t, files["one"]), "two": recordingServer(t, files["two"]), "asked": spec,
	}})
	awaitConnected(t, m, "one", "two", "asked")
	res, err := m.CallTool(testContext(t, bound), "mcp__one__echo", map[string]any{"text": "hello"})
	if err != nil || res.IsError || res.Text() != "hello" {
		t.Errorf("echo: %v, %v", res, err)
	}
	if got := string(res.Raw); got != `{"content":[{"type":"text","text":"hello"}],"isError":false}` {
		t.Errorf("the program sees %s", got)
	}
	checkText(t, m, "one", "add", json.RawMessage(`{"a":1,"b":2}`), "3")
	checkText(t, m, "two", "echo", object{"text": "x"}, "x")
	if e, ok := m.Tools().Lookup("mcp__one__echo"); !ok || e.Tool.Description != "answers with its text" {
		t.Errorf("what was discovered: %+v", e)
	}
	opening := []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
			`"clientInfo":{"name":"genie","version":"1.0.0"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
	}
	for name, calls := range map[string][]string{
		"one": {
			`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}`,
			`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}`,
		},
		"two": {`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}`},
	} {
		want := strings.Join(append(append([]string(nil), opening...), calls...), "\n") + "\n"
		raw, err := os.ReadFile(files[name])
		if err != nil || string(raw) != want {
			t.Errorf("%s was sent, %v\n%swant\n%s", name, err, raw, want)
		}
	}
	raw, err := os.ReadFile(files["asked"])
	question := `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"genie","version":"1.0.0"},` +
		`"io.modelcontextprotocol/clientCapabilities":{`
	if err != nil || !strings.HasPrefix(string(raw), question) ||
		!strings.Contains(string(raw), "\n"+`{"jsonrpc":"2.0","id":2,"method":"initialize",`) {
		t.Errorf("a server whose era is not known was sent, %v\n%s", err, raw)
	}
}

// A key in a header lets a server in; one that is wrong or missing is needs-auth, which is not tried again by itself
// and ends with a changed configuration. A server without credentials is sent none.
func TestAKeyDecidesWhoIsLetIn(t *testing.T) {
	seeds.Shows(t, "000.2.url", "001.7.api-key", "004.fr2.http-fields", "004.fr5.none", "004.fr5.api-key",
		"004.fr5.api-key-config", "004.fr5.ac-api-key", "000.3.status-needs-auth")
	checkLeaks(t)
	const key = "canary-key-77f1"
	recorder := &web.Recorder{Next: web.RequireKey("X-API-Key", key, web.Good())}
	keyed, open := web.Serve(t, recorder), web.Serve(t, web.Good())
	token := web.Serve(t, web.RequireToken(key, web.Good()))
	auth := &supervisor.Auth{Type: "api_key", HeaderName: "X-API-Key", APIKey: key}
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{
		"wrong": {Type: messages.HTTP, URL: keyed + "/mcp",
			Auth: &supervisor.Auth{Type: "api_key", HeaderName: "X-API-Key", APIKey: "other"}},
		"missing": {Type: messages.SSE, URL: keyed + "/sse"},
		"none":    {Type: messages.HTTP, URL: open + "/mcp", Auth: &supervisor.Auth{Type: "none"}},
		"bearer":  {Type: messages.HTTP, URL: token + "/mcp", Auth: &supervisor.Auth{Type: "api_key", APIKey: key}},
	}})
	awaitConnected(t, m, "none", "bearer")
	checkText(t, m, "none", "header", object{"name": "Authorization"}, "")
	checkText(t, m, "bearer", "echo", object{"text": "let in"}, "let in")
	awaitSettled(t, m)
	for _, name := range []string{"wrong", "missing"} {
		st := statusOf(t, m, name)
		if st.Status != messages.NeedsAuth || st.NextAttempt != nil || st.Error == "" {
			t.Errorf("%s: %s, next attempt %v, %q", name, st.Status, st.NextAttempt, st.Error)
		}
		_, err := m.CallServerTool(testContext(t, bound), name, "echo", nil)
		if messages.ClassOf(err) != messages.ClassUnauthorized || messages.OutcomeOf(err) != messages.OutcomeNotSent {
			t.Errorf("a call of %s: %v", name, err)
		}
	}
	time.Sleep(time.Second) // longer than the first retry of anything that is retried
	if n := len(recorder.Requests()); n != 2 {
		t.Errorf("%d requests of two servers without a key", n)
	}
	for name, spec := range map[string]supervisor.Spec{
		"wrong":   {Type: messages.HTTP, URL: keyed + "/mcp", Auth: auth},
		"missing": {Type: messages.SSE, URL: keyed + "/sse", Headers: map[string]string{"X-API-Key": key}},
	} {
		if err := m.Connect(testContext(t, bound), name, spec); err != nil {
			t.Fatal(err)
		}
		checkText(t, m, name, "echo", object{"text": name}, name)
	}
}
