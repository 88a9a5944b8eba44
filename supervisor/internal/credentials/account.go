package credentials

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// accountCredential is the credential of one connection. A connection that began under one account must not continue under
// another, even if a different person signs in meanwhile, in this process or another: its session, and the lists that it gave,
// belong to the first account. Tokens that a program provides, and those of a grant without a person, count as one account.
type accountCredential struct {
	*Credential
	// account is that of the connection's first authorised request; nil until then. Requests run concurrently.
	account atomic.Pointer[string]
}

// Authorize implements transports.Authorizer. If the account has changed it returns an error of ClassSession, which ends the
// connection; the supervisor then makes another one, under the new account.
func (o *accountCredential) Authorize(ctx context.Context, h http.Header) error {
	if err := o.Credential.Authorize(ctx, h); err != nil {
		return err
	}
	if o.providedToken.Load() != nil {
		// The program may give the token of any account.
		o.setAccount(nil)
		return nil
	}
	// The authorizer has just added its token, so its account is the one of this request.
	in, ok := o.innerAuthorizer().(accountSource)
	if !ok {
		return nil
	}
	// An authorizer that knows no account (a helper, a fixed token) cannot notice a change, so none is reported.
	now := in.Account()
	if now == "" {
		return nil
	}
	// The first request decides. Two concurrent ones may both see nil; the one that loses the exchange compares below.
	before := o.account.Load()
	if before == nil && o.account.CompareAndSwap(nil, &now) {
		o.setAccount(&now)
		return nil
	}
	if before = o.account.Load(); *before == now {
		return nil
	}
	// The headers hold the other account's token already: they are cleared, so that a caller that ignores the error sends none.
	o.setAccount(nil)
	clear(h)
	return &transports.Error{Class: messages.ClassSession, Text: "somebody else has signed in to this server",
		Fix: "it is connected again for them"}
}

// ForConnection returns what authorises the requests of one connection, which begins with the stored state; nil if its requests
// carry nothing. It may read the store.
func (c *Credential) ForConnection() transports.Authorizer {
	// A server without credentials sends none, and needs no account.
	if !c.mayBeSent() {
		return nil
	}
	c.loadAccount()
	return &accountCredential{Credential: c}
}
