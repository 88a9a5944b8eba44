package supervisor

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Who is behind a server's credentials decides who may see the lists that it gave.

// accountSource is an Authorizer that tells accounts apart; empty while nobody is signed in.
type accountSource interface{ Account() string }

// unknownAccount is what package oauth calls the account of a sign-in that says nothing of it.
const unknownAccount = "unknown"

// setAccount notes for which account the newest connection goes; nil: that is not known. Requests ask it: it writes only what is
// new.
func (c *credential) setAccount(account *string) {
	if account != nil && *account == unknownAccount {
		account = nil
	}
	if before := c.account.Load(); before != account && (before == nil || account == nil || *before != *account) {
		c.account.Store(account)
	}
}

// actingAccount is for whom requests are sent: the token that was given, or the account; empty if nobody can tell.
func (c *credential) actingAccount() string {
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

// identityOf is who is behind a server's credentials, beside what its spec says with its values; known is false where that
// cannot be told without dialling: what a helper prints, a token or a certificate in a file, a token that the program gave.
// It reads no file and opens no store: an actor asks it in its turn.
func (k *credentials) identityOf(name string, spec *Spec) (identity string, known bool) {
	if !remoteKind(spec) {
		return "", true
	}
	if t := spec.TLS; t != nil && t.CertFile != "" {
		return "", false
	}
	c := k.findCredential(name)
	if c != nil && (c.providedToken.Load() != nil || !c.madeFrom.Equal(k.relevantSpec(spec))) {
		return "", false
	}
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
	if k.cfg.AuthProvider != nil {
		var i *inner
		if c != nil {
			i = c.inner.Load()
		}
		if i == nil || i.program {
			return account()
		}
	}
	if spec.AuthKind() == messages.AuthNone {
		return "", true
	}
	a := spec.Auth
	if a == nil {
		a = &Auth{}
	}
	switch spec.AuthKind() {
	case messages.AuthAPIKey, messages.AuthBearer:
		return valueOf(a)
	case messages.AuthOAuth:
		if a.Type == "" && isSentInClear(*spec) { // no sign-in is used
			return "", true
		}
		return account()
	case messages.AuthClientCredentials:
		return account()
	case messages.AuthTokenExchange: // the subject is who we are; the account is only the client
		subject, known := valueOf(a)
		who, signed := account()
		return subject + " " + who, known && signed
	}
	return "", false
}

// valueOf is the value of auth, as far as it stands in the spec already or in the environment.
func valueOf(a *Auth) (value string, known bool) {
	switch {
	case a.APIKey != "", a.Token != "":
		return "", true
	case a.FromEnv != "":
		return "variable " + os.Getenv(a.FromEnv), true
	}
	return "", false
}

// loadAccountsTime bounds how long a start waits for the store of sign-ins. What is not known by then is dialled for.
const loadAccountsTime = 2 * time.Second

// loadAccounts finds out who is signed in to the lazy servers of which lists are kept, so that the supervisor knows whose
// they are without looking into the store.
func (c *Config) loadAccounts(ctx context.Context, specs map[string]Spec) {
	if c.lists == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, loadAccountsTime)
	defer cancel()
	var all sync.WaitGroup
	for name, spec := range specs {
		if spec.Connect != messages.Lazy || spec.Disabled || spec.Invalid != "" || spec.Hold != "" || !remoteKind(&spec) ||
			c.specProblem(name, spec) != "" || c.refusingRule(spec) != "" || !c.lists.Known(name) {
			continue
		}
		all.Add(1)
		go func() { // ends with the look into the store, or the program's provider
			defer all.Done()
			defer func() {
				_ = recover() // the first attempt to connect meets it, and tells it
			}()
			if k, err := c.credentials.credentialFor(name, &spec); err == nil && k.mayBeSent() {
				k.loadAccount()
			}
		}()
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}
