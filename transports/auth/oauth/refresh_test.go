package oauth

import (
	"context"
	"errors"
	"io"
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
	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// in runs a test in virtual time: tokens live for an hour, and nobody waits for it.
func in(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// untilDue lets the time come in which the token of a is to be refreshed, and is still good.
func untilDue(t *testing.T, a *Authorizer) {
	t.Helper()
	cur := a.peek()
	time.Sleep(time.Until(cur.due))
	if cur.ended(time.Now()) {
		t.Fatal("the token ended before it was due")
	}
}

func untilEnded(a *Authorizer) { time.Sleep(time.Until(a.peek().Expires)) }

// TestRefreshInTime: 64 requests at once see a token that is due: one refresh, with the resource, and the new token for
// those who come later.
func TestRefreshInTime(t *testing.T) {
	in(t, func(t *testing.T) {
		w := newWorld()
		a := signedIn(t, config(w))
		old := mustBearer(t, a)
		untilDue(t, a)
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() { mustBearer(t, a) })
		}
		all.Wait()
		if got := mustBearer(t, a); got == old || w.tokens() != 2 {
			t.Errorf("token %q after %d token requests", got, w.tokens())
		}
		form := w.forms[1]
		if form.Get("grant_type") != "refresh_token" || form.Get("refresh_token") != canary+"-refresh-1" ||
			form.Get("resource") != mcpURL || form.Has("code") {
			t.Errorf("the refresh was %v", form)
		}
	})
}

// TestDue: between the end's early time and half as much again, drawn anew for each process; half a life at most.
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
			early := now.Add(life).Sub(a.dueAt(now, now.Add(life)))
			if early < bounds[0] || early > bounds[1] {
				t.Errorf("life %s: %s before its end", life, early)
			}
			seen[early] = true
		}
		if bounds[0] < bounds[1] && len(seen) < 2 {
			t.Errorf("life %s: no jitter", life)
		}
	}
	if !a.dueAt(now, time.Time{}).IsZero() {
		t.Error("a token without an end is due")
	}
}

// TestSeveralAuthorizers stand for processes: they share a store and locks. One refresh token buys one refresh.
func TestSeveralAuthorizers(t *testing.T) {
	in(t, func(t *testing.T) {
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
		if n := w.tokens(); n != 2 {
			t.Errorf("%d token requests", n)
		}
	})
}

// TestRefusedToken: a 401 costs one refresh; what is refused again in its first minute is not refreshed; a token that
// somebody else brought is taken as it is.
func TestRefusedToken(t *testing.T) {
	in(t, func(t *testing.T) {
		w := newWorld()
		cfg := config(w)
		a, b := signedIn(t, cfg), make1(t, cfg)
		old := mustBearer(t, a)
		mustBearer(t, b)
		if again, err := refused(t, a, old); again || w.tokens() != 1 {
			t.Errorf("refreshed at once: %v, %v", again, err)
		} else {
			wantClass(t, err, messages.ClassUnauthorized)
		}
		time.Sleep(2 * time.Minute)
		if again, err := refused(t, a, old); !again || err != nil || w.tokens() != 2 {
			t.Fatalf("%v, %v after %d token requests", again, err, w.tokens())
		}
		if again, err := refused(t, b, old); !again || err != nil || w.tokens() != 2 {
			t.Errorf("the other process: %v, %v after %d token requests", again, err, w.tokens())
		}
		for range 10 {
			if again, err := refused(t, a, mustBearer(t, a)); again || err == nil {
				t.Errorf("%v, %v", again, err)
			}
			time.Sleep(5 * time.Second)
		}
		if w.tokens() != 2 {
			t.Errorf("%d token requests within a minute of 401", w.tokens())
		}
	})
}

