package transports_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// numberedTokens is an Authorizer whose token has a number, which Refused raises up to most.
type numberedTokens struct {
	number, most    atomic.Int32
	asked, refused  atomic.Int32
	authorize, deny error         // what the methods return instead
	gate            chan struct{} // if not nil, Refused waits for it
	panics          bool
	lastStatus      atomic.Int32
	mu              sync.Mutex
	challenge       *messages.Challenge
}

func newKeys(most int32) *numberedTokens {
	k := &numberedTokens{}
	k.most.Store(most)
	return k
}

func token(n int32) string { return fmt.Sprintf("Bearer %s-%d", canary, n) }

func (k *numberedTokens) Authorize(_ context.Context, h http.Header) error {
	k.asked.Add(1)
	h.Set("Authorization", token(k.number.Load()))
	h.Set("mcp-session-id", "not yours")
	if k.panics {
		panic("with " + canary + "-0")
	}
	return k.authorize
}

func (k *numberedTokens) Refused(ctx context.Context, status int, c *messages.Challenge, used http.Header) (bool, error) {
	k.refused.Add(1)
	k.lastStatus.Store(int32(status))
	k.mu.Lock()
	k.challenge = c
	k.mu.Unlock()
	if k.gate != nil {
		select {
		case <-k.gate:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	if k.deny != nil {
		return false, k.deny
	}
	if used.Get("Authorization") != token(k.number.Load()) {
		return true, nil
	}
	if k.number.Load() >= k.most.Load() {
		return false, nil
	}
	k.number.Add(1)
	return true, nil
}

// guardedServer answers 401 to every token with a number below wanted, and counts what came.
func guardedServer(t *testing.T, wanted int32, next http.HandlerFunc) (url string, seen *atomic.Int32) {
	seen = &atomic.Int32{}
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		var n int32 = -1
		_, _ = fmt.Sscanf(strings.ReplaceAll(r.Header.Get("Authorization"), "-", " "), "Bearer "+canary+" %d", &n)
		if n < wanted {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", scope="read", error_description="`+
				r.Header.Get("Authorization")+`"`)
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, "I do not like "+r.Header.Get("Authorization"))
			return
		}
		next(w, r)
	}).URL, seen
}

func answerOK(w http.ResponseWriter, r *http.Request) { reply(w, read(r), `"ok"`) }

func withAuth(t *testing.T, url string, a transports.Authorizer) *client {
	return dial(t, transports.NewHTTP(transports.HTTPConfig{URL: url, Auth: a, Client: ownClient(t)}))
}

// TestEveryRequestIsAuthorized: POST, GET and DELETE of streamable HTTP and of HTTP+SSE.
//
// 2026-07-28, Authorization, Token Requirements: "Note that authorization MUST be included in every HTTP request from
// client to server."
func TestEveryRequestIsAuthorized(t *testing.T) {
	var mu sync.Mutex
	got := map[string]bool{}
	note := func(r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if a := r.Header.Get("Authorization"); a != token(0) {
			t.Errorf("%s %s has Authorization %q", r.Method, r.URL.Path, a)
		}
		if s := r.Header.Get("Mcp-Session-Id"); s == "not yours" {
			t.Error("an Authorizer has set the session id")
		}
		got[r.Method+" "+r.URL.Path] = true
	}
	listening := make(chan struct{}, 1)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		note(r)
		withHandshake("session-1", func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				w.Header().Set("Content-Type", "text/event-stream")
				w.(http.Flusher).Flush()
				select {
				case listening <- struct{}{}:
				default:
				}
				<-r.Context().Done()
				return
			}
			w.WriteHeader(http.StatusOK)
		})(w, r)
	})
	c := withAuth(t, s.URL, newKeys(0))
	c.handshake()
	<-listening
	c.close()

	older := serve(t, func(w http.ResponseWriter, r *http.Request) {
		note(r)
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: endpoint\ndata: /messages\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	sse := dial(t, transports.NewSSE(transports.HTTPConfig{URL: older.URL + "/sse", Auth: newKeys(0), Client: ownClient(t)}))
	sse.notify("notifications/initialized")
	sse.close()
	for _, want := range []string{"POST /", "GET /", "DELETE /", "GET /sse", "POST /messages"} {
		if !got[want] {
			t.Errorf("no %s was seen: %v", want, got)
		}
	}
}

// TestRefreshedOnce: a refused request is sent once more with other credentials.
func TestRefreshedOnce(t *testing.T) {
	url, seen := guardedServer(t, 1, answerOK)
	k := newKeys(5)
	c := withAuth(t, url, k)
	if got := c.call("tools/call", `{}`); got != `"ok"` || seen.Load() != 2 || k.refused.Load() != 1 {
		t.Errorf("%s after %d requests and %d questions", got, seen.Load(), k.refused.Load())
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.challenge == nil || k.challenge.Scope != "read" || strings.Contains(k.challenge.Text, canary) {
		t.Errorf("the challenge was %+v", k.challenge)
	}
}

// TestRefusedForGood: a server that answers 401 gets one request, one refresh and one repetition, and nothing more
// until there are other credentials.
func TestRefusedForGood(t *testing.T) {
	url, seen := guardedServer(t, 7, answerOK)
	k := newKeys(1)
	c := withAuth(t, url, k)
	_, d, err := c.trySend(t.Context(), "tools/call", `{}`)
	if err == nil || err.Class != messages.ClassUnauthorized || err.Status != 401 || err.Challenge == nil ||
		d != transports.Written || seen.Load() != 2 || k.refused.Load() != 1 {
		t.Fatalf("%v, %v after %d requests and %d questions", d, err, seen.Load(), k.refused.Load())
	}
	for range 50 {
		_, d, err := c.trySend(t.Context(), "tools/call", `{}`)
		if err == nil || err.Class != messages.ClassUnauthorized || err.Challenge == nil || d != transports.NotWritten {
			t.Fatalf("%v, %v", d, err)
		}
	}
	if seen.Load() != 2 || k.refused.Load() != 1 {
		t.Errorf("%d requests, %d questions", seen.Load(), k.refused.Load())
	}
	k.number.Store(7)
	if got := c.call("tools/call", `{}`); got != `"ok"` {
		t.Errorf("with a new token: %s", got)
	}
	// A new connection knows nothing of it.
	k.number.Store(1)
	before := seen.Load()
	if _, _, err := withAuth(t, url, k).trySend(t.Context(), "tools/call", `{}`); err == nil || seen.Load() == before {
		t.Errorf("%v after %d requests", err, seen.Load()-before)
	}
}

// TestFlood: of many requests that are refused together, one asks, and the others adopt the answer.
func TestFlood(t *testing.T) {
	const callers = 40
	var arrived sync.WaitGroup
	arrived.Add(callers)
	k := newKeys(1)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		m := read(r)
		if r.Header.Get("Authorization") == token(0) {
			arrived.Done()
			arrived.Wait() // all of them have been sent before the first one is refused
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		reply(w, m, `"ok"`)
	})
	c := withAuth(t, s.URL, k)
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			if got := c.call("tools/call", `{}`); got != `"ok"` {
				t.Errorf("the answer is %s", got)
			}
		})
	}
	wg.Wait()
	if n := k.refused.Load(); n != 1 {
		t.Errorf("Refused was called %d times", n)
	}
}

