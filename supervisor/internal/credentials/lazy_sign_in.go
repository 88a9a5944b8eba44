package credentials

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/auth/oauth"
)

// lazySignIn is the sign-in of a server whose spec does not ask for one. Most such servers never need it, so the store is opened
// only when there may be a sign-in for the server, or when the person signs in. Safe for concurrent use.
type lazySignIn struct {
	owner *Set
	name  string
	spec  messages.Spec

	// making is held while the authorizer is made; authorizer is nil until then.
	making     sync.Mutex
	authorizer atomic.Pointer[oauth.Authorizer]
}

// openSignIn returns the sign-in. It is nil without an error if no sign-in can be stored yet and force is not set. The error is
// that of the store.
func (l *lazySignIn) openSignIn(force bool) (*oauth.Authorizer, error) {
	if a := l.authorizer.Load(); a != nil {
		return a, nil
	}
	// Opening the store may ask the person for the keyring's password: not for a server that needs no sign-in.
	if !force && !l.owner.mayHoldSignIn() {
		return nil, nil
	}
	l.making.Lock()
	defer l.making.Unlock()
	// Another request may have made it while this one waited for the lock.
	if a := l.authorizer.Load(); a != nil {
		return a, nil
	}
	a, err := l.owner.newOAuth(l.name, &l.spec)
	if err != nil {
		return nil, err
	}
	l.authorizer.Store(a)
	return a, nil
}

// Authorize adds the sign-in, if one is stored. A store that cannot be opened must not keep a server from answering that wants no
// credentials: the request goes out without any.
func (l *lazySignIn) Authorize(ctx context.Context, h http.Header) error {
	if l.authorizer.Load() == nil && l.owner.isKnownEmpty() {
		return nil
	}
	if a, err := l.openSignIn(false); a != nil && err == nil {
		return a.Authorize(ctx, h)
	}
	return nil
}

// Refused asks the sign-in for other credentials. Without one the server's own challenge becomes the reason of needs-auth.
func (l *lazySignIn) Refused(ctx context.Context, status int, c *messages.Challenge, used http.Header) (bool, error) {
	a, err := l.openSignIn(false)
	if err != nil {
		l.owner.Log.Warn("the store of sign-ins cannot be opened", zap.String("server", l.name), zap.Error(err))
		a = nil
	}
	if a == nil {
		return false, nil
	}
	return a.Refused(ctx, status, c, used)
}

// Login opens the store, since the person wants a sign-in now.
func (l *lazySignIn) Login(ctx context.Context, p oauth.Prompt) (oauth.Status, error) {
	a, err := l.openSignIn(true)
	if err != nil {
		return oauth.Status{}, err
	}
	return a.Login(ctx, p)
}

// Logout removes the sign-in from the store.
func (l *lazySignIn) Logout(ctx context.Context) (bool, error) {
	a, err := l.openSignIn(true)
	if err != nil {
		return false, err
	}
	return a.Logout(ctx)
}

// Forget removes the sign-in and what ties the server to an authorization server.
func (l *lazySignIn) Forget(ctx context.Context) (bool, error) {
	a, err := l.openSignIn(true)
	if err != nil {
		return false, err
	}
	return a.Forget(ctx)
}

// Account does not open the store: it is called with every request.
func (l *lazySignIn) Account() string {
	if a := l.authorizer.Load(); a != nil {
		return a.Account()
	}
	return ""
}

// Status is empty while there is nothing stored, and does not create a store.
func (l *lazySignIn) Status(ctx context.Context) (oauth.Status, error) {
	if a, err := l.openSignIn(false); a != nil || err != nil {
		if err != nil {
			return oauth.Status{}, err
		}
		return a.Status(ctx)
	}
	return oauth.Status{}, nil
}

// Close waits for a refresh that runs; a sign-in that was never opened has none.
func (l *lazySignIn) Close(ctx context.Context) error {
	if a := l.authorizer.Load(); a != nil {
		return a.Close(ctx)
	}
	return nil
}

// Changed waits for a sign-in, possibly the first on this machine, which another process makes. Until the store exists there is
// no file to watch, so it looks every 2 s.
func (l *lazySignIn) Changed(ctx context.Context) error {
	t := time.NewTicker(2 * time.Second)
	defer t.Stop()
	for {
		if a, err := l.openSignIn(false); a != nil && err == nil {
			return a.Changed(ctx)
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
