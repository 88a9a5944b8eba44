// Package credentials authorises the requests of remote servers. It has one credential per server, made from the spec's auth or
// by the program's own provider, and shared by all connections of the server; sign-ins are kept in a store that all processes of
// the user share.
//
//	set := credentials.New(credentials.Options{Log: log})
//	c, err := set.CredentialFor(ctx, "files", &spec)
//	config.Auth = c.ForConnection()                    // a transports.Authorizer, nil where requests carry nothing
//
// Guarantees: a credential lives until the parts of the spec that it was made of change; a connection that began under one
// account sends nothing under another; no bearer token goes to another machine in the clear unless the spec allows it; the store
// is not opened for a server that never asks for a sign-in; what requests carried is known to [Set.SecretsOf], which takes it out
// of texts.
//
// Not promised: that a token which the store holds is still accepted.
//
// # How it fits
//
// Package opener puts credentials into transports, package supervisor signs in and out (Manager.Login), and packages
// transports/auth and transports/auth/oauth do the work of each kind.
package credentials

import (
	"context"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
	"github.com/mcpvisor/mcpvisor/transports/auth/oauth"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

// Set holds one credential per remote server. A credential is shared by the server's connections and lives until the
// parts of the spec that it was made of change. Safe for concurrent use.
type Set struct {
	Options

	// mu guards byServer only; no credential is made under it, because an AuthProvider may block.
	mu       sync.Mutex
	byServer map[string]*Credential

	// opening is held while the store is opened, and guards openedStore and openedLocks.
	opening     sync.Mutex
	openedStore auth.Store
	openedLocks *auth.Locks
	emptyAt     atomic.Pointer[time.Time] // when mayHoldSignIn found no store last, nil for never
}

// Options says where sign-ins are kept, and what the credentials of servers are made with.
type Options struct {
	// Provider is the program's own, asked before a spec's auth; nil for none.
	Provider func(server string, spec messages.Spec) (transports.Authorizer, error)
	// AskProgram runs f, a function of the program: Provider, a method of an Authorizer that it gave, or one of Store; and returns its
	// error, or why there is none: it broke, or had not returned when ctx ended. what is how an error names it. nil calls f.
	AskProgram func(ctx context.Context, function, what, server string, f func() error) error
	// Store keeps sign-ins, and Locks belong to it; nil for those of DefaultAuthOptions, which are opened when a server needs them.
	Store auth.Store
	Locks *auth.Locks
	// ClientName is sent to authorization servers that register clients.
	ClientName string
	// Guard and InheritEnv are for the helpers that print credentials.
	Guard      stdio.Guard
	InheritEnv bool
	// SearchPath returns the PATH of helpers that are given none; nil means that of this process.
	SearchPath func() string
	// LookupEnv returns the variables that auth names; os.LookupEnv if nil.
	LookupEnv func(name string) (string, bool)
	Log       *zap.Logger
}

func New(o Options) *Set {
	if o.LookupEnv == nil {
		o.LookupEnv = os.LookupEnv
	}
	return &Set{Options: o, byServer: map[string]*Credential{}}
}

// SignIn is an Authorizer with which a person can sign in: an oauth.Authorizer, a lazySignIn, or a program's own.
type SignIn interface {
	transports.Authorizer
	Login(ctx context.Context, p oauth.Prompt) (oauth.Status, error)
	Logout(ctx context.Context) (revoked bool, err error)
	Status(ctx context.Context) (oauth.Status, error)
}

// CredentialFor returns the credential of a server, ready for use: the present one if the spec's relevant part is the same, else a
// new one. The error says why it cannot be made, or that ctx has ended before; the next call tries again.
func (k *Set) CredentialFor(ctx context.Context, name string, spec *messages.Spec) (*Credential, error) {
	// The map is locked for the lookup only; making the credential may block.
	from := k.relevantSpec(spec)
	k.mu.Lock()
	c := k.byServer[name]
	if c == nil || !c.madeFrom.Equal(from) {
		c = &Credential{owner: k, name: name, madeFrom: from, making: make(chan struct{}, 1)}
		k.byServer[name] = c
	}
	k.mu.Unlock()
	return c, c.makeInner(ctx, spec)
}

// relevantSpec returns the part of a spec that a credential depends on. Other changes of the spec keep the sign-in state. An
// AuthProvider may look at any field, so with one the whole spec counts.
func (k *Set) relevantSpec(spec *messages.Spec) messages.Spec {
	if k.Provider != nil {
		return *spec
	}
	return messages.Spec{Type: spec.Kind(), URL: spec.URL, Headers: spec.Headers, Auth: spec.Auth, TLS: spec.TLS,
		AllowPlainHTTP: spec.AllowPlainHTTP}
}

// FindCredential returns the credential that a server has, nil if no attempt or command has needed one yet.
func (k *Set) FindCredential(name string) *Credential {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.byServer[name]
}

// DropCredential forgets the credential of a server that is removed. The stored sign-in stays, for a server that is added again.
func (k *Set) DropCredential(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.byServer, name)
}

