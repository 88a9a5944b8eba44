package oauth

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

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
			runInBubble(t, func(t *testing.T) {
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
				if n := w.tokenRequests(); n != 2 {
					t.Errorf("%d token requests at once", n)
				}
				untilEnded(a)
				for range 300 {
					_, err := currentBearer(t, a)
					wantClass(t, err, c.class)
					time.Sleep(time.Second)
				}
				if n := w.tokenRequests(); n > 20 {
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
	runInBubble(t, func(t *testing.T) {
		w := newWorld()
		a := signedIn(t, config(w))
		w.docs[issuer+"/token"] = func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Retry-After", "120")
			rw.WriteHeader(http.StatusServiceUnavailable)
		}
		untilEnded(a)
		_, err := currentBearer(t, a)
		wantClass(t, err, messages.ClassThrottled)
		time.Sleep(119 * time.Second)
		_, _ = currentBearer(t, a)
		if n := w.tokenRequests(); n != 2 {
			t.Errorf("%d token requests", n)
		}
		delete(w.docs, issuer+"/token")
		time.Sleep(time.Second)
		mustBearer(t, a)
	})
}

// TestLostAnswer: when it is not known whether a refresh token was spent, the next process works with the access token to
// its end before it tries the refresh token again: a strict authorization server would revoke both.
func TestLostAnswer(t *testing.T) {
	runInBubble(t, func(t *testing.T) {
		w := newWorld()
		cfg := config(w)
		a := signedIn(t, cfg)
		old := mustBearer(t, a)
		// A process that dies after the announcement leaves this.
		if _, err := a.updateStored(t.Context(), func(r *storedSignIn) error { r.Trying = time.Now(); return nil }); err != nil {
			t.Fatal(err)
		}
		next := make1(t, cfg)
		if mustBearer(t, next) != old {
			t.Error("another token")
		}
		time.Sleep(58 * time.Minute)
		if mustBearer(t, next) != old || w.tokenRequests() != 1 {
			t.Errorf("%d token requests", w.tokenRequests())
		}
		untilEnded(next)
		if mustBearer(t, next) == old || w.tokenRequests() != 2 {
			t.Errorf("%d token requests", w.tokenRequests())
		}
		if next.currentSignIn().refreshAt.IsZero() {
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
			runInBubble(t, func(t *testing.T) {
				w := newWorld()
				a := signedIn(t, config(w))
				w.token = func(url.Values, *http.Request) (int, any) { return c.status, c.answer }
				untilDue(t, a)
				end := a.currentSignIn().Expires.Add(-11 * time.Second)
				for time.Now().Before(end) {
					mustBearer(t, a)
					time.Sleep(time.Second)
				}
				if n := w.tokenRequests(); c.lost != (n == 2) {
					t.Errorf("%d token requests", n)
				}
			})
		})
	}
}
