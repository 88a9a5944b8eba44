package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/test/servers/web"
	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// Every secret of this test begins so.
const canary = "canary-"

const leakyRole = "e2e-leaky"

// printingRole prints its argument, as a command that knows credentials does, and says the same to everybody.
const printingRole = "e2e-printing"

func init() {
	roles[leakyRole] = playLeaky
	roles[printingRole] = func(args []string) int {
		fmt.Fprintln(os.Stderr, "this is", args[0])
		fmt.Println(args[0])
		return 0
	}
}

// playLeaky is a server that tells everybody what it was given: on standard error, as noise on standard output, and in
// its errors. The first argument says what it does then: exit, refuse the handshake, or work.
func playLeaky(args []string) int {
	var received []string
	for _, kv := range os.Environ() {
		if name, value, _ := strings.Cut(kv, "="); strings.Contains(value, canary) {
			received = append(received, name+" is "+value)
		}
	}
	all := fmt.Sprintf("cannot log in with %s and %q", strings.Join(received, ", "), args[1:])
	fmt.Fprintln(os.Stderr, all)
	fmt.Println(all)
	if args[0] == "exit" {
		return 1
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		text, _ := json.Marshal(all) // a string always marshals
		switch {
		case m.Method == "initialize" && args[0] != "refuse":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},`+
				`"serverInfo":{"name":"leaky","version":"1"}}}`+"\n", m.ID)
		case m.Method == "tools/list":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"login","inputSchema":{"type":"object"}}]}}`+
				"\n", m.ID)
		default:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":%s}}`+"\n", m.ID, text)
		}
	}
	return 0
}

// echoRequest answers everything with a status and all that the request has told: in the body, in headers, in the challenge.
func echoRequest(code int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all := fmt.Sprintf("not good enough: %s, %s, %s", r.Header.Get("Authorization"), r.Header.Get("X-Key"),
			r.URL.String())
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error_description=%q, scope="read"`, all))
		w.Header().Set("Location", "http://127.0.0.1:1"+r.URL.RequestURI())
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(code)
		fmt.Fprint(w, all)
	})
}

// rejectWithRequest answers with a JSON-RPC error that holds all that the request has told.
func rejectWithRequest() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID json.RawMessage `json:"id"`
		}
		_ = json.NewDecoder(r.Body).Decode(&m) // a request that is no JSON has no id, which is answered as well
		text, _ := json.Marshal(fmt.Sprintf("not good enough: %s, %s", r.Header.Get("Authorization"), r.URL))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":%s}}`, m.ID, text)
	})
}

// outputLog is everything that a manager has said.
type outputLog struct {
	mu  sync.Mutex
	log bytes.Buffer
	all []string
}

func (e *outputLog) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.log.Write(p)
}

func (e *outputLog) addOutput(from string, v any) {
	text := fmt.Sprintf("%+v", v)
	if raw, err := json.Marshal(v); err == nil {
		text += "\n" + string(raw)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, from+": "+text)
}

// messageCollector is another actor, which keeps what it is sent.
type messageCollector struct{ messages chan proto.Message }

func (c messageCollector) Receive(ctx actor.Context) {
	if m, ok := ctx.Message().(proto.Message); ok {
		c.messages <- m
	}
}

