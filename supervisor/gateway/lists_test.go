package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// A listServer has many prompts, resources and templates, whose lists can be changed. If it is numbered, its last prompt says which
// connection it is.
type listServer struct {
	mu       sync.Mutex
	many     int
	word     string // stands in each definition
	extra    string // one more prompt
	numbered bool
	peers    []inprocess.Peer
	asked    int // requests for lists beside that of the tools
	// oneTemplate has it list one template that never changes.
	oneTemplate bool
}

// setWord changes each definition, if the word is a new one, and says that the lists have changed.
func (s *listServer) setWord(t *testing.T, word string, many int) {
	s.mu.Lock()
	s.word, s.many = word, many
	peers := slices.Clone(s.peers)
	s.mu.Unlock()
	for _, peer := range peers {
		for _, list := range []string{"tools", "prompts", "resources"} {
			_ = peer.Write(t.Context(), fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/%s/list_changed"}`, list)) // to those that are left
		}
	}
}

func (s *listServer) serveConnection(ctx context.Context, peer inprocess.Peer) error {
	s.mu.Lock()
	s.peers = append(s.peers, peer)
	number := len(s.peers)
	s.mu.Unlock()
	return serveRequests(ctx, peer, func(r heardRequest) string { return s.resultOf(r.method, number, r.text("name")) })
}

func (s *listServer) resultOf(method string, number int, name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := func(member, definition string) string {
		var all []string
		s.asked++
		for i := range s.many {
			all = append(all, fmt.Sprintf(definition, i, s.word))
		}
		if member == "prompts" && s.numbered {
			all = append(all, fmt.Sprintf(`{"name":"of_%d"}`, number))
		}
		if member == "prompts" && s.extra != "" {
			all = append(all, s.extra)
		}
		return `{"` + member + `":[` + strings.Join(all, ",") + `]}`
	}
	switch method {
	case "initialize":
		return `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{"listChanged":true},"prompts":{"listChanged":true}},` +
			`"serverInfo":{"name":"n","version":"1"}}`
	case "tools/list":
		return `{"tools":[{"name":"read","description":"` + s.word + `","inputSchema":{"type":"object"}}]}`
	case "prompts/list":
		return list("prompts", `{"name":"p%d","description":%q}`)
	case "resources/list":
		return list("resources", `{"uri":"x://%d","name":%q}`)
	case "resources/templates/list":
		if s.oneTemplate {
			return `{"resourceTemplates":[{"uriTemplate":"x://{x}","name":"x"}]}`
		}
		return list("resourceTemplates", `{"uriTemplate":"x://%d/{x}","name":%q}`)
	case "prompts/get":
		return `{"messages":[{"role":"user","content":{"type":"text","text":"` + name + `"}}]}`
	}
	return ""
}

// startLists serves listServers, with views.
func startLists(t *testing.T, views map[string]config.View, tokens map[string]serve.Principal, share messages.Share, servers map[string]*listServer) (*endpoint, *gateway.Gateway) {
	cfg := supervisor.Config{Servers: map[string]supervisor.Spec{}, InProcess: map[string]func(context.Context, inprocess.Peer) error{}}
	for name, s := range servers {
		cfg.Servers[name], cfg.InProcess[name] = supervisor.Spec{Type: messages.SDK, Share: share}, s.serveConnection
	}
	return startEndpoint(t, cfg, views, tokens)
}

var listMethods = map[string]string{"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources",
	"resources/templates/list": "resourceTemplates"}

// askGateway has the gateway itself answer a request, in the modern era.
func askGateway(t *testing.T, g *gateway.Gateway, p serve.Principal, path serve.Path, method, params string) []byte {
	t.Helper()
	b, e := g.Handle(t.Context(), &serve.Request{Session: &serve.Session{Principal: p, Path: path, Modern: true}, Method: method, Params: []byte(params)})
	if e != nil {
		t.Fatalf("%s: %s", method, e.Message)
	}
	return b
}

// Each list is rendered once for what the servers have, and shared: by agents of all principals, as long as no instance and no view makes
// it another one, and as long as no server says something else.
func TestListsAreRenderedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := &listServer{many: 500, word: "a"}, &listServer{many: 3, word: "a"}
		_, g := startLists(t, map[string]config.View{"two": viewOf([]string{"two"}, access.Verdict(""))}, nil, "", map[string]*listServer{"one": one, "two": two})
		ann, bob := serve.Principal{Name: "ann"}, serve.Principal{Name: "bob"}
		first := map[string][]byte{}
		for method, member := range listMethods {
			first[method] = askGateway(t, g, ann, serve.Path{}, method, "{}")
			var got map[string]json.RawMessage
			var definitions []json.RawMessage
			if json.Unmarshal(first[method], &got) != nil || json.Unmarshal(got[member], &definitions) != nil {
				t.Fatalf("%s: %.200s", method, first[method])
			}
			want := 503
			switch method {
			case "tools/list":
				want = 2
			case "prompts/list":
			default:
				want = 500 // the URIs of the second server are those of the first
			}
			if len(definitions) != want {
				t.Errorf("%s has %d definitions, want %d", method, len(definitions), want)
			}
		}
		asked := one.asked
		same := func(when string, want bool) {
			t.Helper()
			for method := range listMethods {
				for _, p := range []serve.Principal{ann, bob, {}} {
					if got := askGateway(t, g, p, serve.Path{}, method, "{}"); (&got[0] == &first[method][0]) != want {
						t.Errorf("%s: %s of %q: one copy: %v", when, method, p.Name, !want)
					}
				}
			}
		}
		same("at once", true)
		time.Sleep(time.Hour)
		same("later", true)
		if one.asked != asked {
			t.Errorf("the server was asked %d times more", one.asked-asked)
		}
		for method, member := range listMethods {
			for _, path := range []serve.Path{{View: "two"}, {Server: "two"}} {
				if got := string(askGateway(t, g, ann, path, method, "{}")); strings.Contains(got, "499") || strings.Contains(got, "one__") || !strings.Contains(got, member) {
					t.Errorf("%s by %v: %.200s", method, path, got)
				}
			}
		}
		one.setWord(t, "b", 500)
		time.Sleep(time.Second)
		same("after a change", false)
		for method := range listMethods {
			if got := string(askGateway(t, g, bob, serve.Path{}, method, "{}")); !strings.Contains(got, `"b"`) {
				t.Errorf("after a change: %s: %.200s", method, got)
			}
		}
	})
}

