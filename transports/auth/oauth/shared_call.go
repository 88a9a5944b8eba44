package oauth

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// sharedCall is work that everybody who needs it waits for: a refresh, or a sign-in. It belongs to the Authorizer and not
// to the request that began it: a request that is given up must not lose a token that was bought.
type sharedCall struct {
	done chan struct{}
	err  error
}

// sharedCallTime bounds a flight: a lock, several exchanges, and a person.
const sharedCallTime = 10 * time.Minute

// runShared runs work in a goroutine of its own, or waits for what runs already. It returns when that has ended, with its
// error, or when ctx has.
func (a *Authorizer) runShared(ctx context.Context, work func(context.Context) error) error {
	a.mu.Lock()
	f := a.call
	if f == nil {
		f = &sharedCall{done: make(chan struct{})}
		a.call = f
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sharedCallTime)
		go func() {
			defer cancel()
			defer func() {
				if p := recover(); p != nil {
					f.err = &transports.Error{Class: messages.ClassPanic,
						Text: fmt.Sprintf("the sign-in to %s failed by a mistake of ours (%T)", a.label, p)}
				}
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

// isCallRunning reports that a flight is under way.
func (a *Authorizer) isCallRunning() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.call != nil
}

// Close waits until a refresh or a sign-in that is under way has been stored, or ctx has ended. The Authorizer can
// still be used.
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

// backoff keeps a token endpoint that cannot answer from being asked by every request.
type backoff struct {
	fails int
	until time.Time
	err   error
}

// The pauses double from minBackoff to maxBackoff, each with up to a fifth less.
const (
	minBackoff = time.Second
	maxBackoff = time.Minute
)

// backoffError is the error of the last attempt while it is too soon for another one.
func (a *Authorizer) backoffError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now().Before(a.backoff.until) {
		return a.backoff.err
	}
	return nil
}

// noteAttempt takes note of how an attempt ended.
func (a *Authorizer) noteAttempt(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil || !isTransient(err) && a.cfg.Grant.needsPerson() {
		a.backoff = backoff{} // after a refusal a person is waited for
		return
	}
	wait := min(minBackoff<<min(a.backoff.fails, 10), maxBackoff)
	wait -= time.Duration(a.randomFraction() * float64(wait/5))
	var own *transports.Error
	if asError(err, &own) && own.RetryAfter > wait {
		wait = own.RetryAfter
	}
	a.backoff = backoff{fails: a.backoff.fails + 1, until: a.now().Add(wait), err: err}
}
