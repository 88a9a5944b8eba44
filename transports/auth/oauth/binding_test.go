package oauth

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

const otherAS = "https://as.evil.example"

// secretKinds are the configurations whose secrets would be good elsewhere.
var secretKinds = map[string]func(*Config){
	"client credentials": func(c *Config) { c.Grant, c.ClientSecret = ClientCredentials{}, canary+"-secret" },
	"token exchange": func(c *Config) {
		c.Grant = TokenExchange{Subject: func(context.Context) (string, error) { return canary, nil }}
	},
	"JWT bearer": func(c *Config) {
		c.Grant = JWTBearer{Assertion: func(context.Context) (string, error) { return canary, nil }}
	},
	"a person and a client secret": func(c *Config) { c.ClientSecret, c.Interactive = canary+"-secret", signInPerson(nil) },
}

// TestSecretHasOneDestination: what the configuration holds goes to no authorization server that only the MCP server has
// named. The error has the line to add, and without a person nothing is sent at all.
func TestSecretHasOneDestination(t *testing.T) {
	for name, change := range secretKinds {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			cfg := config(w)
			cfg.ClientID = "us"
			change(&cfg)
			a := make1(t, cfg)
			_, err := authorizeOnce(t, a)
			wantClass(t, err, messages.ClassUnauthorized)
			var own *transports.Error
			if !asError(err, &own) || !strings.Contains(own.Fix, `"issuer": "`+issuer+`"`) ||
				!strings.Contains(own.Text, "not verified") || strings.Contains(own.Error(), canary) {
				t.Errorf("%v", own)
			}
			if w.tokenRequests() != 0 {
				t.Fatal("it was sent")
			}
			// A person says no, and then yes to another server's name, which is what the store has before anything is sent.
			asked := 0
			ask := func(answer bool) Prompt {
				p := prompt(signInPerson(nil))
				p.Confirm = func(_ context.Context, c Confirmation) (bool, error) {
					asked++
					if c.Issuer != issuer || c.TokenURL != issuer+"/token" || c.What == "" || w.tokenRequests() != 0 {
						t.Errorf("asked for %+v after %d token requests", c, w.tokenRequests())
					}
					return answer, nil
				}
				return p
			}
			if _, err := a.Login(t.Context(), ask(false)); err == nil || w.tokenRequests() != 0 {
				t.Fatalf("after a no: %v, %d token requests", err, w.tokenRequests())
			}
			w.token = func(url.Values, *http.Request) (int, any) {
				if raw, err := cfg.Store.Get(t.Context(), a.key); err != nil || !strings.Contains(string(raw), issuer) {
					t.Errorf("it is sent before it is stored: %v", err)
				}
				return http.StatusOK, w.tokenAnswer()
			}
			if _, err := a.Login(t.Context(), ask(true)); err != nil || asked != 2 {
				t.Fatalf("%v after %d questions", err, asked)
			}
			// The yes is for this issuer, for every process, over a sign-out, and for no other issuer.
			b := make1(t, cfg)
			if _, err := b.Logout(t.Context()); err != nil {
				t.Fatal(err)
			}
			if status, err := b.Status(t.Context()); err != nil || status.SignedIn {
				t.Errorf("%+v, %v", status, err)
			}
			if _, err := make1(t, cfg).Login(t.Context(), prompt(signInPerson(nil))); err != nil {
				t.Errorf("after a sign-out: %v", err)
			}
			if _, err := b.Logout(t.Context()); err != nil {
				t.Fatal(err)
			}
			sent := len(w.forms)
			w.docs[prmPath] = resource(mcpURL, otherAS)
			w.docs[otherAS+"/.well-known/oauth-authorization-server"] = serverMetadata(map[string]any{
				"issuer": otherAS, "authorization_endpoint": otherAS + "/authorize", "token_endpoint": otherAS + "/token"})
			_, err = make1(t, cfg).Login(t.Context(), ask(true))
			wantClass(t, err, messages.ClassConfig)
			if _, err := b.Forget(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := authorizeOnce(t, make1(t, cfg)); err == nil || len(w.forms) != sent {
				t.Errorf("after it was forgotten: %v, %d token requests", err, len(w.forms)-sent)
			}
		})
	}
}

// TestBindingOfAnOlderVersion: who has signed in before goes on.
func TestBindingOfAnOlderVersion(t *testing.T) {
	w := newWorld()
	cfg := config(w)
	cfg.ClientID, cfg.ClientSecret, cfg.Grant = "us", canary, ClientCredentials{}
	old := storedSignIn{URL: mcpURL, Clients: map[string]client{issuer: {ID: "us", Kind: kindConfigured, Method: methodBasic}}}
	a := make1(t, cfg)
	if err := cfg.Store.Put(t.Context(), a.key, old.encodeJSON()); err != nil {
		t.Fatal(err)
	}
	if _, err := authorizeOnce(t, a); err != nil {
		t.Error(err)
	}
}