// X4: what was given to servers to prove who they are, working and failing ones, chatty and discreet, appears in no log
// line, status, history, event, error or reply.
func TestNoSecretIsEverTold(t *testing.T) {
	seeds.Shows(t, "002.9.credentials", "000.3.status-config", "001.7.api-key", "004.fr5.ac-api-key")
	checkLeaks(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	leaky := func(what string) supervisor.Spec {
		return supervisor.Spec{
			Command: self,
			Args: []string{leakyRole, what, "--token=" + canary + "argument-4d5e", "--api-key", canary + "next-argument-6f70",
				"postgres://e2e:" + canary + "password-81a2@127.0.0.1:1/db"},
			Env: map[string]string{"SERVICE_TOKEN": canary + "env-93b4", "HARMLESS": canary + "plain-env-a5c6"},
		}
	}
	remote := func(h http.Handler, path string) supervisor.Spec {
		return supervisor.Spec{
			Type: messages.HTTP, URL: web.Serve(t, h) + path + "?key=" + canary + "query-b7d8",
			Headers: map[string]string{"Authorization": "Bearer " + canary + "bearer-c9ea"},
			Auth:    &supervisor.Auth{Type: "api_key", HeaderName: "X-Key", APIKey: canary + "key-dbfc"},
		}
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(canary+"file-1f21"), 0o600); err != nil {
		t.Fatal(err)
	}
	printing := []string{printingRole, `{"X-Key": "` + canary + `printed-a9ba"}`}
	authorised := func(h http.Handler, a *supervisor.Auth) supervisor.Spec {
		return supervisor.Spec{Type: messages.HTTP, URL: web.Serve(t, h) + "/mcp", Auth: a}
	}
	good := web.RequireKey("X-Key", canary+"key-dbfc", web.RequireToken(canary+"bearer-c9ea", web.Good()))
	specs := map[string]supervisor.Spec{
		"works": leaky("work"), "exits": leaky("exit"), "refuses": leaky("refuse"),
		"http": remote(good, "/mcp"), "rejects": remote(rejectWithRequest(), "/mcp"),
		"sse":     changeSpec(remote(good, "/sse"), func(s *supervisor.Spec) { s.Type = messages.SSE }),
		"401":     remote(echoRequest(http.StatusUnauthorized), "/mcp"),
		"401-sse": changeSpec(remote(echoRequest(http.StatusUnauthorized), "/sse"), func(s *supervisor.Spec) { s.Type = messages.SSE }),
		"403":     remote(echoRequest(http.StatusForbidden), "/mcp"),
		"404":     remote(echoRequest(http.StatusNotFound), "/mcp"),
		"500":     remote(echoRequest(http.StatusInternalServerError), "/mcp"),
		"307":     remote(echoRequest(http.StatusTemporaryRedirect), "/mcp"),
		"200":     remote(echoRequest(http.StatusOK), "/mcp"),
		"dead": changeSpec(remote(good, "/mcp"), func(s *supervisor.Spec) {
			s.URL = fmt.Sprintf("http://e2e:%suser-edfe@127.0.0.1:%d/mcp?key=%squery-b7d8", canary, freePort(t), canary)
		}),
		"401-file":    authorised(echoRequest(http.StatusUnauthorized), &supervisor.Auth{Type: "token_file", TokenPath: file}),
		"401-command": authorised(echoRequest(http.StatusUnauthorized), &supervisor.Auth{Type: "bearer", Command: self, Args: printing}),
		"401-helper": authorised(echoRequest(http.StatusUnauthorized), &supervisor.Auth{Type: "helper", Command: self,
			Args: printing, Env: map[string]string{"HELPER_TOKEN": canary + "helper-env-2132"}}),
		"200-file":  authorised(rejectWithRequest(), &supervisor.Auth{Type: "token_file", TokenPath: file}),
		"500-token": authorised(echoRequest(http.StatusInternalServerError), &supervisor.Auth{Type: "bearer", Token: canary + "token-4354"}),
		"oauth": authorised(echoRequest(http.StatusUnauthorized), &supervisor.Auth{Type: "client_credentials", ClientID: "e2e",
			ClientSecret: canary + "client-6576", TokenURL: web.Serve(t, echoRequest(http.StatusBadRequest)) + "/token?key=" + canary + "token-url-8798"}),
		"bad-url": changeSpec(remote(good, "/mcp"), func(s *supervisor.Spec) {
			s.URL = "http://[" + canary + "host/?k=" + canary + "q"
		}),
		"bad-scheme": changeSpec(remote(good, "/mcp"), func(s *supervisor.Spec) { s.URL = "ws://x/?key=" + canary + "query-b7d8" }),
		"bad-header": changeSpec(remote(good, "/mcp"), func(s *supervisor.Spec) {
			s.Headers = map[string]string{"X-Bad": canary + "line\nbreak"}
		}),
		"missing": changeSpec(leaky(""), func(s *supervisor.Spec) { s.Command = "e2e-no-such-program" }),
		"line":    changeSpec(leaky(""), func(s *supervisor.Spec) { s.Command = "e2e-no-such --token=" + canary + "command-0f10" }),
	}
	found := &outputLog{}
	encoder := zapcore.NewJSONEncoder(zap.NewDevelopmentEncoderConfig())
	log := zap.New(zapcore.NewCore(encoder, zapcore.AddSync(found), zap.DebugLevel))
	m := startManager(t, supervisor.Config{Logger: log, AuthStore: auth.NewMemory()})
	w := m.Watch(100_000)
	asker := messageCollector{make(chan proto.Message, 100)}
	pid := m.System().Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return asker }))
	ask := func(msg proto.Message) {
		m.System().Root.RequestWithCustomSender(m.PID(), msg, pid)
		select {
		case reply := <-asker.messages:
			found.addOutput(fmt.Sprintf("reply to %T", msg), reply)
		case <-time.After(bound):
			t.Fatalf("no reply to %T", msg)
		}
	}

	connects := []string{"works", "http", "sse"}
	var wg sync.WaitGroup
	for name, spec := range specs {
		wg.Go(func() {
			err := m.Connect(testContext(t, bound), name, spec)
			if (err == nil) != slices.Contains(connects, name) {
				t.Errorf("Connect %s: %v", name, err)
			}
			found.addOutput("Connect "+name, err)
		})
	}
	wg.Wait()
	for name := range specs {
		for _, tool := range []string{"login", "echo", "no-such-tool"} {
			res, err := m.CallServerTool(testContext(t, bound), name, tool, object{"text": "hi"})
			found.addOutput("CallServerTool "+name, err)
			if name == "http" && tool == "echo" && (err != nil || res.Text() != "hi") {
				t.Errorf("http: %v, %v", res, err)
			}
		}
		found.addOutput("Reconnect "+name, m.Reconnect(testContext(t, bound), name))
		changed := changeSpec(specs[name], func(s *supervisor.Spec) { s.StopGrace = toDuration(1) })
		ask(&messages.AddServer{Name: name, Spec: changed.ToProto()})
		ask(&messages.CallTool{Server: name, Tool: "login"})
		ask(&messages.ProvideCredentials{Server: name, Token: canary + "provided-cbdc"})
		found.addOutput("ProvideCredentials "+name, m.ProvideCredentials(testContext(t, bound), name, canary+"provided-cbdc"))
		found.addOutput("Login "+name, m.Login(testContext(t, bound), name, supervisor.LoginOptions{}))
	}
	states, err := m.AuthStatus(testContext(t, bound))
	found.addOutput("AuthStatus", states)
	found.addOutput("AuthStatus", err)
	res, err := m.SetServers(testContext(t, bound), map[string]supervisor.Spec{"bad": specs["bad-scheme"],
		"works": specs["works"], "exits": specs["exits"], "401": specs["401"]})
	found.addOutput("SetServers", res)
	found.addOutput("SetServers", err)
	awaitSettled(t, m)
	ask(&messages.GetStatus{})
	for _, name := range m.Servers() {
		st, err := m.ServerStatus(name)
		if errors.Is(err, supervisor.ErrUnknownServer) {
			continue // its removal has ended since
		}
		found.addOutput("ServerStatus "+name, st)
		history, err := m.History(name)
		if err == nil && len(history) == 0 {
			t.Errorf("%s has no history: %v", name, err)
		}
		found.addOutput("History "+name, history)
	}
	if st := statusOf(t, m, "exits"); !containsWords(st.StderrTail, "cannot log in with", "SERVICE_TOKEN is [redacted]") ||
		!containsWords(st.Error, "cannot log in with") {
		t.Errorf("the server's own words are lost, or were never said: %q, %q", st.Error, st.StderrTail)
	}
	closeManager(t, m)
	// What is sent to a manager that is closed reaches no actor, and the actor library says so in the log.
	eventually(t, "a message that reaches nobody is logged", func() bool {
		m.System().Root.Send(m.PID(), &messages.AddServer{Name: "late", Spec: specs["works"].ToProto()})
		m.System().Root.Send(m.PID(), &messages.ProvideCredentials{Server: "late", Token: canary + "late"})
		found.mu.Lock()
		defer found.mu.Unlock()
		return strings.Contains(found.log.String(), "DeadLetter")
	})
	for e := range w.Events(t.Context()) {
		found.addOutput("event", e)
	}
	m.System().Root.Stop(pid)

	found.mu.Lock()
	defer found.mu.Unlock()
	if len(found.all) < 100 || found.log.Len() < 1000 {
		t.Errorf("%d texts and %d bytes of log were looked at", len(found.all), found.log.Len())
	}
	for line := range strings.Lines(found.log.String()) {
		found.all = append(found.all, "log: "+line)
	}
	received := 0
	for _, text := range found.all {
		if i := strings.Index(text, canary); i >= 0 {
			if received++; received <= 20 {
				t.Errorf("%s … %s", text[:min(60, i)], text[max(0, i-80):min(len(text), i+60)])
			}
		}
	}
}

