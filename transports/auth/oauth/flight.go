package oauth

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// flight is work that everybody who needs it waits for: a refresh, or a sign-in. It belongs to the Authorizer and not
// to the request that began it: a request that is given up must not lose a token that was bought.
type flight struct {
	done chan struct{}
	err  error
}

// patience bounds a flight: a lock, several exchanges, and a person.
const patience = 10 * time.Minute

// share runs work in a goroutine of its own, or waits for what runs already. It returns when that has ended, with its
// error, or when ctx has.
func (a *Authorizer) share(ctx context.Context, work func(context.Context) error) error {
	a.mu.Lock()
	f := a.running
	if f == nil {
		f = &flight{done: make(chan struct{})}
		a.running = f
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		go func() {
			defer cancel()
			defer func() {
				if p := recover(); p != nil {
					f.err = &transports.Error{Class: messages.ClassPanic,
						Text: fmt.Sprintf("the sign-in to %s failed by a mistake of ours (%T)", a.label, p)}
				}
				a.mu.Lock()
				a.running = nil
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

// busy reports that a flight is under way.
func (a *Authorizer) busy() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.running != nil
}

// Close waits until a refresh or a sign-in that is under way has been stored, or ctx has ended. The Authorizer can
// still be used.
func (a *Authorizer) Close(ctx context.Context) error {
	a.mu.Lock()
	f := a.running
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

// pause keeps a token endpoint that cannot answer from being asked by every request.
type pause struct {
	fails int
	until time.Time
	err   error
}

// The pauses double from pauseFirst to pauseMost, each with up to a fifth less.
const (
	pauseFirst = time.Second
	pauseMost  = time.Minute
)

// pausing is the error of the last attempt while it is too soon for another one.
func (a *Authorizer) pausing() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now().Before(a.pause.until) {
		return a.pause.err
	}
	return nil
}

// rest takes note of how an attempt ended.
func (a *Authorizer) rest(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil || !transient(err) && a.cfg.Grant.person() {
		a.pause = pause{} // after a refusal a person is waited for
		return
	}
	wait := min(pauseFirst<<min(a.pause.fails, 10), pauseMost)
	wait -= time.Duration(a.random() * float64(wait/5))
	var own *transports.Error
	if asError(err, &own) && own.RetryAfter > wait {
		wait = own.RetryAfter
	}
	a.pause = pause{fails: a.pause.fails + 1, until: a.now().Add(wait), err: err}
}
