package oauth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcpvisor/mcpvisor/messages"
)

// TestJudge is the table of 2026-07-28, Authorization Response Validation, crossed with state and with how an answer
// may look.
func TestJudge(t *testing.T) {
	from := func(advertised bool, issuer string) *authTarget {
		return &authTarget{server: &oauthex.AuthServerMeta{Issuer: issuer, AuthorizationResponseIssParameterSupported: advertised}}
	}
	yes, no, unnamed := from(true, issuer), from(false, issuer), from(false, "")
	const at = "http://127.0.0.1:1/callback?"
	for _, c := range []struct {
		name   string
		answer string
		p      *authTarget
		code   string // empty: refused
	}{
		{"advertised, present, equal", at + "code=c&state=s&iss=https://as.example.com", yes, "c"},
		{"advertised, absent", at + "code=c&state=s", yes, ""},
		{"advertised, empty", at + "code=c&state=s&iss=", yes, ""},
		{"advertised, wrong", at + "code=c&state=s&iss=https://evil.example.com", yes, ""},
		{"not advertised, present, equal", at + "code=c&state=s&iss=https://as.example.com", no, "c"},
		{"not advertised, present, wrong", at + "code=c&state=s&iss=https://evil.example.com", no, ""},
		{"not advertised, present, empty", at + "code=c&state=s&iss=", no, ""},
		{"not advertised, absent", at + "code=c&state=s", no, "c"},
		{"a slash more", at + "code=c&state=s&iss=https://as.example.com/", yes, ""},
		{"capitals", at + "code=c&state=s&iss=https://AS.example.com", no, ""},
		{"the default port", at + "code=c&state=s&iss=https://as.example.com:443", no, ""},
		{"percent-encoded, decoded once", at + "code=c&state=s&iss=https%3A%2F%2Fas.example.com", yes, "c"},
		{"percent-encoded twice", at + "code=c&state=s&iss=https%253A%252F%252Fas.example.com", yes, ""},
		{"an issuer that nobody has named", at + "code=c&state=s&iss=https://as.example.com", unnamed, "c"},

		{"no state", at + "code=c", no, ""},
		{"another state", at + "code=c&state=t", no, ""},
		{"two states", at + "code=c&state=s&state=t", no, ""},
		{"two codes", at + "code=c&code=d&state=s", no, ""},
		{"no code", at + "state=s", no, ""},
		{"an error", at + "error=access_denied&state=s", no, ""},
		{"an error and a code", at + "error=access_denied&code=c&state=s", no, ""},

		{"a query", "?code=c&state=s", no, "c"},
		{"a query without its mark", "code=c&state=s", no, "c"},
		{"spaces around", "  " + at + "code=c&state=s\n", no, "c"},
		{"a bare code", "c0de", no, "c0de"},
		{"a bare code where the issuer is required", "c0de", yes, ""},
		{"a code with its state", "c0de#s", no, "c0de"},
		{"a code with another state", "c0de#t", no, ""},
		{"words", "I do not know", no, ""},
		{"nothing", " ", no, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, err := codeFromResponse(c.answer, "s", c.p)
			if code != c.code || (err == nil) != (c.code != "") {
				t.Errorf("code %q, %v", code, err)
			}
			if err != nil {
				wantClass(t, err, messages.ClassUnauthorized)
			}
		})
	}
}

// TestErrorOfAnotherIssuer: 2026-07-28: "on mismatch the client MUST NOT act on or display error, error_description, or
// error_uri."
func TestErrorOfAnotherIssuer(t *testing.T) {
	p := &authTarget{server: &oauthex.AuthServerMeta{Issuer: issuer}}
	const answer = "?error=call_me&error_description=at+once&state=s&iss="
	if _, err := codeFromResponse(answer+"https://evil.example.com", "s", p); strings.Contains(err.Error(), "call_me") ||
		strings.Contains(err.Error(), "at once") {
		t.Error(err)
	}
	if _, err := codeFromResponse(answer+issuer, "s", p); !strings.Contains(err.Error(), "at once") {
		t.Error(err)
	}
}

func FuzzJudge(f *testing.F) {
	f.Add("http://127.0.0.1:1/callback?code=c&state=s&iss=https://as.example.com", true)
	f.Add("code=c&state=s", false)
	f.Add("c#s", false)
	f.Add("%zz", true)
	f.Fuzz(func(t *testing.T, answer string, advertised bool) {
		p := &authTarget{server: &oauthex.AuthServerMeta{
			Issuer: issuer, AuthorizationResponseIssParameterSupported: advertised,
		}}
		code, err := codeFromResponse(answer, "s", p)
		if (code == "") == (err == nil) {
			t.Errorf("%q: code %q, %v", answer, code, err)
		}
		if err == nil && advertised && !strings.Contains(answer, "iss=") {
			t.Errorf("%q was accepted without an issuer", answer)
		}
	})
}

