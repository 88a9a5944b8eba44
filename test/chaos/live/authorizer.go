package live

import (
	"context"
	"net/http"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// token is the credential of one server behind a socket: a bearer token that is replaced by another one when it is
// refused, as one that expires is. It is the issuer and the client's store in one.
type token struct {
	issue func() string

	mu      sync.Mutex
	current string
}

var _ transports.Authorizer = (*token)(nil)

// authorizer gives every server behind a socket a token. It is the Config.AuthProvider of the manager.
func (r *run) authorizer(server string, spec messages.Spec) (transports.Authorizer, error) {
	if spec.URL == "" {
		return nil, nil
	}
	r.tokensMu.Lock()
	defer r.tokensMu.Unlock()
	if r.tokens[server] == nil {
		r.tokens[server] = &token{issue: r.secrets.secret, current: r.secrets.secret()}
	}
	return r.tokens[server], nil
}

const bearer = "Bearer "

// Authorize implements transports.Authorizer.
func (t *token) Authorize(_ context.Context, h http.Header) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	h.Set("Authorization", bearer+t.current)
	return nil
}

// Refused implements transports.Authorizer. Of many requests that were refused with one token only the first makes
// another one.
func (t *token) Refused(_ context.Context, status int, _ *messages.Challenge, used http.Header) (bool, error) {
	if status != http.StatusUnauthorized {
		return false, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if used.Get("Authorization") == bearer+t.current {
		t.current = t.issue()
	}
	return true, nil
}
