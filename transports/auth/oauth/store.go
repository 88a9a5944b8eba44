package oauth

import (
	"context"
	"errors"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
	"github.com/mcpvisor/mcpvisor/transports/files"
)

// currentSignIn returns the record in use, nil if none was found yet. The caller must not write to it.
func (a *Authorizer) currentSignIn() *loadedSignIn {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.current
}

// loadSignIn returns the record in use, or the stored one if there is none with a token. So any request finds a sign-in by
// another process within storePollPeriod, and a request that is refused finds it at once.
func (a *Authorizer) loadSignIn(ctx context.Context) (*loadedSignIn, error) {
	a.mu.Lock()
	cur, recent := a.current, a.now().Sub(a.lookedAt) < storePollPeriod
	a.mu.Unlock()
	// With a token in memory the store is not read: other processes' tokens are found when this one is due or refused.
	if cur != nil && cur.Access != "" || recent {
		return cur, nil
	}
	return a.reloadSignIn(ctx)
}

// storePollPeriod is the least time between two reads of the store for a server without a sign-in, which may need none.
const storePollPeriod = 2 * time.Second

// reloadSignIn reads the store and makes its record the current one. A record that could not be stored yet stays current, unless
// another process has stored another one since.
func (a *Authorizer) reloadSignIn(ctx context.Context) (*loadedSignIn, error) {
	raw, err := a.cfg.Store.Get(ctx, a.key)
	if err != nil && !errors.Is(err, auth.ErrNotFound) {
		return nil, a.storeError(ctx, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unsaved != nil && auth.VersionOf(raw) == a.unsavedReplaces {
		// The store still has the version that unsaved is to replace, so that unsaved is newer.
		return a.current, nil
	}
	// The store has moved on: another process has stored a record that is newer than the unsaved one.
	a.unsaved = nil
	h, err := a.setCurrent(raw)
	if err == nil {
		a.lookedAt = a.now()
	}
	return h, err
}

// setCurrent makes raw the current record, nil if raw is empty. The caller holds a.mu.
func (a *Authorizer) setCurrent(raw []byte) (*loadedSignIn, error) {
	if len(raw) == 0 {
		a.current = nil
		return nil, nil
	}
	if a.current != nil && a.current.version == auth.VersionOf(raw) {
		// The same content keeps its record, whose random refresh time is drawn once.
		return a.current, nil
	}
	next, err := a.decodeStored(raw)
	if err != nil {
		a.current = nil
		return nil, err
	}
	a.current = next
	return next, nil
}

// updateStored changes the stored record under its lock, and makes the outcome current. change may run more than once; its error
// is returned. A damaged record is begun anew.
func (a *Authorizer) updateStored(ctx context.Context, change func(r *storedSignIn) error) (*loadedSignIn, error) {
	// Each round lost means that another process has won, so that ten in a row are very unlikely.
	for range 10 {
		raw, err := a.cfg.Store.Get(ctx, a.key)
		if err != nil && !errors.Is(err, auth.ErrNotFound) {
			// replaceStored calls back only if no other process has changed the record since it was read; else it is read again.
			return nil, a.storeError(ctx, err)
		}
		changed := false
		stored, err := a.replaceStored(ctx, auth.VersionOf(raw), nil, func(_ context.Context, current []byte) ([]byte, error) {
			// A damaged record is replaced, because no code could ever use it; a newer program can use its own.
			r := storedSignIn{URL: a.url.String()}
			if len(current) > 0 {
				h, err := a.decodeStored(current)
				if isNewer(err) {
					return nil, err
				}
				if err == nil {
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
			// Another process was faster, and its record must be changed as well.
			continue
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

// isNewer reports whether an error of decodeStored is about a record that only a newer program knows.
func isNewer(err error) bool {
	var newer *files.NewerError
	return errors.As(err, &newer)
}

// replaceStored calls auth's Once, and keeps a new record in memory that cannot be stored; the next call stores it. That is
// needed because the refresh token in the store may be spent, and giving up the new one would be a sign-out. announced, if it is
// not nil, points to the version that do itself has stored in between.
func (a *Authorizer) replaceStored(ctx context.Context, have auth.Version, announced *auth.Version,
	do func(ctx context.Context, current []byte) ([]byte, error)) ([]byte, error) {
	// a.mu guards next: Once goes on in its own goroutine when ctx ends.
	var next []byte
	stored, err := a.refresher.Once(ctx, a.key, have, func(ctx context.Context, current []byte) ([]byte, error) {
		a.mu.Lock()
		// The unsaved record is the truth; the stored one is only older.
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
	// do has made nothing, or the person has signed out: there is nothing to keep.
	case next == nil || errors.Is(err, auth.ErrNotFound):
		return nil, err
	}
	// do has written a note into the store, so that the version to be replaced is the note's.
	if announced != nil && *announced != (auth.Version{}) {
		have = *announced
	}
	a.unsaved, a.unsavedReplaces, a.storeRetryAt = next, have, a.now().Add(storeRetryDelay)
	return next, nil
}

// storeRetryDelay is the pause before another attempt to store a record that could not be stored.
const storeRetryDelay = 10 * time.Second

// retryStore tries to store the unsaved record, if there is one and the pause is over. Its error is ignored: requests go on from
// memory.
func (a *Authorizer) retryStore(ctx context.Context) {
	a.mu.Lock()
	// A call in progress stores the record itself at its end.
	owing := a.unsaved != nil && a.call == nil && !a.now().Before(a.storeRetryAt)
	a.mu.Unlock()
	if owing {
		_ = a.runShared(ctx, func(ctx context.Context) error {
			_, err := a.updateStored(ctx, func(*storedSignIn) error { return nil })
			return err
		})
	}
}

// Changed waits until the store holds a usable token other than the one in use: a person has signed in, in any process. It looks
// every two seconds, and returns an error when ctx ends. The supervisor calls it for a server in the phase needs-auth.
func (a *Authorizer) Changed(ctx context.Context) error {
	// The token in use at the beginning is the one that the server has refused.
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
		// A sign-out, or a record of another resource, wakes no server.
		h, err := a.decodeStored(raw)
		if err == nil && h.Access != "" && h.Access != refused && (!h.hasEnded(a.now()) || h.worthRenewing()) {
			_, err = a.reloadSignIn(ctx)
			return err
		}
		// An error of the store is waited out, as in the Refresher's own Changed.
		_, _ = a.reloadSignIn(ctx)
		select {
		case <-time.After(storePollPeriod):
		case <-ctx.Done():
		}
	}
}

// worthRenewing reports whether a token has ended that was good for a while. One that ended as soon as it was given out says that
// the next one will: two processes that show each other theirs would go on for ever.
func (r *storedSignIn) worthRenewing() bool {
	return r.canRenew() && (r.Expires.IsZero() || r.Expires.Sub(r.Obtained) >= freshFor)
}

// storeError translates an error of the store. The error of a context keeps its class.
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