// TestRequestsWaitForRefresh: while one question is asked nothing is sent; who gives up leaves, and the next one asks.
func TestRequestsWaitForRefresh(t *testing.T) {
	url, seen := guardedServer(t, 1, answerOK)
	k := newKeys(1)
	k.gate = make(chan struct{})
	c := withAuth(t, url, k)
	first, giveUp := context.WithCancel(t.Context())
	done := make(chan *transports.Error)
	go func() {
		_, _, err := c.trySend(first, "tools/call", `{}`)
		done <- err
	}()
	for k.refused.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if got := c.call("tools/call", `{}`); got != `"ok"` {
				t.Errorf("the answer is %s", got)
			}
		})
	}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, d, err := c.trySend(impatient, "tools/call", `{}`); err == nil || d != transports.NotWritten {
		t.Errorf("%v, %v", d, err)
	}
	if n := seen.Load(); n != 1 {
		t.Errorf("%d requests were sent during the question", n)
	}
	giveUp()
	if err := <-done; err == nil || err.Class != messages.ClassCanceled {
		t.Errorf("the first one: %v", err)
	}
	close(k.gate)
	wg.Wait()
}

// TestInsufficientScope: only a 403 that says so is worth a question.
func TestInsufficientScope(t *testing.T) {
	for _, c := range []struct {
		header    string
		questions int32
		ok        bool
	}{
		{`Bearer error="insufficient_scope", scope="read write"`, 1, true},
		{`Bearer scope="read write"`, 1, true}, // the Go SDK's servers, v1.8.0, say no more than that
		{`Bearer error="invalid_request", scope="read write"`, 0, false},
		{`Bearer error="invalid_request"`, 0, false},
		{`Bearer`, 0, false},
		{"", 0, false},
	} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			m := read(r)
			if r.Header.Get("Authorization") == token(0) {
				w.Header().Set("WWW-Authenticate", c.header)
				w.WriteHeader(http.StatusForbidden)
				return
			}
			reply(w, m, `"ok"`)
		})
		k := newKeys(1)
		_, _, err := withAuth(t, s.URL, k).trySend(t.Context(), "tools/call", `{}`)
		if k.refused.Load() != c.questions || c.ok != (err == nil) ||
			err != nil && err.Class != messages.ClassForbidden {
			t.Errorf("%q: %v after %d questions", c.header, err, k.refused.Load())
		}
		if c.ok && k.lastStatus.Load() != 403 {
			t.Errorf("Refused was told %d", k.lastStatus.Load())
		}
	}
}

