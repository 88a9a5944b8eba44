package sim

import (
	"fmt"
	"net/http"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// bearerToken is the credential of one server over HTTP, for all of its connections: a bearer token that is replaced by another
// one when it is refused, as with a refresh token. What was refused is sent again once, which is what the real transports
// do with an Authorizer.
type bearerToken struct {
	server string

	mu     sync.Mutex
	number int
}

// authorizationHeader is the header that goes beside a message now.
func (t *bearerToken) authorizationHeader() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprintf("Bearer %s-token-%d", t.server, t.number)
}

// renewToken makes another token, unless that was done for another message already.
func (t *bearerToken) renewToken(used string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if used == fmt.Sprintf("Bearer %s-token-%d", t.server, t.number) {
		t.number++
	}
}

// resendRenewed sends an exchange that was refused for its token again, once, with a fresh one. The connection's lock is held.
func (c *web) resendRenewed(x *exchange, err *transports.Error) bool {
	if c.token == nil || x.resent || err.Class != messages.ClassUnauthorized || err.Status != http.StatusUnauthorized {
		return false
	}
	x.resent, x.resendPending = true, true
	c.token.renewToken(x.header["Authorization"])
	x.header["Authorization"] = c.token.authorizationHeader()
	c.remote.onSent(c, x)
	return true
}
