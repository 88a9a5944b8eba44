package supervisor

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
	"github.com/mcpvisor/mcpvisor/transports/auth/oauth"
)

// credentials let the manager into its remote servers: one credential per server, which lives with what it was made of
// and is shared by the server's connections. Safe for concurrent use.
type credentials struct {
	cfg *Config

	mu       sync.Mutex
	byServer map[string]*credential

	opening sync.Mutex
	store   auth.Store
	locks   *auth.Locks
	emptyAt atomic.Pointer[time.Time] // when mayHoldSignIn found nothing last, nil for never
}

func newCredentials(cfg *Config) *credentials {
	return &credentials{cfg: cfg, byServer: map[string]*credential{}}
}

// signInOf is an Authorizer that somebody can sign in with: oauth.Authorizer, or a program's own.
type signIn interface {
	transports.Authorizer
	Login(ctx context.Context, p oauth.Prompt) (oauth.Status, error)
	Logout(ctx context.Context) (revoked bool, err error)
	Status(ctx context.Context) (oauth.Status, error)
}

// credentialFor is the credential of a server: the one that it has if that was made of the same, else a new one.
func (k *credentials) credentialFor(name string, spec *Spec) (*credential, error) {
	from := k.relevantSpec(spec)
	k.mu.Lock()
	c := k.byServer[name]
	if c == nil || !c.madeFrom.Equal(from) {
		c = &credential{owner: k, name: name, madeFrom: from}
		k.byServer[name] = c
	}
	k.mu.Unlock()
	return c, c.makeInner(spec)
}

// relevantSpec is the part of a spec that a credential is made of.
func (k *credentials) relevantSpec(spec *Spec) Spec {
	if k.cfg.AuthProvider != nil { // the program may look at anything
		return *spec
	}
	return Spec{Type: spec.Kind(), URL: spec.URL, Headers: spec.Headers, Auth: spec.Auth, TLS: spec.TLS,
		AllowPlainHTTP: spec.AllowPlainHTTP}
}

// findCredential is the credential that a server has, nil if none was needed yet.
func (k *credentials) findCredential(name string) *credential {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.byServer[name]
}

// dropCredential drops the credential of a server that is gone. What is stored stays.
func (k *credentials) dropCredential(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.byServer, name)
}

// close waits until refreshes that are under way are stored, or ctx has ended.
func (k *credentials) close(ctx context.Context) {
	k.mu.Lock()
	var all []*credential
	for _, c := range k.byServer {
		all = append(all, c)
	}
	k.mu.Unlock()
	for _, c := range all {
		if closer, ok := c.innerAuthorizer().(interface{ Close(context.Context) error }); ok {
			_ = closer.Close(ctx) // it only waits
		}
	}
}

// credential is what one server gets with its requests: the token that somebody has provided, or what its kind gives.
type credential struct {
	owner    *credentials
	name     string
	madeFrom Spec

	making sync.Mutex
	isMade bool
	inner  atomic.Pointer[inner]
	// providedToken is the token that was provided, nil if there is none.
	providedToken atomic.Pointer[string]
	// secrets are the newest values that requests carried, each before its words.
	secrets atomic.Pointer[[]string]
	noting  sync.Mutex
	// account is the one that the newest connection goes for, or the next one would; nil if that is not known.
	account atomic.Pointer[string]
	// refusedHeader are the headers that the server refused last.
	refusedHeader atomic.Pointer[http.Header]
}

// inner is a credential of a kind; authorizer may be nil.
type inner struct {
	authorizer transports.Authorizer
	// program says that the embedding program brought it.
	program bool
}

func (c *credential) innerAuthorizer() transports.Authorizer {
	if i := c.inner.Load(); i != nil {
		return i.authorizer
	}
	return nil
}

