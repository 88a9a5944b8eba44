package oauth

import (
	"context"
	"errors"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// currentSignIn returns the record that is held now, nil if none was found yet.
func (a *Authorizer) currentSignIn() *loadedSignIn {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.current
}

// loadSignIn returns the record that is held, or the stored one if none is: a sign-in by another process is found within storePollPeriod by any
// request, and at once by one that is refused.
func (a *Authorizer) loadSignIn(ctx context.Context) (*loadedSignIn, error) {
	a.mu.Lock()
	cur, recent := a.current, a.now().Sub(a.lookedAt) < storePollPeriod
	a.mu.Unlock()
	if cur != nil && cur.Access != "" || recent {
		return cur, nil
	}
	return a.reloadSignIn(ctx)
}

// storePollPeriod is how often a server that wants no sign-in costs a look into the store.
const storePollPeriod = 2 * time.Second

// reloadSignIn reads what is stored. A record that could not be stored yet is newer, unless another process has stored another
// one since.
func (a *Authorizer) reloadSignIn(ctx context.Context) (*loadedSignIn, error) {
	raw, err := a.cfg.Store.Get(ctx, a.key)
	if err != nil && !errors.Is(err, auth.ErrNotFound) {
		return nil, a.storeError(ctx, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unsaved != nil && auth.VersionOf(raw) == a.unsavedReplaces {
		return a.current, nil
	}
	a.unsaved = nil
	h, err := a.setCurrent(raw)
	if err == nil {
		a.lookedAt = a.now()
	}
	return h, err
}

// setCurrent makes raw the current record. a.mu is held.
func (a *Authorizer) setCurrent(raw []byte) (*loadedSignIn, error) {
	if len(raw) == 0 {
		a.current = nil
		return nil, nil
	}
	if a.current != nil && a.current.version == auth.VersionOf(raw) {
		return a.current, nil // its due time is drawn once
	}
	next, err := a.decodeStored(raw)
	if err != nil {
		a.current = nil
		return nil, err
	}
	a.current = next
	return next, nil
}

// updateStored changes the stored record under its lock, and holds the outcome. change may run more than once; its error is
// returned. A record that cannot be read is begun anew.
func (a *Authorizer) updateStored(ctx context.Context, change func(r *storedSignIn) error) (*loadedSignIn, error) {
	for range 10 {
		raw, err := a.cfg.Store.Get(ctx, a.key)
		if err != nil && !errors.Is(err, auth.ErrNotFound) {
			return nil, a.storeError(ctx, err)
		}
		changed := false
		stored, err := a.replaceStored(ctx, auth.VersionOf(raw), nil, func(_ context.Context, current []byte) ([]byte, error) {
			r := storedSignIn{URL: a.url.String()}
			if len(current) > 0 {
				if h, err := a.decodeStored(current); err == nil {
					r = h.storedSignIn
					r.URL = a.url.String()
				}
			}
			if err := change(&r); err != nil {
				return nil, err
			}
			changed = true
			return r.encodeJSON(), nil
		})
		switch {
		case errors.Is(err, auth.ErrNotFound) || err == nil && !changed:
			continue // another goroutine was faster; it is our turn all the same
		case err != nil:
			return nil, err
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.setCurrent(stored)
	}
	return nil, &transports.Error{Class: messages.ClassNetwork,
		Text: "the stored sign-in of " + a.label + " changes all the time"}
}

// replaceStored is auth's Once with what happens when the new record cannot be stored: it is held in memory, and stored by the
// next call. The refresh token of what is stored may be spent, and giving up the new one would be a sign-out. over, if
// it is not nil, is the version of what do has stored itself.
func (a *Authorizer) replaceStored(ctx context.Context, have auth.Version, announced *auth.Version,
	do func(ctx context.Context, current []byte) ([]byte, error)) ([]byte, error) {
	var next []byte // guarded by a.mu: Once goes on by itself when ctx ends
	stored, err := a.refresher.Once(ctx, a.key, have, func(ctx context.Context, current []byte) ([]byte, error) {
		a.mu.Lock()
		if a.unsaved != nil && a.unsavedReplaces == auth.VersionOf(current) {
			current = a.unsaved
		}
		a.mu.Unlock()
		made, err := do(ctx, current)
		a.mu.Lock()
		next = made
		a.mu.Unlock()
		return made, err
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil:
		a.unsaved = nil
		return stored, nil
	case next == nil || errors.Is(err, auth.ErrNotFound):
		return nil, err
	}
	if announced != nil && *announced != (auth.Version{}) {
		have = *announced
	}
	a.unsaved, a.unsavedReplaces, a.storeRetryAt = next, have, a.now().Add(storeRetryDelay)
	return next, nil
}

// storeRetryDelay is the pause before another attempt to store what could not be stored.
const storeRetryDelay = 10 * time.Second

// retryStore tries to store what could not be stored.
func (a *Authorizer) retryStore(ctx context.Context) {
	a.mu.Lock()
	owing := a.unsaved != nil && a.call == nil && !a.now().Before(a.storeRetryAt)
	a.mu.Unlock()
	if owing {
		_ = a.runShared(ctx, func(ctx context.Context) error {
			_, err := a.updateStored(ctx, func(*storedSignIn) error { return nil })
			return err
		})
	}
}

// Changed waits until a usable token is stored that is not the one held: a person has signed in, in whatever process.
// It looks every two seconds, and returns an error when ctx ends. It is for a server that is needs-auth.
func (a *Authorizer) Changed(ctx context.Context) error {
	var refused string
	if cur := a.currentSignIn(); cur != nil {
		refused = cur.Access
	}
	for {
		var have auth.Version
		if cur := a.currentSignIn(); cur != nil {
			have = cur.version
		}
		raw, err := a.refresher.Changed(ctx, a.key, have)
		if err != nil {
			return a.storeError(ctx, err)
		}
		h, err := a.decodeStored(raw)
		if err == nil && h.Access != "" && h.Access != refused && (!h.hasEnded(a.now()) || h.worthRenewing()) {
			_, err = a.reloadSignIn(ctx)
			return err
		}
		_, _ = a.reloadSignIn(ctx) // an error is waited out, as by the store's own Changed
		select {
		case <-time.After(storePollPeriod):
		case <-ctx.Done():
		}
	}
}

// worthRenewing reports a token that has ended and was good for a while. One that ended as soon as it was given out says
// that the next will: two processes that tell each other of theirs would go on for ever.
func (r *storedSignIn) worthRenewing() bool {
	return r.canRenew() && (r.Expires.IsZero() || r.Expires.Sub(r.Obtained) >= freshFor)
}

// storeError translates an error of the store.
func (a *Authorizer) storeError(ctx context.Context, err error) error {
	var own *transports.Error
	switch {
	case asError(err, &own):
		return own
	case ctx.Err() != nil:
		return &transports.Error{Class: messages.ClassOf(ctx.Err()), Err: ctx.Err(),
			Text: "the stored sign-in of " + a.label + " could not be read in time"}
	}
	return &transports.Error{Class: messages.ClassNetwork, Text: "the stored sign-in of " + a.label + " cannot be had"}
}
