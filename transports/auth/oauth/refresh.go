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

// renewToken replaces the token of seen, by its refresh token or, for a grant without a person, from nothing. Afterwards a
// newer record is held, or there is an error.
func (a *Authorizer) renewToken(ctx context.Context, seen *loadedSignIn) error {
	if !seen.canRenew() && a.cfg.Grant.needsPerson() {
		return a.authNeededError(nil, "the sign-in to "+a.label+" has ended")
	}
	if err := a.backoffError(); err != nil {
		return err
	}
	return a.runShared(ctx, func(ctx context.Context) error {
		if cur := a.currentSignIn(); cur != seen && cur != nil && cur.Access != seen.Access && !cur.hasEnded(a.now()) {
			return nil // the flight before this one brought it
		}
		if err := a.backoffError(); err != nil {
			return err
		}
		err := a.refreshToken(ctx, seen)
		a.noteAttempt(err)
		return err
	})
}

func (a *Authorizer) refreshToken(ctx context.Context, seen *loadedSignIn) error {
	var refused error
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
					_ = a.cfg.Store.Put(ctx, a.key, current) // nothing has happened
				}
				return nil, err
			}
			// What was refused once will be refused again: the next sign-in puts something else in its place. Nothing is
			// removed: a person may want to look at it.
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
		_, _ = a.reloadSignIn(ctx) // if it fails, what is held stays
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
	case next.hasEnded(a.now()) && !next.canRenew():
		return a.authNeededError(nil, "the sign-in to "+a.label+" has ended")
	}
	return nil
}

// storeIntent writes down that a refresh token is about to be spent. If this process dies before the outcome is stored,
// the next one knows that the refresh token may be spent, and works with the access token to its end before it tries:
// authorization servers that see a spent refresh token revoke the access token with it.
//
// The version is that of what is stored now, zero if nothing was.
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

// exchangeToken gets a new access token into r.
//
// 2026-07-28, Token Audience Binding: "MCP clients MUST include the resource parameter in authorization and token
// requests".
func (a *Authorizer) exchangeToken(ctx context.Context, r *storedSignIn) error {
	if r.canRenew() {
		t, err := a.requestToken(ctx, r.Client, r.TokenURL, r.Issuer, url.Values{
			"grant_type": {"refresh_token"}, "refresh_token": {r.Refresh}, "resource": {r.Resource},
		})
		if err == nil {
			granted := r.Granted
			r.takeToken(t, a.now(), r.Requested)
			if _, hasScope := t.Extra("scope").(string); !hasScope {
				r.Granted = granted // RFC 6749, 6: "if omitted is treated as equal to the scope originally granted"
			}
			return nil
		}
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

// endedError is a refusal of the token endpoint as the error of a request.
func (a *Authorizer) endedError(err error) error {
	e := a.authNeededError(nil, "the sign-in to "+a.label+" has ended")
	var own *transports.Error
	if asError(err, &own) {
		e.Text += ": " + own.Text
		e.Err = own.Err
	}
	return e
}

// storedVersion is the version that a Once must find: of what is stored, not of what could not be.
func (a *Authorizer) storedVersion(seen *loadedSignIn) auth.Version {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unsaved != nil && seen.version == auth.VersionOf(a.unsaved) {
		return a.unsavedReplaces
	}
	return seen.version
}

func (a *Authorizer) dropCurrent() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.current, a.unsaved = nil, nil
}

// storeTime bounds the storing of a sign-in, the waiting for a refresh by another process included.
const storeTime = 2 * time.Minute

// runExclusive runs a sign-in with a person under a lock of its own: one person is asked once, whatever the number of
// processes.
func (a *Authorizer) runExclusive(ctx context.Context, work func() (*loadedSignIn, error)) (*loadedSignIn, error) {
	unlock, err := a.cfg.Locks.Lock(ctx, a.key+" sign-in")
	if err != nil {
		return nil, a.storeError(ctx, err)
	}
	defer unlock()
	return work()
}

// acquireToken gets a token from nothing and stores it. more are scopes to ask for on top.
func (a *Authorizer) acquireToken(ctx context.Context, challenge *messages.Challenge, more []string, handler redirectHandler,
	confirm Confirm) (*loadedSignIn, error) {
	var old storedSignIn
	if cur := a.currentSignIn(); cur != nil {
		old = cur.storedSignIn
	}
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
	var before []string
	if old.Issuer == p.issuer {
		before = unionScopes(old.Requested, old.Wanted)
	}
	s.scopes = unionScopes(requestedScopes(a.cfg.Scopes, challenge, p, before), more)
	if a.cfg.Grant.needsPerson() {
		s.scopes = withOffline(s.scopes, p)
	}
	if s.client.Kind == kindRegistered && old.Clients[p.issuer] != s.client {
		// A sign-in that is not finished shall not cost another registration.
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
	// The new token is stored, also if the caller has given up: the old one is spent.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	return a.updateStored(ctx, func(r *storedSignIn) error {
		r.Resource, r.Issuer, r.Client = p.resource, p.issuer, s.client
		r.TokenURL, r.RevokeURL = p.server.TokenEndpoint, p.server.RevocationEndpoint
		r.Refresh, r.Who, r.Wanted = "", "", nil
		r.Account = accountOf(rand.Text())
		r.rememberClient(p.issuer, s.client)
		r.takeToken(t, a.now(), s.scopes)
		return nil
	})
}

// dropUnknownClient forgets a registration that the authorization server does not know any more, so that the next sign-in makes
// another one.
func (a *Authorizer) dropUnknownClient(ctx context.Context, p *authTarget, c client, err error) error {
	if code := grantCode(err); c.Kind == kindRegistered && (code == "invalid_client" || code == "unauthorized_client") {
		_, _ = a.updateStored(ctx, func(r *storedSignIn) error { // the refusal matters more
			r.Clients = maps.Clone(r.Clients)
			delete(r.Clients, p.issuer)
			return nil
		})
	}
	return err
}

// rememberClient keeps client credentials by issuer.
//
// 2026-07-28, Authorization Server Binding: clients "MUST associate those credentials with the specific authorization
// server that issued them, keyed by the authorization server's issuer identifier."
func (r *storedSignIn) rememberClient(issuer string, c client) {
	if c.Kind == kindMetadata {
		return // portable: its id is a URL of ours
	}
	clients := maps.Clone(r.Clients)
	if clients == nil {
		clients = map[string]client{}
	}
	maps.DeleteFunc(clients, func(_ string, old client) bool { // configured ones belong to one
		return c.Kind == kindConfigured && old.Kind == kindConfigured && old.ID == c.ID
	})
	clients[issuer] = c
	r.Clients = clients
}

// knownIssuers are those that credentials exist for, the one of the last sign-in first.
func knownIssuers(r *storedSignIn) []string {
	all := slices.Sorted(maps.Keys(r.Clients))
	if r.Issuer != "" {
		all = append([]string{r.Issuer}, all...)
	}
	return all
}
