package sim

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/transports"
)

// bearerToken is the credential of one server over HTTP, for all of its connections. When the server refuses it, the next
// request carries a new one, like after a refresh; the refused message is sent once more, as the real transports do with an
// Authorizer.
type bearerToken struct {
	server string

	// mu guards number, the number of the token that the next request carries; the manager's goroutines and the loop use it.
	mu      sync.Mutex
	number  int
	renewal renewal
	// personal is set before the start if callers with a name have credentials of their own.
	personal bool
}

// isRefusedCaller reports whether the credentials in a header are those of a caller whom a server with personal credentials refuses.
func isRefusedCaller(h http.Header) bool {
	_, caller := scenario.SplitToken(h.Get("Authorization"))
	return caller != "" && scenario.RefusesCaller(caller)
}

// authorizationHeader returns the current value of the header Authorization.
func (t *bearerToken) authorizationHeader() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprintf("Bearer %s-token-%d", t.server, t.number)
}

// renewToken replaces the token, unless another refused message has already replaced the used one.
func (t *bearerToken) renewToken(used string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if used == fmt.Sprintf("Bearer %s-token-%d", t.server, t.number) {
		t.number++
	}
}

// Authorize implements transports.Authorizer, for the program's own client.
func (t *bearerToken) Authorize(ctx context.Context, h http.Header) error {
	show := t.authorizationHeader()
	if caller := messages.CallerOf(ctx); t.personal && caller != "" {
		show = scenario.TokenOfCaller(show, caller)
	}
	h.Set("Authorization", show)
	return nil
}

// Refused implements transports.Authorizer.
func (t *bearerToken) Refused(_ context.Context, status int, _ *messages.Challenge, used http.Header) (retry bool, err error) {
	if status != http.StatusUnauthorized || isRefusedCaller(used) {
		return false, nil
	}
	token, _ := scenario.SplitToken(used.Get("Authorization"))
	t.renewToken(token)
	return true, nil
}

// resendRenewed sends an exchange that was refused for its token again, once, with a new token. It returns false if the refusal
// stands. The caller holds the connection's lock.
func (c *webConn) resendRenewed(x *exchange, err *transports.Error) bool {
	if c.token == nil || x.resent || err.Class != messages.ClassUnauthorized || err.Status != http.StatusUnauthorized {
		return false
	}
	x.resent, x.resendPending = true, true
	c.token.renewToken(x.header["Authorization"])
	x.header["Authorization"] = c.token.authorizationHeader()
	c.remote.onSent(c, x)
	return true
}
