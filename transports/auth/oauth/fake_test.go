package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
)

const (
	mcpURL = "https://mcp.example.com/mcp"
	issuer = "https://as.example.com"
	// canary begins everything that must not be seen.
	canary = "canary-7d1f"
)

// fakeNetwork is a network without sockets, so that it fits into a synctest bubble: an MCP server's metadata and one
// authorization server. Its fields are changed before the first request, or under mu.
type fakeNetwork struct {
	mu sync.Mutex
	// docs are the metadata documents by URL: a value for JSON, an int for a status, a func for anything.
	docs map[string]any
	// token answers the token endpoint in the place of the usual answer, if it is set.
	token func(form url.Values, r *http.Request) (status int, body any)
	// lifetime is expires_in, in seconds; 0 leaves it out.
	lifetime int

	asked    []string     // method and URL of every request, in order
	forms    []url.Values // of the token endpoint
	register []map[string]any
	number   int
}

func newWorld() *fakeNetwork {
	return &fakeNetwork{lifetime: 3600, docs: map[string]any{
		"https://mcp.example.com/.well-known/oauth-protected-resource/mcp": map[string]any{
			"resource": mcpURL, "authorization_servers": []string{issuer}, "scopes_supported": []string{"read"},
		},
		issuer + "/.well-known/oauth-authorization-server": serverMetadata(nil),
	}}
}

// serverMetadata is an authorization server's metadata with changes; nil removes.
func serverMetadata(change map[string]any) map[string]any {
	m := map[string]any{
		"issuer": issuer, "authorization_endpoint": issuer + "/authorize", "token_endpoint": issuer + "/token",
		"registration_endpoint": issuer + "/register", "revocation_endpoint": issuer + "/revoke",
		"code_challenge_methods_supported":               []string{"S256"},
		"authorization_response_iss_parameter_supported": true,
	}
	for k, v := range change {
		if m[k] = v; v == nil {
			delete(m, k)
		}
	}
	return m
}

// RoundTrip implements http.RoundTripper.
func (w *fakeNetwork) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w.asked = append(w.asked, r.Method+" "+r.URL.String())
	if len(r.Header.Values("Authorization")) > 0 && r.Method == http.MethodGet {
		return nil, errors.New("credentials for a metadata document")
	}
	rec := httptest.NewRecorder()
	if doc, ok := w.docs[r.URL.String()]; ok {
		switch doc := doc.(type) {
		case int:
			rec.WriteHeader(doc)
		case error:
			return nil, doc
		case func(http.ResponseWriter, *http.Request):
			doc(rec, r)
		default:
			write(rec, http.StatusOK, doc)
		}
		return rec.Result(), nil
	}
	switch r.URL.Path {
	case "/token":
		body, _ := io.ReadAll(r.Body)
		form, _ := url.ParseQuery(string(body))
		w.forms = append(w.forms, form)
		if w.token != nil {
			status, answer := w.token(form, r)
			if err, ok := answer.(error); ok {
				return nil, err
			}
			write(rec, status, answer)
			break
		}
		write(rec, http.StatusOK, w.tokenAnswer())
	case "/register":
		var ask map[string]any
		_ = json.NewDecoder(r.Body).Decode(&ask)
		w.register = append(w.register, ask)
		ask["client_id"] = fmt.Sprintf("client %d of %s", len(w.register), r.URL.Host)
		write(rec, http.StatusCreated, ask)
	case "/revoke":
		rec.WriteHeader(http.StatusOK)
	default:
		rec.WriteHeader(http.StatusNotFound)
	}
	return rec.Result(), nil
}

// tokenAnswer is the usual answer of the token endpoint. w.mu is held.
func (w *fakeNetwork) tokenAnswer() map[string]any {
	w.number++
	answer := map[string]any{
		"access_token":  fmt.Sprintf("%s-access-%d", canary, w.number),
		"refresh_token": fmt.Sprintf("%s-refresh-%d", canary, w.number), "token_type": "Bearer",
	}
	if w.lifetime > 0 {
		answer["expires_in"] = w.lifetime
	}
	return answer
}

func write(w http.ResponseWriter, status int, v any) {
	switch v := v.(type) {
	case string:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, v)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
}

// count returns the number of requests that began with a text.
func (w *fakeNetwork) count(prefix string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, a := range w.asked {
		if strings.HasPrefix(a, prefix) {
			n++
		}
	}
	return n
}

func (w *fakeNetwork) tokenRequests() int { return w.count("POST " + issuer + "/token") }

// signInPerson is a person who signs in: the answer comes with the state and the issuer, changed by change.
func signInPerson(change map[string]string) Interactive {
	return func(_ context.Context, ask SignInRequest) (string, error) {
		u, err := url.Parse(ask.URL)
		if err != nil {
			return "", err
		}
		q := url.Values{"code": {canary + "-code"}, "state": {u.Query().Get("state")}, "iss": {ask.Issuer}}
		for k, v := range change {
			if q.Set(k, v); v == "" {
				q.Del(k)
			}
		}
		return ask.RedirectURL + "?" + q.Encode(), nil
	}
}

// prompt makes a Prompt of a person.
func prompt(person Interactive) Prompt {
	asks := make(chan SignInRequest, 1)
	return Prompt{
		NoListen: true, Show: func(ask SignInRequest) { asks <- ask },
		Paste: func(ctx context.Context, _ string) (string, error) { return person(ctx, <-asks) },
	}
}

func config(w *fakeNetwork) Config {
	return Config{Server: "demo", URL: mcpURL, Store: auth.NewMemory(), Locks: auth.NewLocks(""), Transport: w}
}

func make1(t *testing.T, cfg Config) *Authorizer {
	t.Helper()
	a, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// signedIn is an Authorizer after Login.
func signedIn(t *testing.T, cfg Config) *Authorizer {
	t.Helper()
	a := make1(t, cfg)
	if _, err := a.Login(t.Context(), prompt(signInPerson(nil))); err != nil {
		t.Fatal(err)
	}
	return a
}

// currentBearer is the token that a request would be sent with.
func currentBearer(t *testing.T, a *Authorizer) (string, error) {
	t.Helper()
	h := http.Header{}
	err := a.Authorize(t.Context(), h)
	return strings.TrimPrefix(h.Get("Authorization"), "Bearer "), err
}

func mustBearer(t *testing.T, a *Authorizer) string {
	t.Helper()
	token, err := currentBearer(t, a)
	if err != nil || token == "" {
		t.Fatalf("token %q, %v", token, err)
	}
	return token
}

// refused tells a of a 401 for a token.
func refused(t *testing.T, a *Authorizer, token string) (bool, error) {
	t.Helper()
	return a.Refused(t.Context(), http.StatusUnauthorized, nil, http.Header{"Authorization": {"Bearer " + token}})
}

func wantClass(t *testing.T, err error, class messages.Class) {
	t.Helper()
	var own *transports.Error
	if !errors.As(err, &own) || own.Class != class {
		t.Errorf("%v: class %q, want %q", err, classOf(err), class)
	}
}
