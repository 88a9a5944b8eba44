package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// spy is a server over HTTP that writes down everything that it gets, and tells its own secrets in every header that it may send.
type spy struct {
	mu    sync.Mutex
	heard strings.Builder
}

func (s *spy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	fmt.Fprintln(&s.heard, r.Method, r.URL, r.Header, string(body))
	s.mu.Unlock()
	w.Header().Set("Mcp-Session-Id", "SESSION-OF-THE-SERVER")
	w.Header().Set("Set-Cookie", "c=COOKIE-OF-THE-SERVER")
	w.Header().Set("X-Token", "HEADER-OF-THE-SERVER")
	id := rawjson.Member(body, "id")
	method, _ := rawjson.Text(rawjson.Member(body, "method"))
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case id == nil:
		w.WriteHeader(http.StatusAccepted)
		return
	case method == "tools/call" && strings.Contains(string(body), "expired"):
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", resource_metadata="https://issuer.example/TOKEN-PLACE"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	result := map[string]string{
		"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"n","version":"1"}}`,
		"tools/list": `{"tools":[{"name":"read","inputSchema":{"type":"object"}}]}`,
		"tools/call": `{"content":[{"type":"text","text":"done"}]}`, "resources/list": `{"resources":[{"uri":"x://1","name":"x"}]}`,
		"resources/templates/list": `{"resourceTemplates":[]}`, "resources/read": `{"contents":[{"uri":"x://1","text":"x"}]}`,
	}[method]
	if result == "" {
		result = "{}"
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// No token, session id, cookie or header of an agent reaches a server, and none of a server an agent: neither with what succeeds, nor
// with what is refused.
func TestNoTokenIsPassedThrough(t *testing.T) {
	server := &spy{}
	listening := httptest.NewServer(server)
	defer listening.Close()
	cfg := supervisor.Config{Servers: map[string]supervisor.Spec{"far": {Type: messages.HTTP, URL: listening.URL + "/mcp", Era: messages.EraLegacy,
		Auth: &messages.Auth{Type: messages.AuthBearer, Token: "TOKEN-OF-THE-SERVER"}}}}
	e, _ := startEndpoint(t, cfg, nil, map[string]serve.Principal{"TOKEN-OF-THE-AGENT": {Name: "ann"}})
	a := e.agent("TOKEN-OF-THE-AGENT", "/mcp", "{}")
	var down strings.Builder
	send := func(method, params string, modern bool) string {
		headers := map[string]string{"Authorization": "Bearer TOKEN-OF-THE-AGENT", "Cookie": "c=COOKIE-OF-THE-AGENT", "X-Api-Key": "KEY-OF-THE-AGENT",
			"Mcp-Session-Id": a.id, "Proxy-Authorization": "PROXY-OF-THE-AGENT"}
		if modern {
			delete(headers, "Mcp-Session-Id")
			name, _ := rawjson.Text(rawjson.Member([]byte(params), "name"))
			headers["Mcp-Protocol-Version"], headers["Mcp-Method"], headers["Mcp-Name"] = "2026-07-28", method, name
			params = strings.TrimSuffix(params, "}")
			if len(params) > 1 {
				params += ","
			}
			params += `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`
		}
		w := e.post(t.Context(), "/mcp", headers, `{"jsonrpc":"2.0","id":"ID-OF-THE-AGENT","method":"`+method+`","params":`+params+`}`)
		fmt.Fprintln(&down, w.Code, w.Header(), w.Body)
		return w.Body.String()
	}
	for _, modern := range []bool{false, true} {
		for _, r := range [][2]string{{"tools/list", "{}"}, {"tools/call", `{"name":"far__read","arguments":{}}`}, {"resources/list", "{}"},
			{"resources/read", `{"uri":"x://1"}`}} {
			if r[0] == "resources/read" && modern {
				continue // its header is the URI; the legacy one shows the same
			}
			if got := send(r[0], r[1], modern); !strings.Contains(got, `"result"`) {
				t.Errorf("%s: %s", r[0], got)
			}
		}
	}
	if got := send("tools/call", `{"name":"far__read","arguments":{"expired":true}}`, false); !strings.Contains(got, "mcpvisor login far") {
		t.Errorf("a refused token: %s", got)
	}
	server.mu.Lock()
	up := server.heard.String()
	server.mu.Unlock()
	if !strings.Contains(up, "TOKEN-OF-THE-SERVER") || !strings.Contains(up, "expired") {
		t.Fatalf("the spy heard nothing: %s", up)
	}
	if i := strings.Index(up, "OF-THE-AGENT"); i >= 0 {
		t.Errorf("the server got something of the agent: %s", up[max(0, i-80):i+20])
	}
	if i := strings.Index(up, a.id); i >= 0 {
		t.Error("the server got the agent's session id")
	}
	for _, secret := range []string{"OF-THE-SERVER", "TOKEN-PLACE"} {
		if i := strings.Index(down.String(), secret); i >= 0 {
			t.Errorf("the agent got something of the server: %s", down.String()[max(0, i-80):i+30])
		}
	}
}

// Two principals at once, with several tokens and sessions each, on a server of which each has an instance: whatever one reaches is its
// own, an update of its instance included.
func TestPrincipalsDoNotMeet(t *testing.T) {
	var mu sync.Mutex
	var met []string // principals whose calls came over the connection of another one
	cfg := supervisor.Config{Servers: map[string]supervisor.Spec{"one": {Type: messages.SDK, Share: messages.SharePrincipal}},
		InProcess: map[string]func(context.Context, inprocess.Peer) error{"one": func(ctx context.Context, peer inprocess.Peer) error {
			owner := ""
			return serveRequests(ctx, peer, func(r heardRequest) string {
				if r.method == "tools/call" {
					who := r.text("arguments", "who")
					name, _, _ := strings.Cut(who, "-")
					if owner == "" {
						owner = name
					}
					if owner != name {
						mu.Lock()
						met = append(met, name+" came to "+owner)
						mu.Unlock()
					}
					_ = peer.Write(ctx, []byte(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x://1/`+owner+`"}}`))
					return `{"content":[{"type":"text","text":"` + who + `"}]}`
				}
				return map[string]string{
					"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{"subscribe":true}},"serverInfo":{"name":"n","version":"1"}}`,
					"tools/list": `{"tools":[{"name":"note","inputSchema":{"type":"object"}}]}`, "resources/list": `{"resources":[{"uri":"x://1","name":"x"}]}`,
					"resources/templates/list": `{"resourceTemplates":[]}`,
				}[r.method]
			})
		}}}
	e, _ := startEndpoint(t, cfg, nil, map[string]serve.Principal{"ann1": {Name: "ann"}, "ann2": {Name: "ann"}, "bob1": {Name: "bob"}})
	var all sync.WaitGroup
	updates := map[string]func() string{}
	for i, token := range []string{"ann1", "bob1", "ann2", "bob1", "ann1", "bob1"} {
		agent := e.agent(token, "/mcp", "{}")
		updates[fmt.Sprint(token, i)] = agent.readStream()
		// The first call makes the instance, so that the subscription is one at it.
		for n := range 2 {
			who := fmt.Sprintf("%s-%d-%d", token[:3], i, n)
			if got := agent.ask("tools/call", `{"name":"one__note","arguments":{"who":"`+who+`"}}`); !strings.Contains(got, `"`+who+`"`) {
				t.Fatalf("%s got %s", who, got)
			}
		}
		if got := agent.ask("resources/subscribe", `{"uri":"x://1"}`); !strings.Contains(got, `"result"`) {
			t.Fatalf("%s cannot subscribe: %s", token, got)
		}
		all.Go(func() {
			for n := range 50 {
				who := fmt.Sprintf("%s-%d-%d", token[:3], i, n)
				if got := agent.ask("tools/call", `{"name":"one__note","arguments":{"who":"`+who+`"}}`); !strings.Contains(got, `"`+who+`"`) {
					t.Errorf("%s got %s", who, got)
				}
			}
		})
	}
	all.Wait()
	if len(met) > 0 {
		t.Errorf("principals met: %v", met)
	}
	if got := fmt.Sprint(e.m.Instances("one")); got != "[one@ann one@bob]" {
		t.Errorf("the instances are %s", got)
	}
	for name, heard := range updates {
		own, other := "x://1/"+name[:3], "x://1/bob"
		if name[:3] == "bob" {
			other = "x://1/ann"
		}
		for deadline := time.Now().Add(time.Minute); !strings.Contains(heard(), own) && time.Now().Before(deadline); { // it may be under way
			time.Sleep(20 * time.Millisecond)
		}
		if got := heard(); !strings.Contains(got, own) || strings.Contains(got, other) {
			t.Errorf("%s heard %s", name, got)
		}
	}
}

// A question of an instance, which names no request, reaches its principal, although several of the principal's agents have requests at it:
// that agent whose request is the newest. No agent of another principal hears of it.
func TestQuestionsOfInstancesReachTheirPrincipal(t *testing.T) {
	begun, mayAsk, release := make(chan struct{}, 10), make(chan struct{}), make(chan struct{})
	one := waitsAndAsks("one", begun, mayAsk, release)
	one.Spec.Share = messages.SharePrincipal
	e, _ := startEndpoint(t, supervisor.Config{}, nil, map[string]serve.Principal{"ann1": {Name: "ann"}, "ann2": {Name: "ann"}, "bob": {Name: "bob"}}, one)
	able := `{"elicitation":{}}`
	first, second, stranger := e.agent("ann1", "/mcp", able), e.agent("ann2", "/mcp", able), e.agent("bob", "/mcp", able)
	firstHeard, firstEnded := e.call(first, "one__wait")
	<-begun
	secondHeard, secondEnded := e.call(second, "one__ask")
	<-begun
	strangerHeard, strangerEnded := e.call(stranger, "one__wait") // the newest request of all
	<-begun
	close(mayAsk)
	for deadline := time.Now().Add(time.Minute); !strings.Contains(secondHeard(), "elicitation/create") && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	if got := secondHeard(); !strings.Contains(got, "elicitation/create") {
		t.Fatalf("the question did not come: %s", got)
	}
	second.post(t.Context(), "/mcp", map[string]string{"Authorization": "Bearer ann2", "Mcp-Session-Id": second.id},
		`{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"name":"second"}}}`)
	<-secondEnded
	if got := secondHeard(); !strings.Contains(got, `\"name\":\"second\"`) {
		t.Errorf("the answer did not come: %s", got)
	}
	close(release)
	<-firstEnded
	<-strangerEnded
	if got := firstHeard() + strangerHeard(); strings.Contains(got, "elicitation") {
		t.Errorf("others heard of it: %s", got)
	}
}

// An instance has no path of its own: whoever names it is neither shown what another principal's instance lists, nor led around the rules of
// a view, which name its server.
func TestAnInstanceHasNoPath(t *testing.T) {
	one := offerServer("one")
	cfg := supervisor.Config{Servers: map[string]supervisor.Spec{"one": {Type: messages.SDK, Share: messages.SharePrincipal}},
		InProcess: map[string]func(context.Context, inprocess.Peer) error{"one": one.serveConnection}}
	e, _ := startEndpoint(t, cfg, map[string]config.View{"narrow": {Servers: []string{"two"}}, "denied": viewOf(nil, access.Allow, "deny mcp__one")},
		map[string]serve.Principal{"ann": {Name: "ann"}, "bob": {Name: "bob"}, "ann-narrow": {Name: "ann", View: "narrow"}, "ann-denied": {Name: "ann", View: "denied"}})
	contains(t, "the instance is made", e.agent("ann", "/mcp", "{}").ask("tools/call", `{"name":"one__read"}`), "it is read of one")
	for _, token := range []string{"ann", "bob", "ann-narrow", "ann-denied"} {
		for _, path := range []string{"/mcp/s/one@ann", "/mcp/s/one%40ann"} {
			w := e.post(t.Context(), path, map[string]string{"Authorization": "Bearer " + token},
				`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
			contains(t, token+" at "+path, w.Body.String(), "there is no server one@ann")
		}
	}
}
