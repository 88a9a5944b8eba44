package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
	"github.com/mcpvisor/mcpvisor/transports/auth/oauth"
)

// person signs in when it is told to, at an address that it was shown.
type person struct {
	transports.Authorizer
	logins atomic.Int32
	done   chan struct{}
	open   atomic.Bool
}

func (p *person) Login(ctx context.Context, q oauth.Prompt) (s oauth.Status, err error) {
	p.logins.Add(1)
	q.Show(oauth.SignInRequest{URL: "https://issuer.example/authorize"})
	select {
	case <-p.done:
		p.open.Store(true)
		return s, nil
	case <-ctx.Done():
		return s, ctx.Err()
	}
}
func (*person) Logout(context.Context) (bool, error)               { return false, errors.New("not here") }
func (*person) Status(context.Context) (s oauth.Status, err error) { return s, nil }
func (p *person) server(calls *atomic.Int32) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !p.open.Load() {
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		body, _ := io.ReadAll(r.Body)
		method, _ := rawjson.Text(rawjson.Member(body, "method"))
		var result string
		switch method {
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"read","inputSchema":{"type":"object"}}]}`
		case "tools/call":
			calls.Add(1)
			result = `{"content":[{"type":"text","text":"it is read"}]}`
		default:
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, rawjson.Member(body, "id"), result)
	}
}

// startSignedOut serves a server that needs a sign-in.
func startSignedOut(t *testing.T) (*endpoint, *person, *atomic.Int32) {
	t.Helper()
	p, calls := &person{Authorizer: auth.Bearer(auth.Text("x")), done: make(chan struct{})}, &atomic.Int32{}
	web := httptest.NewServer(p.server(calls))
	t.Cleanup(web.Close)
	cfg := supervisor.Config{
		Servers: map[string]supervisor.Spec{"s": {Type: messages.HTTP, URL: web.URL, Era: messages.EraLegacy}}, CallWait: 10 * time.Second,
		AuthProvider: func(string, supervisor.Spec) (transports.Authorizer, error) { return p, nil },
	}
	gateway.PassQuestions(&cfg)
	m := supervisortest.StartConfig(t, cfg)
	_ = m.Settled(t.Context(), "s") // its error is that a sign-in is needed
	return serveAll(t, m, gateway.Config{Manager: m, Prefix: gateway.PrefixAlways, MaySignIn: func(p string) bool { return p != "stranger" }}), p, calls
}

// A principal that may not sign a server in gets no address, although nobody else signs in, and none is asked for.
func TestStrangersDoNotSignIn(t *testing.T) {
	e, p, _ := startSignedOut(t)
	contains(t, "legacy", e.agent("stranger", "/mcp", canVisit).ask("tools/call", `{"name":"s__read"}`), `"isError":true`, "mcpvisor login s")
	contains(t, "modern", modernAgent{e, "stranger", "/mcp", canVisit}.call("s__read", ""), `"isError":true`, "mcpvisor login s")
	if n := p.logins.Load(); n != 0 {
		t.Errorf("%d sign-ins have begun", n)
	}
	if questions, _ := asked(t, (modernAgent{e, "a", "/mcp", canVisit}).call("s__read", "")); questions["sign_in"] == nil {
		t.Error("one who may is not sent to sign in")
	}
}

const canVisit = `{"elicitation":{"url":{}}}`

// A server that needs a sign-in answers at once: with the address, where the agent can show one. The call is made when it comes again.
func TestModernAgentIsSentToSignIn(t *testing.T) {
	e, p, calls := startSignedOut(t)
	a := modernAgent{e, "a", "/mcp", canVisit}
	answer := a.call("s__read", "")
	questions, state := asked(t, answer)
	contains(t, "the first call", string(questions["sign_in"]), `"mode":"url"`, `"url":"https://issuer.example/authorize"`, "The server s needs a sign-in")
	if second, _ := asked(t, a.call("s__read", "")); second == nil || p.logins.Load() != 1 {
		t.Errorf("the second call: %s, after %d sign-ins", second, p.logins.Load())
	}
	for name, other := range map[string]string{
		"another principal": modernAgent{e, "b", "/mcp", canVisit}.call("s__read", ""),
		"nobody may":        modernAgent{e, "stranger", "/mcp", canVisit}.call("s__read", ""),
		"cannot visit":      modernAgent{e, "a", "/mcp", canAll}.call("s__read", ""),
		"declined":          a.call("s__read", reply(state, "sign_in", `{"action":"decline"}`)),
	} {
		contains(t, name, other, `"isError":true`, "mcpvisor login s", `"mcpvisor/outcome":"not-sent"`)
		if strings.Contains(other, "issuer.example") {
			t.Errorf("%s: the address is shown: %s", name, other)
		}
	}
	contains(t, "the state of another one", modernAgent{e, "b", "/mcp", canVisit}.call("s__read", reply(state, "sign_in", `{"action":"accept"}`)), `"code":-32602`)
	if calls.Load() != 0 {
		t.Error("the server was called")
	}
	late := make(chan string, 1)
	go func() { late <- a.call("s__read", reply(state, "sign_in", `{"action":"accept"}`)) }()
	close(p.done)
	contains(t, "signed in", <-late, "it is read")
	if calls.Load() != 1 {
		t.Errorf("the server was called %d times", calls.Load())
	}
}

// An agent of 2025-11-25 gets the error that names the address, and a notification when the person is done.
func TestLegacyAgentIsSentToSignIn(t *testing.T) {
	e, p, calls := startSignedOut(t)
	a := e.agent("a", "/mcp", canVisit)
	contains(t, "the first call", a.ask("tools/call", `{"name":"s__read"}`), `"code":-32042`, `"mode":"url"`, `"elicitationId":"`,
		`"url":"https://issuer.example/authorize"`, `"mcpvisor/outcome":"not-sent"`)
	contains(t, "without the ability", e.agent("a", "/mcp", `{"elicitation":{}}`).ask("tools/call", `{"name":"s__read"}`), `"isError":true`, "mcpvisor login s")
	close(p.done)
	for e.m.Ready(t.Context(), "s") != nil { // until the sign-in has ended
		time.Sleep(5 * time.Millisecond)
	}
	contains(t, "signed in", a.ask("tools/call", `{"name":"s__read"}`), "it is read")
	if calls.Load() != 1 {
		t.Errorf("the server was called %d times", calls.Load())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/mcp", nil)
	r.Header.Set("Authorization", "Bearer a")
	r.Header.Set("Mcp-Session-Id", a.id)
	w := &lockedRecorder{ResponseRecorder: httptest.NewRecorder()}
	heard := func() string {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.Body.String()
	}
	go func() { // the stream itself has no end
		defer cancel()
		for ctx.Err() == nil && !strings.Contains(heard(), "notifications/elicitation/complete") {
			time.Sleep(5 * time.Millisecond)
		}
	}()
	e.h.ServeHTTP(w, r)
	contains(t, "the stream", heard(), "notifications/elicitation/complete")
}
