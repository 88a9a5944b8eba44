package check_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/check"
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
		{"any origin", good(), "origin", check.Fail},
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
