package live

import (
	"context"
	"net/http"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// bearerToken is the credential of one server behind a socket. It plays issuer and store in one: when a server refuses the
// token with 401, the next request carries a new one, like after a refresh.
type bearerToken struct {
	// issue makes a new token and tells the scanner of secrets. It is called with mu held.
	issue func() string

	// mu guards current, which the manager's goroutines read for each request.
	mu      sync.Mutex
	current string
}

var _ transports.Authorizer = (*bearerToken)(nil)

// authorizerFor returns the credential of a server behind a socket, nil for one without a URL. It is the manager's
// Config.AuthProvider.
func (r *run) authorizerFor(server string, spec messages.Spec) (transports.Authorizer, error) {
	if spec.URL == "" {
		return nil, nil
	}
	r.tokensMu.Lock()
	defer r.tokensMu.Unlock()
	if r.tokens[server] == nil {
		r.tokens[server] = &bearerToken{issue: r.secrets.newSecret, current: r.secrets.newSecret()}
	}
	return r.tokens[server], nil
}

const bearerPrefix = "Bearer "

// Authorize implements transports.Authorizer.
func (t *bearerToken) Authorize(_ context.Context, h http.Header) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	h.Set("Authorization", bearerPrefix+t.current)
	return nil
}

// Refused implements transports.Authorizer. Of many requests that were refused with one token only the first replaces it; all
// may be retried.
func (t *bearerToken) Refused(_ context.Context, status int, _ *messages.Challenge, used http.Header) (bool, error) {
	if status != http.StatusUnauthorized {
		return false, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if used.Get("Authorization") == bearerPrefix+t.current {
		t.current = t.issue()
	}
	return true, nil
}
