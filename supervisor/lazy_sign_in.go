package supervisor

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

// lazySignIn is the sign-in of a server whose spec does not ask for one. The store is opened when there may be something in
// it, or when somebody signs in.
type lazySignIn struct {
	owner *credentials
	name  string
	spec  Spec

	making     sync.Mutex
	authorizer atomic.Pointer[oauth.Authorizer]
}

// openSignIn is the sign-in, nil if nothing can be stored and force is not set, or if there is no store.
func (l *lazySignIn) openSignIn(force bool) (*oauth.Authorizer, error) {
	if a := l.authorizer.Load(); a != nil {
		return a, nil
	}
	if !force && !l.owner.mayHoldSignIn() {
		return nil, nil
	}
	l.making.Lock()
	defer l.making.Unlock()
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

func (l *lazySignIn) Authorize(ctx context.Context, h http.Header) error {
	if l.authorizer.Load() == nil && l.owner.isKnownEmpty() {
		return nil
	}
	if a, err := l.openSignIn(false); a != nil && err == nil { // without a store the server is asked without credentials
		return a.Authorize(ctx, h)
	}
	return nil
}

func (l *lazySignIn) Refused(ctx context.Context, status int, c *messages.Challenge, used http.Header) (bool, error) {
	a, err := l.openSignIn(false)
	if err != nil {
		l.owner.cfg.Logger.Warn("the store of sign-ins cannot be opened", zap.String("server", l.name), zap.Error(err))
		a = nil
	}
	if a == nil {
		return false, nil // the server's own words say what it wants
	}
	return a.Refused(ctx, status, c, used)
}

func (l *lazySignIn) Login(ctx context.Context, p oauth.Prompt) (oauth.Status, error) {
	a, err := l.openSignIn(true)
	if err != nil {
		return oauth.Status{}, err
	}
	return a.Login(ctx, p)
}

func (l *lazySignIn) Logout(ctx context.Context) (bool, error) {
	a, err := l.openSignIn(true)
	if err != nil {
		return false, err
	}
	return a.Logout(ctx)
}

func (l *lazySignIn) Forget(ctx context.Context) (bool, error) {
	a, err := l.openSignIn(true)
	if err != nil {
		return false, err
	}
	return a.Forget(ctx)
}

func (l *lazySignIn) Account() string {
	if a := l.authorizer.Load(); a != nil {
		return a.Account()
	}
	return ""
}

func (l *lazySignIn) Status(ctx context.Context) (oauth.Status, error) {
	if a, err := l.openSignIn(false); a != nil || err != nil {
		if err != nil {
			return oauth.Status{}, err
		}
		return a.Status(ctx)
	}
	return oauth.Status{}, nil
}

func (l *lazySignIn) Close(ctx context.Context) error {
	if a := l.authorizer.Load(); a != nil {
		return a.Close(ctx)
	}
	return nil
}

// Changed waits for a sign-in, be it the first on this machine.
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
