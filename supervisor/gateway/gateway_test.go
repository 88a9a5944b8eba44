package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// An endpoint is a gateway before scripted servers, as agents reach it.
type endpoint struct {
	t *testing.T
	m *supervisor.Manager
	h *serve.Handler
}

// start serves scripted servers to the principals a and b, whose tokens are their names.
func start(t *testing.T, prefix gateway.Prefix, servers ...*supervisortest.Server) *endpoint {
	var cfg supervisor.Config
	gateway.PassQuestions(&cfg)
	m := supervisortest.StartConfig(t, cfg, servers...)
	return serveAll(t, m, gateway.Config{Manager: m, Prefix: prefix})
}

// serveAll serves a gateway to the principals a, b and stranger.
func serveAll(t *testing.T, m *supervisor.Manager, cfg gateway.Config) *endpoint {
	g := gateway.New(cfg)
	tokens := serve.NewTokens(map[string]serve.Principal{"a": {Name: "a"}, "b": {Name: "b"}, "stranger": {Name: "stranger"}})
	h := serve.NewHandler(serve.Options{Service: g, Authenticate: tokens.Authenticate})
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = h.Close(ctx)
		g.Close()
	})
	return &endpoint{t, m, h}
}

// An agent is one session of the legacy era.
type agent struct {
	*endpoint
	token, path, id string
	opening         string // the answer to initialize
}

func (e *endpoint) post(ctx context.Context, path string, headers map[string]string, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for k, v := range headers {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	e.h.ServeHTTP(w, r)
	return w
}

// agent opens a session.
func (e *endpoint) agent(token, path, capabilities string) *agent {
	a := &agent{endpoint: e, token: token, path: path}
	w := e.post(e.t.Context(), path, map[string]string{"Authorization": "Bearer " + token},
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":`+capabilities+`}}`)
	a.opening = w.Body.String()
	if a.id = w.Header().Get("Mcp-Session-Id"); a.id == "" {
		e.t.Fatalf("initialize: %d %s", w.Code, w.Body)
	}
	return a
}

// ask sends a request and returns the last message of the answer.
func (a *agent) ask(method, params string) string {
	w := a.post(a.t.Context(), a.path, map[string]string{"Authorization": "Bearer " + a.token, "Mcp-Session-Id": a.id},
		`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`)
	return lastMessage(w)
}

func lastMessage(w *httptest.ResponseRecorder) string {
	text := strings.TrimSpace(w.Body.String())
	if i := strings.LastIndex(text, "data: "); i >= 0 {
		text = text[i+len("data: "):]
	}
	return text
}

// modern sends a request of the modern era.
func (e *endpoint) modern(token, method, name, members string) string {
	return lastMessage(e.post(e.t.Context(), "/mcp", map[string]string{"Authorization": "Bearer " + token, "Mcp-Protocol-Version": "2026-07-28",
		"Mcp-Method": method, "Mcp-Name": name}, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+members+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`))
}

// tools returns the names in a list.
func tools(t *testing.T, answer string) (names []string) {
	t.Helper()
	var got struct {
		Result struct{ Tools []struct{ Name string } }
	}
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	for _, tool := range got.Result.Tools {
		names = append(names, tool.Name)
	}
	return names
}

func text(name string) supervisortest.Tool { return supervisortest.Text(name, "it is "+name) }

func TestNamesOfAView(t *testing.T) {
	long := strings.Repeat("x", 60)
	for prefix, want := range map[gateway.Prefix]string{
		gateway.PrefixAlways:   "[one__read one__write two__read two__%s]",
		gateway.PrefixConflict: "[one__read write two__read two__%s]",
		gateway.PrefixNever:    "[read write two__read two__%s]",
	} {
		e := start(t, prefix, supervisortest.NewServer("one", text("read"), text("write")), supervisortest.NewServer("two", text("read"), text(long)))
		a := e.agent("a", "/mcp", "{}")
		names := tools(t, a.ask("tools/list", "{}"))
		cut := strings.TrimPrefix(names[3], "two__")
		if got := fmt.Sprint(names); got != fmt.Sprintf(want, cut) || len("mcp__mcpvisor__"+names[3]) != 64 {
			t.Errorf("%s: %s", prefix, got)
		}
		for i, server := range []string{"one", "one", "two", "two"} {
			answer := a.ask("tools/call", `{"name":"`+names[i]+`","arguments":{}}`)
			if !strings.Contains(answer, "it is ") {
				t.Errorf("%s: %s of %s: %s", prefix, names[i], server, answer)
			}
		}
		if got := fmt.Sprint(tools(t, e.agent("a", "/mcp/s/one", "{}").ask("tools/list", "{}"))); got != "[read write]" {
			t.Errorf("the view of one server: %s", got)
		}
	}
}

func TestCallsOfWhatIsNotThere(t *testing.T) {
	e := start(t, gateway.PrefixAlways, supervisortest.NewServer("one", text("read")))
	a := e.agent("a", "/mcp", "{}")
	for _, name := range []string{"nothing", "two__read", "one__nothing"} {
		if answer := a.ask("tools/call", `{"name":"`+name+`"}`); !strings.Contains(answer, `"code":-32602`) {
			t.Errorf("%s: %s", name, answer)
		}
	}
	if w := e.post(t.Context(), "/mcp/s/two", map[string]string{"Authorization": "Bearer a"},
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`); !strings.Contains(w.Body.String(), "there is no server two") {
		t.Errorf("a view of no server: %s", w.Body)
	}
	// Without the prefix a name leads to its tool as long as no other server has it.
	if answer := a.ask("tools/call", `{"name":"read"}`); !strings.Contains(answer, "it is read") {
		t.Errorf("the own name: %s", answer)
	}
}

// A server that is down ends a call at once: with why, whether calling again is safe, and when the next attempt is.
func TestOutcomesOnTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := supervisortest.NewServer("one", text("read"))
		e := start(t, gateway.PrefixAlways, one)
		a := e.agent("a", "/mcp", "{}")
		one.Hang("read")
		answer := make(chan string, 1)
		go func() { answer <- a.ask("tools/call", `{"name":"one__read"}`) }()
		synctest.Wait()
		one.Refuse(errors.New("down"))
		one.Crash()
		if got := <-answer; !strings.Contains(got, `"isError":true,"_meta":{"mcpvisor/outcome":"unknown"`) || !strings.Contains(got, "It may have run") {
			t.Errorf("a call that was running: %s", got)
		}
		for _, wait := range []time.Duration{10 * time.Millisecond, 20 * time.Second} { // lost, and then withdrawn
			time.Sleep(wait)
			for era, got := range map[string]string{"legacy": a.ask("tools/call", `{"name":"one__read"}`),
				"modern": e.modern("a", "tools/call", "one__read", `"name":"one__read",`)} {
				contains(t, fmt.Sprint("after ", wait, " in the era ", era), got, `"mcpvisor/outcome":"not-sent"`, "calling again cannot run it twice",
					`"mcpvisor/server":"one"`, `"mcpvisor/retryAfterMs":`, "The next attempt to connect the server begins in ")
			}
		}
		if n := len(one.Calls()); n != 1 {
			t.Errorf("the server got %d calls", n)
		}
	})
}