// Close waits until token refreshes that run are stored, or ctx has ended. The credentials stay usable: it stops nothing.
func (k *Set) Close(ctx context.Context) {
	k.mu.Lock()
	var all []*Credential
	for _, c := range k.byServer {
		all = append(all, c)
	}
	k.mu.Unlock()
	// They are waited for one after the other: ctx bounds the sum, and each wait is usually nothing.
	for _, c := range all {
		if closer, ok := c.innerAuthorizer().(interface{ Close(context.Context) error }); ok {
			_ = closer.Close(ctx) // the only error is that of ctx
		}
	}
}

// Credential authorises the requests of one server: with the token that ProvideCredentials gave, or with that of its kind.
type Credential struct {
	owner *Set
	name  string
	// madeFrom is the relevantSpec that the credential belongs to.
	madeFrom messages.Spec

	// making guards isMade, and holds a value while inner is made: the attempts of a server wait for one another there, each until its
	// context ends.
	making chan struct{}
	isMade bool
	inner  atomic.Pointer[inner]
	// providedToken is the token of ProvideCredentials, nil if there is none. It comes before inner.
	providedToken atomic.Pointer[string]
	secrets       givenSecrets
	// account is that of the newest connection, or what the next one would have; nil if it is not known.
	account atomic.Pointer[string]
	// refusedHeader has the headers that the server refused last: awaitChange compares new credentials with them.
	refusedHeader atomic.Pointer[http.Header]
}

// inner has the Authorizer that the spec or the program asks for; nil where requests carry nothing.
type inner struct {
	authorizer transports.Authorizer
	// program says that the program's own provider gave it.
	program bool
}

// innerAuthorizer returns the Authorizer of the spec or the program; nil if there is none, or it is not made yet.
func (c *Credential) innerAuthorizer() transports.Authorizer {
	if i := c.inner.Load(); i != nil {
		return i.authorizer
	}
	return nil
}

// makeInner makes the Authorizer, once. After an error the next attempt tries again, because a store may be unlocked by then.
func (c *Credential) makeInner(ctx context.Context, spec *messages.Spec) error {
	select {
	case c.making <- struct{}{}:
	case <-ctx.Done():
		return &transports.Error{Class: messages.ClassOf(ctx.Err()), Text: "its credentials were not made in time", Err: ctx.Err()}
	}
	defer func() { <-c.making }()
	if c.isMade {
		return nil
	}
	// The program's provider comes first; where it returns nil the spec counts.
	i := &inner{}
	if c.owner.Provider != nil {
		a, err := c.askProvider(ctx, spec)
		if err != nil {
			return err
		}
		i.authorizer, i.program = a, a != nil
	}
	if i.authorizer == nil {
		a, err := c.owner.newAuthorizer(c.name, spec)
		if err != nil {
			return err
		}
		i.authorizer = a
	}
	c.inner.Store(i)
	c.isMade = true
	return nil
}

// storeReadTime bounds how long a new connection reads the store: a keyring may wait for a person.
const storeReadTime = 5 * time.Second

// loadAccount lets a new connection begin with the stored state, because another process may have changed the account meanwhile.
// An error of the store is not reported here: the first request that needs the store reports it.
func (c *Credential) loadAccount() {
	c.setAccount(nil)
	i := c.inner.Load()
	if in, ok := c.innerAuthorizer().(SignIn); ok && !i.program {
		// Status makes the authorizer read the store again, which may have another account by now.
		ctx, cancel := context.WithTimeout(context.Background(), storeReadTime)
		defer cancel()
		if _, err := in.Status(ctx); err != nil {
			return
		}
	}
	if in, ok := c.innerAuthorizer().(accountSource); ok {
		// A program's authorizer without an account may have many; one of ours without an account is signed out.
		if now := in.Account(); now != "" || !i.program {
			c.setAccount(&now)
		}
	}
}

// SignIn returns the sign-in of the server; nil if its credentials come in another way.
func (c *Credential) SignIn() SignIn {
	in, _ := c.innerAuthorizer().(SignIn)
	return in
}

// IsFromProgram reports whether the program's own provider gave the Authorizer.
func (c *Credential) IsFromProgram() bool {
	i := c.inner.Load()
	return i != nil && i.program
}

// IsImplied reports whether the server has a sign-in although its spec asks for none.
func (c *Credential) IsImplied() bool {
	_, implied := c.innerAuthorizer().(*lazySignIn)
	return implied
}

