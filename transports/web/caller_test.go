package web_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/conntest"
)

// callerTokens authorizes each request with the token of its caller; the connection's own requests carry that of nobody. A caller
// whose token was refused gets no other one. It counts for whom it was asked.
type callerTokens struct {
	mu      sync.Mutex
	refused []string
}

func (k *callerTokens) Authorize(ctx context.Context, h http.Header) error {
	caller := messages.CallerOf(ctx)
	if caller == "without" {
		return errors.New("there is no token for this caller")
	}
	h.Set("Authorization", "Bearer token-of-"+caller)
	return nil
}

func (k *callerTokens) Refused(ctx context.Context, _ int, _ *messages.Challenge, used http.Header) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refused = append(k.refused, messages.CallerOf(ctx)+" "+used.Get("Authorization"))
	return false, nil
}

// serveCallers refuses the tokens of the callers in refused, and answers every other request with its Authorization.
func serveCallers(t *testing.T, refused ...string) (url string, seen *atomic.Int32) {
	seen = &atomic.Int32{}
	return conntest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		got := r.Header.Get("Authorization")
		for _, caller := range refused {
			if got == "Bearer token-of-"+caller {
				_, _ = io.Copy(io.Discard, r.Body)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
		}
		conntest.Reply(w, conntest.ReadRequest(r), fmt.Sprintf("%q", got))
	}).URL, seen
}

// TestEachRequestCarriesItsCallersCredentials: many callers on one connection at once; no request carries another's token.
func TestEachRequestCarriesItsCallersCredentials(t *testing.T) {
	url, _ := serveCallers(t)
	c := withAuth(t, url, &callerTokens{})
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			caller := fmt.Sprintf("caller-%d", i)
			for range 20 {
				id, _, err := c.TrySend(messages.WithCaller(t.Context(), caller), "tools/call", `{}`)
				if err != nil {
					t.Errorf("the call of %s ended as %v", caller, err)
					return
				}
				if got := string(c.Answer(t, conntest.Bound, id)); got != fmt.Sprintf("%q", "Bearer token-of-"+caller) {
					t.Errorf("%s was answered %s", caller, got)
				}
			}
		})
	}
	all.Wait()
	// A request that belongs to no call carries the connection's own.
	if got := c.Call("ping", `{}`); got != `"Bearer token-of-"` {
		t.Errorf("a request without a caller carried %s", got)
	}
}

// TestARefusedCallerIsRefusedAlone: the refusal of one caller's token is asked about with that token, is marked as the caller's, is
// remembered for that token, and says nothing about another caller's.
func TestARefusedCallerIsRefusedAlone(t *testing.T) {
	url, seen := serveCallers(t, "ben")
	k := &callerTokens{}
	c := withAuth(t, url, k)
	ben, anna := messages.WithCaller(t.Context(), "ben"), messages.WithCaller(t.Context(), "anna")
	for range 2 {
		_, _, err := c.TrySend(ben, "tools/call", `{}`)
		if err == nil || err.Class != messages.ClassUnauthorized || !errors.Is(err, messages.ErrCallerRefused) {
			t.Fatalf("ben's call ended as %v", err)
		}
		if _, _, err := c.TrySend(anna, "tools/call", `{}`); err != nil {
			t.Fatalf("anna's call ended as %v", err)
		}
	}
	// Ben's token is sent once: the second call is answered from memory.
	if n := seen.Load(); n != 3 || len(k.refused) != 1 || k.refused[0] != "ben Bearer token-of-ben" {
		t.Errorf("%d requests, and the Authorizer was asked about %q", n, k.refused)
	}
	// A caller without a token is no fault of the connection's either.
	_, d, err := c.TrySend(messages.WithCaller(t.Context(), "without"), "tools/call", `{}`)
	if d != transports.NotWritten || !errors.Is(err, messages.ErrCallerRefused) {
		t.Errorf("a caller without a token: %v, %v", d, err)
	}
}

// TestARefusalOfTheConnectionsCredentialsIsNotTheCallers: an Authorizer that gives all callers the same is refused for all.
func TestARefusalOfTheConnectionsCredentialsIsNotTheCallers(t *testing.T) {
	url, _ := guardedServer(t, 7, answerOK)
	c := withAuth(t, url, conntest.NewNumberedTokens(1))
	for range 2 {
		_, _, err := c.TrySend(messages.WithCaller(t.Context(), "anna"), "tools/call", `{}`)
		if err == nil || err.Class != messages.ClassUnauthorized || errors.Is(err, messages.ErrCallerRefused) {
			t.Errorf("the call ended as %v", err)
		}
	}
}
