package oauth

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// renewToken replaces the token of seen, by its refresh token or, for a grant without a person, from nothing. Either there is a
// newer record afterwards, or it returns an error. Concurrent callers share one exchange.
func (a *Authorizer) renewToken(ctx context.Context, seen *loadedSignIn) error {
	// There is no refresh token, or the server has refused it for good.
	if !seen.canRenew() && a.cfg.Grant.needsPerson() {
		return a.authNeededError(nil, "the sign-in to "+a.label+" has ended")
	}
	if err := a.backoffError(); err != nil {
		return err
	}
	return a.runShared(ctx, func(ctx context.Context) error {
		if cur := a.currentSignIn(); cur != seen && cur != nil && cur.Access != seen.Access && !cur.hasEnded(a.now()) {
			// The shared call before this one has brought it.
			return nil
		}
		// That call may just as well have failed.
		if err := a.backoffError(); err != nil {
			return err
		}
		err := a.refreshToken(ctx, seen)
		a.noteAttempt(err)
		return err
	})
}

// refreshToken makes one exchange under the lock of the record, in steps that a crash can interrupt:
//
//	store Trying ─> ask the token endpoint ─> store the new token, or Spent
//
// seen is the record that the caller found due; if another process has stored a newer one, nothing is exchanged.
func (a *Authorizer) refreshToken(ctx context.Context, seen *loadedSignIn) error {
	var refused error
	// do runs in Once's goroutine: a.mu guards announced, and refused is read only after do has ended.
	var announced auth.Version
	raw, err := a.replaceStored(ctx, a.storedVersion(seen), &announced, func(ctx context.Context, current []byte) ([]byte, error) {
		refused = nil
		h, err := a.decodeStored(current)
		if err != nil {
			return nil, err
		}
		r := h.storedSignIn
		if !r.canRenew() && a.cfg.Grant.needsPerson() {
			return nil, a.authNeededError(nil, "the sign-in to "+a.label+" has ended")
		}
		// From here on a crash leaves the note in the store.
		version, err := a.storeIntent(ctx, r)
		if err != nil {
			return nil, err
		}
		a.mu.Lock()
		announced = version
		a.mu.Unlock()
		if err := a.exchangeToken(ctx, &r); err != nil {
			if grantCode(err) == "" {
				if !isAnswerLost(err) && r.canRenew() {
					// The server has not seen the request, so that the note of storeIntent is taken back.
					_ = a.cfg.Store.Put(ctx, a.key, current)
				}
				return nil, err
			}
			// A token that was refused once will be refused again, until a sign-in replaces it. Nothing is removed, because a
			// person may want to look at it.
			r.Spent = true
			if code := grantCode(err); code == "invalid_client" || code == "unauthorized_client" {
				r.Clients = maps.Clone(r.Clients)
				if r.Clients[r.Issuer].Kind == kindRegistered {
					delete(r.Clients, r.Issuer) // the registration is gone
				}
			}
			refused = a.endedError(err)
		}
		return r.encodeJSON(), nil
	})
	if err != nil {
		if errors.Is(err, auth.ErrNotFound) {
			a.dropCurrent()
			return a.authNeededError(nil, "somebody has signed out of "+a.label)
		}
		_, _ = a.reloadSignIn(ctx) // if this fails, the current record stays
		return a.storeError(ctx, err)
	}
	a.mu.Lock()
	next, err := a.setCurrent(raw)
	a.mu.Unlock()
	switch {
	case refused != nil:
		return refused
	case err != nil:
		return err
	// The server has issued a token that is over at once; only a person can change that.
	case next.hasEnded(a.now()) && !next.canRenew():
		return a.authNeededError(nil, "the sign-in to "+a.label+" has ended")
	}
	return nil
}