// A list of a principal that has an instance of a server is its own.
func TestListsOfInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, g := startLists(t, nil, nil, messages.SharePrincipal, map[string]*listServer{"one": {many: 2, word: "a", numbered: true}})
		ann, bob := serve.Principal{Name: "ann"}, serve.Principal{Name: "bob"}
		lists := map[string][]byte{}
		for _, p := range []serve.Principal{ann, bob} { // the first use makes an instance
			if got := askGateway(t, g, p, serve.Path{}, "prompts/get", `{"name":"one__p1"}`); !strings.Contains(string(got), `"p1"`) {
				t.Errorf("a prompt of %s: %s", p.Name, got)
			}
		}
		for range 2 {
			for _, p := range []serve.Principal{{}, ann, bob} { // one without a name sees what the server itself has
				got := askGateway(t, g, p, serve.Path{}, "prompts/list", "{}")
				if before := lists[p.Name]; before != nil && &before[0] != &got[0] {
					t.Errorf("the list of %s was made anew", p.Name)
				}
				if lists[p.Name] = got; !strings.Contains(string(got), "one__p1") || strings.Count(string(got), "of_") != 1 {
					t.Errorf("the list of %s: %s", p.Name, got)
				}
			}
			time.Sleep(time.Minute)
		}
		if string(lists["ann"]) == string(lists["bob"]) {
			t.Errorf("two principals have one instance: %s", lists["ann"])
		}
	})
}

// A list that does not fit a page has several, whose cursors are good as long as the list is the same, and lead to its beginning after that.
func TestPagesOfALongList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := &listServer{many: 100, word: strings.Repeat("a", 100_000)}
		_, g := startLists(t, nil, nil, "", map[string]*listServer{"one": one})
		ask := func(cursor string) (names []string, next string) {
			params, _ := json.Marshal(map[string]string{"cursor": cursor})
			if cursor == "" {
				params = []byte("{}")
			}
			b := askGateway(t, g, serve.Principal{}, serve.Path{}, "prompts/list", string(params))
			var got struct {
				Prompts    []struct{ Name string }
				NextCursor string
			}
			if err := json.Unmarshal(b, &got); err != nil {
				t.Fatal(err)
			}
			for _, p := range got.Prompts {
				names = append(names, p.Name)
			}
			return names, got.NextCursor
		}
		all, cursor := ask("")
		second := cursor
		for page := 0; cursor != "" && page < 10; page++ {
			var more []string
			more, cursor = ask(cursor)
			all = append(all, more...)
		}
		if distinct := slices.Compact(slices.Sorted(slices.Values(all))); len(all) != 100 || len(distinct) != 100 {
			t.Errorf("the pages have %d prompts, %d of them distinct", len(all), len(distinct))
		}
		one.setWord(t, one.word, 100) // the same again
		time.Sleep(time.Second)
		if names, _ := ask(second); names[0] == "one__p0" {
			t.Error("the cursor is not good any more, although nothing has changed")
		}
		one.setWord(t, one.word, 99)
		time.Sleep(time.Second)
		if names, _ := ask(second); names[0] != "one__p0" {
			t.Errorf("after a change the second page begins with %s", names[0])
		}
		for _, cursor := range []string{"x", "!", "AAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAeA"} {
			if _, e := g.Handle(t.Context(), &serve.Request{Session: &serve.Session{Modern: true}, Method: "prompts/list", Params: []byte(`{"cursor":"` + cursor + `"}`)}); e == nil || e.Code != -32602 {
				t.Errorf("the cursor %s: %v", cursor, e)
			}
		}
	})
}

