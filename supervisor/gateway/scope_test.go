package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// viewOf makes a configured view of rules: "allow mcp__x".
func viewOf(servers []string, fallback access.Verdict, rules ...string) config.View {
	v := config.View{Servers: servers, Rules: access.Set{Default: fallback}}
	for _, text := range rules {
		verdict, rule, _ := strings.Cut(text, " ")
		v.Rules.Rules = append(v.Rules.Rules, access.MustParse(access.Verdict(verdict), rule))
	}
	return v
}

// startViews serves scripted servers to the tokens given, with views.
func startViews(t *testing.T, views map[string]config.View, tokens map[string]serve.Principal, servers ...*supervisortest.Server) (*endpoint, *gateway.Gateway) {
	return startEndpoint(t, supervisor.Config{}, views, tokens, servers...)
}

func startEndpoint(t *testing.T, cfg supervisor.Config, views map[string]config.View, tokens map[string]serve.Principal,
	servers ...*supervisortest.Server,
) (*endpoint, *gateway.Gateway) {
	questions := gateway.PassQuestions(&cfg)
	m := supervisortest.StartConfig(t, cfg, servers...)
	if err := m.Settled(t.Context()); err != nil {
		t.Fatal(err)
	}
	g := gateway.New(gateway.Config{Manager: m, Views: views, Questions: []*gateway.Questions{questions}})
	h := serve.NewHandler(serve.Options{Service: g, Authenticate: serve.NewTokens(tokens).Authenticate})
	t.Cleanup(func() {
		_ = h.Close(t.Context())
		g.Close()
	})
	return &endpoint{t, m, h}, g
}

// An offerServer is a server with two tools, a resource and a prompt.
type offerServer string

func (name offerServer) serveConnection(ctx context.Context, peer inprocess.Peer) error {
	return serveRequests(ctx, peer, func(r heardRequest) string {
		return strings.NewReplacer("NAME", string(name), "TOOL", r.text("name")).Replace(map[string]string{
			"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{"subscribe":true},"prompts":{},"completions":{}},` +
				`"serverInfo":{"name":"n","version":"1"},"instructions":"how to use NAME"}`,
			"tools/list":               `{"tools":[{"name":"read","inputSchema":{"type":"object"}},{"name":"write","inputSchema":{"type":"object"}}]}`,
			"tools/call":               `{"content":[{"type":"text","text":"it is TOOL of NAME"}]}`,
			"resources/list":           `{"resources":[{"uri":"NAME://x","name":"the list of NAME"}]}`,
			"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"NAME://t/{x}","name":"the template of NAME"}]}`,
			"resources/read":           `{"contents":[{"uri":"NAME://x","text":"the secret of NAME"}]}`,
			"prompts/list":             `{"prompts":[{"name":"greet","description":"the prompt of NAME"}]}`,
			"prompts/get":              `{"messages":[{"role":"user","content":{"type":"text","text":"the greeting of NAME"}}]}`,
			"completion/complete":      `{"completion":{"values":["the completion of NAME"]}}`,
		}[r.method])
	})
}

// startOffers serves offerServers with views.
func startOffers(t *testing.T, views map[string]config.View, tokens map[string]serve.Principal, names ...string) (*endpoint, *gateway.Gateway) {
	cfg := supervisor.Config{Servers: map[string]supervisor.Spec{}, InProcess: map[string]func(context.Context, inprocess.Peer) error{}}
	for _, name := range names {
		cfg.Servers[name], cfg.InProcess[name] = supervisor.Spec{Type: messages.SDK}, offerServer(name).serveConnection
	}
	return startEndpoint(t, cfg, views, tokens)
}