// makeInner makes what the spec asks for, unless it is there.
func (c *credential) makeInner(spec *Spec) error {
	c.making.Lock()
	defer c.making.Unlock()
	if c.isMade {
		return nil
	}
	i := &inner{}
	if provider := c.owner.cfg.AuthProvider; provider != nil {
		a, err := provider(c.name, *spec)
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

// storeReadTime bounds a look into the store by a connection that is about to be made.
const storeReadTime = 5 * time.Second

// loadAccount lets a new connection begin with what is stored now: somebody may have signed in as somebody else, or out. A store
// that cannot be read shows when the first request needs it.
func (c *credential) loadAccount() {
	c.setAccount(nil)
	i := c.inner.Load()
	if in, ok := c.innerAuthorizer().(signIn); ok && !i.program {
		ctx, cancel := context.WithTimeout(context.Background(), storeReadTime)
		defer cancel()
		if _, err := in.Status(ctx); err != nil {
			return
		}
	}
	if in, ok := c.innerAuthorizer().(accountSource); ok {
		if now := in.Account(); now != "" || !i.program {
			c.setAccount(&now)
		}
	}
}

// mayBeSent reports whether requests may carry any of it. A server that is reached over plain http and asks for nothing by
// its spec is given no sign-in either; where its spec asks for something, sending it is an error.
func (c *credential) mayBeSent() bool {
	i := c.inner.Load()
	switch {
	case i != nil && i.program || c.providedToken.Load() != nil:
		return true
	case c.madeFrom.Auth != nil && c.madeFrom.Auth.Type != "":
		return c.madeFrom.Auth.Type != messages.AuthNone
	}
	return !isSentInClear(c.madeFrom)
}

// isSentInClear reports whether credentials would go to another machine in the clear.
func isSentInClear(s Spec) bool {
	s.Auth = &Auth{Type: messages.AuthBearer}
	return config.PlainCredentials(s) != ""
}

// Authorize implements transports.Authorizer.
func (c *credential) Authorize(ctx context.Context, h http.Header) error {
	if t := c.providedToken.Load(); t != nil {
		h.Set("Authorization", "Bearer "+*t)
	} else if a := c.innerAuthorizer(); a != nil {
		if err := a.Authorize(ctx, h); err != nil {
			return err
		}
	}
	for _, values := range h {
		for _, v := range values {
			c.noteSecret(v)
		}
	}
	return nil
}

// mostSecrets bounds what is remembered to be hidden: tokens that have been replaced are of no use for long.
const mostSecrets = 24

// noteSecret remembers a value that texts must not hold. Of "Bearer abc", a server may repeat abc alone.
func (c *credential) noteSecret(value string) {
	known := func() []string {
		if s := c.secrets.Load(); s != nil {
			return *s
		}
		return nil
	}
	if slices.Contains(known(), value) || len(value) < shortestSecret {
		return
	}
	c.noting.Lock()
	defer c.noting.Unlock()
	add := []string{value}
	for _, word := range strings.Fields(value) {
		if word != value && len(word) >= shortestSecret && !strings.EqualFold(word, "bearer") {
			add = append(add, word)
		}
	}
	all := slices.Concat(add, known())
	all = all[:min(len(all), mostSecrets)]
	c.secrets.Store(&all)
}

// shortestSecret is the length below which a value is not looked for in texts: it would hide harmless words.
const shortestSecret = 6

// secretsOf are the values that servers were given to let us in, for actors.Cell.
func (k *credentials) secretsOf(name string) []string {
	if c := k.findCredential(name); c != nil {
		if s := c.secrets.Load(); s != nil {
			return *s
		}
	}
	return nil
}

// Refused implements transports.Authorizer. A provided token that is refused has had its time.
func (c *credential) Refused(ctx context.Context, status int, challenge *messages.Challenge, used http.Header) (
	bool, error) {
	sent := used.Clone()
	c.refusedHeader.Store(&sent)
	if t := c.providedToken.Load(); t != nil && status == http.StatusUnauthorized {
		if used.Get("Authorization") != "Bearer "+*t {
			return true, nil // it was provided meanwhile
		}
		c.providedToken.CompareAndSwap(t, nil)
		return c.innerAuthorizer() != nil, nil
	}
	if a := c.innerAuthorizer(); a != nil {
		return a.Refused(ctx, status, challenge, used)
	}
	return false, nil
}

// awaitChange returns nil when there may be other credentials than those that were refused, whoever brought them: another
// process that has signed in, a program that writes a token file. It returns an error when ctx ends.
func (c *credential) awaitChange(ctx context.Context) error {
	switch a := c.innerAuthorizer().(type) {
	case interface{ Changed(context.Context) error }:
		return a.Changed(ctx)
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

// awaitCredentials is actors.ServerConfig.Await.
func (c *Config) awaitCredentials(ctx context.Context, name string, spec *Spec) error {
	k, err := c.credentials.credentialFor(name, spec)
	if err != nil {
		<-ctx.Done()
		return ctx.Err()
	}
	return k.awaitChange(ctx)
}
