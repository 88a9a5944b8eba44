package sim

import (
	"fmt"
	"net/http"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// token is the credential of one server over HTTP, for all of its connections: a bearer token that is replaced by another
// one when it is refused, as with a refresh token. What was refused is sent again once, which is what the real transports
// do with an Authorizer.
type token struct {
	server string

	mu     sync.Mutex
	number int
}

// authorization is the header that goes beside a message now.
func (t *token) authorization() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprintf("Bearer %s-token-%d", t.server, t.number)
}

// refused makes another token, unless that was done for another message already.
func (t *token) refused(used string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if used == fmt.Sprintf("Bearer %s-token-%d", t.server, t.number) {
		t.number++
	}
}

// renewed sends an exchange that was refused for its token again, once, with a fresh one. The connection's lock is held.
func (c *web) renewed(x *exchange, err *transports.Error) bool {
	if c.token == nil || x.renewed || err.Class != messages.ClassUnauthorized || err.Status != http.StatusUnauthorized {
		return false
	}
	x.renewed, x.again = true, true
	c.token.refused(x.header["Authorization"])
	x.header["Authorization"] = c.token.authorization()
	c.far.sent(c, x)
	return true
}
