package supervisor

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// accountCredential is a credential for one connection. A connection that was begun for one account is not gone on with for
// another, whoever has signed in meanwhile and in whatever process: its session, and what it has listed, are the first
// one's. Tokens that a program provides, and those of a grant without a person, are taken for one account.
type accountCredential struct {
	*credential
	account atomic.Pointer[string]
}

// Authorize implements transports.Authorizer. An error of ClassSession ends the connection, and another one is made.
func (o *accountCredential) Authorize(ctx context.Context, h http.Header) error {
	if err := o.credential.Authorize(ctx, h); err != nil {
		return err
	}
	if o.providedToken.Load() != nil {
		o.setAccount(nil) // a token may be anybody's
		return nil
	}
	in, ok := o.innerAuthorizer().(accountSource)
	if !ok {
		return nil
	}
	now := in.Account()
	if now == "" {
		return nil
	}
	before := o.account.Load()
	if before == nil && o.account.CompareAndSwap(nil, &now) {
		o.setAccount(&now)
		return nil
	}
	if before = o.account.Load(); *before == now {
		return nil
	}
	o.setAccount(nil)
	clear(h)
	return &transports.Error{Class: messages.ClassSession, Text: "somebody else has signed in to this server",
		Fix: "it is connected again for them"}
}

// forgetLists removes the lists of a server that are kept for the next start, and what is remembered of its resources:
// they may be those of another account.
func (m *Manager) forgetLists(server string) {
	if m.cfg.lists != nil {
		m.cfg.lists.Forget(server)
	}
	m.index.forgetServer(server)
}
