package auth

import (
	"bytes"
	"context"
	"errors"
)

// Refresher replaces secrets that are spent by being used, such as refresh tokens, exactly once among all processes
// that share its store and its locks.
type Refresher struct {
	store Store
	locks *Locks
}

// NewRefresher makes a Refresher.
func NewRefresher(store Store, locks *Locks) *Refresher {
	return &Refresher{store: store, locks: locks}
}

// Once replaces the secret of a key that the caller has seen in version have (the zero Version: nothing). It takes the
// key's lock and reads the store again. If that holds another version, somebody was faster, and Once returns it: whoever
// waits adopts. Otherwise do makes the next secret from the current one (nil: there is none), and Once returns it after
// it is stored. An error of do is returned as it is and leaves what is stored.
//
// If something was seen and nothing is stored any more, somebody has signed out: the error is ErrNotFound, and do does
// not run.
func (r *Refresher) Once(ctx context.Context, key string, have Version,
	do func(ctx context.Context, current []byte) (next []byte, err error)) ([]byte, error) {
	unlock, err := r.locks.Lock(ctx, key)
	if err != nil {
		return nil, err
	}
	defer unlock()
	current, err := r.store.Get(ctx, key)
	switch {
	case errors.Is(err, ErrNotFound) && have == Version{}:
		current = nil
	case err != nil:
		return nil, err
	case VersionOf(current) != have:
		return current, nil
	}
	next, err := do(ctx, bytes.Clone(current))
	if err != nil {
		return nil, err
	}
	if err := r.store.Put(ctx, key, next); err != nil {
		return nil, err
	}
	return next, nil
}
