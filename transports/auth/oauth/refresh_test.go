package oauth

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/web"
)

// runInBubble runs a test in virtual time: tokens live for an hour, and the test does not take one.
func runInBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// untilDue lets the time come in which the token of a is to be refreshed, and is still good.
func untilDue(t *testing.T, a *Authorizer) {
	t.Helper()
	cur := a.currentSignIn()
	time.Sleep(time.Until(cur.refreshAt))
	if cur.hasEnded(time.Now()) {
		t.Fatal("the token ended before it was due")
	}
}

func untilEnded(a *Authorizer) { time.Sleep(time.Until(a.currentSignIn().Expires)) }

// TestRefreshInTime: 64 requests at once see a token that is due: one refresh, with the resource, and the new token for
// those who come later.
func TestRefreshInTime(t *testing.T) {
	runInBubble(t, func(t *testing.T) {
		w := newWorld()
		a := signedIn(t, config(w))
		old := mustBearer(t, a)
		untilDue(t, a)
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() { mustBearer(t, a) })
		}
		all.Wait()
		if got := mustBearer(t, a); got == old || w.tokenRequests() != 2 {
			t.Errorf("token %q after %d token requests", got, w.tokenRequests())
		}
		form := w.forms[1]
		if form.Get("grant_type") != "refresh_token" || form.Get("refresh_token") != canary+"-refresh-1" ||
			form.Get("resource") != mcpURL || form.Has("code") {
			t.Errorf("the refresh was %v", form)
		}
	})
}

// TestDue checks the time of a refresh: between the early time before the end and half as much again, drawn anew for each
// process, and never in the first half of the life.
func TestDue(t *testing.T) {
	a := make1(t, config(newWorld()))
	now := time.Now()
	for life, bounds := range map[time.Duration][2]time.Duration{
		time.Hour:        {5 * time.Minute, 450 * time.Second},
		10 * time.Minute: {2 * time.Minute, 3 * time.Minute},
		10 * time.Second: {5 * time.Second, 5 * time.Second},
		2 * time.Second:  {time.Second, time.Second},
	} {
		seen := map[time.Duration]bool{}
		for range 50 {
			early := now.Add(life).Sub(a.refreshTime(now, now.Add(life)))
			if early < bounds[0] || early > bounds[1] {
				t.Errorf("life %s: %s before its end", life, early)
			}
			seen[early] = true
		}
		if bounds[0] < bounds[1] && len(seen) < 2 {
			t.Errorf("life %s: no jitter", life)
		}
	}
	if !a.refreshTime(now, time.Time{}).IsZero() {
		t.Error("a token without an end is due")
	}
}

// TestSeveralAuthorizers stand for processes: they share a store and locks. One refresh token buys one refresh.
func TestSeveralAuthorizers(t *testing.T) {
	runInBubble(t, func(t *testing.T) {
		w := newWorld()
		cfg := config(w)
		all := []*Authorizer{signedIn(t, cfg)}
		for range 9 {
			all = append(all, make1(t, cfg))
		}
		for _, a := range all {
			mustBearer(t, a)
		}
		time.Sleep(time.Hour) // all are at the end
		var done sync.WaitGroup
		for _, a := range all {
			for range 10 {
				done.Go(func() {
					if got := mustBearer(t, a); got != canary+"-access-2" {
						t.Errorf("token %q", got)
					}
				})
			}
		}
		done.Wait()
		if n := w.tokenRequests(); n != 2 {
			t.Errorf("%d token requests", n)
		}
	})
}

// TestRefusedToken: a 401 costs one refresh; what is refused again in its first minute is not refreshed; a token that
// another process has brought is taken as it is.
func TestRefusedToken(t *testing.T) {
	runInBubble(t, func(t *testing.T) {
		w := newWorld()
		cfg := config(w)
		a, b := signedIn(t, cfg), make1(t, cfg)
		old := mustBearer(t, a)
		mustBearer(t, b)
		if second, err := refused(t, a, old); second || w.tokenRequests() != 1 {
			t.Errorf("refreshed at once: %v, %v", second, err)
		} else {
			wantClass(t, err, messages.ClassUnauthorized)
		}
		time.Sleep(2 * time.Minute)
		if second, err := refused(t, a, old); !second || err != nil || w.tokenRequests() != 2 {
			t.Fatalf("%v, %v after %d token requests", second, err, w.tokenRequests())
		}
		if second, err := refused(t, b, old); !second || err != nil || w.tokenRequests() != 2 {
			t.Errorf("the other process: %v, %v after %d token requests", second, err, w.tokenRequests())
		}
		for range 10 {
			if second, err := refused(t, a, mustBearer(t, a)); second || err == nil {
				t.Errorf("%v, %v", second, err)
			}
			time.Sleep(5 * time.Second)
		}
		if w.tokenRequests() != 2 {
			t.Errorf("%d token requests within a minute of 401", w.tokenRequests())
		}
	})
}