// Whatever an agent tries, a view shows what its rule says, and nothing else can be reached: not by a name that is not shown, not by
// another path, not by a URI.
func TestAViewIsWhatItsRuleSays(t *testing.T) {
	views := map[string]config.View{
		"one":    viewOf([]string{"one"}, ""),
		"reads":  viewOf(nil, access.Deny, "allow mcp__one__read", "allow mcp__two__read"),
		"unread": viewOf(nil, "", "deny mcp__*__read"),
		"notwo":  viewOf(nil, "", "deny mcp__two"),
	}
	tokens := map[string]serve.Principal{"free": {Name: "free"}, "one": {Name: "p", View: "one"}, "reads": {Name: "p", View: "reads"},
		"lost": {Name: "q", View: "taken away"}}
	e, _ := startOffers(t, views, tokens, "one", "two")
	for _, c := range []struct{ token, path, want string }{
		{"free", "/mcp", "one__read one__write two__read two__write"},
		{"free", "/mcp/v/one", "one__read one__write"},
		{"free", "/mcp/v/reads", "one__read two__read"},
		{"free", "/mcp/v/unread", "one__write two__write"},
		{"free", "/mcp/v/notwo", "one__read one__write"},
		{"free", "/mcp/s/two", "read write"},
		{"one", "/mcp", "one__read one__write"},
		{"one", "/mcp/v/one", "one__read one__write"},
		{"one", "/mcp/v/reads", "one__read"}, // both count
		{"one", "/mcp/v/unread", "one__write"},
		{"one", "/mcp/s/one", "read write"},
		{"reads", "/mcp/v/one", "one__read"},
		{"reads", "/mcp/s/two", "read"},
		{"lost", "/mcp", ""},
	} {
		a := e.agent(c.token, c.path, "{}")
		if got := strings.Join(tools(t, a.ask("tools/list", "{}")), " "); got != c.want {
			t.Errorf("%s at %s sees %q, not %q", c.token, c.path, got, c.want)
		}
		for _, server := range []string{"one", "two"} {
			alone := c.path == "/mcp/s/"+server
			for _, tool := range []string{"read", "write"} {
				shown := slices.Contains(strings.Fields(c.want), server+"__"+tool) || alone && slices.Contains(strings.Fields(c.want), tool)
				ran := false
				for _, name := range []string{server + "__" + tool, tool} {
					answer := a.ask("tools/call", `{"name":"`+name+`","arguments":{}}`)
					ran = ran || strings.Contains(answer, "it is "+tool+" of "+server)
				}
				if ran != shown {
					t.Errorf("%s at %s: %s of %s ran: %v, shown: %v", c.token, c.path, tool, server, ran, shown)
				}
			}
			visible := strings.Contains(c.want, server+"__") || alone && c.want != ""
			name := server + "__greet"
			if alone {
				name = "greet"
			}
			for what, answer := range map[string]string{
				"the list":       a.ask("resources/list", "{}"),
				"the template":   a.ask("resources/templates/list", "{}"),
				"the secret":     a.ask("resources/read", `{"uri":"`+server+`://x"}`),
				"the prompt":     a.ask("prompts/list", "{}"),
				"the greeting":   a.ask("prompts/get", `{"name":"`+name+`"}`),
				"the completion": a.ask("completion/complete", `{"ref":{"type":"ref/prompt","name":"`+name+`"},"argument":{"name":"a","value":""}}`),
				"how to use":     a.opening,
			} {
				owner := " of " + server
				if what == "how to use" {
					owner = " " + server
				}
				if got := strings.Contains(answer, what+owner); got != visible {
					t.Errorf("%s at %s gets %s%s: %v: %s", c.token, c.path, what, owner, got, answer)
				}
			}
		}
	}
	for path, want := range map[string]string{"/mcp/s/two": "there is no server two", "/mcp/v/nothing": "there is no view nothing"} {
		w := e.post(t.Context(), path, map[string]string{"Authorization": "Bearer one"},
			`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %s", path, w.Body)
		}
	}
}

// A rule about arguments is asked with each call, and sees the server's own name for the tool whatever the view shows.
func TestAViewSeesArguments(t *testing.T) {
	v := viewOf(nil, access.Deny, "allow mcp__one__read(path:docs/*)")
	v.Prefix = "never"
	e, _ := startOffers(t, map[string]config.View{"docs": v}, map[string]serve.Principal{"a": {Name: "a", View: "docs"}}, "one")
	a := e.agent("a", "/mcp", "{}")
	if got := tools(t, a.ask("tools/list", "{}")); fmt.Sprint(got) != "[read]" {
		t.Errorf("it sees %v", got)
	}
	if got := a.ask("tools/call", `{"name":"read","arguments":{"path":"docs/a"}}`); !strings.Contains(got, "it is read") {
		t.Errorf("allowed: %s", got)
	}
	if got := a.ask("tools/call", `{"name":"read","arguments":{"path":"etc/a"}}`); !strings.Contains(got, `"mcpvisor/outcome":"not-sent"`) ||
		!strings.Contains(got, "not allowed") {
		t.Errorf("refused: %s", got)
	}
}

// The tools of a view are those of the catalog that its rule leaves, for random rules, and a credential's view is never widened by the
// path's.
func TestRandomViews(t *testing.T) {
	servers := []string{"a", "b", "a__b"}
	names := []string{"read", "b__read", "w", "x-y"}
	var all []*supervisortest.Server
	for _, s := range servers {
		var own []supervisortest.Tool
		for _, n := range names {
			own = append(own, text(n))
		}
		all = append(all, supervisortest.NewServer(s, own...))
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	random := func() config.View {
		v := config.View{}
		if rnd.IntN(3) == 0 {
			v.Servers = []string{servers[rnd.IntN(3)], servers[rnd.IntN(3)]}
		}
		if rnd.IntN(2) == 0 {
			v.Rules.Default = access.Deny
		}
		v.Prefix = []string{"", "always", "conflict", "never"}[rnd.IntN(4)]
		for range rnd.IntN(4) {
			server, name := servers[rnd.IntN(3)], names[rnd.IntN(4)]
			rule := []string{server + ":" + name, "mcp__" + server, "mcp__" + server + "__" + name}[rnd.IntN(3)]
			v.Rules.Rules = append(v.Rules.Rules, access.MustParse([]access.Verdict{access.Allow, access.Deny}[rnd.IntN(2)], rule))
		}
		return v
	}
	e, g := startViews(t, map[string]config.View{"own": {}, "path": {}}, map[string]serve.Principal{"t": {Name: "t", View: "own"}}, all...)
	a := e.agent("t", "/mcp/v/path", "{}")
	for range 300 {
		views := map[string]config.View{"own": random(), "path": random()}
		g.SetViews(views)
		want := 0
		for _, server := range servers {
			for _, name := range names {
				allowed := true
				for _, v := range views {
					d := access.Decide(access.Rules{Own: v.Rules}, access.Request{Server: server, Tool: name})
					allowed = allowed && d.Verdict == access.Allow && (v.Servers == nil || slices.Contains(v.Servers, server))
				}
				if allowed {
					want++
				}
			}
		}
		got := tools(t, a.ask("tools/list", "{}"))
		slices.Sort(got)
		if len(got) != want || len(slices.Compact(slices.Clone(got))) != want {
			t.Fatalf("%d tools are shown, %d allowed, by %+v: %v", len(got), want, views, got)
		}
	}
}

// Agents are told of a change of their view, and of no other: neither of a server that it hides, nor of a view that was replaced by
// the same one.
func TestAViewIsToldOfItsOwnChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := supervisortest.NewServer("one", text("read")), supervisortest.NewServer("two", text("read"))
		views := map[string]config.View{"one": viewOf([]string{"one"}, ""), "two": viewOf([]string{"two"}, "")}
		e, g := startViews(t, views, map[string]serve.Principal{"1": {Name: "p", View: "one"}, "2": {Name: "p", View: "two"}}, one, two)
		first, second := e.agent("1", "/mcp", "{}"), e.agent("2", "/mcp", "{}")
		fresh := e.agent("2", "/mcp/v/two", "{}") // it never lists, and nobody of its view does
		first.ask("tools/list", "{}")
		second.ask("tools/list", "{}")
		notices := map[string]func() int{"first": first.countNotices(), "second": second.countNotices(), "fresh": fresh.countNotices()}
		expect := func(after string, want map[string]int) {
			t.Helper()
			time.Sleep(5 * time.Second)
			synctest.Wait()
			for name, heard := range notices {
				if got := heard(); got != want[name] {
					t.Errorf("after %s the %s agent has had %d notices, not %d", after, name, got, want[name])
				}
			}
		}
		one.SetTools(text("read"), text("changed"))
		expect("a change of one", map[string]int{"first": 1})
		g.SetViews(map[string]config.View{"one": viewOf([]string{"one"}, "", "deny mcp__one__read"), "two": viewOf([]string{"two"}, "")})
		expect("a narrower view of one", map[string]int{"first": 2})
		if got := tools(t, first.ask("tools/list", "{}")); fmt.Sprint(got) != "[one__changed]" {
			t.Errorf("it sees %v", got)
		}
		if got := first.ask("tools/call", `{"name":"one__read","arguments":{}}`); !strings.Contains(got, "Unknown tool") {
			t.Errorf("a tool that was taken away answers %s", got)
		}
		one.SetTools(text("read"), text("changed"), text("third"))
		two.Crash()
		expect("a third tool, and a crash of two", map[string]int{"first": 3, "second": 2, "fresh": 2}) // gone, and back
	})
}

// Names never exceed what a model takes with the agent's own prefix, never collide, and lead back to their tools, for names of all
// kinds and each prefix; the order in which servers appear does not change them.
func FuzzShownNames(f *testing.F) {
	f.Add("a", "b__c", "a__b", "c", byte(0))
	f.Add("github", "create_issue", "git hub", "create issue", byte(1))
	f.Add("x", strings.Repeat("y", 80), "x", strings.Repeat("y", 81), byte(2))
	f.Add("a", "b", "b", "a__b", byte(2))
	f.Add("s", "s__t", "s__s", "t", byte(1))
	f.Fuzz(func(t *testing.T, server1, tool1, server2, tool2 string, kind byte) {
		type one = gateway.Named
		all := []one{{Server: server1, Name: tool1}, {Server: server1, Name: tool2}, {Server: server2, Name: tool1}, {Server: server2, Name: tool2}}
		slices.SortFunc(all, func(a, b one) int { return strings.Compare(a.Server+"\x00"+a.Name, b.Server+"\x00"+b.Name) })
		all = slices.Compact(all)
		prefix := gateway.Prefix(config.Prefixes[int(kind)%len(config.Prefixes)])
		shown := gateway.ShowNames("mcpvisor", prefix, all)
		seen := map[string]one{}
		for i, name := range shown {
			// A bare name is the server's own, whatever letters it has.
			if name != all[i].Name && len("mcp__mcpvisor__"+name) > 64 || name == all[i].Name && len("mcp__mcpvisor__"+name) > 64 {
				t.Errorf("%s: %q is longer than 64 with the agent's prefix", prefix, name)
			}
			if other, twice := seen[name]; twice {
				t.Errorf("%s: %q is both %v and %v", prefix, name, other, all[i])
			}
			seen[name] = all[i]
		}
		if second := gateway.ShowNames("mcpvisor", prefix, all); !slices.Equal(second, shown) {
			t.Errorf("the same tools have other names: %v, %v", shown, second)
		}
	})
}

// countNotices opens the stream of the session. The function says how many notices of changed tools have come.
func (a *agent) countNotices() (heard func() int) {
	stream := a.readStream()
	return func() int { return strings.Count(stream(), "notifications/tools/list_changed") }
}

// readStream opens the stream of the session. The function returns what has come on it.
func (a *agent) readStream() (heard func() string) {
	w := &lockedRecorder{ResponseRecorder: httptest.NewRecorder()}
	ctx, cancel := context.WithCancel(a.t.Context())
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+a.path, nil)
	r.Header.Set("Authorization", "Bearer "+a.token)
	r.Header.Set("Mcp-Session-Id", a.id)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.h.ServeHTTP(w, r)
	}()
	a.t.Cleanup(func() {
		cancel()
		<-ended
	})
	return func() string {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.Body.String()
	}
}

// lockedRecorder can be read while a stream is written.
type lockedRecorder struct {
	mu sync.Mutex
	*httptest.ResponseRecorder
}

func (w *lockedRecorder) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ResponseRecorder.Write(b)
}

// A view of one server has its own names, also where one of them looks like another with its prefix.
func TestNamesThatLookLikeOthers(t *testing.T) {
	all := []gateway.Named{{Server: "a", Name: "a__read"}, {Server: "a", Name: "b__read"}, {Server: "a", Name: "read"}, {Server: "b", Name: "read"}}
	for prefix, want := range map[gateway.Prefix]string{
		gateway.PrefixAlways:   "[a__a__read a__b__read a__read b__read]",
		gateway.PrefixConflict: "[a__a__read a__b__read a__read b__read]",
		gateway.PrefixNever:    "[a__read a__b__read read b__read]",
	} {
		if got := fmt.Sprint(gateway.ShowNames("mcpvisor", prefix, all)); got != want {
			t.Errorf("%s: %s, not %s", prefix, got, want)
		}
	}
	if got := fmt.Sprint(gateway.ShowNames("mcpvisor", gateway.PrefixNever, all[:3])); got != "[a__read b__read read]" {
		t.Errorf("alone: %s", got)
	}
}

// A call that a view refuses stands in the record, with who called what and by which rule it was refused; also the call of a tool that the
// view hides, which the agent cannot tell from one that does not exist.
func TestRefusedCallsAreRecorded(t *testing.T) {
	var record lockedBuffer
	cfg := supervisor.Config{Audit: &record, Servers: map[string]supervisor.Spec{"one": {Type: messages.SDK}, "two": {Type: messages.SDK}},
		InProcess: map[string]func(context.Context, inprocess.Peer) error{"one": offerServer("one").serveConnection, "two": offerServer("two").serveConnection}}
	e, _ := startEndpoint(t, cfg, map[string]config.View{"some": viewOf([]string{"one"}, "", "deny mcp__one__write", "deny mcp__one__read(path:/etc/**)")},
		map[string]serve.Principal{"a": {Name: "ann", View: "some"}})
	a := e.agent("a", "/mcp", "{}")
	contains(t, "an allowed call", a.ask("tools/call", `{"name":"one__read","arguments":{"path":"/tmp/x"}}`), "it is read of one")
	contains(t, "a call with denied arguments", a.ask("tools/call", `{"name":"one__read","arguments":{"path":"/etc/passwd"}}`), `"mcpvisor/outcome":"not-sent"`, "not allowed")
	for _, hidden := range []string{"one__write", "two__read"} {
		contains(t, hidden, a.ask("tools/call", `{"name":"`+hidden+`","arguments":{}}`), `"code":-32602`, "Unknown tool: "+hidden)
	}
	if err := e.m.Close(t.Context()); err != nil { // which writes the record to its end
		t.Fatal(err)
	}
	var refused []string
	for line := range strings.Lines(record.text()) {
		var r audit.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.Kind == audit.KindCall && r.Class == messages.ClassDenied {
			refused = append(refused, fmt.Sprintf("%s %s %s %s %s %s", r.Who, r.Server, r.Tool, r.Decision, r.Outcome, r.Rule))
		}
	}
	want := "ann one read deny not-sent mcp__one__read(path:/etc/**)\nann one write deny not-sent mcp__one__write\nann two read deny not-sent "
	if got := strings.Join(refused, "\n"); got != want {
		t.Errorf("recorded is\n%s\nnot\n%s", got, want)
	}
}

// lockedBuffer can be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Builder.Write(p)
}

func (b *lockedBuffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.String()
}

// A misspelt name gets the nearest one of the agent's own view, in the form that the view shows, and never one that its scope hides: neither
// from the gateway, nor from the manager behind it.
func TestNearestNamesOfAView(t *testing.T) {
	cfg := supervisor.Config{Servers: map[string]supervisor.Spec{"one": {Type: messages.SDK}, "two": {Type: messages.SDK}},
		InProcess: map[string]func(context.Context, inprocess.Peer) error{"one": offerServer("one").serveConnection, "two": offerServer("two").serveConnection}}
	e, _ := startEndpoint(t, cfg, map[string]config.View{"some": viewOf([]string{"one"}, "", "deny mcp__one__write"), "all": viewOf([]string{"one", "two"}, "")},
		map[string]serve.Principal{"a": {Name: "ann", View: "some"}, "b": {Name: "bert", View: "all"}})
	ann, bert := e.agent("a", "/mcp", "{}"), e.agent("b", "/mcp", "{}")
	call := func(a *agent, name string) string { return a.ask("tools/call", `{"name":"`+name+`","arguments":{}}`) }
	contains(t, "a tool of hers", call(ann, "one__raed"), `Unknown tool: one__raed; did you mean \"one__read\"?`)
	contains(t, "a tool of his", call(bert, "one__wrte"), `Unknown tool: one__wrte; did you mean \"one__write\"?`)
	contains(t, "a server of his", call(bert, "tow__write"), `Unknown tool: tow__write; did you mean \"two__write\"?`)
	for _, name := range []string{"one__wrte", "one__write", "tow__write", "two__wrte"} {
		if got := call(ann, name); !strings.Contains(got, "Unknown tool: "+name+`"`) {
			t.Errorf("%s, which is near to what is hidden, answers %s", name, got)
		}
	}
}

// The names of prompts follow the prefix of the view as those of tools do.
func TestPromptsFollowThePrefixOfTheirView(t *testing.T) {
	e, g := startOffers(t, map[string]config.View{"own": {Prefix: "always"}}, map[string]serve.Principal{"t": {Name: "t", View: "own"}}, "one")
	a := e.agent("t", "/mcp", "{}")
	contains(t, "the prompts with a prefix", a.ask("prompts/list", "{}"), `"name":"one__greet"`)
	g.SetViews(map[string]config.View{"own": {Prefix: "never"}})
	contains(t, "the prompts without one", a.ask("prompts/list", "{}"), `"name":"greet"`)
}
