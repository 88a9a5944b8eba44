package oauth

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"testing"
)

// idToken is an unsigned ID token of a subject.
func idToken(subject string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"`+subject+`","email":"`+subject+`@example.com"}`)) + ".x"
}

// TestAccounts: a refresh is of the same account, another subject is another, and without a subject each sign-in is one.
func TestAccounts(t *testing.T) {
	w := newWorld()
	subject := ""
	w.token = func(url.Values, *http.Request) (int, any) {
		g := w.tokenAnswer()
		if subject != "" {
			g["id_token"] = idToken(subject)
		}
		return http.StatusOK, g
	}
	cfg := config(w)
	a := make1(t, cfg)
	if got := a.Account(); got != "" {
		t.Errorf("nobody is signed in, and the account is %q", got)
	}
	login := func(as string) string {
		t.Helper()
		subject = as
		if _, err := a.Login(t.Context(), prompt(signInPerson(nil))); err != nil {
			t.Fatal(err)
		}
		return a.Account()
	}
	refresh := func(as string) string {
		t.Helper()
		subject = as
		if err := a.renewToken(t.Context(), a.currentSignIn()); err != nil {
			t.Fatal(err)
		}
		return a.Account()
	}
	ada := login("ada")
	if ada == "" || refresh("ada") != ada || refresh("") != ada || login("ada") != ada {
		t.Error("one account is taken for several")
	}
	bob := login("bob")
	if bob == ada || refresh("ada") != ada {
		t.Error("two accounts are taken for one")
	}
	first := login("")
	if first == bob || first == ada || refresh("") != first || login("") == first {
		t.Error("sign-ins without a subject are not told apart")
	}
}
