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

// lazily is the sign-in of a server whose spec does not ask for one. The store is opened when there may be something in
// it, or when somebody signs in.
type lazily struct {
	owner *credentials
	name  string
	spec  Spec

	making sync.Mutex
	made   atomic.Pointer[oauth.Authorizer]
}

// there is the sign-in, nil if nothing can be stored and force is not set, or if there is no store.
func (l *lazily) there(force bool) (*oauth.Authorizer, error) {
	if a := l.made.Load(); a != nil {
		return a, nil
	}
	if !force && !l.owner.worthOpening() {
		return nil, nil
	}
	l.making.Lock()
	defer l.making.Unlock()
	if a := l.made.Load(); a != nil {
		return a, nil
	}
	a, err := l.owner.oauth(l.name, &l.spec)
	if err != nil {
		return nil, err
	}
	l.made.Store(a)
	return a, nil
}

func (l *lazily) Authorize(ctx context.Context, h http.Header) error {
	if l.made.Load() == nil && l.owner.nothingLately() {
		return nil
	}
	if a, err := l.there(false); a != nil && err == nil { // without a store the server is asked without credentials
		return a.Authorize(ctx, h)
	}
	return nil
}

func (l *lazily) Refused(ctx context.Context, status int, c *messages.Challenge, used http.Header) (bool, error) {
	a, err := l.there(false)
	if err != nil {
		l.owner.cfg.Logger.Warn("the store of sign-ins cannot be opened", zap.String("server", l.name), zap.Error(err))
		a = nil
	}
	if a == nil {
		return false, nil // the server's own words say what it wants
	}
	return a.Refused(ctx, status, c, used)
}

func (l *lazily) Login(ctx context.Context, p oauth.Prompt) (oauth.Status, error) {
	a, err := l.there(true)
	if err != nil {
		return oauth.Status{}, err
	}
	return a.Login(ctx, p)
}

func (l *lazily) Logout(ctx context.Context) (bool, error) {
	a, err := l.there(true)
	if err != nil {
		return false, err
	}
	return a.Logout(ctx)
}

func (l *lazily) Forget(ctx context.Context) (bool, error) {
	a, err := l.there(true)
	if err != nil {
		return false, err
	}
	return a.Forget(ctx)
}

func (l *lazily) Account() string {
	if a := l.made.Load(); a != nil {
		return a.Account()
	}
	return ""
}

func (l *lazily) Status(ctx context.Context) (oauth.Status, error) {
	if a, err := l.there(false); a != nil || err != nil {
		if err != nil {
			return oauth.Status{}, err
		}
		return a.Status(ctx)
	}
	return oauth.Status{}, nil
}

func (l *lazily) Close(ctx context.Context) error {
	if a := l.made.Load(); a != nil {
		return a.Close(ctx)
	}
	return nil
}

// Changed waits for a sign-in, be it the first on this machine.
func (l *lazily) Changed(ctx context.Context) error {
	t := time.NewTicker(2 * time.Second)
	defer t.Stop()
	for {
		if a, err := l.there(false); a != nil && err == nil {
			return a.Changed(ctx)
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
