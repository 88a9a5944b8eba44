package oauth

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// get returns what a browser sees at an address of this machine. host is the Host header, or empty.
func get(t *testing.T, method, address, host string) (status int, page string, h http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), resp.Header
}

// TestCallback: strays change nothing, the answer is taken once, the page tells the person that they may go, and the
// port is free afterwards.
func TestCallback(t *testing.T) {
	w := newWorld()
	a := make1(t, config(w))
	var at *url.URL
	status, err := a.Login(t.Context(), Prompt{Open: func(ctx context.Context, address string) error {
		answer, err := signInPerson(nil)(ctx, SignInRequest{URL: address, Issuer: issuer, RedirectURL: "R"})
		if err != nil {
			return err
		}
		u, _ := url.Parse(address)
		at, err = url.Parse(u.Query().Get("redirect_uri"))
		if err != nil || at.Hostname() != "127.0.0.1" {
			t.Errorf("redirected to %v, %v", at, err)
		}
		answer = strings.Replace(answer, "R", at.String(), 1)
		for _, stray := range []struct {
			method, url, host string
			status            int
		}{
			{"GET", at.Scheme + "://" + at.Host + "/favicon.ico", "", 404},
			{"GET", at.String(), "", 400},
			{"GET", at.String() + "?code=stolen&state=guessed", "", 400},
			{"GET", at.String() + "?error=access_denied", "", 400},
			{"POST", answer, "", 405},
			{"GET", answer, "evil.example.com", 421},
			{"GET", answer, "evil.example.com:" + at.Port(), 421},
		} {
			if status, page, _ := get(t, stray.method, stray.url, stray.host); status != stray.status ||
				strings.Contains(page, "stolen") {
				t.Errorf("%s %s: %d, %q", stray.method, stray.url, status, page)
			}
		}
		status, page, h := get(t, "GET", answer, "localhost:"+at.Port())
		if status != 200 || !strings.Contains(page, "You may close this window") || strings.Contains(page, canary) ||
			h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cache-Control") != "no-store" {
			t.Errorf("the page is %d, %q, %v", status, page, h)
		}
		return nil
	}})
	if err != nil || !status.SignedIn || len(w.forms) != 1 || w.forms[0].Get("code") != canary+"-code" {
		t.Fatalf("%+v, %v, %v", status, err, w.forms)
	}
	l, err := net.Listen("tcp4", at.Host)
	if err != nil {
		t.Fatalf("the port is still taken: %v", err)
	}
	// Another program has the port at the next sign-in: another port, another registration.
	defer func() { _ = l.Close() }()
	open := func(ctx context.Context, address string) error {
		u, _ := url.Parse(address)
		answer, err := signInPerson(nil)(ctx, SignInRequest{URL: address, Issuer: issuer, RedirectURL: u.Query().Get("redirect_uri")})
		if err == nil {
			get(t, "GET", answer, "")
		}
		return err
	}
	if _, err := a.Login(t.Context(), Prompt{Open: open}); err != nil || len(w.register) != 2 {
		t.Errorf("%v after %d registrations", err, len(w.register))
	}
	// Free: the last registration serves.
	if _, err := a.Login(t.Context(), Prompt{Open: open}); err != nil || len(w.register) != 2 {
		t.Errorf("%v after %d registrations", err, len(w.register))
	}
}

// TestCallbackPort: a configured port is taken, or the sign-in says that it is not free.
func TestCallbackPort(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	taken := l.Addr().(*net.TCPAddr).Port
	cfg := config(newWorld())
	cfg.CallbackPort = taken
	nobody := func(context.Context, string) error { return nil }
	_, err = make1(t, cfg).Login(t.Context(), Prompt{Open: nobody})
	wantClass(t, err, messages.ClassConfig)
	_ = l.Close()
	_, err = make1(t, cfg).Login(t.Context(), Prompt{Open: func(ctx context.Context, u string) error {
		if q, _ := url.Parse(u); q.Query().Get("redirect_uri") != "http://"+l.Addr().String()+"/callback" {
			t.Errorf("the browser is sent to %s", u)
		}
		answer, err := signInPerson(nil)(ctx, SignInRequest{URL: u, Issuer: issuer, RedirectURL: "http://" + l.Addr().String() + "/callback"})
		get(t, "GET", answer, "")
		return err
	}})
	if err != nil {
		t.Error(err)
	}
}