// TestMinuteOf401 is the same through the transport: one request, one refresh, one retry, however often is asked.
func TestMinuteOf401(t *testing.T) {
	in(t, func(t *testing.T) {
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
		http1 := transports.NewHTTP(transports.HTTPConfig{URL: mcpURL, Auth: a, Client: &http.Client{Transport: w}})
		c, err := http1.Dial(t.Context(), nobody{})
		if err != nil {
			t.Fatal(err)
		}
		send := func() error {
			_, err := c.Send(t.Context(), transports.Message{ID: 1, Method: "ping",
				Body: []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)})
			return err
		}
		wantClass(t, send(), messages.ClassUnauthorized)
		if posts != 2 || w.tokens() != 2 {
			t.Errorf("%d requests, %d token requests", posts, w.tokens())
		}
		time.Sleep(time.Second)
		wantClass(t, send(), messages.ClassUnauthorized) // the actor would not even ask
		if w.tokens() != 2 {
			t.Errorf("%d token requests", w.tokens())
		}
		_ = c.Close(t.Context())
	})
}

type nobody struct{}

func (nobody) Message([]byte)                  {}
func (nobody) Oversized([]byte, []byte, int64) {}
func (nobody) Noise([]byte)                    {}
func (nobody) Down(error)                      {}

// TestTokenEndpointAway: nothing that says nothing about the sign-in ends it; the old token serves to its end; requests
// after that fail as the network does, and the endpoint is asked with growing pauses.
func TestTokenEndpointAway(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		answer any
		class  messages.Class
	}{
		"503":                  {503, map[string]any{}, messages.ClassNetwork},
		"500 with a page":      {500, "<html>", messages.ClassNetwork},
		"429":                  {429, map[string]any{"error": "slow_down"}, messages.ClassThrottled},
		"a code of the moment": {400, map[string]any{"error": "temporarily_unavailable"}, messages.ClassNetwork},
		"a page in between":    {200, "<html>please accept our terms", messages.ClassNetwork},
		"a firewall's 403":     {403, "<html>blocked", messages.ClassNetwork},
		"no connection":        {0, errors.New("down"), messages.ClassNetwork},
		"half an answer":       {0, io.ErrUnexpectedEOF, messages.ClassNetwork},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				w := newWorld()
				a := signedIn(t, config(w))
				old := mustBearer(t, a)
				w.token = func(url.Values, *http.Request) (int, any) { return c.status, c.answer }
				untilDue(t, a)
				for range 100 {
					if mustBearer(t, a) != old {
						t.Fatal("another token")
					}
				}
				if n := w.tokens(); n != 2 {
					t.Errorf("%d token requests at once", n)
				}
				untilEnded(a)
				for range 300 {
					_, err := bearer(t, a)
					wantClass(t, err, c.class)
					time.Sleep(time.Second)
				}
				if n := w.tokens(); n > 20 {
					t.Errorf("%d token requests in five minutes", n)
				}
				w.mu.Lock()
				w.token = nil
				w.mu.Unlock()
				time.Sleep(time.Minute)
				if got := mustBearer(t, a); got == old {
					t.Error("the old token")
				}
				if f := w.forms[len(w.forms)-1]; f.Get("refresh_token") != canary+"-refresh-1" {
					t.Errorf("the refresh was %v", f)
				}
			})
		})
	}
}

// TestRetryAfterOfTheTokenEndpoint: its word goes before our pauses.
func TestRetryAfterOfTheTokenEndpoint(t *testing.T) {
	in(t, func(t *testing.T) {
		w := newWorld()
		a := signedIn(t, config(w))
		w.docs[issuer+"/token"] = func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Retry-After", "120")
			rw.WriteHeader(http.StatusServiceUnavailable)
		}
		untilEnded(a)
		_, err := bearer(t, a)
		wantClass(t, err, messages.ClassThrottled)
		time.Sleep(119 * time.Second)
		_, _ = bearer(t, a)
		if n := w.tokens(); n != 2 {
			t.Errorf("%d token requests", n)
		}
		delete(w.docs, issuer+"/token")
		time.Sleep(time.Second)
		mustBearer(t, a)
	})
}

// TestRefreshRefused: invalid_grant asks for a sign-in: once, without another request, and nothing stored is lost.
func TestRefreshRefused(t *testing.T) {
	in(t, func(t *testing.T) {
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
			_, err := bearer(t, a)
			wantClass(t, err, messages.ClassUnauthorized)
			if strings.Contains(err.Error(), canary) {
				t.Error(err)
			}
		}
		if n := w.tokens(); n != 2 {
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
		if _, err := a.Login(t.Context(), prompt(agree(nil))); err != nil {
			t.Fatal(err)
		}
		mustBearer(t, a)
	})
}