// storeIntent notes in the store that a refresh token is about to be spent. If this process dies before the outcome is stored,
// the next one knows that the refresh token may be spent, and works with the access token to its end before it tries:
// authorization servers that see a spent refresh token revoke the access token with it.
//
// It returns the version of the note, zero if there is no refresh token and nothing was stored.
func (a *Authorizer) storeIntent(ctx context.Context, r storedSignIn) (auth.Version, error) {
	if !r.canRenew() {
		return auth.Version{}, nil
	}
	r.Trying = a.now()
	raw := r.encodeJSON()
	if err := a.cfg.Store.Put(ctx, a.key, raw); err != nil {
		return auth.Version{}, a.storeError(ctx, err)
	}
	return auth.VersionOf(raw), nil
}

// exchangeToken gets a new access token into r: by the refresh token, or else by the grant, if that needs no person.
//
// 2026-07-28, Token Audience Binding: "MCP clients MUST include the resource parameter in authorization and token requests".
func (a *Authorizer) exchangeToken(ctx context.Context, r *storedSignIn) error {
	if r.canRenew() {
		t, err := a.requestToken(ctx, r.Client, r.TokenURL, r.Issuer, url.Values{
			"grant_type": {"refresh_token"}, "refresh_token": {r.Refresh}, "resource": {r.Resource},
		})
		if err == nil {
			granted := r.Granted
			r.takeToken(t, a.now(), r.Requested)
			if _, hasScope := t.Extra("scope").(string); !hasScope {
				// RFC 6749, 6: "if omitted is treated as equal to the scope originally granted".
				r.Granted = granted
			}
			return nil
		}
		// A grant without a person has another way if the refresh token was refused.
		if a.cfg.Grant.needsPerson() || grantCode(err) == "" {
			return err
		}
	}
	p := &authTarget{resource: r.Resource, issuer: r.Issuer,
		server: &oauthex.AuthServerMeta{Issuer: assertionAudience(r.Issuer, r.TokenURL), TokenEndpoint: r.TokenURL}}
	t, err := a.cfg.Grant.obtainToken(ctx, a, &signInAttempt{target: p, client: r.Client, scopes: r.Requested})
	if err != nil {
		return err
	}
	r.Refresh = ""
	r.takeToken(t, a.now(), r.Requested)
	return nil
}

// endedError turns a refusal of the token endpoint into the error of a request.
func (a *Authorizer) endedError(err error) error {
	e := a.authNeededError(nil, "the sign-in to "+a.label+" has ended")
	var own *transports.Error
	if asError(err, &own) {
		e.Text += ": " + own.Text
		e.Err = own.Err
	}
	return e
}

// storedVersion returns the version that Once must find in the store. For an unsaved record that is the version it is to replace.
func (a *Authorizer) storedVersion(seen *loadedSignIn) auth.Version {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unsaved != nil && seen.version == auth.VersionOf(a.unsaved) {
		return a.unsavedReplaces
	}
	return seen.version
}

// dropCurrent forgets the sign-in, which was deleted from the store.
func (a *Authorizer) dropCurrent() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.current, a.unsaved = nil, nil
}

// storeTime bounds the storing of a sign-in, with the wait for another process's refresh.
const storeTime = 2 * time.Minute

// runExclusive runs a sign-in with a person under a lock of its own, so that one person is asked once, whatever the number of
// processes. The record's lock stays free meanwhile, so that other processes can refresh.
func (a *Authorizer) runExclusive(ctx context.Context, work func() (*loadedSignIn, error)) (*loadedSignIn, error) {
	unlock, err := a.cfg.Locks.Lock(ctx, a.key+" sign-in")
	if err != nil {
		return nil, a.storeError(ctx, err)
	}
	defer unlock()
	return work()
}