// An error of a server passes as it came, and so does a result.
func TestBytesPass(t *testing.T) {
	one := supervisortest.NewServer("one", supervisortest.Tool{Name: "read", InputSchema: `{"type":"object","$schema":"x","oneOf":[{}]}`,
		Handle: func(_ context.Context, c supervisortest.Call) (string, error) { return string(c.Arguments), nil }})
	e := start(t, gateway.PrefixNever, one)
	a := e.agent("a", "/mcp", "{}")
	want := ""
	for _, entry := range e.m.Tools().Server("one") {
		want = string(entry.Tool.Raw)
	}
	if got := a.ask("tools/list", "{}"); got != `{"jsonrpc":"2.0","id":1,"result":{"tools":[`+want+`]}}` {
		t.Errorf("the list is %s, the server's %s", got, want)
	}
	if got := a.ask("tools/call", `{"name":"read","arguments":{"n":1.0,"e":"\u00e9"}}`); !strings.Contains(got, `{\"n\":1.0,\"e\":\"\\u00e9\"}`) {
		t.Errorf("the arguments came as %s", got)
	}
	if got := e.modern("a", "tools/call", "read", `"name":"read",`); !strings.Contains(got, `"resultType":"complete"`) {
		t.Errorf("the modern era: %s", got)
	}
	if got := e.modern("a", "tools/list", "", ""); !strings.Contains(got, `"ttlMs":0,"cacheScope":"private"`) || !strings.Contains(got, want) {
		t.Errorf("the modern list: %s", got)
	}
}