// TestMinuteOf401 is the same through the transport: one request, one refresh, one retry, however often is asked.
func TestMinuteOf401(t *testing.T) {
	runInBubble(t, func(t *testing.T) {
		w := newWorld()
		posts := 0
		w.docs[mcpURL] = func(rw http.ResponseWriter, _ *http.Request) {
			posts++
			rw.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			rw.WriteHeader(http.StatusUnauthorized)
		}
		a := signedIn(t, config(w))
		time.Sleep(2 * time.Minute)
		posts = 0 // Login has asked for the challenge
		http1 := web.NewHTTP(web.Config{URL: mcpURL, Auth: a, Client: &http.Client{Transport: w}})
		c, err := http1.Dial(t.Context(), silentSink{})
		if err != nil {
			t.Fatal(err)
		}
		send := func() error {
			_, err := c.Send(t.Context(), transports.Message{ID: 1, Method: "ping",
				Body: []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)})
			return err
		}
		wantClass(t, send(), messages.ClassUnauthorized)
		if posts != 2 || w.tokenRequests() != 2 {
			t.Errorf("%d requests, %d token requests", posts, w.tokenRequests())
		}
		time.Sleep(time.Second)
		wantClass(t, send(), messages.ClassUnauthorized) // the actor would not even ask
		if w.tokenRequests() != 2 {
			t.Errorf("%d token requests", w.tokenRequests())
		}
		_ = c.Close(t.Context())
	})
}

type silentSink struct{}

func (silentSink) Message([]byte)                  {}
func (silentSink) Oversized([]byte, []byte, int64) {}
func (silentSink) Noise([]byte)                    {}
func (silentSink) Down(error)                      {}

// TestRefreshRefused: invalid_grant asks for a sign-in: once, without another request, and nothing stored is lost.
func TestRefreshRefused(t *testing.T) {
	runInBubble(t, func(t *testing.T) {
		w := newWorld()
		cfg := config(w)
		a := signedIn(t, cfg)
		old := mustBearer(t, a)
		w.token = func(url.Values, *http.Request) (int, any) {
			return http.StatusBadRequest, map[string]any{"error": "invalid_grant",
				"error_description": "the token " + canary + "-refresh-1 is spent"}
		}
		untilDue(t, a)
		for range 10 {
			if mustBearer(t, a) != old {
				t.Error("another token")
			}
		}
		untilEnded(a)
		for range 10 {
			_, err := currentBearer(t, a)
			wantClass(t, err, messages.ClassUnauthorized)
			if strings.Contains(err.Error(), canary) {
				t.Error(err)
			}
		}
		if n := w.tokenRequests(); n != 2 {
			t.Errorf("%d token requests", n)
		}
		raw, err := cfg.Store.Get(t.Context(), a.key)
		if err != nil || !strings.Contains(string(raw), canary+"-refresh-1") {
			t.Errorf("what was stored is lost: %v", err)
		}
		status, err := make1(t, cfg).Status(t.Context())
		if err != nil || status.SignedIn || !status.Refused {
			t.Errorf("%+v, %v", status, err)
		}
		w.token = nil
		if _, err := a.Login(t.Context(), prompt(signInPerson(nil))); err != nil {
			t.Fatal(err)
		}
		mustBearer(t, a)
	})
}

// TestRefreshWithoutRotation: RFC 6749, 6: a new refresh token is the authorization server's choice.
func TestRefreshWithoutRotation(t *testing.T) {
	runInBubble(t, func(t *testing.T) {
		w := newWorld()
		a := signedIn(t, config(w))
		w.token = func(url.Values, *http.Request) (int, any) {
			g := w.tokenAnswer()
			delete(g, "refresh_token")
			return http.StatusOK, g
		}
		for range 3 {
			time.Sleep(time.Hour)
			mustBearer(t, a)
		}
		for _, f := range w.forms[1:] {
			if f.Get("refresh_token") != canary+"-refresh-1" {
				t.Errorf("the refresh was %v", f)
			}
		}
	})
}

