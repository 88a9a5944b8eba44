package oauth

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// TestMetadataRefused: what an authorization server's metadata may not name, and that no person is sent to such an address.
func TestMetadataRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change map[string]any
		issuer string
	}{
		"C1 in a host":            {change: map[string]any{"authorization_endpoint": "https://good.example\u009b31m/authorize"}},
		"a direction in a host":   {change: map[string]any{"authorization_endpoint": "https://moc.elgoog\u202e/authorize"}},
		"an escape in a host":     {change: map[string]any{"authorization_endpoint": "https://a%E2%80%AEb.example/authorize"}},
		"another alphabet":        {change: map[string]any{"token_endpoint": "https://аs.example.com/token"}},
		"zero width":              {change: map[string]any{"registration_endpoint": "https://a\u200bs.example.com/register"}},
		"a line separator":        {change: map[string]any{"revocation_endpoint": "https://as.example.com/\u2028"}},
		"user information":        {change: map[string]any{"token_endpoint": "https://honest.example@as.example.com/token"}},
		"a fragment":              {change: map[string]any{"authorization_endpoint": issuer + "/authorize#x"}},
		"an empty fragment":       {change: map[string]any{"authorization_endpoint": issuer + "/authorize?x=y#"}},
		"a fragment, tokens":      {change: map[string]any{"token_endpoint": issuer + "/token#x"}},
		"another client":          {change: map[string]any{"authorization_endpoint": issuer + "/authorize?client_id=evil"}},
		"another redirect URL":    {change: map[string]any{"authorization_endpoint": issuer + "/authorize?redirect_uri=https://e.vil"}},
		"a request object":        {change: map[string]any{"authorization_endpoint": issuer + "/authorize?request_uri=urn:x"}},
		"in capitals":             {change: map[string]any{"authorization_endpoint": issuer + "/authorize?STATE=x"}},
		"a query without reading": {change: map[string]any{"authorization_endpoint": issuer + "/authorize?%zz"}},
		"this machine's page":     {change: map[string]any{"authorization_endpoint": "http://127.0.0.1:8080/admin/reset"}},
		"localhost's page":        {change: map[string]any{"authorization_endpoint": "http://localhost:8080/admin/reset"}},
		"a router's page":         {change: map[string]any{"authorization_endpoint": "https://192.168.1.1/reboot"}},
		"a router in octal":       {change: map[string]any{"authorization_endpoint": "https://0300.0250.1.1/reboot"}},
		"a page of the intranet":  {change: map[string]any{"authorization_endpoint": "https://wiki.internal/delete"}},
		"an endpoint of 900 kB":   {change: map[string]any{"authorization_endpoint": issuer + "/" + strings.Repeat("a", 900_000)}},
		"an issuer with a fragment": {issuer: issuer + "#x",
			change: map[string]any{"issuer": issuer + "#x"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.docs[prmPath] = resource(mcpURL, cmpOr(c.issuer, issuer))
			w.docs[asDoc] = serverMetadata(c.change)
			a := make1(t, config(w))
			a.transport.noteServerAddr(netip.MustParseAddr("8.8.8.8"))
			opened := 0
			_, err := a.Login(t.Context(), prompt(func(ctx context.Context, ask SignInRequest) (string, error) {
				opened++
				return signInPerson(nil)(ctx, ask)
			}))
			if err == nil || opened != 0 || w.tokenRequests() != 0 || len(w.register) != 0 {
				t.Fatalf("%v; opened %d times, %d tokens, %d registrations", err, opened, w.tokenRequests(), len(w.register))
			}
			if text := err.Error(); len(text) > 1000 || strings.ContainsAny(text, "\u009b\u202e\u200b\u2028") {
				t.Errorf("%.2000q", text)
			}
		})
	}
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// TestPrivatePageOfAPrivateServer: what is refused to a server on the internet is right for one in the same network, and
// for an issuer that the person has configured.
func TestPrivatePageOfAPrivateServer(t *testing.T) {
	for name, change := range map[string]func(*Authorizer, *Config){
		"a server in the network": func(a *Authorizer, _ *Config) { a.transport.noteServerAddr(netip.MustParseAddr("10.0.0.1")) },
		"a configured issuer":     func(_ *Authorizer, c *Config) { c.Issuer = issuer },
	} {
		w := newWorld()
		w.docs[asDoc] = serverMetadata(map[string]any{"authorization_endpoint": "https://sso.internal/authorize?tenant=1",
			"token_endpoint": "https://sso.internal/token"})
		cfg := config(w)
		change(&Authorizer{transport: webOf("x", false)}, &cfg)
		a := make1(t, cfg)
		a.transport.noteServerAddr(netip.MustParseAddr("10.0.0.1"))
		change(a, &Config{})
		if _, err := a.Login(t.Context(), prompt(signInPerson(nil))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestParametersOnce: the person's own page may have parameters, and ours are those that count.
func TestParametersOnce(t *testing.T) {
	at, err := authorizationURL("https://as.example.com/a?tenant=1&client_id=x&Client_ID=y&state=z&x=%20&x=2#f",
		url.Values{"client_id": {"us"}, "state": {"s"}, "resource": {"https://r.example/?a=b&c"}})
	u, _ := url.Parse(at)
	want := url.Values{"tenant": {"1"}, "client_id": {"us"}, "state": {"s"}, "x": {" ", "2"},
		"resource": {"https://r.example/?a=b&c"}}
	if err != nil || u.Query().Encode() != want.Encode() || u.Fragment != "" {
		t.Errorf("%s, %v", at, err)
	}
}

// TestResourceRefused: the resource of a metadata document is the server's own URL, and reads the same everywhere.
func TestResourceRefused(t *testing.T) {
	for _, named := range []string{
		"https://honest.example@mcp.example.com/mcp", "https://@mcp.example.com/mcp", "https://mcp.example.com/mcp#",
		"https://mcp.example.com/mcp\u202e", "https://mcp.example.com/" + strings.Repeat("a", maxURL),
	} {
		w := newWorld()
		w.docs[prmPath] = resource(named, issuer)
		_, err := make1(t, config(w)).discoverTarget(t.Context(), nil, nil)
		wantClass(t, err, messages.ClassProtocol)
	}
}

const urlKey = "key-of-the-url-5e1d"

// TestKeyInTheURL: a key in the server's own URL goes to the server, and neither to a browser nor to the authorization
// server.
func TestKeyInTheURL(t *testing.T) {
	for name, c := range map[string]struct{ query, named, want string }{
		"no metadata":        {"?api_key=" + urlKey, "", mcpURL},
		"metadata without":   {"?api_key=" + urlKey, mcpURL, mcpURL},
		"metadata repeating": {"?api_key=" + urlKey, mcpURL + "?api_key=" + urlKey, mcpURL},
		"an unknown name":    {"?x=" + urlKey + "-0123456789", mcpURL + "?x=" + urlKey + "-0123456789", mcpURL},
		"a tenant":           {"?tenant=7", mcpURL + "?tenant=7", mcpURL + "?tenant=7"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.docs = map[string]any{asDoc: serverMetadata(nil)}
			if c.named != "" {
				w.docs[prmPath+c.query] = resource(c.named, issuer)
			} else {
				w.docs["https://mcp.example.com/.well-known/oauth-authorization-server"] = serverMetadata(
					map[string]any{"issuer": "https://mcp.example.com"})
			}
			cfg := config(w)
			cfg.URL += c.query
			page := ""
			_, err := make1(t, cfg).Login(t.Context(), prompt(func(ctx context.Context, ask SignInRequest) (string, error) {
				page = ask.URL
				return signInPerson(nil)(ctx, ask)
			}))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(page, urlKey) || strings.Contains(w.forms[0].Encode(), urlKey) {
				t.Errorf("it is in %s or in %s", page, w.forms[0].Encode())
			}
			if got := w.forms[0].Get("resource"); got != c.want {
				t.Errorf("resource %s, want %s", got, c.want)
			}
		})
	}
}

// TestScopesBounded: a list of scopes costs neither time nor space beyond its bound, wherever it comes from.
func TestScopesBounded(t *testing.T) {
	many := make([]string, 80_000)
	for i := range many {
		many[i] = fmt.Sprintf("scope%d", i)
	}
	w := newWorld()
	doc := resource(mcpURL, issuer)
	doc["scopes_supported"] = append([]string{"a b", "\u202e", `q"`, strings.Repeat("x", maxScope+1), ""}, many...)
	w.docs[prmPath] = doc
	w.token = func(url.Values, *http.Request) (int, any) {
		g := w.tokenAnswer()
		g["scope"] = strings.Join(many, " ")
		return http.StatusOK, g
	}
	a := signedIn(t, config(w))
	if cur := a.currentSignIn(); len(cur.Requested) != maxScopes || len(cur.Granted) != maxScopes || cur.Requested[0] != "scope0" {
		t.Errorf("%d requested, %d granted", len(cur.Requested), len(cur.Granted))
	}
	for i := range 3 { // one refusal asks for many
		want := strings.ReplaceAll(strings.Join(many[i*150:i*150+150], " "), "scope", "more")
		_, _ = a.Refused(t.Context(), http.StatusForbidden, &messages.Challenge{Scope: want},
			http.Header{"Authorization": {"Bearer " + a.currentSignIn().Access}})
	}
	if n := len(a.currentSignIn().Wanted); n != maxWanted {
		t.Errorf("%d wanted", n)
	}
}

// TestNoAccessToken: RFC 8693's N_A is no token for a request.
func TestNoAccessToken(t *testing.T) {
	w := newWorld()
	w.token = func(url.Values, *http.Request) (int, any) {
		return 200, map[string]any{"access_token": canary, "token_type": "N_A"}
	}
	_, err := make1(t, config(w)).Login(t.Context(), prompt(signInPerson(nil)))
	wantClass(t, err, messages.ClassProtocol)
}

// TestLongClientID: what a registration gives out is shown and sent, and has a bound.
func TestLongClientID(t *testing.T) {
	for _, id := range []string{strings.Repeat("x", 900_000), "a\u009bb", "a\nb"} {
		w := newWorld()
		w.docs[issuer+"/register"] = func(rw http.ResponseWriter, _ *http.Request) {
			write(rw, http.StatusCreated, map[string]any{"client_id": id})
		}
		_, err := make1(t, config(w)).Login(t.Context(), prompt(signInPerson(nil)))
		wantClass(t, err, messages.ClassProtocol)
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("%d bytes", len(err.Error()))
		}
	}
}

// TestTokensThatAreBornEnded: two processes whose tokens end at once do not wake each other for ever.
func TestTokensThatAreBornEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.lifetime = -5
		store, locks := auth.NewMemory(), auth.NewLocks("")
		cfg := config(w)
		cfg.Store, cfg.Locks = store, locks
		first := signedIn(t, cfg)
		second := make1(t, cfg)
		if _, err := second.reloadSignIn(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		woken := make(chan int)
		for _, a := range []*Authorizer{first, second} {
			go func() { // as a server that is needs-auth does
				n := 0
				for a.Changed(ctx) == nil {
					n++
					_ = a.Authorize(ctx, http.Header{})
				}
				woken <- n
			}()
		}
		_ = first.Authorize(ctx, http.Header{}) // one refresh to begin with
		if n := <-woken + <-woken; n > 2 || w.tokenRequests() > 5 {
			t.Errorf("woken %d times, %d token requests", n, w.tokenRequests())
		}
	})
}

// TestSubdomainOfLocalhost: what a name below localhost means is up to a resolver or a proxy, so nothing secret goes
// there in the clear.
func TestSubdomainOfLocalhost(t *testing.T) {
	cfg := config(newWorld())
	cfg.ClientID, cfg.TokenURL, cfg.AuthURL = "us", "http://x.localhost/token", "https://as.example.com/authorize"
	if _, err := New(cfg); err == nil {
		t.Error("a token endpoint over plain http at x.localhost")
	}
	var own *transports.Error
	if _, err := New(cfg); !asError(err, &own) || !strings.Contains(own.Text, "https") {
		t.Error(err)
	}
}
