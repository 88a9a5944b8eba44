package oauth

import (
	"context"
	"errors"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// peek returns the record that is held now, nil if none was found yet.
func (a *Authorizer) peek() *held {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.current
}

// load returns the record that is held, or the stored one if none is: a sign-in by another process is found within lookPeriod by any
// request, and at once by one that is refused.
func (a *Authorizer) load(ctx context.Context) (*held, error) {
	a.mu.Lock()
	cur, recent := a.current, a.now().Sub(a.looked) < lookPeriod
	a.mu.Unlock()
	if cur != nil && cur.Access != "" || recent {
		return cur, nil
	}
	return a.reload(ctx)
}

// lookPeriod is how often a server that wants no sign-in costs a look into the store.
const lookPeriod = 2 * time.Second

// reload reads what is stored. A record that could not be stored yet is newer, unless another process has stored another
// one since.
func (a *Authorizer) reload(ctx context.Context) (*held, error) {
	raw, err := a.cfg.Store.Get(ctx, a.key)
	if err != nil && !errors.Is(err, auth.ErrNotFound) {
		return nil, a.storeError(ctx, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unsaved != nil && auth.VersionOf(raw) == a.over {
		return a.current, nil
	}
	a.unsaved = nil
	h, err := a.hold(raw)
	if err == nil {
		a.looked = a.now()
	}
	return h, err
}

// hold makes raw the current record. a.mu is held.
func (a *Authorizer) hold(raw []byte) (*held, error) {
	if len(raw) == 0 {
		a.current = nil
		return nil, nil
	}
	if a.current != nil && a.current.version == auth.VersionOf(raw) {
		return a.current, nil // its due time is drawn once
	}
	next, err := a.decode(raw)
	if err != nil {
		a.current = nil
		return nil, err
	}
	a.current = next
	return next, nil
}

// update changes the stored record under its lock, and holds the outcome. change may run more than once; its error is
// returned. A record that cannot be read is begun anew.
func (a *Authorizer) update(ctx context.Context, change func(r *record) error) (*held, error) {
	for range 10 {
		raw, err := a.cfg.Store.Get(ctx, a.key)
		if err != nil && !errors.Is(err, auth.ErrNotFound) {
			return nil, a.storeError(ctx, err)
		}
		ours := false
		stored, err := a.once(ctx, auth.VersionOf(raw), nil, func(_ context.Context, current []byte) ([]byte, error) {
			r := record{URL: a.url.String()}
			if len(current) > 0 {
				if h, err := a.decode(current); err == nil {
					r = h.record
					r.URL = a.url.String()
				}
			}
			if err := change(&r); err != nil {
				return nil, err
			}
			ours = true
			return r.encode(), nil
		})
		switch {
		case errors.Is(err, auth.ErrNotFound) || err == nil && !ours:
			continue // another goroutine was faster; it is our turn all the same
		case err != nil:
			return nil, err
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.hold(stored)
	}
	return nil, &transports.Error{Class: messages.ClassNetwork,
		Text: "the stored sign-in of " + a.label + " changes all the time"}
}

// once is auth's Once with what happens when the new record cannot be stored: it is held in memory, and stored by the
// next call. The refresh token of what is stored may be spent, and giving up the new one would be a sign-out. over, if
// it is not nil, is the version of what do has stored itself.
func (a *Authorizer) once(ctx context.Context, have auth.Version, over *auth.Version,
	do func(ctx context.Context, current []byte) ([]byte, error)) ([]byte, error) {
	var next []byte // guarded by a.mu: Once goes on by itself when ctx ends
	stored, err := a.refresher.Once(ctx, a.key, have, func(ctx context.Context, current []byte) ([]byte, error) {
		a.mu.Lock()
		if a.unsaved != nil && a.over == auth.VersionOf(current) {
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
	if over != nil && *over != (auth.Version{}) {
		have = *over
	}
	a.unsaved, a.over, a.settles = next, have, a.now().Add(settleAfter)
	return next, nil
}

// settleAfter is the pause before another attempt to store what could not be stored.
const settleAfter = 10 * time.Second

// settle tries to store what could not be stored.
func (a *Authorizer) settle(ctx context.Context) {
	a.mu.Lock()
	owing := a.unsaved != nil && a.running == nil && !a.now().Before(a.settles)
	a.mu.Unlock()
	if owing {
		_ = a.share(ctx, func(ctx context.Context) error {
			_, err := a.update(ctx, func(*record) error { return nil })
			return err
		})
	}
}

// Changed waits until a usable token is stored that is not the one held: a person has signed in, in whatever process.
// It looks every two seconds, and returns an error when ctx ends. It is for a server that is needs-auth.
func (a *Authorizer) Changed(ctx context.Context) error {
	var refused string
	if cur := a.peek(); cur != nil {
		refused = cur.Access
	}
	for {
		var have auth.Version
		if cur := a.peek(); cur != nil {
			have = cur.version
		}
		raw, err := a.refresher.Changed(ctx, a.key, have)
		if err != nil {
			return a.storeError(ctx, err)
		}
		h, err := a.decode(raw)
		if err == nil && h.Access != "" && h.Access != refused && (!h.ended(a.now()) || h.worthRenewing()) {
			_, err = a.reload(ctx)
			return err
		}
		_, _ = a.reload(ctx) // an error is waited out, as by the store's own Changed
		select {
		case <-time.After(lookPeriod):
		case <-ctx.Done():
		}
	}
}

// worthRenewing reports a token that has ended and was good for a while. One that ended as soon as it was given out says
// that the next will: two processes that tell each other of theirs would go on for ever.
func (r *record) worthRenewing() bool {
	return r.renewable() && (r.Expires.IsZero() || r.Expires.Sub(r.Obtained) >= freshFor)
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