// TestRefreshWithoutRotation: RFC 6749, 6: a new refresh token is the authorization server's choice.
func TestRefreshWithoutRotation(t *testing.T) {
	in(t, func(t *testing.T) {
		w := newWorld()
		a := signedIn(t, config(w))
		w.token = func(url.Values, *http.Request) (int, any) {
			g := w.grant()
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
	in(t, func(t *testing.T) {
		w := newWorld()
		cfg := config(w)
		a := signedIn(t, cfg)
		ctx, cancel := context.WithCancel(t.Context())
		w.token = func(url.Values, *http.Request) (int, any) {
			cancel()
			return http.StatusOK, w.grant()
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

// brittle is a store that fails to put when told so.
type brittle struct {
	auth.Store
	mu    sync.Mutex
	fails func(n int) bool
	puts  int
}

func (b *brittle) Put(ctx context.Context, key string, secret []byte) error {
	b.mu.Lock()
	b.puts++
	bad := b.fails != nil && b.fails(b.puts)
	b.mu.Unlock()
	if bad {
		return &transports.Error{Class: messages.ClassExhausted, Text: "the disk is full"}
	}
	return b.Store.Put(ctx, key, secret)
}

// TestStoreThatFails: nothing is spent while nothing can be stored.
func TestStoreThatFails(t *testing.T) {
	in(t, func(t *testing.T) {
		w := newWorld()
		cfg := config(w)
		store := &brittle{Store: cfg.Store}
		cfg.Store = store
		a := signedIn(t, cfg)
		old := mustBearer(t, a)
		store.fails = func(int) bool { return true }
		untilDue(t, a)
		if mustBearer(t, a) != old || w.tokens() != 1 {
			t.Errorf("%d token requests", w.tokens())
		}
		untilEnded(a)
		for range 10 {
			_, err := bearer(t, a)
			wantClass(t, err, messages.ClassExhausted)
		}
		if w.tokens() != 1 {
			t.Errorf("%d token requests", w.tokens())
		}
		store.fails = nil
		time.Sleep(time.Minute)
		if mustBearer(t, a) == old || w.tokens() != 2 {
			t.Errorf("%d token requests", w.tokens())
		}
	})
}

// TestOutcomeNotStored: a token that was bought and cannot be stored serves from memory; the next refresh begins with it;
// it is stored as soon as that is possible.
func TestOutcomeNotStored(t *testing.T) {
	in(t, func(t *testing.T) {
		w := newWorld()
		cfg := config(w)
		store := &brittle{Store: cfg.Store}
		cfg.Store = store
		a := signedIn(t, cfg)
		after := store.puts
		store.fails = func(n int) bool { return n >= after+3 && n < after+100 } // 1: trial, 2: announcement, 3: outcome
		untilDue(t, a)
		for range 50 {
			if got := mustBearer(t, a); got != canary+"-access-2" {
				t.Fatalf("token %q", got)
			}
			time.Sleep(time.Second)
		}
		if status, err := a.Status(t.Context()); err != nil || !status.Unsaved {
			t.Errorf("%+v, %v", status, err)
		}
		store.fails = func(n int) bool { return false }
		time.Sleep(time.Hour)
		if got := mustBearer(t, a); got != canary+"-access-3" {
			t.Errorf("token %q", got)
		}
		if f := w.forms[len(w.forms)-1]; f.Get("refresh_token") != canary+"-refresh-2" {
			t.Errorf("the refresh was %v", f)
		}

		after = store.puts
		store.fails = func(n int) bool { return n == after+3 }
		untilDue(t, a)
		bought := mustBearer(t, a)
		time.Sleep(settleAfter)
		mustBearer(t, a)
		if got := mustBearer(t, make1(t, cfg)); got != bought {
			t.Errorf("stored is %q", got)
		}
		if status, err := a.Status(t.Context()); err != nil || status.Unsaved {
			t.Errorf("%+v, %v", status, err)
		}
	})
}

// TestLostAnswer: when nobody knows whether a refresh token was spent, the next process works with the access token to
// its end before it tries the refresh token again: a strict authorization server would revoke both.
func TestLostAnswer(t *testing.T) {
	in(t, func(t *testing.T) {
		w := newWorld()
		cfg := config(w)
		a := signedIn(t, cfg)
		old := mustBearer(t, a)
		// A process that dies after the announcement leaves this.
		if _, err := a.update(t.Context(), func(r *record) error { r.Trying = time.Now(); return nil }); err != nil {
			t.Fatal(err)
		}
		next := make1(t, cfg)
		if mustBearer(t, next) != old {
			t.Error("another token")
		}
		time.Sleep(58 * time.Minute)
		if mustBearer(t, next) != old || w.tokens() != 1 {
			t.Errorf("%d token requests", w.tokens())
		}
		untilEnded(next)
		if mustBearer(t, next) == old || w.tokens() != 2 {
			t.Errorf("%d token requests", w.tokens())
		}
		if next.peek().due.IsZero() {
			t.Error("the next token is never due")
		}
	})
}

// TestLostOrRefused: a refresh whose answer is lost is not tried again before the access token has ended; one that was
// certainly not carried out is.
func TestLostOrRefused(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		answer any
		lost   bool
	}{
		"no answer":        {0, io.ErrUnexpectedEOF, true},
		"half an answer":   {200, `{"access_token":`, true},
		"a gateway's word": {502, "<html>", true},
		"not now":          {503, "<html>", false},
		"too many":         {429, "<html>", false},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				w := newWorld()
				a := signedIn(t, config(w))
				w.token = func(url.Values, *http.Request) (int, any) { return c.status, c.answer }
				untilDue(t, a)
				end := a.peek().Expires.Add(-11 * time.Second)
				for time.Now().Before(end) {
					mustBearer(t, a)
					time.Sleep(time.Second)
				}
				if n := w.tokens(); c.lost != (n == 2) {
					t.Errorf("%d token requests", n)
				}
			})
		})
	}
}

// TestGivenUpSignIn: the same of a sign-in that a request began.
func TestGivenUpSignIn(t *testing.T) {
	in(t, func(t *testing.T) {
		cfg := config(newWorld())
		ctx, cancel := context.WithCancel(t.Context())
		cfg.Interactive = func(own context.Context, ask Ask) (string, error) {
			cancel()
			synctest.Wait()
			if err := own.Err(); err != nil {
				t.Error("the person was sent away")
			}
			return agree(nil)(own, ask)
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
	w.docs[next+"/.well-known/oauth-authorization-server"] = server(map[string]any{
		"issuer": next, "token_endpoint": next + "/token", "registration_endpoint": next + "/register",
		"authorization_endpoint": next + "/authorize",
	})
	status, err := a.Login(t.Context(), prompt(agree(nil)))
	if err != nil || status.Renewable || status.Issuer != next || !slices.Equal(status.Scopes, []string{"other"}) {
		t.Errorf("%+v, %v", status, err)
	}
}

// TestSignedOutElsewhere: a refresh after somebody has signed out asks for a sign-in, and spends nothing.
func TestSignedOutElsewhere(t *testing.T) {
	in(t, func(t *testing.T) {
		w := newWorld()
		cfg := config(w)
		a := signedIn(t, cfg)
		mustBearer(t, a)
		if revoked, err := make1(t, cfg).Logout(t.Context()); !revoked || err != nil {
			t.Fatal(revoked, err)
		}
		untilEnded(a)
		_, err := bearer(t, a)
		wantClass(t, err, messages.ClassUnauthorized)
		if w.tokens() != 1 {
			t.Errorf("%d token requests", w.tokens())
		}
		if token, err := bearer(t, a); token != "" || err != nil {
			t.Errorf("then %q, %v", token, err)
		}
		if _, err := make1(t, cfg).Login(t.Context(), prompt(agree(nil))); err != nil {
			t.Fatal(err)
		}
		mustBearer(t, a) // a sign-in by another process is found
	})
}

// TestChanged: a sign-in by another process ends the wait; a change that brings no other token does not.
func TestChanged(t *testing.T) {
	in(t, func(t *testing.T) {
		cfg := config(newWorld())
		a := signedIn(t, cfg)
		if again, err := refused(t, a, mustBearer(t, a)); again || err == nil {
			t.Fatal(again, err)
		}
		done := make(chan error, 1)
		go func() { done <- a.Changed(t.Context()) }()
		for _, change := range []func(r *record){
			func(r *record) { r.Wanted = []string{"more"} },
			func(r *record) { r.Trying = time.Now() },
			func(r *record) { r.Access, r.Refresh = "", "" },
		} {
			if _, err := make1(t, cfg).update(t.Context(), func(r *record) error { change(r); return nil }); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			select {
			case err := <-done:
				t.Fatalf("returned %v", err)
			default:
			}
		}
		if _, err := make1(t, cfg).Login(t.Context(), prompt(agree(nil))); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		mustBearer(t, a)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := a.Changed(ctx); err == nil {
			t.Error("returned without a change")
		}
	})
}

// TestStepUpBound: a server that asks for ever more scopes gets three sign-ins in five minutes.
func TestStepUpBound(t *testing.T) {
	in(t, func(t *testing.T) {
		w := newWorld()
		cfg := config(w)
		signIns := 0
		cfg.Interactive = func(ctx context.Context, ask Ask) (string, error) {
			signIns++
			return agree(nil)(ctx, ask)
		}
		a := make1(t, cfg)
		ask := func(status int, scope string) bool {
			h := http.Header{}
			_ = a.Authorize(t.Context(), h)
			again, err := a.Refused(t.Context(), status, &messages.Challenge{Scope: scope}, h)
			if err != nil {
				t.Error(err)
			}
			return again
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
		if got != mostBegun || signIns != mostBegun {
			t.Errorf("%d sign-ins, %d retries", signIns, got)
		}
		time.Sleep(begunWithin)
		if !ask(http.StatusForbidden, "h") {
			t.Error("none after five minutes")
		}
		if s, _ := a.Status(t.Context()); !slices.Equal(s.Scopes, []string{"read", "a", "b", "c", "d", "e", "f", "g", "h"}) {
			t.Errorf("scopes %q", s.Scopes) // those that were refused count too
		}
	})
}

// TestInteractiveAtTheEnd: a sign-in that has ended and cannot be refreshed is begun again by whoever can be asked.
func TestInteractiveAtTheEnd(t *testing.T) {
	in(t, func(t *testing.T) {
		w := newWorld()
		cfg := config(w)
		cfg.Interactive = agree(nil)
		a := signedIn(t, cfg)
		w.token = func(form url.Values, _ *http.Request) (int, any) {
			if form.Get("grant_type") == "refresh_token" {
				return http.StatusBadRequest, map[string]any{"error": "invalid_grant"}
			}
			return http.StatusOK, w.grant()
		}
		for range mostBegun {
			time.Sleep(2 * time.Hour)
			mustBearer(t, a)
		}
	})
}

// TestUnreadableRecord asks for a sign-in, which replaces it.
func TestUnreadableRecord(t *testing.T) {
	w := newWorld()
	cfg := config(w)
	a := make1(t, cfg)
	for _, raw := range []string{"{", "null", `{"version":9}`, canary} {
		if err := cfg.Store.Put(t.Context(), a.key, []byte(raw)); err != nil {
			t.Fatal(err)
		}
		_, err := bearer(t, a)
		wantClass(t, err, messages.ClassUnauthorized)
		if strings.Contains(err.Error(), canary) {
			t.Error(err)
		}
	}
	if _, err := a.Login(t.Context(), prompt(agree(nil))); err != nil {
		t.Fatal(err)
	}
	mustBearer(t, a)
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"version":1,"url":"https://mcp.example.com/mcp","access":"a","expires":"2026-01-01T00:00:00Z"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, err := New(config(newWorld()))
		if err != nil {
			t.Fatal(err)
		}
		if h, err := a.decode(raw); err == nil {
			if again, err := a.decode(h.encode()); err != nil || again.Access != h.Access || again.Refresh != h.Refresh {
				t.Errorf("%q does not survive: %v", raw, err)
			}
		}
	})
}
