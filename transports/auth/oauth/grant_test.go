package oauth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/mcpvisor/mcpvisor/messages"
)

// authorizeOnce is a request of a server that wants authorization: refused once, then with a token.
func authorizeOnce(t *testing.T, a *Authorizer) (string, error) {
	t.Helper()
	retry, err := a.Refused(t.Context(), http.StatusUnauthorized, &messages.Challenge{Scope: "read write"}, http.Header{})
	if err == nil && !retry {
		t.Error("neither a token nor an error")
	}
	if err != nil {
		return "", err
	}
	return mustBearer(t, a), nil
}

// TestKeys: assertions of every kind of key verify, and say who they are for.
func TestKeys(t *testing.T) {
	ec, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	rs, _ := rsa.GenerateKey(rand.Reader, 2048)
	pub, ed, _ := ed25519.GenerateKey(rand.Reader)
	text := func(kind string, der []byte, err error) []byte {
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	ec8, err := x509.MarshalPKCS8PrivateKey(ec)
	ecText := text("PRIVATE KEY", ec8, err)
	ec1, err := x509.MarshalECPrivateKey(ec)
	ed8, err8 := x509.MarshalPKCS8PrivateKey(ed)
	for name, c := range map[string]struct {
		text      []byte
		algorithm string
		public    any
		want      string
	}{
		"EC, PKCS 8": {ecText, "", &ec.PublicKey, "ES256"},
		"EC, SEC 1":  {text("EC PRIVATE KEY", ec1, err), "ES256", &ec.PublicKey, "ES256"},
		"RSA":        {text("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rs), nil), "", &rs.PublicKey, "RS256"},
		"RSA-PSS":    {text("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rs), nil), "PS256", &rs.PublicKey, "PS256"},
		"Ed25519":    {text("PRIVATE KEY", ed8, err8), "", pub, "EdDSA"},
	} {
		t.Run(name, func(t *testing.T) {
			key, err := ParseKey(c.text, c.algorithm, "k1")
			if err != nil {
				t.Fatal(err)
			}
			signed, err := key.signAssertion("us", issuer, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			got, err := jwt.Parse(signed, func(*jwt.Token) (any, error) { return c.public, nil },
				jwt.WithValidMethods([]string{c.want}), jwt.WithAudience(issuer), jwt.WithIssuer("us"), jwt.WithSubject("us"),
				jwt.WithExpirationRequired(), jwt.WithIssuedAt())
			if err != nil || got.Header["kid"] != "k1" || got.Claims.(jwt.MapClaims)["jti"] == "" {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
	for name, c := range map[string]struct {
		text      string
		algorithm string
	}{
		"no PEM": {canary, ""}, "a public key": {string(text("PRIVATE KEY", []byte(canary), nil)), ""},
		"another algorithm": {string(ecText), "RS256"}, "no algorithm": {string(ecText), "none"},
		"a secret's": {string(ecText), "HS256"}, "unknown": {string(ecText), "XX"},
	} {
		if _, err := ParseKey([]byte(c.text), c.algorithm, ""); err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestGrantsWithoutAPerson: what each sends, that no person is asked, and that a new token is had when the old one ends.
func TestGrantsWithoutAPerson(t *testing.T) {
	ec, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	der, _ := x509.MarshalPKCS8PrivateKey(ec)
	key, err := ParseKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), "", "")
	if err != nil {
		t.Fatal(err)
	}
	source := func(context.Context) (string, error) { return canary + "-subject\n", nil }
	for name, c := range map[string]struct {
		change func(*Config)
		want   url.Values
	}{
		"client credentials, secret": {func(c *Config) { c.Grant, c.ClientSecret = ClientCredentials{}, canary+"-secret" },
			url.Values{"grant_type": {"client_credentials"}, "resource": {mcpURL}, "scope": {"read write"}}},
		"client credentials, key": {func(c *Config) { c.Grant, c.Key = ClientCredentials{}, key },
			url.Values{"grant_type": {"client_credentials"}, "client_assertion_type": {assertionType}, "client_id": {"us"}}},
		"token exchange": {func(c *Config) { c.Grant = TokenExchange{Subject: source, Audience: "them"} },
			url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "subject_token": {canary + "-subject"},
				"subject_token_type": {tokenAccess}, "audience": {"them"}, "resource": {mcpURL}}},
		"JWT bearer": {func(c *Config) { c.Grant = JWTBearer{Assertion: source} },
			url.Values{"grant_type": {grantJWTBearer}, "assertion": {canary + "-subject"}, "resource": {mcpURL}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.token = func(url.Values, *http.Request) (int, any) {
					g := w.tokenAnswer()
					delete(g, "refresh_token")
					return http.StatusOK, g
				}
				cfg := config(w)
				cfg.ClientID, cfg.Issuer = "us", issuer
				c.change(&cfg)
				a := make1(t, cfg)
				if token, err := currentBearer(t, a); token != "" || err != nil {
					t.Errorf("before anybody asked: %q, %v", token, err)
				}
				first, err := authorizeOnce(t, a)
				if err != nil {
					t.Fatal(err)
				}
				for k, v := range c.want {
					if w.forms[0].Get(k) != v[0] {
						t.Errorf("%s is %q, want %q", k, w.forms[0].Get(k), v[0])
					}
				}
				if got := mustBearer(t, make1(t, cfg)); got != first {
					t.Errorf("another process has %q", got)
				}
				time.Sleep(2 * time.Hour)
				if got := mustBearer(t, a); got == first || w.tokenRequests() != 2 {
					t.Errorf("%q after %d token requests", got, w.tokenRequests())
				}
				raw, err := cfg.Store.Get(t.Context(), a.key)
				if err != nil || strings.Contains(string(raw), canary+"-s") {
					t.Errorf("a secret of the configuration is stored: %v", err)
				}
				w.token = func(form url.Values, r *http.Request) (int, any) { // a server that repeats everything
					_, secret, _ := r.BasicAuth()
					return http.StatusUnauthorized, map[string]any{"error": "invalid_client",
						"error_description": strings.Join([]string{secret, form.Get("client_secret"), form.Get("subject_token"),
							form.Get("assertion"), form.Get("client_assertion")}, ", ")}
				}
				time.Sleep(2 * time.Hour)
				for range 100 {
					_, err = currentBearer(t, a)
					wantClass(t, err, messages.ClassUnauthorized)
					if strings.Contains(err.Error(), canary) {
						t.Fatal(err)
					}
				}
				if w.tokenRequests() != 3 {
					t.Errorf("%d token requests", w.tokenRequests())
				}
			})
		})
	}
}

// TestEnterprise: an ID token for an identity assertion at the identity provider, that for an access token.
func TestEnterprise(t *testing.T) {
	const idp = "https://idp.example.com"
	w := newWorld()
	w.docs[idp+"/.well-known/openid-configuration"] = map[string]any{"issuer": idp, "token_endpoint": idp + "/token"}
	jag := assertionFor(issuer)
	w.token = func(_ url.Values, r *http.Request) (int, any) {
		if r.URL.Host == "idp.example.com" {
			return 200, map[string]any{"access_token": jag, "token_type": "N_A",
				"issued_token_type": "urn:ietf:params:oauth:token-type:id-jag"}
		}
		return 200, w.tokenAnswer()
	}
	cfg := config(w)
	cfg.ClientID = "us"
	cfg.Grant = Enterprise{Issuer: idp, ClientID: "us at the provider",
		IDToken: func(context.Context) (string, error) { return canary + "-id", nil }}
	if _, err := authorizeOnce(t, make1(t, cfg)); err != nil {
		t.Fatal(err)
	}
	if x := w.forms[0]; x.Get("subject_token") != canary+"-id" || x.Get("audience") != issuer ||
		x.Get("resource") != mcpURL || x.Get("client_id") != "us at the provider" ||
		x.Get("requested_token_type") != "urn:ietf:params:oauth:token-type:id-jag" {
		t.Errorf("asked of the provider: %v", x)
	}
	if x := w.forms[1]; x.Get("assertion") != jag || x.Get("client_id") != "us" ||
		x.Get("grant_type") != grantJWTBearer {
		t.Errorf("asked of the authorization server: %v", x)
	}
}

// assertionFor is an identity assertion for an audience.
func assertionFor(audience any) string {
	signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"aud": audience}).SignedString([]byte(canary))
	if err != nil {
		panic(err)
	}
	return signed
}

// TestAssertionForOneServer: what the identity provider issues goes to the authorization server that it is for, and
// nothing else goes to any.
func TestAssertionForOneServer(t *testing.T) {
	const idp, kind = "https://idp.example.com", "urn:ietf:params:oauth:token-type:id-jag"
	for name, answer := range map[string]map[string]any{
		"an access token":      {"access_token": canary, "token_type": "Bearer"},
		"an access token, JWT": {"access_token": assertionFor(issuer), "issued_token_type": tokenAccess, "token_type": "Bearer"},
		"no JWT":               {"access_token": canary, "issued_token_type": kind, "token_type": "N_A"},
		"for another server":   {"access_token": assertionFor("https://as.honest.example"), "issued_token_type": kind},
		"for several servers":  {"access_token": assertionFor([]string{issuer, "https://x.example"}), "issued_token_type": kind},
		"for no server":        {"access_token": assertionFor(nil), "issued_token_type": kind},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.token = func(_ url.Values, r *http.Request) (int, any) {
				if r.URL.Host == "idp.example.com" {
					return 200, answer
				}
				return 200, w.tokenAnswer()
			}
			cfg := config(w)
			cfg.ClientID = "us"
			cfg.Grant = Enterprise{Issuer: idp, TokenURL: idp + "/token", ClientID: "us at the provider",
				IDToken: func(context.Context) (string, error) { return canary + "-id", nil }}
			if _, err := authorizeOnce(t, make1(t, cfg)); err == nil || strings.Contains(err.Error(), canary) {
				t.Error(err)
			}
			if n := w.tokenRequests(); n != 0 {
				t.Errorf("the authorization server was asked %d times", n)
			}
		})
	}
}

// TestSourceFails: what a source says in its failure is not shown.
func TestSourceFails(t *testing.T) {
	for _, s := range []Source{
		func(context.Context) (string, error) { return canary, errors.New(canary) },
		func(context.Context) (string, error) { return " \n", nil },
	} {
		cfg := config(newWorld())
		cfg.ClientID, cfg.Issuer, cfg.Grant = "us", issuer, JWTBearer{Assertion: s}
		_, err := authorizeOnce(t, make1(t, cfg))
		wantClass(t, err, messages.ClassUnauthorized)
		if strings.Contains(err.Error(), canary) {
			t.Error(err)
		}
	}
}

func TestWhoIs(t *testing.T) {
	for id, want := range map[string]string{
		"": "", "a.b": "", "a.!.c": "", "a.e30.c": "",
		"a.eyJzdWIiOiIxIiwiZW1haWwiOiJhZGFAZXhhbXBsZS5jb20ifQ.c": "ada@example.com",
		"a.eyJzdWIiOiIxIn0.c": "1",
	} {
		if got, _ := whoIs(id); got != want {
			t.Errorf("%q: %q, want %q", id, got, want)
		}
	}
}
