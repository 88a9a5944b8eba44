package oauth

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// Authorizer signs the requests of one server. All methods are safe for concurrent use.
//
// Order of locks: the lock of a sign-in (runExclusive), then the lock of the key in the store (replaceStored), then mu, which is
// held for moments and never during I/O.
type Authorizer struct {
	// cfg, url, label, key, transport and refresher do not change after New.
	cfg   Config
	url   *url.URL // canonical
	label string   // the server's host, for people
	// key is the key of the record in the store.
	key       string
	transport *guardedTransport
	refresher *auth.Refresher

	// mu guards everything below.
	mu sync.Mutex
	// current is the record in use, nil if none is stored. Nothing writes to it; a newer one replaces it.
	current         *loadedSignIn
	lookedAt        time.Time    // when the store was read last
	unsaved         []byte       // the record that could not be stored, newer than the stored one; nil for none
	unsavedReplaces auth.Version // the version that unsaved is to replace
	storeRetryAt    time.Time    // when to try again to store unsaved
	// call is the refresh or sign-in in progress, nil for none.
	call        *sharedCall
	backoff     backoff
	autoSignIns []time.Time // the times of recent sign-ins that refusals began
}

var _ transports.Authorizer = (*Authorizer)(nil)

// Both are methods so that no other code of the package reads the clock or the randomness.
func (a *Authorizer) now() time.Time          { return time.Now() }
func (a *Authorizer) randomFraction() float64 { return rand.Float64() }

// loginCommand returns the advice for a server that needs a sign-in.
func (a *Authorizer) loginCommand() string {
	if !a.cfg.Grant.needsPerson() {
		return "check the client credentials"
	}
	return "run: mcpvisor login " + messages.Line(a.cfg.Server, 100)
}

// Authorize implements transports.Authorizer. Without a sign-in it adds no header, so that the server's refusal says how to sign
// in. When a token is due for its refresh, the first request that sees it refreshes it; other requests go on with the old one
// while that is good.
func (a *Authorizer) Authorize(ctx context.Context, h http.Header) error {
	cur, err := a.loadSignIn(ctx)
	if err != nil {
		return err
	}
	// Many servers need no sign-in, and the others say in their 401 how to get one.
	if cur == nil || cur.Access == "" {
		return nil
	}
	a.retryStore(ctx)
	now := a.now()
	// An ended token must be renewed before the request; one that is only due may still be sent.
	ended := cur.hasEnded(now)
	// A token that is due and still good is refreshed only if no other request does so already.
	if ended || !cur.refreshAt.IsZero() && !now.Before(cur.refreshAt) {
		if ended || !a.isCallRunning() {
			err = a.renewToken(ctx, cur)
		}
		// The refresh has failed for good. A program with Interactive can have the person sign in at once.
		if ended && a.cfg.Interactive != nil && !isTransient(err) && a.currentSignIn().isUnusable(a.now()) {
			err = a.signInAgain(ctx, nil)
		}
		// Whatever happened above, the newest record decides.
		switch next := a.currentSignIn(); {
		// Another goroutine or process may have brought a token even if this one's refresh has failed.
		case !next.isUnusable(a.now()):
			cur = next
		case err != nil:
			return err
		default:
			return a.authNeededError(nil, "the sign-in to "+a.label+" has ended")
		}
	}
	h.Set("Authorization", "Bearer "+cur.Access)
	return nil
}

// Refused implements transports.Authorizer. It returns true if there is another token than the refused one.
//
// After a 401 it first looks for a newer token of another process; else it refreshes the token, if that is older than a minute;
// else a grant without a person gets a new one, or Config.Interactive asks for one. After a 403 insufficient_scope it remembers
// the missing scopes for the next sign-in; a grant without a person, or Config.Interactive, asks for them at once.
func (a *Authorizer) Refused(ctx context.Context, status int, challenge *messages.Challenge, used http.Header) (
	bool, error) {
	// The refused token is taken from the request: the current one may have changed since.
	sent := strings.TrimPrefix(used.Get("Authorization"), "Bearer ")
	// Another process may have renewed the token; reading the store is cheaper than an exchange.
	cur, err := a.reloadSignIn(ctx)
	if err != nil {
		return false, err
	}
	// newer reports whether there is a usable token other than the refused one.
	newer := func() bool {
		next := a.currentSignIn()
		return next != nil && next.Access != "" && next.Access != sent && !next.hasEnded(a.now())
	}
	if newer() {
		return true, nil
	}
	// The token is valid and lacks a right, so that a refresh would not help.
	if status == http.StatusForbidden {
		return a.stepUp(ctx, cur, challenge, newer)
	}
	if cur != nil && cur.canRenew() && !cur.isFresh(a.now()) {
		err := a.renewToken(ctx, cur)
		if newer() {
			return true, nil
		}
		if isTransient(err) {
			return false, err
		}
	}
	if err := a.signInAgain(ctx, challenge); err != nil {
		return false, a.signInError(err, challenge)
	}
	return newer(), nil
}

// freshFor is the age below which a refused token is not refreshed: the refresh would bring one of the same kind.
const freshFor = time.Minute

// isFresh reports whether a token is in its first minute, or in the first half of a shorter life.
func (r *storedSignIn) isFresh(now time.Time) bool {
	d := freshFor
	if !r.Expires.IsZero() {
		d = min(d, r.Expires.Sub(r.Obtained)/2)
	}
	return now.Sub(r.Obtained) < d
}

