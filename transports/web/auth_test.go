package web_test

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
	"github.com/mcpvisor/mcpvisor/transports/internal/conntest"
	"github.com/mcpvisor/mcpvisor/transports/web"
)

// guardedServer answers 401 to every token with a number below wanted, and counts what came.
func guardedServer(t *testing.T, wanted int32, next http.HandlerFunc) (url string, seen *atomic.Int32) {
	seen = &atomic.Int32{}
	return conntest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		var n int32 = -1
		_, _ = fmt.Sscanf(strings.ReplaceAll(r.Header.Get("Authorization"), "-", " "), "Bearer "+conntest.Canary+" %d", &n)
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

func answerOK(w http.ResponseWriter, r *http.Request) {
	conntest.Reply(w, conntest.ReadRequest(r), `"ok"`)
}

func withAuth(t *testing.T, url string, a transports.Authorizer) *conntest.Client {
	return conntest.Dial(t, web.NewHTTP(web.Config{URL: url, Auth: a, Client: conntest.OwnClient(t)}))
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
		if a := r.Header.Get("Authorization"); a != conntest.NumberedToken(0) {
			t.Errorf("%s %s has Authorization %q", r.Method, r.URL.Path, a)
		}
		if s := r.Header.Get("Mcp-Session-Id"); s == "not yours" {
			t.Error("an Authorizer has set the session id")
		}
		got[r.Method+" "+r.URL.Path] = true
	}
	listening := make(chan struct{}, 1)
	s := conntest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		note(r)
		conntest.WithHandshake("session-1", func(w http.ResponseWriter, r *http.Request) {
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
	c := withAuth(t, s.URL, conntest.NewNumberedTokens(0))
	c.Handshake()
	<-listening
	c.CloseChecked()

	older := conntest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
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
	sse := conntest.Dial(t, web.NewSSE(web.Config{URL: older.URL + "/sse", Auth: conntest.NewNumberedTokens(0), Client: conntest.OwnClient(t)}))
	sse.Notify("notifications/initialized")
	sse.CloseChecked()
	for _, want := range []string{"POST /", "GET /", "DELETE /", "GET /sse", "POST /messages"} {
		if !got[want] {
			t.Errorf("no %s was seen: %v", want, got)
		}
	}
}

// TestRefreshedOnce: a refused request is sent once more with other credentials.
func TestRefreshedOnce(t *testing.T) {
	url, seen := guardedServer(t, 1, answerOK)
	k := conntest.NewNumberedTokens(5)
	c := withAuth(t, url, k)
	if got := c.Call("tools/call", `{}`); got != `"ok"` || seen.Load() != 2 || k.RefusedCalls.Load() != 1 {
		t.Errorf("%s after %d requests and %d questions", got, seen.Load(), k.RefusedCalls.Load())
	}
	k.Mu.Lock()
	defer k.Mu.Unlock()
	if k.Challenge == nil || k.Challenge.Scope != "read" || strings.Contains(k.Challenge.Text, conntest.Canary) {
		t.Errorf("the challenge was %+v", k.Challenge)
	}
}

// TestRefusedForGood: a server that answers 401 gets one request, one refresh and one repetition, and nothing more
// until there are other credentials.
func TestRefusedForGood(t *testing.T) {
	url, seen := guardedServer(t, 7, answerOK)
	k := conntest.NewNumberedTokens(1)
	c := withAuth(t, url, k)
	_, d, err := c.TrySend(t.Context(), "tools/call", `{}`)
	if err == nil || err.Class != messages.ClassUnauthorized || err.Status != 401 || err.Challenge == nil ||
		d != transports.Written || seen.Load() != 2 || k.RefusedCalls.Load() != 1 {
		t.Fatalf("%v, %v after %d requests and %d questions", d, err, seen.Load(), k.RefusedCalls.Load())
	}
	for range 50 {
		_, d, err := c.TrySend(t.Context(), "tools/call", `{}`)
		if err == nil || err.Class != messages.ClassUnauthorized || err.Challenge == nil || d != transports.NotWritten {
			t.Fatalf("%v, %v", d, err)
		}
	}
	if seen.Load() != 2 || k.RefusedCalls.Load() != 1 {
		t.Errorf("%d requests, %d questions", seen.Load(), k.RefusedCalls.Load())
	}
	k.Number.Store(7)
	if got := c.Call("tools/call", `{}`); got != `"ok"` {
		t.Errorf("with a new token: %s", got)
	}
	// A new connection knows nothing of it.
	k.Number.Store(1)
	before := seen.Load()
	if _, _, err := withAuth(t, url, k).TrySend(t.Context(), "tools/call", `{}`); err == nil || seen.Load() == before {
		t.Errorf("%v after %d requests", err, seen.Load()-before)
	}
}

// TestFlood: of many requests that are refused together, one asks, and the others adopt the answer.
func TestFlood(t *testing.T) {
	const callers = 40
	var arrived sync.WaitGroup
	arrived.Add(callers)
	k := conntest.NewNumberedTokens(1)
	s := conntest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		m := conntest.ReadRequest(r)
		if r.Header.Get("Authorization") == conntest.NumberedToken(0) {
			arrived.Done()
			arrived.Wait() // all of them have been sent before the first one is refused
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		conntest.Reply(w, m, `"ok"`)
	})
	c := withAuth(t, s.URL, k)
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			if got := c.Call("tools/call", `{}`); got != `"ok"` {
				t.Errorf("the answer is %s", got)
			}
		})
	}
	wg.Wait()
	if n := k.RefusedCalls.Load(); n != 1 {
		t.Errorf("Refused was called %d times", n)
	}
}