// TestGivenUpRequest: a request whose caller has gone does not take the bought token with it.
func TestGivenUpRequest(t *testing.T) {
	runInBubble(t, func(t *testing.T) {
		w := newWorld()
		cfg := config(w)
		a := signedIn(t, cfg)
		ctx, cancel := context.WithCancel(t.Context())
		w.token = func(url.Values, *http.Request) (int, any) {
			cancel()
			return http.StatusOK, w.tokenAnswer()
		}
		untilEnded(a)
		_ = a.Authorize(ctx, http.Header{})
		if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := mustBearer(t, make1(t, cfg)); got != canary+"-access-2" {
			t.Errorf("stored is %q", got)
		}
	})
}

// TestGivenUpSignIn: the same of a sign-in that a request began.
func TestGivenUpSignIn(t *testing.T) {
	runInBubble(t, func(t *testing.T) {
		cfg := config(newWorld())
		ctx, cancel := context.WithCancel(t.Context())
		cfg.Interactive = func(own context.Context, ask SignInRequest) (string, error) {
			cancel()
			synctest.Wait()
			if err := own.Err(); err != nil {
				t.Error("the person was sent away")
			}
			return signInPerson(nil)(own, ask)
		}
		a := make1(t, cfg)
		_, _ = a.Refused(ctx, http.StatusUnauthorized, nil, http.Header{})
		if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		mustBearer(t, make1(t, cfg))
	})
}

// TestNothingIsInherited: a sign-in that brings no refresh token does not keep the one before; another authorization
// server is not asked for the scopes of the first.
func TestNothingIsInherited(t *testing.T) {
	w := newWorld()
	a := signedIn(t, config(w))
	w.token = func(url.Values, *http.Request) (int, any) {
		return http.StatusOK, map[string]any{"access_token": canary, "token_type": "Bearer"}
	}
	const next = "https://next.example.com"
	w.docs[prmPath] = map[string]any{"resource": mcpURL, "authorization_servers": []string{next},
		"scopes_supported": []string{"other"}}
	w.docs[next+"/.well-known/oauth-authorization-server"] = serverMetadata(map[string]any{
		"issuer": next, "token_endpoint": next + "/token", "registration_endpoint": next + "/register",
		"authorization_endpoint": next + "/authorize",
	})
	status, err := a.Login(t.Context(), prompt(signInPerson(nil)))
	if err != nil || status.Renewable || status.Issuer != next || !slices.Equal(status.Scopes, []string{"other"}) {
		t.Errorf("%+v, %v", status, err)
	}
}

// TestStepUpBound: a server that asks for ever more scopes gets three sign-ins in five minutes.
func TestStepUpBound(t *testing.T) {
	runInBubble(t, func(t *testing.T) {
		w := newWorld()
		cfg := config(w)
		signIns := 0
		cfg.Interactive = func(ctx context.Context, ask SignInRequest) (string, error) {
			signIns++
			return signInPerson(nil)(ctx, ask)
		}
		a := make1(t, cfg)
		ask := func(status int, scope string) bool {
			h := http.Header{}
			_ = a.Authorize(t.Context(), h)
			second, err := a.Refused(t.Context(), status, &messages.Challenge{Scope: scope}, h)
			if err != nil {
				t.Error(err)
			}
			return second
		}
		if !ask(401, "read") {
			t.Fatal("no sign-in")
		}
		if ask(http.StatusForbidden, "read") || signIns != 1 {
			t.Error("a sign-in for scopes that are there")
		}
		got := 1
		for _, scope := range strings.Split("a b c d e f g", " ") {
			if ask(http.StatusForbidden, scope) {
				got++
			}
		}
		if got != maxAutoSignIns || signIns != maxAutoSignIns {
			t.Errorf("%d sign-ins, %d retries", signIns, got)
		}
		time.Sleep(autoSignInWindow)
		if !ask(http.StatusForbidden, "h") {
			t.Error("none after five minutes")
		}
		if s, _ := a.Status(t.Context()); !slices.Equal(s.Scopes, []string{"read", "a", "b", "c", "d", "e", "f", "g", "h"}) {
			t.Errorf("scopes %q", s.Scopes) // those that were refused count too
		}
	})
}

// TestInteractiveAtTheEnd: a sign-in that has ended and cannot be refreshed is begun again by the person who can be asked.
func TestInteractiveAtTheEnd(t *testing.T) {
	runInBubble(t, func(t *testing.T) {
		w := newWorld()
		cfg := config(w)
		cfg.Interactive = signInPerson(nil)
		a := signedIn(t, cfg)
		w.token = func(form url.Values, _ *http.Request) (int, any) {
			if form.Get("grant_type") == "refresh_token" {
				return http.StatusBadRequest, map[string]any{"error": "invalid_grant"}
			}
			return http.StatusOK, w.tokenAnswer()
		}
		for range maxAutoSignIns {
			time.Sleep(2 * time.Hour)
			mustBearer(t, a)
		}
	})
}
