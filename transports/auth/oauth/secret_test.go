package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// errorChain is an error with all that stands behind it.
func errorChain(err error) string {
	var b strings.Builder
	for ; err != nil; err = errors.Unwrap(err) {
		fmt.Fprintf(&b, "%v | %+v | %#v\n", err, err, err)
	}
	return b.String()
}

// TestSecretsStaySecret: servers that repeat all that they are sent, in every way they can fail. Nothing of it is in an
// error, in what is behind the error, in a status, or in what a person is shown.
func TestSecretsStaySecret(t *testing.T) {
	repeat := func(form url.Values, r *http.Request) string {
		_, secret, _ := r.BasicAuth()
		return form.Encode() + " " + secret + " " + fmt.Sprint(form) + r.Header.Get("Authorization")
	}
	answers := map[string]func(url.Values, *http.Request) (int, any){
		"an error description": func(f url.Values, r *http.Request) (int, any) {
			return 400, map[string]any{"error": "invalid_grant", "error_description": repeat(f, r)}
		},
		"an error code": func(f url.Values, r *http.Request) (int, any) {
			return 400, map[string]any{"error": f.Get("refresh_token") + f.Get("code") + f.Get("client_secret")}
		},
		"a page":  func(f url.Values, r *http.Request) (int, any) { return 500, repeat(f, r) },
		"no JSON": func(f url.Values, r *http.Request) (int, any) { return 200, repeat(f, r) },
		"a token type": func(f url.Values, r *http.Request) (int, any) {
			return 200, map[string]any{"access_token": canary + "-x", "token_type": "mac"}
		},
		"no token": func(f url.Values, r *http.Request) (int, any) {
			return 200, map[string]any{"id_token": canary, "refresh_token": canary}
		},
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				cfg := config(w)
				cfg.ClientID, cfg.ClientSecret, cfg.Issuer = "us", canary+"-secret", issuer
				var shown []string
				person := func(ctx context.Context, ask SignInRequest) (string, error) {
					shown = append(shown, fmt.Sprintf("%+v", ask))
					return signInPerson(nil)(ctx, ask)
				}
				a := make1(t, cfg)
				see := func(err error) {
					t.Helper()
					if text := errorChain(err); strings.Contains(text, canary) {
						t.Errorf("an error tells: %s", text)
					}
				}
				w.token = answer
				_, err := a.Login(t.Context(), prompt(person))
				if err == nil {
					t.Error("the sign-in succeeded")
				}
				see(err)
				w.token = nil
				status, err := a.Login(t.Context(), prompt(person))
				if err != nil {
					t.Fatal(err)
				}
				shown = append(shown, fmt.Sprintf("%+v", status))
				w.token = answer
				time.Sleep(2 * time.Hour)
				_, err = currentBearer(t, a)
				if err == nil {
					t.Error("the refresh succeeded")
				}
				see(err)
				_, err = refused(t, a, canary+"-access-1")
				see(err)
				status, err = a.Status(t.Context())
				see(err)
				shown = append(shown, fmt.Sprintf("%+v", status))
				if all := strings.Join(shown, "\n"); strings.Contains(all, canary) {
					t.Errorf("shown: %s", all)
				}
			})
		})
	}
}

// TestTokensGoNowhereElse: every request that carries a secret goes to the authorization server's own endpoints, and
// the access token to none of them but revocation.
func TestTokensGoNowhereElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		// A redirect of the token endpoint is not followed: it would carry the code with it.
		w.docs["https://evil.example.com/token"] = func(rw http.ResponseWriter, r *http.Request) {
			t.Errorf("%s came to another host", r.Method)
		}
		cfg := config(w)
		a := signedIn(t, cfg)
		w.docs[issuer+"/token"] = func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, "https://evil.example.com/token", http.StatusTemporaryRedirect)
		}
		time.Sleep(2 * time.Hour)
		if _, err := currentBearer(t, a); err == nil {
			t.Error("refreshed by a redirect")
		}
		delete(w.docs, issuer+"/token")
		time.Sleep(time.Minute)
		mustBearer(t, a)
		for _, asked := range w.asked {
			if strings.Contains(asked, canary) {
				t.Errorf("a secret in a URL: %s", asked)
			}
		}
		// The same server's name at another address has no token.
		cfg.URL = "https://mcp.example.org/mcp"
		if token, err := currentBearer(t, make1(t, cfg)); token != "" || err != nil {
			t.Errorf("%q, %v", token, err)
		}
		cfg.URL = mcpURL + "?tenant=2"
		if token, err := currentBearer(t, make1(t, cfg)); token != "" || err != nil {
			t.Errorf("%q, %v", token, err)
		}
	})
}