// stepUp handles a 403. It remembers the scopes that the token lacks, and signs in for them if no person need ask for it.
//
// 2026-07-28, Step-Up Authorization Flow: "Retry the original request with the new authorization no more than a few times and
// treat this as a permanent authorization failure". "Clients SHOULD implement retry limits".
func (a *Authorizer) stepUp(ctx context.Context, cur *loadedSignIn, challenge *messages.Challenge, newer func() bool) (
	bool, error) {
	if cur == nil || challenge == nil {
		return false, nil
	}
	// Only the scopes that the token lacks matter; many servers list all that they know.
	want := scopesOf(challenge.Scope)
	missing := missingScopes(want, cur.Granted)
	if len(missing) == 0 {
		// The token has every scope that the server asks for: no sign-in could give more.
		return false, nil
	}
	if len(missingScopes(missing, cur.Wanted)) > 0 {
		// A note that cannot be written does not change the answer.
		_, _ = a.updateStored(ctx, func(r *storedSignIn) error {
			// A sign-in meanwhile may have brought the scopes; its record is not changed.
			if r.Access == cur.Access {
				r.Wanted = unionScopes(r.Wanted, missing)
				r.Wanted = r.Wanted[:min(len(r.Wanted), maxWanted)]
			}
			return nil
		})
	}
	err := a.signInAgain(ctx, challenge)
	if isTransient(err) {
		return false, err
	}
	return err == nil && newer(), nil
}

// maxWanted bounds the scopes that a server can make this client remember.
const maxWanted = 50

// signInAgain gets a token from nothing, without Login, if the grant needs no person or Config.Interactive is set. All requests
// that need it share one attempt, and after failures attempts keep a distance.
func (a *Authorizer) signInAgain(ctx context.Context, challenge *messages.Challenge) error {
	var handler redirectHandler
	if a.cfg.Grant.needsPerson() {
		if a.cfg.Interactive == nil {
			return a.authNeededError(challenge, a.label+" asks for a sign-in")
		}
		handler = interactiveHandler{url: a.cfg.RedirectURL, interactive: a.cfg.Interactive}
	}
	return a.runShared(ctx, func(ctx context.Context) error {
		if err := a.backoffError(); err != nil {
			return err
		}
		if !a.maySignIn() {
			return a.authNeededError(challenge, a.label+" goes on refusing what the sign-in gives")
		}
		// The record of now is compared with that after the wait for the lock.
		before := a.currentSignIn()
		work := func() (*loadedSignIn, error) {
			now, err := a.reloadSignIn(ctx)
			if handler != nil && err == nil && now != nil && !now.hasEnded(a.now()) &&
				(before == nil || before.Access != now.Access) {
				// A person has signed in while this process waited for its turn.
				return now, nil
			}
			return a.acquireToken(ctx, challenge, nil, handler, a.cfg.Confirm)
		}
		var err error
		// Without a person several processes may sign in at once: each gets a token of its own.
		if handler == nil {
			_, err = work()
		} else {
			_, err = a.runExclusive(ctx, work)
		}
		a.noteAttempt(err)
		return err
	})
}

// The bound of sign-ins that refusals begin: a server that refuses every token must not cause them without an end.
const (
	maxAutoSignIns   = 3
	autoSignInWindow = 5 * time.Minute
)

// maySignIn reports whether another sign-in may begin by itself, and counts it.
func (a *Authorizer) maySignIn() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	// The oldest sign-ins leave the window.
	for len(a.autoSignIns) > 0 && now.Sub(a.autoSignIns[0]) >= autoSignInWindow {
		a.autoSignIns = a.autoSignIns[1:]
	}
	if len(a.autoSignIns) >= maxAutoSignIns {
		return false
	}
	a.autoSignIns = append(a.autoSignIns, now)
	return true
}

// authNeededError is the error that puts a server into the phase needs-auth. Its challenge is never nil, because the status shows
// it.
func (a *Authorizer) authNeededError(challenge *messages.Challenge, text string) *transports.Error {
	// A status without a challenge could not say how to sign in.
	if challenge == nil {
		challenge = &messages.Challenge{Scheme: "Bearer", Text: text}
	}
	return &transports.Error{
		Class: messages.ClassUnauthorized, Status: http.StatusUnauthorized, Challenge: challenge,
		Text: text, Fix: a.loginCommand(),
	}
}

// signInError turns the failure of a sign-in into the error of a request. A failure that may pass stays as it is; any other one
// asks for a person.
func (a *Authorizer) signInError(err error, challenge *messages.Challenge) error {
	if err == nil || isTransient(err) {
		return err
	}
	e := a.authNeededError(challenge, a.label+" asks for a sign-in")
	var own *transports.Error
	if asError(err, &own) {
		e.Text, e.Fix = own.Text, own.Fix
		if e.Fix == "" {
			e.Fix = a.loginCommand()
		}
	}
	return e
}

// isTransient reports whether an error may pass and so says nothing about the sign-in.
func isTransient(err error) bool {
	if err == nil {
		return false
	}
	switch classOf(err) {
	case messages.ClassNetwork, messages.ClassThrottled, messages.ClassTimeout, messages.ClassCanceled,
		messages.ClassExhausted:
		return true
	}
	return false
}

// classOf returns the class of an error of this package or of a context.
func classOf(err error) messages.Class {
	var own *transports.Error
	if asError(err, &own) && own.Class != messages.ClassNone {
		return own.Class
	}
	return messages.ClassOf(err)
}

// asError is errors.As with the one type that this package looks for.
func asError(err error, e **transports.Error) bool { return errors.As(err, e) }