// acquireToken gets a token from nothing and stores it. more are scopes to request in addition; handler is nil for a grant
// without a person, and confirm is nil if no person can be asked.
func (a *Authorizer) acquireToken(ctx context.Context, challenge *messages.Challenge, more []string, handler redirectHandler,
	confirm Confirm) (*loadedSignIn, error) {
	var old storedSignIn
	if cur := a.currentSignIn(); cur != nil {
		old = cur.storedSignIn
	}
	// Issuers with credentials are preferred, so that a server with several does not make the person register anew.
	p, err := a.discoverTarget(ctx, challenge, knownIssuers(&old))
	if err != nil {
		return nil, err
	}
	s := &signInAttempt{target: p, handler: handler, confirm: confirm}
	var redirect func(string) (string, error)
	if handler != nil {
		redirect = handler.redirectURL
	}
	if s.client, s.redirect, err = a.chooseClient(ctx, p, old.Clients, redirect); err != nil {
		return nil, err
	}
	// Scopes of another authorization server mean nothing to this one.
	var before []string
	if old.Issuer == p.issuer {
		before = unionScopes(old.Requested, old.Wanted)
	}
	s.scopes = unionScopes(requestedScopes(a.cfg.Scopes, challenge, p, before), more)
	if a.cfg.Grant.needsPerson() {
		s.scopes = withOffline(s.scopes, p)
	}
	if s.client.Kind == kindRegistered && old.Clients[p.issuer] != s.client {
		// The registration is stored at once: a sign-in that is not finished must not cost another registration.
		if _, err := a.updateStored(ctx, func(r *storedSignIn) error { r.rememberClient(p.issuer, s.client); return nil }); err != nil {
			return nil, err
		}
	}
	if err := a.confirmBinding(ctx, s, old.Clients); err != nil {
		return nil, err
	}
	t, err := a.cfg.Grant.obtainToken(ctx, a, s)
	if err != nil {
		return nil, a.dropUnknownClient(ctx, p, s.client, err)
	}
	// The new token is stored also if the caller has given up, because the old one may be invalid by now.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	return a.updateStored(ctx, func(r *storedSignIn) error {
		r.Resource, r.Issuer, r.Client = p.resource, p.issuer, s.client
		r.TokenURL, r.RevokeURL = p.server.TokenEndpoint, p.server.RevocationEndpoint
		// A new sign-in may be another person's; takeToken replaces the random account if the server names a subject.
		r.Refresh, r.Who, r.Wanted = "", "", nil
		r.Account = accountOf(rand.Text())
		r.rememberClient(p.issuer, s.client)
		r.takeToken(t, a.now(), s.scopes)
		return nil
	})
}

// dropUnknownClient forgets a registration that the authorization server does not know any more, so that the next sign-in makes
// another one. It returns err.
func (a *Authorizer) dropUnknownClient(ctx context.Context, p *authTarget, c client, err error) error {
	if code := grantCode(err); c.Kind == kindRegistered && (code == "invalid_client" || code == "unauthorized_client") {
		_, _ = a.updateStored(ctx, func(r *storedSignIn) error { // an error here matters less than the refusal
			r.Clients = maps.Clone(r.Clients)
			delete(r.Clients, p.issuer)
			return nil
		})
	}
	return err
}

// rememberClient keeps client credentials by issuer.
//
// 2026-07-28, Authorization Server Binding: clients "MUST associate those credentials with the specific authorization server that
// issued them, keyed by the authorization server's issuer identifier."
func (r *storedSignIn) rememberClient(issuer string, c client) {
	if c.Kind == kindMetadata {
		// A metadata document's id is valid at every authorization server.
		return
	}
	clients := maps.Clone(r.Clients)
	if clients == nil {
		clients = map[string]client{}
	}
	// Configured credentials belong to one authorization server.
	maps.DeleteFunc(clients, func(_ string, old client) bool {
		return c.Kind == kindConfigured && old.Kind == kindConfigured && old.ID == c.ID
	})
	clients[issuer] = c
	r.Clients = clients
}

// knownIssuers returns the issuers that there are credentials for, the one of the last sign-in first.
func knownIssuers(r *storedSignIn) []string {
	all := slices.Sorted(maps.Keys(r.Clients))
	if r.Issuer != "" {
		all = append([]string{r.Issuer}, all...)
	}
	return all
}