// TestConfiguredIssuerIsTheOne: of several the configured one is taken, another is refused, and a sign-in at another
// one ends when the configuration names one: the next refresh would send the secret there.
func TestConfiguredIssuerIsTheOne(t *testing.T) {
	w := newWorld()
	w.docs[prmPath] = resource(mcpURL, otherAS, issuer)
	cfg := config(w)
	cfg.Issuer = issuer // no client id: it counts all the same
	a := signedIn(t, cfg)
	if got := a.currentSignIn().Issuer; got != issuer {
		t.Error(got)
	}
	w.docs[prmPath] = resource(mcpURL, otherAS)
	_, err := make1(t, cfg).Login(t.Context(), prompt(signInPerson(nil)))
	wantClass(t, err, messages.ClassConfig)

	sent := w.tokenRequests()
	cfg.Issuer = otherAS
	b := make1(t, cfg)
	if token, err := currentBearer(t, b); token != "" || err != nil {
		t.Errorf("the token of another issuer: %q, %v", token, err)
	}
	if _, err := refused(t, b, ""); err == nil || w.tokenRequests() != sent {
		t.Errorf("%v, %d token requests", err, w.tokenRequests()-sent)
	}
}

// TestAnswerGoesElsewhere: where no iss tells a person's page from the server that gets the code, they are asked before
// it is opened.
func TestAnswerGoesElsewhere(t *testing.T) {
	for name, c := range map[string]struct {
		change  map[string]any
		config  func(*Config)
		confirm Confirm
		ok      bool
		asked   int
	}{
		"nobody is asked": {change: map[string]any{"authorization_endpoint": "https://honest.example/authorize"}},
		"a no": {change: map[string]any{"authorization_endpoint": "https://honest.example/authorize"},
			confirm: func(context.Context, Confirmation) (bool, error) { return false, nil }, asked: 1},
		"a yes": {change: map[string]any{"authorization_endpoint": "https://honest.example/authorize"}, ok: true,
			confirm: func(context.Context, Confirmation) (bool, error) { return true, nil }, asked: 1},
		"another port": {change: map[string]any{"authorization_endpoint": issuer + ":8443/authorize"}},
		"one host":     {ok: true},
		"iss is announced": {ok: true, change: map[string]any{"authorization_endpoint": "https://honest.example/authorize",
			"authorization_response_iss_parameter_supported": true}},
		"the issuer is configured": {ok: true, config: func(c *Config) { c.Issuer = issuer },
			change: map[string]any{"authorization_endpoint": "https://login.example.com/authorize"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			change := map[string]any{"authorization_response_iss_parameter_supported": nil}
			for k, v := range c.change {
				change[k] = v
			}
			w.docs[asDoc] = serverMetadata(change)
			cfg := config(w)
			if c.config != nil {
				c.config(&cfg)
			}
			opened, asked := 0, 0
			p := prompt(func(ctx context.Context, ask SignInRequest) (string, error) {
				opened++
				return signInPerson(map[string]string{"iss": ""})(ctx, ask)
			})
			if c.config == nil && c.change["authorization_response_iss_parameter_supported"] == true {
				p = prompt(signInPerson(nil))
			}
			if c.confirm != nil {
				p.Confirm = func(ctx context.Context, q Confirmation) (bool, error) {
					if asked++; q.Page != "https://honest.example/authorize" || q.TokenURL != issuer+"/token" || opened != 0 {
						t.Errorf("%+v after %d pages", q, opened)
					}
					return c.confirm(ctx, q)
				}
			}
			_, err := make1(t, cfg).Login(t.Context(), p)
			if (err == nil) != c.ok || asked != c.asked {
				t.Errorf("%v after %d questions", err, asked)
			}
			if !c.ok && (opened != 0 || w.tokenRequests() != 0) {
				t.Errorf("%d pages, %d token requests", opened, w.tokenRequests())
			}
		})
	}
}

// TestDoubledNames: an answer that could be read in two ways is not read.
func TestDoubledNames(t *testing.T) {
	raw := func(status int, body string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	for name, docs := range map[string]map[string]any{
		"a resource": {prmPath: raw(200, `{"resource": "`+mcpURL+`", "resource": "`+mcpURL+`", "authorization_servers": ["`+issuer+`"]}`)},
		"a token":    {issuer + "/token": raw(200, `{"access_token": "a", "Access_token": "b", "token_type": "Bearer"}`)},
		"a client":   {issuer + "/register": raw(201, `{"client_id": "a", "client_id": "b", "redirect_uris": []}`)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			for at, doc := range docs {
				w.docs[at] = doc
			}
			if _, err := make1(t, config(w)).Login(t.Context(), prompt(signInPerson(nil))); err == nil {
				t.Error("it was taken")
			}
		})
	}
}