// Agents are notified where the bytes of their view have changed, and of nothing else.
func TestNoticesOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := supervisortest.NewServer("one", text("read")), supervisortest.NewServer("two", text("read"))
		e := start(t, gateway.PrefixAlways, one, two)
		heard := func(path string) func() int {
			a := e.agent("a", path, "{}")
			if path != "/mcp/s/two" { // who has not listed is told of what changes, too, and of nothing else
				a.ask("tools/list", "{}")
			}
			ctx, cancel := context.WithCancel(t.Context())
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, nil)
			r.Header.Set("Authorization", "Bearer a")
			r.Header.Set("Mcp-Session-Id", a.id)
			w := httptest.NewRecorder()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				e.h.ServeHTTP(w, r)
			}()
			return func() int {
				cancel()
				<-ended
				return strings.Count(w.Body.String(), "notifications/tools/list_changed")
			}
		}
		all, first, second := heard("/mcp"), heard("/mcp/s/one"), heard("/mcp/s/two")
		synctest.Wait()
		one.SetTools(text("read"), text("write"))
		time.Sleep(5 * time.Second)
		one.SetTools(text("read"), text("write")) // the same again
		two.SetTools(text("read"))                // another generation, and the same bytes
		time.Sleep(5 * time.Second)
		synctest.Wait()
		for name, c := range map[string]struct {
			heard func() int
			want  int
		}{"all": {all, 1}, "one": {first, 1}, "two": {second, 0}} {
			if got := c.heard(); got != c.want {
				t.Errorf("%s: %d notices, want %d", name, got, c.want)
			}
		}
	})
}

// A question reaches the agent whose request it belongs to, and no other; where that is not known, it is refused.
func TestQuestions(t *testing.T) {
	asked := make(chan string, 10)
	gate := make(chan struct{})
	one := supervisortest.NewServer("one", supervisortest.Tool{Name: "ask", Handle: func(ctx context.Context, c supervisortest.Call) (string, error) {
		got, err := c.Ask(ctx, "elicitation/create", json.RawMessage(`{"message":"who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`))
		if err != nil {
			asked <- "refused"
			return "refused: " + err.Error(), nil //nolint:nilerr // the refusal is the tool's answer
		}
		asked <- "answered"
		return string(got), nil
	}}, supervisortest.Tool{Name: "wait", Handle: func(ctx context.Context, _ supervisortest.Call) (string, error) {
		asked <- "waits"
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return "waited", nil
	}})
	e := start(t, gateway.PrefixNever, one)
	server := httptest.NewServer(e.h)
	defer server.Close()
	a, b := e.agent("a", "/mcp", `{"elicitation":{}}`), e.agent("b", "/mcp", `{"elicitation":{}}`)
	call := func(a *agent, tool string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/mcp",
			strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`"}}`))
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range map[string]string{"Content-Type": "application/json", "Authorization": "Bearer " + a.token, "Mcp-Session-Id": a.id} {
			r.Header.Set(k, v)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	// Alone at the server: the question is the agent's, and another agent cannot answer it.
	res := call(a, "ask")
	defer res.Body.Close()
	var event [4096]byte
	n, _ := res.Body.Read(event[:])
	if !strings.Contains(string(event[:n]), `"method":"elicitation/create","params":{"message":"who?"`) {
		t.Fatalf("the agent is told %s", event[:n])
	}
	for _, who := range []*agent{b, a} {
		who.post(t.Context(), who.path, map[string]string{"Authorization": "Bearer " + who.token, "Mcp-Session-Id": who.id},
			`{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"name":"`+who.token+`"}}}`)
	}
	if got := <-asked; got != "answered" {
		t.Errorf("the question was %s", got)
	}
	n, _ = res.Body.Read(event[:])
	if !strings.Contains(string(event[:n]), `\"name\":\"a\"`) {
		t.Errorf("the answer is %s", event[:n])
	}
	// Another agent has a request at the server: nobody knows whose the question is.
	waiting := make(chan struct{})
	go func() {
		defer close(waiting)
		call(b, "wait").Body.Close()
	}()
	<-asked
	if answer := a.ask("tools/call", `{"name":"ask"}`); !strings.Contains(answer, "refused") {
		t.Errorf("an ambiguous question: %s", answer)
	}
	close(gate)
	<-waiting
	<-asked
}

