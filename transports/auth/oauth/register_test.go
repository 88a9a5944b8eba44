package oauth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// clientOf is the client id of a sign-in.
func clientOf(t *testing.T, cfg Config) (id string, err error) {
	t.Helper()
	_, err = make1(t, cfg).Login(t.Context(), prompt(func(ctx context.Context, ask SignInRequest) (string, error) {
		u, err := url.Parse(ask.URL)
		if err != nil {
			return "", err
		}
		id = u.Query().Get("client_id")
		return signInPerson(nil)(ctx, ask)
	}))
	return id, err
}

// TestRegistrationOrder: 2026-07-28, client registration: pre-registered, metadata document, dynamic, a clear error.
func TestRegistrationOrder(t *testing.T) {
	const ours = "https://client.example.com/client.json"
	cimd := map[string]any{"client_id_metadata_document_supported": true}
	for _, c := range []struct {
		name       string
		server     map[string]any
		id, url    string
		want       string
		registered int
	}{
		{"pre-registered before all", cimd, "us", ours, "us", 0},
		{"metadata document before registration", cimd, "", ours, ours, 0},
		{"registration where documents are not supported", nil, "", ours, "client 1 of as.example.com", 1},
		{"registration", nil, "", "", "client 1 of as.example.com", 1},
		{"nothing", map[string]any{"registration_endpoint": nil}, "", "", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			w.docs[asDoc] = serverMetadata(c.server)
			cfg := config(w)
			cfg.ClientID, cfg.ClientMetadataURL = c.id, c.url
			id, err := clientOf(t, cfg)
			if id != c.want || len(w.register) != c.registered {
				t.Errorf("client %q after %d registrations, %v", id, len(w.register), err)
			}
			if c.want == "" {
				wantClass(t, err, messages.ClassConfig)
			}
		})
	}
}

// TestRegistrationRequest: what is asked for.
func TestRegistrationRequest(t *testing.T) {
	for redirect, kind := range map[string]string{
		"": "native", "http://localhost:9/cb": "native", "https://agent.example.com/cb": "web",
	} {
		w := newWorld()
		cfg := config(w)
		cfg.RedirectURL = redirect
		if _, err := clientOf(t, cfg); err != nil {
			t.Fatal(err)
		}
		if r := w.register[0]; r["application_type"] != kind || r["token_endpoint_auth_method"] != "none" ||
			r["client_name"] != "mcpvisor" {
			t.Errorf("%q: registered %v", redirect, r)
		}
	}
}