// TestRequestsWaitForRefresh: while one question is asked nothing is sent; who gives up leaves, and the next one asks.
func TestRequestsWaitForRefresh(t *testing.T) {
	url, seen := guardedServer(t, 1, answerOK)
	k := conntest.NewNumberedTokens(1)
	k.Gate = make(chan struct{})
	c := withAuth(t, url, k)
	first, giveUp := context.WithCancel(t.Context())
	done := make(chan *transports.Error)
	go func() {
		_, _, err := c.TrySend(first, "tools/call", `{}`)
		done <- err
	}()
	for k.RefusedCalls.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if got := c.Call("tools/call", `{}`); got != `"ok"` {
				t.Errorf("the answer is %s", got)
			}
		})
	}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, d, err := c.TrySend(impatient, "tools/call", `{}`); err == nil || d != transports.NotWritten {
		t.Errorf("%v, %v", d, err)
	}
	if n := seen.Load(); n != 1 {
		t.Errorf("%d requests were sent during the question", n)
	}
	giveUp()
	if err := <-done; err == nil || err.Class != messages.ClassCanceled {
		t.Errorf("the first one: %v", err)
	}
	close(k.Gate)
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
		s := conntest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
			m := conntest.ReadRequest(r)
			if r.Header.Get("Authorization") == conntest.NumberedToken(0) {
				w.Header().Set("WWW-Authenticate", c.header)
				w.WriteHeader(http.StatusForbidden)
				return
			}
			conntest.Reply(w, m, `"ok"`)
		})
		k := conntest.NewNumberedTokens(1)
		_, _, err := withAuth(t, s.URL, k).TrySend(t.Context(), "tools/call", `{}`)
		if k.RefusedCalls.Load() != c.questions || c.ok != (err == nil) ||
			err != nil && err.Class != messages.ClassForbidden {
			t.Errorf("%q: %v after %d questions", c.header, err, k.RefusedCalls.Load())
		}
		if c.ok && k.LastStatus.Load() != 403 {
			t.Errorf("Refused was told %d", k.LastStatus.Load())
		}
	}
}