// A server with share "principal" has an instance for each principal: one's state and questions are never another's.
func TestInstancesOfPrincipals(t *testing.T) {
	one := supervisortest.NewServer("one", text("read"))
	one.Spec.Share = messages.SharePrincipal
	e := start(t, gateway.PrefixNever, one)
	a, b := e.agent("a", "/mcp", "{}"), e.agent("b", "/mcp", "{}")
	for _, who := range []*agent{a, b, a} {
		if answer := who.ask("tools/call", `{"name":"read"}`); !strings.Contains(answer, "it is read") {
			t.Errorf("%s: %s", who.token, answer)
		}
		if got := fmt.Sprint(tools(t, who.ask("tools/list", "{}"))); got != "[read]" {
			t.Errorf("%s sees %s", who.token, got)
		}
	}
	if got := fmt.Sprint(e.m.Instances("one")); got != "[one@a one@b]" || one.Connections() != 3 {
		t.Errorf("the instances are %s, after %d connections", got, one.Connections())
	}
}

// A list of 5,000 tools stands ready: asking for it reads nothing and decodes nothing.
func BenchmarkList(b *testing.B) {
	all := make([]supervisortest.Tool, 5_000)
	for i := range all {
		all[i] = supervisortest.Tool{Name: fmt.Sprintf("tool_%d", i), InputSchema: `{"type":"object","properties":{"text":{"type":"string"}}}`}
	}
	m := supervisortest.StartConfig(b, supervisor.Config{}, supervisortest.NewServer("one", all...))
	g := gateway.New(gateway.Config{Manager: m})
	defer g.Close()
	s := &serve.Session{}
	if _, e := g.Describe(s); e != nil {
		b.Fatal(e)
	}
	if _, e := g.Handle(b.Context(), &serve.Request{Session: s, Method: "tools/list"}); e != nil {
		b.Fatal(e) // it renders, once
	}
	for b.Loop() {
		if _, e := g.Handle(b.Context(), &serve.Request{Session: s, Method: "tools/list"}); e != nil {
			b.Fatal(e)
		}
	}
}

// BenchmarkSession reports what a session holds that is idle.
func BenchmarkSession(b *testing.B) {
	m := supervisortest.StartConfig(b, supervisor.Config{}, supervisortest.NewServer("one", text("read")))
	g := gateway.New(gateway.Config{Manager: m})
	defer g.Close()
	h := serve.NewHandler(serve.Options{Service: g})
	const n = 10_000
	for b.Loop() {
		before := heapInUse()
		for range n {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader(
				`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}}}}`))
			r.Header.Set("Content-Type", "application/json")
			h.ServeHTTP(w, r)
		}
		if h.Sessions() != n {
			b.Fatalf("%d sessions", h.Sessions())
		}
		b.ReportMetric(float64(heapInUse()-before)/n, "B/session")
		if err := h.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
		h = serve.NewHandler(serve.Options{Service: g})
	}
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// The tools of a server whose process has ended are gone before an agent can ask for them, a call by a name of before says why, and they
// come back with it.
func TestTheToolsOfADeadServerAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := supervisortest.NewServer("one", text("read"))
		e := start(t, gateway.PrefixAlways, one, supervisortest.NewServer("two", text("read")))
		a := e.agent("a", "/mcp", "{}")
		a.ask("tools/list", "{}")
		notices := a.countNotices()
		one.Crash()
		synctest.Wait()
		if got := fmt.Sprint(tools(t, a.ask("tools/list", "{}"))); got != "[two__read]" {
			t.Errorf("after the end of one there is %s", got)
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if got := notices(); got == 0 {
			t.Error("100 ms after the end of one the agent has no notice")
		}
		if answer := a.ask("tools/call", `{"name":"one__read"}`); !strings.Contains(answer, `"mcpvisor/outcome":"not-sent"`) {
			t.Errorf("a call by the name of before: %s", answer)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := fmt.Sprint(tools(t, a.ask("tools/list", "{}"))); got != "[one__read two__read]" {
			t.Errorf("after its return there is %s", got)
		}
	})
}