// TestEndpointAuthentication: by metadata, and by what a registration was answered.
func TestEndpointAuthentication(t *testing.T) {
	for _, c := range []struct {
		name      string
		supported []string
		secret    string
		want      string
	}{
		{"public", nil, "", methodNone},
		{"nothing said", nil, "hush hush", methodBasic},
		{"basic", []string{"client_secret_post", "client_secret_basic"}, "hush hush", methodBasic},
		{"post", []string{"client_secret_post"}, "hush hush", methodPost},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			w.docs[asDoc] = serverMetadata(map[string]any{"token_endpoint_auth_methods_supported": c.supported})
			var got string
			w.token = func(form url.Values, r *http.Request) (int, any) {
				id, secret, basic := r.BasicAuth()
				switch {
				case basic && id == "us%3Aand+them" && secret == "hush+hush":
					got = methodBasic
				case form.Get("client_secret") == "hush hush" && form.Get("client_id") == "us:and them":
					got = methodPost
				case form.Get("client_id") == "us:and them" && !form.Has("client_secret") && !basic:
					got = methodNone
				}
				return http.StatusOK, w.tokenAnswer()
			}
			cfg := config(w)
			cfg.ClientID, cfg.ClientSecret, cfg.Issuer = "us:and them", c.secret, issuer
			if _, err := clientOf(t, cfg); err != nil || got != c.want {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}

// TestMovedAuthorizationServer: 2026-07-28, Authorization Server Binding: clients "MUST NOT reuse client credentials
// from a different authorization server and MUST re-register with the new authorization server"; pre-registered ones
// are an error.
func TestMovedAuthorizationServer(t *testing.T) {
	const next = "https://next.example.com"
	move := func(w *fakeNetwork) {
		w.docs[prmPath] = resource(mcpURL, next)
		w.docs[next+"/.well-known/oauth-authorization-server"] = serverMetadata(map[string]any{
			"issuer": next, "token_endpoint": next + "/token", "registration_endpoint": next + "/register",
			"authorization_endpoint": next + "/authorize",
		})
	}
	w := newWorld()
	cfg := config(w)
	if id, err := clientOf(t, cfg); id != "client 1 of as.example.com" {
		t.Fatal(id, err)
	}
	move(w)
	if id, err := clientOf(t, cfg); id != "client 2 of next.example.com" {
		t.Fatal(id, err)
	}
	// Back again, the first registration is still known.
	w.docs[prmPath] = resource(mcpURL, issuer)
	if id, err := clientOf(t, cfg); id != "client 1 of as.example.com" || len(w.register) != 2 {
		t.Fatal(id, err, len(w.register))
	}

	w = newWorld()
	cfg = config(w)
	cfg.ClientID = "us"
	if _, err := clientOf(t, cfg); err != nil {
		t.Fatal(err)
	}
	move(w)
	_, err := clientOf(t, cfg)
	wantClass(t, err, messages.ClassConfig)
	if err == nil || !strings.Contains(err.Error(), next) || !strings.Contains(err.Error(), issuer) {
		t.Error(err)
	}
	cfg.Store, cfg.Issuer = config(w).Store, issuer // named, and nothing stored
	_, err = clientOf(t, cfg)
	wantClass(t, err, messages.ClassConfig)
}

// TestForgottenRegistration: an authorization server that has lost our registration gets another one, once.
func TestForgottenRegistration(t *testing.T) {
	w := newWorld()
	cfg := config(w)
	a := signedIn(t, cfg)
	w.token = func(form url.Values, _ *http.Request) (int, any) {
		if form.Get("client_id") == "client 1 of as.example.com" {
			return http.StatusUnauthorized, map[string]any{"error": "invalid_client"}
		}
		return http.StatusOK, w.tokenAnswer()
	}
	_, err := a.Login(t.Context(), prompt(signInPerson(nil)))
	wantClass(t, err, messages.ClassUnauthorized)
	if _, err := a.Login(t.Context(), prompt(signInPerson(nil))); err != nil || len(w.register) != 2 {
		t.Errorf("%v after %d registrations", err, len(w.register))
	}
}

// TestUnfinishedSignIn: what was registered serves the next attempt.
func TestUnfinishedSignIn(t *testing.T) {
	w := newWorld()
	a := make1(t, config(w))
	_, err := a.Login(t.Context(), prompt(func(context.Context, SignInRequest) (string, error) { return "", errors.New("later") }))
	wantClass(t, err, messages.ClassUnauthorized)
	if _, err := a.Login(t.Context(), prompt(signInPerson(nil))); err != nil || len(w.register) != 1 {
		t.Errorf("%v after %d registrations", err, len(w.register))
	}
}

// TestRegistrationRefused: 2026-07-28: "clients SHOULD surface a meaningful error to the user".
func TestRegistrationRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		doc   any
		class messages.Class
		says  string
	}{
		{"an OAuth error", func(w http.ResponseWriter, _ *http.Request) {
			write(w, http.StatusBadRequest, map[string]any{"error": "invalid_redirect_uri", "error_description": "not here"})
		}, messages.ClassConfig, "invalid_redirect_uri (not here)"},
		{"forbidden", 403, messages.ClassConfig, "403"},
		{"away", 503, messages.ClassNetwork, "503"},
		{"no connection", errors.New("down"), messages.ClassNetwork, "cannot be had"},
		{"a secret in something unreadable", func(w http.ResponseWriter, _ *http.Request) {
			write(w, http.StatusCreated, `{"client_secret":"`+canary+`"`)
		}, messages.ClassConfig, "does not register"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			w.docs[issuer+"/register"] = c.doc
			_, err := clientOf(t, config(w))
			wantClass(t, err, c.class)
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), canary) {
				t.Error(err)
			}
		})
	}
}
