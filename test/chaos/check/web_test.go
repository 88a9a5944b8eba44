package check_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/check"
	"github.com/mcpvisor/mcpvisor/test/peers"
	"github.com/mcpvisor/mcpvisor/test/servers/web"
)

// careful is a server that does all that the specification asks of HTTP, before the good one of the fixtures.
func careful(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		version := r.Header.Get("Mcp-Protocol-Version")
		switch {
		case strings.Contains(r.Header.Get("Origin"), "attacker"):
			http.Error(w, "from where?", http.StatusForbidden)
		case r.Method == http.MethodPost && r.Header.Get("Content-Type") != "application/json":
			http.Error(w, "what is this?", http.StatusUnsupportedMediaType)
		case r.Header.Get("Mcp-Session-Id") != "" && version != "" && version < "2024":
			http.Error(w, "which version?", http.StatusBadRequest)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// instead answers requests that match in another way.
func instead(matches func(*http.Request) bool, answer http.HandlerFunc, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if matches(r) {
			answer(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// afterNonsense answers what comes after a message that is no JSON, and that matches, in another way: of everybody, or of the
// sender's session alone.
func afterNonsense(everybody bool, matches func(body string) bool, answer http.HandlerFunc, next http.Handler) http.Handler {
	var mu sync.Mutex
	senders := map[string]bool{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has gone
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		session := r.Header.Get("Mcp-Session-Id")
		if everybody {
			session = "everybody"
		}
		mu.Lock()
		senders[session] = senders[session] || len(body) > 0 && !json.Valid(body)
		odd := senders[session] && matches(string(body))
		mu.Unlock()
		if odd {
			answer(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func checkURL(t *testing.T, h http.Handler) check.Server {
	return one(t, messages.Spec{Type: messages.HTTP, URL: web.Serve(t, h) + "/mcp"}, func(o *check.Options) {
		o.Answer = 2 * time.Second
	})
}

func TestAGoodServerPassesOverHTTP(t *testing.T) {
	t.Parallel()
	s := checkURL(t, careful(web.Good()))
	for _, id := range []string{"start", "list", "parallel", "big-message", "session", "session-end", "stream", "origin",
		"content-type", "version-header", "tls"} {
		if f := finding(t, s, id); f.Verdict != check.Pass {
			t.Errorf("%s is %s; all:%s", id, f.Verdict, findingsText(s))
		}
	}
}

func TestEachHTTPCheckSeesTheServerThatFailsIt(t *testing.T) {
	t.Parallel()
	method := func(m string) func(*http.Request) bool { return func(r *http.Request) bool { return r.Method == m } }
	unknown := func(r *http.Request) bool { return strings.HasPrefix(r.Header.Get("Mcp-Session-Id"), "00000000") }
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", code) }
	}
	silence := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	list := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}`))
	}
	html := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html>"))
	}
	good := web.Good
	foreignHost := func(r *http.Request) bool { return r.Host == "attacker.example" }
	plain := func(r *http.Request) bool { return r.Header.Get("Content-Type") == "text/plain" }
	anyHost := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Host = "127.0.0.1"
			next.ServeHTTP(w, r)
		})
	}
	discover := func(r *http.Request) bool { return r.Header.Get("Mcp-Method") == "server/discover" }
	nonsense := func(body string) bool { return len(body) > 0 && !json.Valid([]byte(body)) }
	initialize := func(body string) bool { return strings.Contains(body, `"initialize"`) }
	cases := []struct {
		name    string
		handler http.Handler
		id      string
		verdict check.Verdict
	}{
		{"400 for an unknown session", careful(instead(unknown, status(400), good())), "session", check.Fail},
		{"serves an unknown session", careful(instead(unknown, list, good())), "session", check.Fail},
		{"silent DELETE", careful(instead(method(http.MethodDelete), silence, good())), "session-end", check.Fail},
		{"500 for DELETE", careful(instead(method(http.MethodDelete), status(500), good())), "session-end", check.Warn},
		{"DELETE changes nothing", careful(instead(method(http.MethodDelete), status(204), good())), "session-end", check.Warn},
		{"a page for GET", careful(instead(method(http.MethodGet), html, good())), "stream", check.Warn},
		{"silent GET", careful(instead(method(http.MethodGet), silence, good())), "stream", check.Warn},
		{"any origin and any host", instead(plain, status(415), anyHost(good())), "origin", check.Fail},
		{"any origin and any type", instead(foreignHost, status(403), instead(plain, list, good())), "origin", check.Fail},
		{"any origin of JSON for its own host", good(), "origin", check.Warn},
		{"deaf after a broken message", afterNonsense(true, func(string) bool { return true }, silence, careful(good())), "malformed", check.Fail},
		{"blames a broken message", careful(afterNonsense(false, nonsense, status(500), good())), "malformed", check.Warn},
		{"refuses later what a broken message spoilt", instead(discover, status(400),
			afterNonsense(false, initialize, status(500), careful(good()))), "second-initialize", check.Pass},
		{"any type", instead(func(r *http.Request) bool { return r.Header.Get("Content-Type") == "text/plain" }, list, good()),
			"content-type", check.Warn},
		{"no small bodies", careful(instead(func(r *http.Request) bool { return r.ContentLength > 30_000 }, status(413), good())),
			"big-message", check.Warn},
		{"wants credentials", web.RequireToken("x", good()), "start", check.NotTried},
		{"black hole", web.BlackHole(), "start", check.Fail},
	}
	results := together(len(cases), func(i int) check.Server { return checkURL(t, cases[i].handler) })
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := <-results[i]
			if f := finding(t, s, c.id); f.Verdict != c.verdict {
				t.Errorf("%s is %s: %s; all:%s", c.id, f.Verdict, f.Text, findingsText(s))
			}
		})
	}
}

// TestServersOfTheGoSDKAreHealthy tells what is wrong of servers that all clients get along with, and calls none of it a failure.
func TestServersOfTheGoSDKAreHealthy(t *testing.T) {
	t.Parallel()
	server := mcp.NewServer(&mcp.Implementation{Name: "ours", Version: "1"}, nil)
	serve := func(o *mcp.StreamableHTTPOptions) messages.Spec {
		h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, o)
		return messages.Spec{Type: messages.HTTP, URL: web.Serve(t, h) + "/mcp"}
	}
	for name, spec := range map[string]messages.Spec{
		"stdio": {Command: peers.Go(t)}, "stateful": serve(nil), "stateless": serve(&mcp.StreamableHTTPOptions{Stateless: true}),
	} {
		s := one(t, spec, nil)
		if s.Count(check.Fail) > 0 {
			t.Errorf("%s fails:%s", name, findingsText(s))
		}
		if f := finding(t, s, "handshake"); f.Verdict != check.Pass {
			t.Errorf("%s: handshake is %s: %s", name, f.Verdict, f.Text)
		}
	}
}

func TestASecretStandsInNoReport(t *testing.T) {
	t.Parallel()
	const secret = "canary-4711-canary"
	spec := fixture("exits-at-once", "text=cannot log in with "+secret)
	spec.Env = map[string]string{"PASSWORD": secret}
	s := one(t, spec, nil)
	if text := findingsText(s); strings.Contains(text, secret) {
		t.Errorf("the report tells the secret:%s", text)
	}
	remote := one(t, messages.Spec{Type: messages.HTTP, URL: web.Serve(t, web.Status(418)) + "/mcp?key=" + secret,
		Headers: map[string]string{"X-Key": secret}}, nil)
	if text := findingsText(remote); strings.Contains(text, secret) {
		t.Errorf("the report tells the secret:%s", text)
	}
}
