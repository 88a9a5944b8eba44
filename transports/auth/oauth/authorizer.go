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
type Authorizer struct {
	cfg       Config
	url       *url.URL // canonical
	label     string   // the server's host, for people
	key       string
	transport *guardedTransport
	refresher *auth.Refresher

	mu              sync.Mutex
	current         *loadedSignIn
	lookedAt        time.Time    // into the store
	unsaved         []byte       // the record that could not be stored, newer than the stored one
	unsavedReplaces auth.Version // the version that unsaved is to replace
	storeRetryAt    time.Time    // when to try again
	call            *sharedCall
	backoff         backoff
	autoSignIns     []time.Time // sign-ins that refusals began
}

var _ transports.Authorizer = (*Authorizer)(nil)

func (a *Authorizer) now() time.Time          { return time.Now() }
func (a *Authorizer) randomFraction() float64 { return rand.Float64() }

// loginCommand is the command line that signs in.
func (a *Authorizer) loginCommand() string {
	if !a.cfg.Grant.needsPerson() {
		return "check the client credentials"
	}
	return "run: mcpvisor login " + messages.Line(a.cfg.Server, 100)
}

// Authorize implements transports.Authorizer. Without a sign-in it adds nothing: the server says what it wants. A token
// whose time to be refreshed has come is refreshed by the first request that sees it; requests beside that go on with
// the old one while it lasts.
func (a *Authorizer) Authorize(ctx context.Context, h http.Header) error {
	cur, err := a.loadSignIn(ctx)
	if err != nil {
		return err
	}
	if cur == nil || cur.Access == "" {
		return nil
	}
	a.retryStore(ctx)
	now := a.now()
	ended := cur.hasEnded(now)
	if ended || !cur.refreshAt.IsZero() && !now.Before(cur.refreshAt) {
		if ended || !a.isCallRunning() {
			err = a.renewToken(ctx, cur)
		}
		if ended && a.cfg.Interactive != nil && !isTransient(err) && a.currentSignIn().isUnusable(a.now()) {
			err = a.signInAgain(ctx, nil)
		}
		switch next := a.currentSignIn(); {
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

// Refused implements transports.Authorizer.
//
// 401: another process may have a newer token; else the token is refreshed, if it is older than a minute; else a grant
// without a person gets a new one, or Config.Interactive asks for one. 403 insufficient_scope: what the server asks for
// is remembered for the next sign-in, and asked for at once by a grant without a person, or by Config.Interactive.
func (a *Authorizer) Refused(ctx context.Context, status int, challenge *messages.Challenge, used http.Header) (
	bool, error) {
	sent := strings.TrimPrefix(used.Get("Authorization"), "Bearer ")
	cur, err := a.reloadSignIn(ctx)
	if err != nil {
		return false, err
	}
	newer := func() bool {
		next := a.currentSignIn()
		return next != nil && next.Access != "" && next.Access != sent && !next.hasEnded(a.now())
	}
	if newer() {
		return true, nil
	}
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

// freshFor is the age below which a refused token is not refreshed: the same would come out.
const freshFor = time.Minute

// isFresh reports a token in its first minute, or in the first half of a shorter life.
func (r *storedSignIn) isFresh(now time.Time) bool {
	d := freshFor
	if !r.Expires.IsZero() {
		d = min(d, r.Expires.Sub(r.Obtained)/2)
	}
	return now.Sub(r.Obtained) < d
}

// stepUp answers a 403.
//
// 2026-07-28, Step-Up Authorization Flow: "Retry the original request with the new authorization no more than a few
// times and treat this as a permanent authorization failure". "Clients SHOULD implement retry limits".
func (a *Authorizer) stepUp(ctx context.Context, cur *loadedSignIn, challenge *messages.Challenge, newer func() bool) (
	bool, error) {
	if cur == nil || challenge == nil {
		return false, nil
	}
	want := scopesOf(challenge.Scope)
	missing := missingScopes(want, cur.Granted)
	if len(missing) == 0 {
		return false, nil // it has all that it asks for: no sign-in gives more
	}
	if len(missingScopes(missing, cur.Wanted)) > 0 {
		_, _ = a.updateStored(ctx, func(r *storedSignIn) error { // a note that cannot be written does not change the answer
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

// maxWanted bounds what a server may make us remember.
const maxWanted = 50

// signInAgain gets a token from nothing, without Login, if that is possible.
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
		before := a.currentSignIn()
		work := func() (*loadedSignIn, error) {
			now, err := a.reloadSignIn(ctx)
			if handler != nil && err == nil && now != nil && !now.hasEnded(a.now()) &&
				(before == nil || before.Access != now.Access) {
				return now, nil // a person has signed in while this process waited for its turn
			}
			return a.acquireToken(ctx, challenge, nil, handler, a.cfg.Confirm)
		}
		var err error
		if handler == nil {
			_, err = work()
		} else {
			_, err = a.runExclusive(ctx, work)
		}
		a.noteAttempt(err)
		return err
	})
}

// The bound of sign-ins that refusals begin.
const (
	maxAutoSignIns   = 3
	autoSignInWindow = 5 * time.Minute
)

func (a *Authorizer) maySignIn() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	for len(a.autoSignIns) > 0 && now.Sub(a.autoSignIns[0]) >= autoSignInWindow {
		a.autoSignIns = a.autoSignIns[1:]
	}
	if len(a.autoSignIns) >= maxAutoSignIns {
		return false
	}
	a.autoSignIns = append(a.autoSignIns, now)
	return true
}

// authNeededError is the error that makes a server needs-auth.
func (a *Authorizer) authNeededError(challenge *messages.Challenge, text string) *transports.Error {
	if challenge == nil {
		challenge = &messages.Challenge{Scheme: "Bearer", Text: text}
	}
	return &transports.Error{
		Class: messages.ClassUnauthorized, Status: http.StatusUnauthorized, Challenge: challenge,
		Text: text, Fix: a.loginCommand(),
	}
}

// signInError turns the failure of a sign-in into the error of a request: what the moment may cure stays what it is, the
// rest needs a person.
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

// isTransient reports an error that says nothing about the sign-in.
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

func classOf(err error) messages.Class {
	var own *transports.Error
	if asError(err, &own) && own.Class != messages.ClassNone {
		return own.Class
	}
	return messages.ClassOf(err)
}

func asError(err error, e **transports.Error) bool { return errors.As(err, e) }