// Every request carries what was configured, and only to where it was configured.
func TestHeadersAndKeysGoWithEveryRequest(t *testing.T) {
	seeds.Shows(t, "000.2.headers", "000.7.http", "000.7.sse", "004.fr5.api-key", "004.fr5.api-key-config",
		"001.5.url-headers")
	checkLeaks(t)
	seen := &web.Recorder{Next: web.Good()}
	url := web.Serve(t, seen)
	spec := func(kind messages.TransportKind, path string) supervisor.Spec {
		return supervisor.Spec{Type: kind, URL: url + path, Headers: map[string]string{"X-Team": "blue"},
			Auth: &supervisor.Auth{Type: "api_key", APIKey: "sesame"}}
	}
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{
		"http": spec(messages.HTTP, "/mcp"), "sse": spec(messages.SSE, "/sse"),
	}})
	awaitConnected(t, m, "http", "sse")
	for _, name := range []string{"http", "sse"} {
		checkText(t, m, name, "header", object{"name": "X-Team"}, "blue")
		checkText(t, m, name, "header", object{"name": "Authorization"}, "Bearer sesame")
	}
	if err := m.Close(testContext(t, bound)); err != nil {
		t.Fatal(err)
	}
	requests := seen.Requests()
	for _, r := range requests {
		if r.Header.Get("X-Team") != "blue" || r.Header.Get("Authorization") != "Bearer sesame" {
			t.Errorf("%s %s went without them", r.Method, r.Path)
		}
	}
	if len(requests) < 10 {
		t.Errorf("only %d requests", len(requests))
	}
}
