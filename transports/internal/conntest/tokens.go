package conntest

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/mcpvisor/mcpvisor/messages"
)

// NumberedTokens is an Authorizer whose token has a number, which Refused raises up to most.
type NumberedTokens struct {
	Number, Most                 atomic.Int32
	AuthorizeCalls, RefusedCalls atomic.Int32
	AuthorizeErr, RefusedErr     error         // what the methods return instead
	Gate                         chan struct{} // if not nil, Refused waits for it
	Panics                       bool
	LastStatus                   atomic.Int32
	Mu                           sync.Mutex
	Challenge                    *messages.Challenge
}

// NewNumberedTokens begins with the number 0; Refused raises it up to most.
func NewNumberedTokens(most int32) *NumberedTokens {
	k := &NumberedTokens{}
	k.Most.Store(most)
	return k
}

// NumberedToken returns the header value with that number.
func NumberedToken(n int32) string { return fmt.Sprintf("Bearer %s-%d", Canary, n) }

// Authorize implements transports.Authorizer.
func (k *NumberedTokens) Authorize(_ context.Context, h http.Header) error {
	k.AuthorizeCalls.Add(1)
	h.Set("Authorization", NumberedToken(k.Number.Load()))
	h.Set("mcp-session-id", "not yours")
	if k.Panics {
		panic("with " + Canary + "-0")
	}
	return k.AuthorizeErr
}

// Refused implements transports.Authorizer.
func (k *NumberedTokens) Refused(ctx context.Context, status int, c *messages.Challenge, used http.Header) (bool, error) {
	k.RefusedCalls.Add(1)
	k.LastStatus.Store(int32(status))
	k.Mu.Lock()
	k.Challenge = c
	k.Mu.Unlock()
	if k.Gate != nil {
		select {
		case <-k.Gate:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	if k.RefusedErr != nil {
		return false, k.RefusedErr
	}
	if used.Get("Authorization") != NumberedToken(k.Number.Load()) {
		return true, nil
	}
	if k.Number.Load() >= k.Most.Load() {
		return false, nil
	}
	k.Number.Add(1)
	return true, nil
}