// A server that says that its lists have changed, and has the same ones, is no news; what has changed is told once of each list.
func TestNoticesOfEachList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := &listServer{many: 2, word: "a"}
		e, _ := startLists(t, nil, map[string]serve.Principal{"a": {Name: "ann"}}, "", map[string]*listServer{"one": one})
		a := e.agent("a", "/mcp", "{}")
		for method := range listMethods {
			a.ask(method, "{}")
		}
		heard := a.readStream()
		expectNotices := func(when string, want int) {
			t.Helper()
			time.Sleep(5 * time.Second)
			synctest.Wait()
			for _, list := range []string{"tools", "prompts", "resources"} {
				if got := strings.Count(heard(), "notifications/"+list+"/list_changed"); got != want {
					t.Errorf("%s: %d notices of the %s, want %d", when, got, list, want)
				}
			}
		}
		expectNotices("before", 0)
		one.setWord(t, "a", 2)
		expectNotices("the same again", 0)
		one.setWord(t, "b", 2)
		expectNotices("a change", 1)
	})
}

// One agent reads the lists in the moment in which their server has said that they have changed. The other, which has read none, is notified all the same.
func TestAListThatIsReadAsItChangesIsNews(t *testing.T) {
	for name, after := range map[string]time.Duration{"at once": 20 * time.Millisecond, "when one of them was told": 60 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one := &listServer{many: 2, word: "a"}
				e, g := startLists(t, nil, map[string]serve.Principal{"a": {Name: "ann"}}, "", map[string]*listServer{"one": one})
				heard := e.agent("a", "/mcp", "{}").readStream()
				time.Sleep(5 * time.Second)
				one.setWord(t, "b", 2)
				time.Sleep(after)
				for method := range listMethods {
					askGateway(t, g, serve.Principal{Name: "ann"}, serve.Path{}, method, "{}")
				}
				time.Sleep(5 * time.Second)
				synctest.Wait()
				for _, list := range []string{"prompts", "resources"} {
					if !strings.Contains(heard(), "notifications/"+list+"/list_changed") {
						t.Errorf("no notice of the %s", list)
					}
				}
			})
		})
	}
}

// What has changed between a list and the subscription that follows it is told to the subscription, of each list.
func TestASubscriptionIsToldOfWhatChangedBefore(t *testing.T) {
	for name, others := range map[string]bool{"alone": false, "beside another agent": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one := &listServer{many: 2, word: "a"}
				e, g := startLists(t, nil, map[string]serve.Principal{"a": {Name: "ann"}}, "", map[string]*listServer{"one": one})
				if others {
					e.agent("a", "/mcp", "{}")
				}
				ann := serve.Principal{Name: "ann"}
				for method := range listMethods {
					askGateway(t, g, ann, serve.Path{}, method, "{}")
				}
				one.setWord(t, "b", 2)
				time.Sleep(5 * time.Second)
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				w := e.post(ctx, "/mcp", map[string]string{"Authorization": "Bearer a", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"},
					`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true},`+
						`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
				for _, list := range []string{"tools", "prompts", "resources"} {
					if got := strings.Count(w.Body.String(), "notifications/"+list+"/list_changed"); got != 1 {
						t.Errorf("%d notices of the %s: %s", got, list, w.Body)
					}
				}
			})
		})
	}
}

// An agent that listens is told when the resources change and their templates, which have the same notice, are as before: also one that has read the
// list of templates alone, where no agent of its view has read the resources.
func TestASubscriptionIsToldOfTheResourcesBesideTheTemplates(t *testing.T) {
	const templates, resources = "resources/templates/list", "resources/list"
	for name, c := range map[string]struct{ before, after []string }{
		"templates alone": {before: []string{templates}}, "both": {before: []string{templates, resources}, after: []string{templates, resources}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one := &listServer{many: 2, word: "a", oneTemplate: true}
				e, g := startLists(t, nil, map[string]serve.Principal{"a": {Name: "ann"}}, "", map[string]*listServer{"one": one})
				for _, method := range c.before {
					askGateway(t, g, serve.Principal{Name: "ann"}, serve.Path{}, method, "{}")
				}
				one.setWord(t, "b", 2) // no agent listens, so that the gateway forgets what they know
				time.Sleep(5 * time.Second)
				for _, method := range c.after {
					askGateway(t, g, serve.Principal{Name: "ann"}, serve.Path{}, method, "{}")
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				go func() {
					time.Sleep(5 * time.Second)
					one.setWord(t, "c", 2)
				}()
				w := e.post(ctx, "/mcp", map[string]string{"Authorization": "Bearer a", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"},
					`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourcesListChanged":true},`+
						`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
				if got := strings.Count(w.Body.String(), "notifications/resources/list_changed"); got != 1 {
					t.Errorf("%d notices of the resources: %s", got, w.Body)
				}
			})
		})
	}
}
