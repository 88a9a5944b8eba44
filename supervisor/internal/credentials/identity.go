package credentials

import (
	"context"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// This file distinguishes accounts. The lists that a server gave to one account may show what another account must not see.

// accountSource is an Authorizer that can tell accounts apart; its Account is empty while no account is signed in.
type accountSource interface{ Account() string }

// unknownAccount is the account that package oauth reports for a sign-in that does not name one.
const unknownAccount = "unknown"

// setAccount notes the account of the newest connection; nil says that it is not known. Each request calls it, so it writes only
// a changed value: readers on other processors keep their cache lines.
func (c *Credential) setAccount(account *string) {
	if account != nil && *account == unknownAccount {
		account = nil
	}
	if before := c.account.Load(); before != account && (before == nil || account == nil || *before != *account) {
		c.account.Store(account)
	}
}

// ActingAccount returns a text that identifies the account for which requests are sent: the provided token, or the account; empty
// if it cannot be known. The text may hold a token: it is compared, and never shown.
func (c *Credential) ActingAccount() string {
	if c == nil {
		return ""
	}
	if t := c.providedToken.Load(); t != nil {
		return "token " + *t
	}
	if in, ok := c.innerAuthorizer().(accountSource); ok {
		return in.Account()
	}
	return ""
}

// IdentityOf returns the identity behind a server's credentials beyond what its spec says with its values. known is false where
// only a request could tell: a helper's output, a token or certificate in a file, a token that the program gave.
// It reads no file and opens no store, because the supervisor's actor calls it in its turn.
func (k *Set) IdentityOf(name string, spec *messages.Spec) (identity string, known bool) {
	// A child process is identified by its spec and its environment, which the audience has.
	if !IsRemote(spec) {
		return "", true
	}
	// A client certificate authenticates a user, and its file may be replaced by another user's.
	if t := spec.TLS; t != nil && t.CertFile != "" {
		return "", false
	}
	c := k.FindCredential(name)
	// A provided token is not kept, and a credential of another spec says nothing about this one.
	if c != nil && (c.providedToken.Load() != nil || !c.madeFrom.Equal(k.relevantSpec(spec))) {
		return "", false
	}
	// The account that loadAccount or a request has noted; unknown before that.
	account := func() (string, bool) {
		if c == nil {
			return "", false
		}
		a := c.account.Load()
		if a == nil {
			return "", false
		}
		return "account " + *a, true
	}
	// A provider's authorizer may exist without a known account; before it was asked, nothing is known.
	if k.Provider != nil {
		var i *inner
		if c != nil {
			i = c.inner.Load()
		}
		if i == nil || i.program {
			return account()
		}
	}
	// What is sent stands in the spec, which is part of the audience already.
	if spec.AuthKind() == messages.AuthNone {
		return "", true
	}
	a := spec.Auth
	if a == nil {
		a = &messages.Auth{}
	}
	switch spec.AuthKind() {
	case messages.AuthAPIKey, messages.AuthBearer:
		return k.valueOf(a)
	case messages.AuthOAuth:
		// No sign-in is sent over plain http, so there is no account.
		if a.Type == "" && IsSentInClear(*spec) {
			return "", true
		}
		return account()
	case messages.AuthClientCredentials:
		return account()
	case messages.AuthTokenExchange: // the subject is the user; the account is that of the client
		// Both must be known: lists may depend on either.
		subject, known := k.valueOf(a)
		who, signed := account()
		return subject + " " + who, known && signed
	}
	return "", false
}

// valueOf returns the value of auth as far as the spec or the environment has it; a value in the spec is part of the audience
// already.
func (k *Set) valueOf(a *messages.Auth) (value string, known bool) {
	switch {
	case a.APIKey != "", a.Token != "":
		return "", true
	case a.FromEnv != "":
		value, _ := k.LookupEnv(a.FromEnv)
		return "variable " + value, true
	}
	return "", false
}

// loadAccountsTime bounds how long Start and Connect wait for the store. A server whose account is unknown by then offers no list
// from an earlier run: it is dialled first.
const loadAccountsTime = 2 * time.Second

// LoadAccounts reads which accounts are signed in to servers whose lists are kept. It runs before the supervisor needs the answer,
// because a store may block, and the supervisor must not.
func (k *Set) LoadAccounts(ctx context.Context, specs map[string]messages.Spec) {
	// All servers are looked up in parallel, because each may wait for the same keyring.
	ctx, cancel := context.WithTimeout(ctx, loadAccountsTime)
	defer cancel()
	var all sync.WaitGroup
	for name, spec := range specs {
		all.Add(1)
		go func() { // ends with the store, or the program's provider
			defer all.Done()
			defer func() {
				// The first attempt to connect meets the same panic, and reports it.
				_ = recover()
			}()
			if c, err := k.CredentialFor(context.WithoutCancel(ctx), name, &spec); err == nil && c.mayBeSent() {
				c.loadAccount()
			}
		}()
	}
	done := make(chan struct{})
	// After the time the goroutines go on alone: what they find counts for later connections.
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// IsRemote reports whether a server of this kind is reached by a URL, and so may need credentials.
func IsRemote(s *messages.Spec) bool { return s.Kind().Remote() }