// An agent waits for servers that start from when it began to wait: what was needed to start the gateway counts. A rest is left for the
// servers in any case, and what is said of the beginning never makes the wait longer.
func TestTheFirstListWaitsFromTheAgentsBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// begin starts a gateway before a server that does not answer.
		begin := func() (g *gateway.Gateway, end func()) {
			silent := supervisortest.NewServer("silent", text("read"))
			silent.SetSilent(true)
			m, err := supervisor.Start(t.Context(), supervisortest.AddTo(supervisor.Config{}, silent))
			if err != nil {
				t.Fatal(err)
			}
			g = gateway.New(gateway.Config{Manager: m})
			return g, func() {
				g.Close()
				_ = m.Close(t.Context()) // the silent one is cut
			}
		}
		for waited, want := range map[time.Duration]time.Duration{
			0: 240 * time.Millisecond, 120 * time.Millisecond: 120 * time.Millisecond, 189 * time.Millisecond: 51 * time.Millisecond,
			time.Hour: 50 * time.Millisecond, -time.Hour: 300 * time.Millisecond,
		} {
			for _, line := range []string{
				`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`,
				`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
					`"io.modelcontextprotocol/clientCapabilities":{}}}}`,
			} {
				g, end := begin()
				start := time.Now()
				var out strings.Builder
				err := serve.Stdio(t.Context(), serve.Options{Service: g, Began: start.Add(-waited)}, serve.Principal{}, serve.Path{},
					strings.NewReader(line+"\n"), &out)
				took := time.Since(start)
				if end(); took != want || err != nil || !strings.Contains(out.String(), `"capabilities"`) {
					t.Errorf("after a wait of %s it took %s, not %s: %s %v", waited, took, want, out.String(), err)
				}
			}
		}
		// The server of one that comes later has had its time, or a part of it.
		for later, want := range map[time.Duration]time.Duration{0: 300 * time.Millisecond, 100 * time.Millisecond: 200 * time.Millisecond, time.Second: 0} {
			g, end := begin()
			time.Sleep(later)
			start := time.Now()
			if _, e := g.Describe(&serve.Session{}); e != nil || time.Since(start) != want {
				t.Errorf("an agent that does not say when it began waited for %s after %s: %v", time.Since(start), later, e)
			}
			end()
		}
	})
}

// An agent of the modern era that begins with a list waits as one that begins with discover: for servers that start, once, and no longer.
func TestAnAgentThatBeginsWithAList(t *testing.T) {
	for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
		synctest.Test(t, func(t *testing.T) {
			silent := supervisortest.NewServer("silent", text("read"))
			silent.SetSilent(true)
			slow := supervisortest.NewServer("slow", text("read"))
			cfg := supervisortest.AddTo(supervisor.Config{}, silent, slow)
			serveSlow := cfg.InProcess["slow"]
			cfg.InProcess["slow"] = func(ctx context.Context, peer inprocess.Peer) error {
				time.Sleep(100 * time.Millisecond)
				return serveSlow(ctx, peer)
			}
			m, err := supervisor.Start(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			g := gateway.New(gateway.Config{Manager: m})
			s := &serve.Session{Modern: true}
			for _, want := range []time.Duration{240 * time.Millisecond, 0} {
				begin := time.Now()
				b, e := g.Handle(t.Context(), &serve.Request{Session: s, Method: method, Params: []byte("{}")})
				if took := time.Since(begin); e != nil || took != want {
					t.Errorf("%s took %s, not %s: %v", method, took, want, e)
				}
				if method == "tools/list" && !strings.Contains(string(b), "slow__read") {
					t.Errorf("the list is %s", b)
				}
			}
			g.Close()
			_ = m.Close(t.Context()) // the silent one is cut
		})
	}
}

// An agent that names a prompt or a resource while the servers start gets it: what is in no list yet is waited for, and a silent server
// delays the answer for a bounded time.
func TestReadsWaitForServersThatStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := supervisortest.NewServer("silent", text("read"))
		silent.SetSilent(true)
		cfg := supervisortest.AddTo(supervisor.Config{}, supervisortest.NewServer("one", text("read")), silent)
		m, err := supervisor.Start(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		g := gateway.New(gateway.Config{Manager: m, Prefix: gateway.PrefixNever})
		s := &serve.Session{Modern: true}
		begin := time.Now()
		for method, params := range map[string]string{"resources/read": `{"uri":"x://y"}`, "prompts/get": `{"name":"none"}`} {
			if _, e := g.Handle(t.Context(), &serve.Request{Session: s, Method: method, Params: []byte(params)}); e == nil {
				t.Errorf("%s has found what nobody has", method)
			}
			if took := time.Since(begin); took < 5*time.Second || took > 6*time.Second {
				t.Errorf("%s was answered after %s", method, took)
			}
			begin = time.Now()
		}
		g.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			t.Error(err)
		}
	})
}