// TestAuthorizationRequest: what goes to the browser, and what to the token endpoint.
func TestAuthorizationRequest(t *testing.T) {
	w := newWorld()
	w.docs[asDoc] = serverMetadata(map[string]any{"scopes_supported": []string{"read", "offline_access"}})
	a := make1(t, config(w))
	var asked url.Values
	status, err := a.Login(t.Context(), prompt(func(ctx context.Context, ask SignInRequest) (string, error) {
		u, err := url.Parse(ask.URL)
		if err != nil {
			return "", err
		}
		asked = u.Query()
		return signInPerson(nil)(ctx, ask)
	}))
	if err != nil {
		t.Fatal(err)
	}
	form := w.forms[0]
	for _, c := range []struct{ what, got, want string }{
		{"response_type", asked.Get("response_type"), "code"},
		{"code_challenge_method", asked.Get("code_challenge_method"), "S256"},
		{"resource", asked.Get("resource"), mcpURL},
		{"scope", asked.Get("scope"), "read offline_access"},
		{"prompt", asked.Get("prompt"), "consent"},
		{"the token request's resource", form.Get("resource"), mcpURL},
		{"grant_type", form.Get("grant_type"), "authorization_code"},
		{"code", form.Get("code"), canary + "-code"},
		{"redirect_uri", form.Get("redirect_uri"), asked.Get("redirect_uri")},
		{"client_id", form.Get("client_id"), asked.Get("client_id")},
	} {
		if c.got != c.want {
			t.Errorf("%s is %q, want %q", c.what, c.got, c.want)
		}
	}
	if len(asked.Get("state")) < 20 || len(asked.Get("code_challenge")) != 43 || len(form.Get("code_verifier")) < 43 {
		t.Errorf("state %q, challenge %q, verifier %q", asked.Get("state"), asked.Get("code_challenge"),
			form.Get("code_verifier"))
	}
	if !status.SignedIn || !slices.Equal(status.Scopes, []string{"read", "offline_access"}) {
		t.Errorf("%+v", status)
	}
}

// TestChallengeOfLogin: a sign-in in another process than the server's asks the server what it wants.
func TestChallengeOfLogin(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		w := newWorld()
		w.docs = map[string]any{asDoc: serverMetadata(nil), "https://elsewhere.example.com/meta": resource(mcpURL, issuer),
			mcpURL: func(rw http.ResponseWriter, r *http.Request) {
				if r.Method != method {
					rw.WriteHeader(http.StatusMethodNotAllowed)
					return
				}
				rw.Header().Add("WWW-Authenticate", `Basic realm="x"`)
				rw.Header().Add("WWW-Authenticate",
					`Bearer scope="s1 s2", resource_metadata="https://elsewhere.example.com/meta"`)
				rw.WriteHeader(http.StatusUnauthorized)
			}}
		status, err := make1(t, config(w)).Login(t.Context(), prompt(signInPerson(nil)))
		if err != nil || !slices.Equal(status.Scopes, []string{"s1", "s2"}) {
			t.Errorf("%s: %+v, %v", method, status, err)
		}
	}
}

// TestPKCE: 2026-07-28: "If the field is absent, MCP clients MUST refuse to proceed." plain alone is refused too.
func TestPKCE(t *testing.T) {
	for name, methods := range map[string]any{"absent": nil, "plain": []string{"plain"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.docs[asDoc] = serverMetadata(map[string]any{"code_challenge_methods_supported": methods})
			a := make1(t, config(w))
			_, err := a.Login(t.Context(), prompt(func(context.Context, SignInRequest) (string, error) {
				t.Error("a person was asked")
				return "", errors.New("no")
			}))
			wantClass(t, err, messages.ClassProtocol)
		})
	}
}

// TestScopes is the order of the specification.
func TestScopes(t *testing.T) {
	p := &authTarget{scopes: []string{"p1", "p2"}, server: &oauthex.AuthServerMeta{}}
	challenge := &messages.Challenge{Scope: "c1 c2"}
	for _, c := range []struct {
		name       string
		configured []string
		challenge  *messages.Challenge
		p          *authTarget
		before     []string
		want       []string
	}{
		{"the challenge", nil, challenge, p, nil, []string{"c1", "c2"}},
		{"the metadata", nil, nil, p, nil, []string{"p1", "p2"}},
		{"a challenge without scopes", nil, &messages.Challenge{}, p, nil, []string{"p1", "p2"}},
		{"none", nil, nil, &authTarget{server: p.server}, nil, nil},
		{"the configuration", []string{"x"}, challenge, p, nil, []string{"x"}},
		{"a step-up", nil, challenge, p, []string{"c1", "old"}, []string{"c1", "old", "c2"}},
		{"a step-up beyond the configuration", []string{"x"}, challenge, p, []string{"x"}, []string{"x", "c1", "c2"}},
	} {
		if got := requestedScopes(c.configured, c.challenge, c.p, c.before); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