// TestNobodyComes: a sign-in that no person answers ends, and what was stored stays.
func TestNobodyComes(t *testing.T) {
	t.Run("to the listener", func(t *testing.T) {
		cfg := config(newWorld())
		a := signedIn(t, cfg)
		before := mustBearer(t, a)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, err := a.Login(ctx, Prompt{Show: func(SignInRequest) { cancel() }})
		wantClass(t, err, messages.ClassUnauthorized)
		if mustBearer(t, make1(t, cfg)) != before {
			t.Error("what was stored is lost")
		}
	})
	// Virtual time needs a prompt without a socket.
	t.Run("to paste", func(t *testing.T) {
		runInBubble(t, func(t *testing.T) {
			cfg := config(newWorld())
			a := signedIn(t, cfg)
			before, asked := mustBearer(t, a), time.Now()
			_, err := a.Login(t.Context(), Prompt{NoListen: true, Show: func(SignInRequest) {}, Timeout: time.Minute,
				Paste: func(ctx context.Context, _ string) (string, error) { <-ctx.Done(); return "", ctx.Err() }})
			wantClass(t, err, messages.ClassUnauthorized)
			if waited := time.Since(asked); waited != time.Minute {
				t.Errorf("it ended after %v", waited)
			}
			if mustBearer(t, make1(t, cfg)) != before {
				t.Error("what was stored is lost")
			}
		})
	})
}

// TestPrompts checks that prompts which cannot work are refused before a person is asked.
func TestPrompts(t *testing.T) {
	a := make1(t, config(newWorld()))
	for _, p := range []Prompt{
		{}, {NoListen: true, Show: func(SignInRequest) {}}, {Paste: func(context.Context, string) (string, error) { return "", nil }},
	} {
		_, err := a.Login(t.Context(), p)
		wantClass(t, err, messages.ClassInvalid)
	}
	cfg := config(newWorld())
	cfg.RedirectURL = "https://agent.example.com/callback"
	_, err := make1(t, cfg).Login(t.Context(), Prompt{Show: func(SignInRequest) {}})
	wantClass(t, err, messages.ClassConfig)
}

// TestPrompterFails: what a prompt says in its failure is not shown: it may be what was pasted.
func TestPrompterFails(t *testing.T) {
	a := make1(t, config(newWorld()))
	for _, paste := range []func(context.Context, string) (string, error){
		func(context.Context, string) (string, error) { return "", errors.New(canary) },
		func(context.Context, string) (string, error) { panic(canary) },
		func(context.Context, string) (string, error) { return "", nil },
	} {
		_, err := a.Login(t.Context(), Prompt{NoListen: true, Show: func(SignInRequest) {}, Paste: paste})
		wantClass(t, err, messages.ClassUnauthorized)
		if strings.Contains(err.Error(), canary) {
			t.Error(err)
		}
	}
}

// TestConfigurations that cannot work.
func TestConfigurations(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no URL":                func(c *Config) { c.URL = "" },
		"a relative URL":        func(c *Config) { c.URL = "/mcp" },
		"no name":               func(c *Config) { c.Server = "" },
		"no store":              func(c *Config) { c.Store = nil },
		"no locks":              func(c *Config) { c.Locks = nil },
		"a secret alone":        func(c *Config) { c.ClientSecret = canary },
		"a secret and a key":    func(c *Config) { c.ClientID, c.ClientSecret, c.Key = "us", canary, &Key{} },
		"authUrl alone":         func(c *Config) { c.AuthURL = "https://as.example.com/authorize" },
		"a token URL over http": func(c *Config) { c.TokenURL = "http://as.example.com/token" },
		"a port":                func(c *Config) { c.CallbackPort = 70000 },
		"metadata over http":    func(c *Config) { c.ClientMetadataURL = "http://client.example.com/x" },
		"metadata at the root":  func(c *Config) { c.ClientMetadataURL = "https://client.example.com/" },
		"a redirect over http":  func(c *Config) { c.RedirectURL = "http://agent.example.com/callback" },
		"client credentials":    func(c *Config) { c.Grant = ClientCredentials{} },
		"token exchange":        func(c *Config) { c.Grant = TokenExchange{} },
		"a JWT bearer":          func(c *Config) { c.Grant = JWTBearer{} },
		"an enterprise":         func(c *Config) { c.Grant = Enterprise{} },
	} {
		cfg := config(newWorld())
		change(&cfg)
		_, err := New(cfg)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		wantClass(t, err, messages.ClassConfig)
		if strings.Contains(err.Error(), canary) {
			t.Error(err)
		}
	}
	cfg := config(newWorld())
	cfg.Store = auth.NewMemory()
	if _, err := New(cfg); err != nil {
		t.Error(err)
	}
}

func TestCanonical(t *testing.T) {
	for raw, want := range map[string]string{
		"https://MCP.Example.com/Mcp":        "https://mcp.example.com/Mcp",
		"HTTPS://mcp.example.com:443/":       "https://mcp.example.com",
		"http://mcp.example.com:80/a/":       "http://mcp.example.com/a/",
		"https://mcp.example.com:8443/a?b#c": "https://mcp.example.com:8443/a?b",
		"https://user:pw@mcp.example.com":    "https://mcp.example.com",
		"http://[::1]:80/x":                  "http://[::1]/x",
	} {
		if got, err := canonicalURL(raw); err != nil || got.String() != want {
			t.Errorf("%s: %v, %v", raw, got, err)
		}
	}
}