// TestAuthorizerErrors: what an Authorizer says reaches the caller, and no secret with it.
func TestAuthorizerErrors(t *testing.T) {
	url, seen := guardedServer(t, 1, answerOK)
	secret := canary + "-0"
	for _, c := range []struct {
		name      string
		keys      func(k *numberedTokens)
		class     messages.Class
		delivered transports.Delivery
		text      string
	}{
		{"no token", func(k *numberedTokens) {
			k.authorize = &transports.Error{Class: messages.ClassUnauthorized, Text: "sign in with " + secret}
		}, messages.ClassUnauthorized, transports.NotWritten, "sign in with [redacted]"},
		{"no network", func(k *numberedTokens) {
			k.authorize = &transports.Error{Class: messages.ClassNetwork, Text: "no route", Err: errors.New(secret)}
		}, messages.ClassNetwork, transports.NotWritten, "no route"},
		{"a bare error", func(k *numberedTokens) { k.authorize = errors.New("no " + secret) },
			messages.ClassUnauthorized, transports.NotWritten, "no [redacted]"},
		{"a panic", func(k *numberedTokens) { k.panics = true }, messages.ClassPanic, transports.NotWritten, "panic: with"},
		{"refresh fails in the network", func(k *numberedTokens) {
			k.deny = &transports.Error{Class: messages.ClassNetwork, Text: "the token endpoint cannot answer: " + secret}
		}, messages.ClassNetwork, transports.Written, "cannot answer: [redacted]"},
		{"refresh is refused", func(k *numberedTokens) {
			k.deny = &transports.Error{Class: messages.ClassUnauthorized, Text: "sign in again"}
		}, messages.ClassUnauthorized, transports.Written, "sign in again"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newKeys(9)
			c.keys(k)
			before := seen.Load()
			_, d, err := withAuth(t, url, k).trySend(t.Context(), "tools/call", `{}`)
			if err == nil || err.Class != c.class || d != c.delivered || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("%v, %v", d, err)
			}
			if d == transports.NotWritten && seen.Load() != before {
				t.Error("a request was sent")
			}
			challenged := c.class == messages.ClassUnauthorized
			if d == transports.Written && (err.Status != 401 || (err.Challenge != nil) != challenged) {
				t.Errorf("the refusal is lost: %+v", err)
			}
		})
	}
}

// TestUnusableCredentials: a line break in a token is no second header.
func TestUnusableCredentials(t *testing.T) {
	url, seen := guardedServer(t, 0, answerOK)
	a := authorizer(func(h http.Header) { h.Set("X-Key", canary+"\r\nX-Admin: yes") })
	_, d, err := withAuth(t, url, a).trySend(t.Context(), "tools/call", `{}`)
	if err == nil || d != transports.NotWritten || !strings.Contains(err.Error(), "X-Key") || seen.Load() != 0 {
		t.Errorf("%v, %v", d, err)
	}
}

type authorizer func(h http.Header)

func (a authorizer) Authorize(_ context.Context, h http.Header) error { a(h); return nil }
func (a authorizer) Refused(context.Context, int, *messages.Challenge, http.Header) (bool, error) {
	return false, nil
}

// TestCredentialsStayInTheOrigin: a redirect elsewhere is not followed, and plain http to another machine is refused.
func TestCredentialsStayInTheOrigin(t *testing.T) {
	other := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("the other origin got %v", r.Header) })
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	if _, _, err := withAuth(t, s.URL, newKeys(0)).trySend(t.Context(), "tools/call", `{}`); err == nil {
		t.Error("a redirect to another origin was followed")
	}
	for url, want := range map[string]bool{
		"http://example.com/mcp": false, "http://10.0.0.1:8080/": false, "http://127.0.0.1.example.com/": false,
		"http://localhost:1/": true, "http://a.localhost:1/": false, "http://127.8.8.8:1/": true, "http://[::1]:1/": true,
		"https://example.com/": true,
	} {
		for _, allowed := range []bool{false, true} {
			_, err := transports.NewHTTP(transports.HTTPConfig{URL: url, Auth: newKeys(0), PlainCredentials: allowed,
				Client: ownClient(t)}).Dial(t.Context(), &droppingSink{})
			if (err == nil) != (want || allowed) {
				t.Errorf("%s, allowed %t: %v", url, allowed, err)
			}
		}
	}
}

// A server that repeats the token before the last one in an error does not disclose it: it is redacted as well.
func TestFormerTokenIsScrubbed(t *testing.T) {
	var former atomic.Pointer[string]
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if f := former.Load(); f != nil {
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, "you were "+*f)
			return
		}
		a := r.Header.Get("Authorization")
		former.Store(&a)
		reply(w, read(r), `"ok"`)
	})
	k := newKeys(5)
	c := withAuth(t, s.URL, k)
	c.call("tools/call", `{}`)
	k.number.Add(1)
	if _, _, err := c.trySend(t.Context(), "tools/call", `{}`); err == nil || !strings.Contains(err.Error(), "[redacted]") {
		t.Error(err)
	}
}
