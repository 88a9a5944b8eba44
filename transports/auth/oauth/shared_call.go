package oauth

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// sharedCall is a refresh or a sign-in for which all requests wait that need its outcome. It belongs to the Authorizer and not to
// the request that began it, so that a request which is given up loses no token.
type sharedCall struct { // closed when err is set
	done chan struct{}
	err  error
}

// sharedCallTime bounds a call: the wait for a lock, several exchanges, and a person.
const sharedCallTime = 10 * time.Minute

// runShared runs work in a goroutine of its own, or waits for the call that runs already, whatever its work is. It returns when
// that has ended, with its error, or when ctx has. So callers check afterwards whether they have what they need.
func (a *Authorizer) runShared(ctx context.Context, work func(context.Context) error) error {
	a.mu.Lock()
	// The first caller's work serves all: each checks afterwards whether it has what it needs.
	f := a.call
	if f == nil {
		f = &sharedCall{done: make(chan struct{})}
		a.call = f
		// The call keeps the values of the first caller's context, and outlives its end.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sharedCallTime)
		go func() {
			defer cancel()
			defer func() {
				if p := recover(); p != nil {
					f.err = &transports.Error{Class: messages.ClassPanic,
						Text: fmt.Sprintf("the sign-in to %s failed by a mistake of ours (%T)", a.label, p)}
				}
				// The next caller may begin another call before the waiters of this one have run.
				a.mu.Lock()
				a.call = nil
				a.mu.Unlock()
				close(f.done)
			}()
			f.err = work(ctx)
		}()
	}
	a.mu.Unlock()
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return &transports.Error{Class: messages.ClassOf(ctx.Err()), Err: ctx.Err(),
			Text: "the sign-in to " + a.label + " was not ready in time"}
	}
}

// isCallRunning reports whether a refresh or a sign-in is in progress.
func (a *Authorizer) isCallRunning() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.call != nil
}

// Close waits until a refresh or a sign-in in progress has been stored, or until ctx has ended. It stops nothing, and the
// Authorizer can still be used.
func (a *Authorizer) Close(ctx context.Context) error {
	a.mu.Lock()
	f := a.call
	a.mu.Unlock()
	if f == nil {
		return nil
	}
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// backoff keeps requests from asking a token endpoint that cannot answer. a.mu guards it.
type backoff struct {
	// fails counts the failures in a row; until is the end of the pause, and err the failure that requests get meanwhile.
	fails int
	until time.Time
	err   error
}

// The pauses double from minBackoff to maxBackoff, each shortened by up to a fifth at random.
const (
	minBackoff = time.Second
	maxBackoff = time.Minute
)

// backoffError returns the error of the last attempt during the pause after it, nil if another attempt may be made.
func (a *Authorizer) backoffError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now().Before(a.backoff.until) {
		return a.backoff.err
	}
	return nil
}

// noteAttempt begins a pause after a failure, and ends it after a success. A longer Retry-After counts.
func (a *Authorizer) noteAttempt(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil || !isTransient(err) && a.cfg.Grant.needsPerson() {
		a.backoff = backoff{} // a refusal is final: a person has to act
		return
	}
	// The shift is bounded, because a larger one would overflow after hours of failures.
	wait := min(minBackoff<<min(a.backoff.fails, 10), maxBackoff)
	wait -= time.Duration(a.randomFraction() * float64(wait/5))
	var own *transports.Error
	if asError(err, &own) && own.RetryAfter > wait {
		wait = own.RetryAfter
	}
	a.backoff = backoff{fails: a.backoff.fails + 1, until: a.now().Add(wait), err: err}
}
