package oauth

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// failingStore is a store whose Put fails while a test wants it.
type failingStore struct {
	auth.Store
	mu    sync.Mutex
	fails func(n int) bool
	puts  int
}

func (b *failingStore) Put(ctx context.Context, key string, secret []byte) error {
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
	runInBubble(t, func(t *testing.T) {
		w := newWorld()
		cfg := config(w)
		store := &failingStore{Store: cfg.Store}
		cfg.Store = store
		a := signedIn(t, cfg)
		old := mustBearer(t, a)
		store.fails = func(int) bool { return true }
		untilDue(t, a)
		if mustBearer(t, a) != old || w.tokenRequests() != 1 {
			t.Errorf("%d token requests", w.tokenRequests())
		}
		untilEnded(a)
		for range 10 {
			_, err := currentBearer(t, a)
			wantClass(t, err, messages.ClassExhausted)
		}
		if w.tokenRequests() != 1 {
			t.Errorf("%d token requests", w.tokenRequests())
		}
		store.fails = nil
		time.Sleep(time.Minute)
		if mustBearer(t, a) == old || w.tokenRequests() != 2 {
			t.Errorf("%d token requests", w.tokenRequests())
		}
	})
}

// TestOutcomeNotStored: a token that was bought and cannot be stored serves from memory; the next refresh begins with
// it; it is stored as soon as that is possible.
func TestOutcomeNotStored(t *testing.T) {
	runInBubble(t, func(t *testing.T) {
		w := newWorld()
		cfg := config(w)
		store := &failingStore{Store: cfg.Store}
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
		time.Sleep(storeRetryDelay)
		mustBearer(t, a)
		if got := mustBearer(t, make1(t, cfg)); got != bought {
			t.Errorf("stored is %q", got)
		}
		if status, err := a.Status(t.Context()); err != nil || status.Unsaved {
			t.Errorf("%+v, %v", status, err)
		}
	})
}

// TestUnreadableRecord asks for a sign-in, which replaces it.
func TestUnreadableRecord(t *testing.T) {
	w := newWorld()
	cfg := config(w)
	a := make1(t, cfg)
	for _, raw := range []string{"{", "null", `{"version":0}`, canary} {
		if err := cfg.Store.Put(t.Context(), a.key, []byte(raw)); err != nil {
			t.Fatal(err)
		}
		_, err := currentBearer(t, a)
		wantClass(t, err, messages.ClassUnauthorized)
		if strings.Contains(err.Error(), canary) {
			t.Error(err)
		}
	}
	if _, err := a.Login(t.Context(), prompt(signInPerson(nil))); err != nil {
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
		if h, err := a.decodeStored(raw); err == nil {
			if second, err := a.decodeStored(h.encodeJSON()); err != nil || second.Access != h.Access || second.Refresh != h.Refresh {
				t.Errorf("%q does not survive: %v", raw, err)
			}
		}
	})
}

// TestSignedOutElsewhere: a refresh after the person has signed out asks for a sign-in, and spends nothing.
func TestSignedOutElsewhere(t *testing.T) {
	runInBubble(t, func(t *testing.T) {
		w := newWorld()
		cfg := config(w)
		a := signedIn(t, cfg)
		mustBearer(t, a)
		if revoked, err := make1(t, cfg).Logout(t.Context()); !revoked || err != nil {
			t.Fatal(revoked, err)
		}
		untilEnded(a)
		_, err := currentBearer(t, a)
		wantClass(t, err, messages.ClassUnauthorized)
		if w.tokenRequests() != 1 {
			t.Errorf("%d token requests", w.tokenRequests())
		}
		if token, err := currentBearer(t, a); token != "" || err != nil {
			t.Errorf("then %q, %v", token, err)
		}
		if _, err := make1(t, cfg).Login(t.Context(), prompt(signInPerson(nil))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(storePollPeriod)
		mustBearer(t, a) // a sign-in by another process is found
	})
}

// silentRevocation is a network whose revocation endpoint never answers.
type silentRevocation struct{ http.RoundTripper }

func (s silentRevocation) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/revoke" {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return s.RoundTripper.RoundTrip(r)
}

// TestASilentRevocationBlocksNoSignIn checks that another process can sign in while the authorization server does not answer
// the revocation of the old token.
func TestASilentRevocationBlocksNoSignIn(t *testing.T) {
	runInBubble(t, func(t *testing.T) {
		cfg := config(newWorld())
		cfg.Transport = silentRevocation{cfg.Transport}
		a := signedIn(t, cfg)
		mustBearer(t, a)
		ended := make(chan error, 1)
		go func() {
			revoked, err := a.Logout(t.Context())
			if revoked {
				t.Error("the token is said to be revoked")
			}
			ended <- err
		}()
		synctest.Wait()
		begin := time.Now()
		b := signedIn(t, cfg)
		if waited := time.Since(begin); waited > 0 {
			t.Errorf("the sign-in waited for %v", waited)
		}
		if err := <-ended; err != nil || time.Since(begin) == 0 {
			t.Errorf("Logout ended with %v after %v", err, time.Since(begin))
		}
		mustBearer(t, b) // the sign-in that came meanwhile stays
	})
}

// TestChanged: a sign-in by another process ends the wait; a change that brings no other token does not.
func TestChanged(t *testing.T) {
	runInBubble(t, func(t *testing.T) {
		cfg := config(newWorld())
		a := signedIn(t, cfg)
		if second, err := refused(t, a, mustBearer(t, a)); second || err == nil {
			t.Fatal(second, err)
		}
		done := make(chan error, 1)
		go func() { done <- a.Changed(t.Context()) }()
		for _, change := range []func(r *storedSignIn){
			func(r *storedSignIn) { r.Wanted = []string{"more"} },
			func(r *storedSignIn) { r.Trying = time.Now() },
			func(r *storedSignIn) { r.Access, r.Refresh = "", "" },
		} {
			if _, err := make1(t, cfg).updateStored(t.Context(), func(r *storedSignIn) error { change(r); return nil }); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			select {
			case err := <-done:
				t.Fatalf("returned %v", err)
			default:
			}
		}
		if _, err := make1(t, cfg).Login(t.Context(), prompt(signInPerson(nil))); err != nil {
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

// countingStore counts the looks into a store.
type countingStore struct {
	auth.Store
	gets int
}

func (c *countingStore) Get(ctx context.Context, key string) ([]byte, error) {
	c.gets++
	return c.Store.Get(ctx, key)
}

// TestNoSignInNeeded: a server that wants nothing costs a look every two seconds, whatever the number of requests; and
// a refusal looks at once.
func TestNoSignInNeeded(t *testing.T) {
	runInBubble(t, func(t *testing.T) {
		cfg := config(newWorld())
		store := &countingStore{Store: cfg.Store}
		cfg.Store = store
		a := make1(t, cfg)
		for range 1000 {
			if token, err := currentBearer(t, a); token != "" || err != nil {
				t.Fatal(token, err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if store.gets > 6 {
			t.Errorf("%d looks in ten seconds", store.gets)
		}
		if _, err := make1(t, cfg).Login(t.Context(), prompt(signInPerson(nil))); err != nil {
			t.Fatal(err)
		}
		if second, err := refused(t, a, ""); !second || err != nil {
			t.Errorf("%v, %v", second, err)
		}
		mustBearer(t, a)
	})
}