// IsEmpty reports whether requests carry nothing beside a provided token.
func (c *Credential) IsEmpty() bool { return c.innerAuthorizer() == nil }

// ProvideToken makes the next requests carry a token of the program.
func (c *Credential) ProvideToken(token string) { c.providedToken.Store(&token) }

// IsProvided reports whether requests carry a token of the program.
func (c *Credential) IsProvided() bool { return c.providedToken.Load() != nil }

// DropToken forgets the token that the program provided. A nil credential has none.
func (c *Credential) DropToken() {
	if c != nil {
		c.providedToken.Store(nil)
	}
}

// ForgetAccount says that it is not known for which account the next connection will be. A nil credential has none.
func (c *Credential) ForgetAccount() {
	if c != nil {
		c.setAccount(nil)
	}
}

// mayBeSent reports whether requests may carry credentials. A server behind plain http on another machine is given no sign-in
// unless its spec asks for auth; then sending it is refused with an error, which the person must see.
func (c *Credential) mayBeSent() bool {
	i := c.inner.Load()
	switch {
	case i != nil && i.program || c.providedToken.Load() != nil:
		return true
	case c.madeFrom.Auth != nil && c.madeFrom.Auth.Type != "":
		return c.madeFrom.Auth.Type != messages.AuthNone
	}
	return !IsSentInClear(c.madeFrom)
}

// IsSentInClear reports whether a bearer token would reach another machine unencrypted. The copy of the spec gets such a token so
// that the same check as for configured credentials decides.
func IsSentInClear(s messages.Spec) bool {
	// s is a copy, so the server's own spec is not changed.
	s.Auth = &messages.Auth{Type: messages.AuthBearer}
	return config.PlainCredentials(s) != ""
}

// Authorize implements transports.Authorizer. Each value that the request will carry is noted as a secret, because servers repeat
// credentials in their error texts.
func (c *Credential) Authorize(ctx context.Context, h http.Header) error {
	if t := c.providedToken.Load(); t != nil {
		h.Set("Authorization", "Bearer "+*t)
	} else if a := c.innerAuthorizer(); a != nil {
		if err := c.authorize(ctx, a, h); err != nil {
			return err
		}
	}
	for _, values := range h {
		for _, v := range values {
			c.secrets.note(v)
		}
	}
	return nil
}

// SecretsOf returns the secret values that a server's requests carried, for actors.Cell.
func (k *Set) SecretsOf(name string) []string {
	if c := k.FindCredential(name); c != nil {
		return c.secrets.all()
	}
	return nil
}

// Refused implements transports.Authorizer. A provided token that the server refuses with 401 is dropped, and the configured
// credentials, if any, are tried next. With true the transport sends the request again.
func (c *Credential) Refused(ctx context.Context, status int, challenge *messages.Challenge, used http.Header) (
	bool, error) {
	// The transport may reuse its headers after the call.
	sent := used.Clone()
	c.refusedHeader.Store(&sent)
	if t := c.providedToken.Load(); t != nil && status == http.StatusUnauthorized {
		// The refused request carried an older token.
		if used.Get("Authorization") != "Bearer "+*t {
			// The program has provided another one meanwhile.
			return true, nil
		}
		c.providedToken.CompareAndSwap(t, nil)
		return c.innerAuthorizer() != nil, nil
	}
	if a := c.innerAuthorizer(); a != nil {
		return c.reportRefusal(ctx, a, status, challenge, used)
	}
	return false, nil
}

// awaitChange returns nil when there may be other credentials than those that were refused: another process has signed in, or
// a program has written a token file. It returns an error only when ctx ends. Credentials that cannot change by themselves wait
// for ctx: ProvideCredentials and Login wake the server in their own way.
func (c *Credential) awaitChange(ctx context.Context) error {
	switch a := c.innerAuthorizer().(type) {
	case interface{ Changed(context.Context) error }:
		return a.Changed(ctx)
	// A token file or a helper is compared with what was refused, so that the same token does not count as new.
	case auth.Awaiter:
		var used http.Header
		if h := c.refusedHeader.Load(); h != nil {
			used = *h
		}
		return a.Await(ctx, used)
	}
	<-ctx.Done()
	return ctx.Err()
}

// AwaitCredentials implements actors.Common.AwaitCredentials: it returns nil when a server in needs-auth is worth another attempt.
func (k *Set) AwaitCredentials(ctx context.Context, name string, spec *messages.Spec) error {
	c, err := k.CredentialFor(ctx, name, spec)
	if err != nil {
		// There is no credential to wait for; a command or a changed spec ends ctx.
		<-ctx.Done()
		return ctx.Err()
	}
	return c.awaitChange(ctx)
}
