package oauth_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/peers"
	"github.com/mcpvisor/mcpvisor/transports/auth"
	"github.com/mcpvisor/mcpvisor/transports/auth/oauth"
)

func newAuthorizer(t *testing.T, cfg oauth.Config) *oauth.Authorizer {
	t.Helper()
	cfg.Server = "protected"
	if cfg.Store == nil {
		cfg.Store, cfg.Locks = auth.NewMemory(), auth.NewLocks("")
	}
	a, err := oauth.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestSignIn: refused, signed in by a browser that comes to the listener, let in.
func TestSignIn(t *testing.T) {
	as := peers.StartAuthServer(t, peers.AuthSettings{})
	server := startMCP(t, as)
	a := newAuthorizer(t, oauth.Config{URL: server.URL})
	_, _, err := openSession(t.Context(), server.URL, a)
	if !errors.Is(err, messages.ErrNeedsAuth) {
		t.Fatalf("without a sign-in: %v", err)
	}
	var request oauth.SignInRequest
	status, err := a.Login(t.Context(), oauth.Prompt{Open: followSignIn, Show: func(ask oauth.SignInRequest) { request = ask }})
	if err != nil {
		t.Fatal(err)
	}
	if !status.SignedIn || !status.Renewable || status.Issuer != as.Issuer || status.Resource != server.URL ||
		!slices.Contains(status.Scopes, "mcp:read") || status.Client != "registered" || status.Where != "memory" {
		t.Errorf("the status is %+v", status)
	}
	if request.Issuer != as.Issuer || !strings.HasPrefix(request.RedirectURL, "http://127.0.0.1:") {
		t.Errorf("the person was asked %+v", request)
	}
	gate, end, err := openSession(t.Context(), server.URL, a)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	if _, err := gate.Call(t.Context(), "echo", json.RawMessage(`{}`)); err != nil {
		t.Error(err)
	}
	// Signed in again, the same registration serves.
	if _, err := a.Login(t.Context(), oauth.Prompt{Open: followSignIn}); err != nil {
		t.Fatal(err)
	}
	if seen := as.Counts(t); seen.Registered != 1 || seen.Code.Granted != 2 {
		t.Errorf("the authorization server saw %+v", seen)
	}
}

// TestPastedAnswer: no listener; the person pastes the address that the browser ended at, after something useless.
func TestPastedAnswer(t *testing.T) {
	as := peers.StartAuthServer(t, peers.AuthSettings{})
	server := startMCP(t, as)
	a := newAuthorizer(t, oauth.Config{URL: server.URL})
	asks := make(chan oauth.SignInRequest, 1)
	var problems []string
	_, err := a.Login(t.Context(), oauth.Prompt{
		NoListen: true,
		Show:     func(ask oauth.SignInRequest) { asks <- ask },
		Paste: func(ctx context.Context, problem string) (string, error) {
			problems = append(problems, problem)
			if problem == "" {
				return "http://127.0.0.1/callback?code=x&state=another", nil
			}
			return signInElsewhere(ctx, <-asks)
		},
	})
	if err != nil || len(problems) != 2 {
		t.Fatalf("%v, after %q", err, problems)
	}
	_, end, err := openSession(t.Context(), server.URL, a)
	if err != nil {
		t.Fatal(err)
	}
	end()
}

// TestStepUp: 2026-07-28, Step-Up Authorization Flow: "computing the union of the client's previously requested scope
// set and the scopes from the current challenge".
func TestStepUp(t *testing.T) {
	as := peers.StartAuthServer(t, peers.AuthSettings{})
	server := startMCP(t, as)
	a := newAuthorizer(t, oauth.Config{URL: server.URL})
	if _, err := a.Login(t.Context(), oauth.Prompt{Open: followSignIn}); err != nil {
		t.Fatal(err)
	}
	gate, end, err := openSession(t.Context(), server.URL, a)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	var refused *messages.Error
	if _, err := gate.Call(t.Context(), "write", json.RawMessage(`{}`)); !errors.As(err, &refused) ||
		refused.Class != messages.ClassForbidden || refused.Challenge == nil || refused.Challenge.Scope != "mcp:write" {
		t.Fatalf("a call beyond the scopes: %v", err)
	}
	if _, err := gate.Call(t.Context(), "echo", json.RawMessage(`{}`)); err != nil {
		t.Errorf("the connection did not survive: %v", err)
	}
	status, err := a.Status(t.Context())
	if err != nil || !slices.Equal(status.Wanted, []string{"mcp:write"}) {
		t.Errorf("what was wanted is forgotten: %+v, %v", status, err)
	}
	// The next sign-in asks for both.
	status, err = a.Login(t.Context(), oauth.Prompt{Open: followSignIn})
	if err != nil || !slices.Contains(status.Scopes, "mcp:write") || !slices.Contains(status.Scopes, "mcp:read") ||
		len(status.Wanted) != 0 {
		t.Fatalf("after the step-up: %+v, %v", status, err)
	}
	if _, err := gate.Call(t.Context(), "write", json.RawMessage(`{}`)); err != nil {
		t.Error(err)
	}
}

// TestInteractive: with somebody who can be asked, the first request signs in, and the call that lacks a scope too.
func TestInteractive(t *testing.T) {
	as := peers.StartAuthServer(t, peers.AuthSettings{})
	server := startMCP(t, as)
	a := newAuthorizer(t, oauth.Config{URL: server.URL, Interactive: signInElsewhere})
	gate, end, err := openSession(t.Context(), server.URL, a)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	if _, err := gate.Call(t.Context(), "write", json.RawMessage(`{}`)); err != nil {
		t.Error(err)
	}
	if seen := as.Counts(t); seen.Code.Granted != 2 || seen.Registered != 1 {
		t.Errorf("the authorization server saw %+v", seen)
	}
}

// TestLogout: the authorization server ends the grant, and nothing stays.
func TestLogout(t *testing.T) {
	as := peers.StartAuthServer(t, peers.AuthSettings{})
	server := startMCP(t, as)
	a := newAuthorizer(t, oauth.Config{URL: server.URL})
	if _, err := a.Login(t.Context(), oauth.Prompt{Open: followSignIn}); err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	if err := a.Authorize(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if revoked, err := a.Logout(t.Context()); !revoked || err != nil {
		t.Fatalf("revoked %v, %v", revoked, err)
	}
	if token, err := as.Check(strings.TrimPrefix(h.Get("Authorization"), "Bearer ")); err != nil || token.Active {
		t.Errorf("the token is still good: %+v, %v", token, err)
	}
	if status, err := a.Status(t.Context()); err != nil || status.SignedIn {
		t.Errorf("%+v, %v", status, err)
	}
	if _, _, err := openSession(t.Context(), server.URL, a); !errors.Is(err, messages.ErrNeedsAuth) {
		t.Error(err)
	}
}

// TestClientCredentials: no person is asked, by secret and by key.
func TestClientCredentials(t *testing.T) {
	as := peers.StartAuthServer(t, peers.AuthSettings{Clients: []map[string]any{{
		"client_id": "robot", "client_secret": "secret of the robot", "grant_types": []string{"client_credentials"},
		"redirect_uris": []string{}, "response_types": []string{}, "token_endpoint_auth_method": "client_secret_basic",
	}}})
	server := startMCP(t, as)
	a := newAuthorizer(t, oauth.Config{URL: server.URL, Grant: oauth.ClientCredentials{},
		ClientID: "robot", ClientSecret: "secret of the robot", Issuer: as.Issuer})
	gate, end, err := openSession(t.Context(), server.URL, a)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	if _, err := gate.Call(t.Context(), "write", json.RawMessage(`{}`)); err != nil {
		t.Error(err)
	}
	invalid := newAuthorizer(t, oauth.Config{URL: server.URL, Grant: oauth.ClientCredentials{},
		ClientID: "robot", ClientSecret: "another secret", Issuer: as.Issuer})
	_, _, err = openSession(t.Context(), server.URL, invalid)
	if !errors.Is(err, messages.ErrNeedsAuth) || !strings.Contains(err.Error(), "invalid_client") ||
		strings.Contains(err.Error(), "another secret") {
		t.Errorf("a wrong secret: %v", err)
	}
}

// TestAnotherServersToken: RFC 8707: a token is for one resource, and goes to no other server, whatever name it has.
func TestAnotherServersToken(t *testing.T) {
	as := peers.StartAuthServer(t, peers.AuthSettings{})
	one, two := startMCP(t, as), startMCP(t, as)
	store, locks := auth.NewMemory(), auth.NewLocks("")
	first := newAuthorizer(t, oauth.Config{URL: one.URL, Store: store, Locks: locks})
	if _, err := first.Login(t.Context(), oauth.Prompt{Open: followSignIn}); err != nil {
		t.Fatal(err)
	}
	second := newAuthorizer(t, oauth.Config{URL: two.URL, Store: store, Locks: locks})
	h := http.Header{}
	if err := second.Authorize(t.Context(), h); err != nil || len(h) != 0 {
		t.Errorf("%v, %v", h, err)
	}
}

// TestUnavailable: the token endpoint answers 503: no sign-out, and no storm of requests.
func TestUnavailable(t *testing.T) {
	as := peers.StartAuthServer(t, peers.AuthSettings{AccessTTL: 4})
	server := startMCP(t, as)
	a := newAuthorizer(t, oauth.Config{URL: server.URL, Early: time.Second})
	if _, err := a.Login(t.Context(), oauth.Prompt{Open: followSignIn}); err != nil {
		t.Fatal(err)
	}
	as.Break(t, http.StatusServiceUnavailable)
	for stop := time.Now().Add(bound); ; time.Sleep(20 * time.Millisecond) {
		err := a.Authorize(t.Context(), http.Header{})
		if err == nil && time.Now().Before(stop) {
			continue // the token is still good
		}
		if messages.ClassOf(facadeError(err)) != messages.ClassNetwork {
			t.Fatalf("while the token endpoint is away: %v", err)
		}
		break
	}
	for range 100 {
		if err := a.Authorize(t.Context(), http.Header{}); errors.Is(facadeError(err), messages.ErrNeedsAuth) {
			t.Fatal(err)
		}
	}
	if seen := as.Counts(t); seen.Unavailable > 5 {
		t.Errorf("the token endpoint was asked %d times", seen.Unavailable)
	}
	as.Break(t, 0)
	for stop := time.Now().Add(bound); ; time.Sleep(50 * time.Millisecond) {
		if err := a.Authorize(t.Context(), http.Header{}); err == nil {
			break
		} else if time.Now().After(stop) {
			t.Fatal(err)
		}
	}
	if seen := as.Counts(t); seen.SignedIn != 1 || seen.Refresh.Granted != 1 || seen.Refresh.Refused != 0 {
		t.Errorf("the authorization server saw %+v", seen)
	}
}
