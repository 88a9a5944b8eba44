package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/pause"
)

// Refresher replaces secrets that are spent by being used, such as refresh tokens, exactly once among all processes that share
// its store and its locks.
type Refresher struct {
	store Store
	locks *Locks
}

// NewRefresher makes a Refresher. The directory of the locks may be that of the encrypted files.
func NewRefresher(store Store, locks *Locks) *Refresher {
	return &Refresher{store: store, locks: locks}
}

// onceLimit bounds one replacement, without the wait for the lock.
const onceLimit = time.Minute

// Once replaces the secret of a key that the caller has seen in version have (the zero Version: nothing). It takes the key's lock
// and reads the store again. If that holds another version, another process was faster, and Once returns that secret. Otherwise
// do makes the next secret from the current one (nil: there is none), and Once returns it after it is stored, so that no request
// uses a secret that a crash could lose. Once returns an error of do as it is, and leaves the store as it was.
//
// If the caller has seen a secret and nothing is stored any more, the person has signed out: the error is ErrNotFound, and do
// does not run.
//
// What Once has begun it completes, within a minute, also if ctx ends meanwhile: a refresh token may be spent by then, and its
// successor must not be thrown away. So do gets a context of its own. Before do runs, Once writes the current secret again, so
// that a store that cannot be written to shows while nothing is spent.
//
//	lock ─> Get ─┬─ another version ──────────────> return it
//	             └─ same: Put it again ─> do ─> Put ─> return the next one
//
// Not covered: a process that is killed between the server's answer and the end of the writing. The store has the old secret
// then, and the server decides whether it takes that again. The same holds if the store refuses the next secret in spite of the
// trial; Once returns the store's error then.
func (r *Refresher) Once(ctx context.Context, key string, have Version,
	do func(ctx context.Context, current []byte) (next []byte, err error)) ([]byte, error) {
	unlock, err := r.locks.Lock(ctx, key)
	if err != nil {
		return nil, err
	}
	// The goroutine goes on after this call has returned, and holds the lock until it is done.
	testStep("once: locked")
	type result struct {
		secret []byte
		err    error
	}
	// The channel has room for the result, so that the goroutine ends also if the caller has gone.
	done := make(chan result, 1)
	go func() {
		var res result
		defer func() {
			if v := recover(); v != nil {
				res = result{err: &transports.Error{Class: messages.ClassPanic,
					Text: "replacing a secret failed: panic: " + messages.Line(fmt.Sprint(v), 200)}}
			}
			// The lock is released first: a caller may ask again as soon as it has the result.
			unlock()
			done <- res
		}()
		// The values of ctx stay; its end does not count any more.
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), onceLimit)
		defer cancel()
		res.secret, res.err = r.replaceSecret(own, key, have, do)
	}()
	select {
	case res := <-done:
		return res.secret, res.err
	case <-ctx.Done():
		return nil, contextError(ctx, "replacing a secret")
	}
}

// replaceSecret does the work of Once. The caller holds the key's lock, and ctx is not the requester's.
func (r *Refresher) replaceSecret(ctx context.Context, key string, have Version,
	do func(ctx context.Context, current []byte) (next []byte, err error)) ([]byte, error) {
	current, err := r.store.Get(ctx, key)
	switch {
	// Nothing was stored and nothing is: do makes the first secret.
	case errors.Is(err, ErrNotFound) && have == Version{}:
		current = nil
	case err != nil:
		return nil, err
	// Another process was faster.
	case VersionOf(current) != have:
		return current, nil
	// This is the trial whether the store can be written to.
	default:
		if err := r.store.Put(ctx, key, current); err != nil {
			return nil, err
		}
	}
	testStep("once: read")
	// do gets a copy, so that a mistake in it cannot change what the store returned.
	next, err := do(ctx, bytes.Clone(current))
	if err != nil {
		return nil, err
	}
	testStep("once: done")
	if err := r.store.Put(ctx, key, next); err != nil {
		return nil, err
	}
	testStep("once: stored")
	return next, nil
}

// Changed waits until the store holds a secret under a key in another version than have, and returns it; a deleted one does not
// count. It looks every two seconds: so a server that needs authorization notices that a person has signed in, in any process. It
// ignores errors of the store and looks again. Its own error is that of ctx.
func (r *Refresher) Changed(ctx context.Context, key string, have Version) ([]byte, error) {
	for {
		if secret, err := r.store.Get(ctx, key); err == nil && VersionOf(secret) != have {
			return secret, nil
		}
		if !pause.For(ctx, awaitPeriod) {
			return nil, contextError(ctx, "waiting for another secret")
		}
	}
}

// testStep marks the points at which tests kill a process, to see what a crash there leaves.
func testStep(name string) {
	if onTestStep != nil {
		onTestStep(name)
	}
}

// onTestStep is set by tests only, before any other goroutine runs.
var onTestStep func(name string)