// TestAuthorizerErrors: what an Authorizer says reaches the caller, and no secret with it.
func TestAuthorizerErrors(t *testing.T) {
	url, seen := guardedServer(t, 1, answerOK)
	secret := conntest.Canary + "-0"
	for _, c := range []struct {
		name      string
		keys      func(k *conntest.NumberedTokens)
		class     messages.Class
		delivered transports.Delivery
		text      string
	}{
		{"no token", func(k *conntest.NumberedTokens) {
			k.AuthorizeErr = &transports.Error{Class: messages.ClassUnauthorized, Text: "sign in with " + secret}
		}, messages.ClassUnauthorized, transports.NotWritten, "sign in with [redacted]"},
		{"no network", func(k *conntest.NumberedTokens) {
			k.AuthorizeErr = &transports.Error{Class: messages.ClassNetwork, Text: "no route", Err: errors.New(secret)}
		}, messages.ClassNetwork, transports.NotWritten, "no route"},
		{"a bare error", func(k *conntest.NumberedTokens) { k.AuthorizeErr = errors.New("no " + secret) },
			messages.ClassUnauthorized, transports.NotWritten, "no [redacted]"},
		{"a panic", func(k *conntest.NumberedTokens) { k.Panics = true }, messages.ClassPanic, transports.NotWritten, "panic: with"},
		{"refresh fails in the network", func(k *conntest.NumberedTokens) {
			k.RefusedErr = &transports.Error{Class: messages.ClassNetwork, Text: "the token endpoint cannot answer: " + secret}
		}, messages.ClassNetwork, transports.Written, "cannot answer: [redacted]"},
		{"refresh is refused", func(k *conntest.NumberedTokens) {
			k.RefusedErr = &transports.Error{Class: messages.ClassUnauthorized, Text: "sign in again"}
		}, messages.ClassUnauthorized, transports.Written, "sign in again"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := conntest.NewNumberedTokens(9)
			c.keys(k)
			before := seen.Load()
			_, d, err := withAuth(t, url, k).TrySend(t.Context(), "tools/call", `{}`)
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
	a := authorizer(func(h http.Header) { h.Set("X-Key", conntest.Canary+"\r\nX-Admin: yes") })
	_, d, err := withAuth(t, url, a).TrySend(t.Context(), "tools/call", `{}`)
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
	other := conntest.Serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("the other origin got %v", r.Header) })
	s := conntest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	if _, _, err := withAuth(t, s.URL, conntest.NewNumberedTokens(0)).TrySend(t.Context(), "tools/call", `{}`); err == nil {
		t.Error("a redirect to another origin was followed")
	}
	for url, want := range map[string]bool{
		"http://example.com/mcp": false, "http://10.0.0.1:8080/": false, "http://127.0.0.1.example.com/": false,
		"http://localhost:1/": true, "http://a.localhost:1/": false, "http://127.8.8.8:1/": true, "http://[::1]:1/": true,
		"https://example.com/": true,
	} {
		for _, allowed := range []bool{false, true} {
			_, err := web.NewHTTP(web.Config{URL: url, Auth: conntest.NewNumberedTokens(0), PlainCredentials: allowed,
				Client: conntest.OwnClient(t)}).Dial(t.Context(), &conntest.DroppingSink{})
			if (err == nil) != (want || allowed) {
				t.Errorf("%s, allowed %t: %v", url, allowed, err)
			}
		}
	}
}

// A server that repeats the token before the last one in an error does not disclose it: it is redacted as well.
func TestFormerTokenIsScrubbed(t *testing.T) {
	var former atomic.Pointer[string]
	s := conntest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if f := former.Load(); f != nil {
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, "you were "+*f)
			return
		}
		a := r.Header.Get("Authorization")
		former.Store(&a)
		conntest.Reply(w, conntest.ReadRequest(r), `"ok"`)
	})
	k := conntest.NewNumberedTokens(5)
	c := withAuth(t, s.URL, k)
	c.Call("tools/call", `{}`)
	k.Number.Add(1)
	if _, _, err := c.TrySend(t.Context(), "tools/call", `{}`); err == nil || !strings.Contains(err.Error(), "[redacted]") {
		t.Error(err)
	}
}
