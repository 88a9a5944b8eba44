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

// renew replaces the token of seen, by its refresh token or, for a grant without a person, from nothing. Afterwards a
// newer record is held, or there is an error.
func (a *Authorizer) renew(ctx context.Context, seen *held) error {
	if !seen.renewable() && a.cfg.Grant.person() {
		return a.needed(nil, "the sign-in to "+a.label+" has ended")
	}
	if err := a.pausing(); err != nil {
		return err
	}
	return a.share(ctx, func(ctx context.Context) error {
		if cur := a.peek(); cur != seen && cur != nil && cur.Access != seen.Access && !cur.ended(a.now()) {
			return nil // the flight before this one brought it
		}
		if err := a.pausing(); err != nil {
			return err
		}
		err := a.refresh(ctx, seen)
		a.rest(err)
		return err
	})
}

func (a *Authorizer) refresh(ctx context.Context, seen *held) error {
	var refused error
	var announced auth.Version
	raw, err := a.once(ctx, a.storedVersion(seen), &announced, func(ctx context.Context, current []byte) ([]byte, error) {
		refused = nil
		h, err := a.decode(current)
		if err != nil {
			return nil, err
		}
		r := h.record
		if !r.renewable() && a.cfg.Grant.person() {
			return nil, a.needed(nil, "the sign-in to "+a.label+" has ended")
		}
		version, err := a.announce(ctx, r)
		if err != nil {
			return nil, err
		}
		a.mu.Lock()
		announced = version
		a.mu.Unlock()
		if err := a.exchange(ctx, &r); err != nil {
			if grantCode(err) == "" {
				if !lost(err) && r.renewable() {
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
			refused = a.ended(err)
		}
		return r.encode(), nil
	})
	if err != nil {
		if errors.Is(err, auth.ErrNotFound) {
			a.forget()
			return a.needed(nil, "somebody has signed out of "+a.label)
		}
		_, _ = a.reload(ctx) // if it fails, what is held stays
		return a.storeError(ctx, err)
	}
	a.mu.Lock()
	next, err := a.hold(raw)
	a.mu.Unlock()
	switch {
	case refused != nil:
		return refused
	case err != nil:
		return err
	case next.ended(a.now()) && !next.renewable():
		return a.needed(nil, "the sign-in to "+a.label+" has ended")
	}
	return nil
}

// announce writes down that a refresh token is about to be spent. If this process dies before the outcome is stored,
// the next one knows that the refresh token may be spent, and works with the access token to its end before it tries:
// authorization servers that see a spent refresh token revoke the access token with it.
//
// The version is that of what is stored now, zero if nothing was.
func (a *Authorizer) announce(ctx context.Context, r record) (auth.Version, error) {
	if !r.renewable() {
		return auth.Version{}, nil
	}
	r.Trying = a.now()
	raw := r.encode()
	if err := a.cfg.Store.Put(ctx, a.key, raw); err != nil {
		return auth.Version{}, a.storeError(ctx, err)
	}
	return auth.VersionOf(raw), nil
}

// exchange gets a new access token into r.
//
// 2026-07-28, Token Audience Binding: "MCP clients MUST include the resource parameter in authorization and token
// requests".
func (a *Authorizer) exchange(ctx context.Context, r *record) error {
	if r.renewable() {
		t, err := a.token(ctx, r.Client, r.TokenURL, r.Issuer, url.Values{
			"grant_type": {"refresh_token"}, "refresh_token": {r.Refresh}, "resource": {r.Resource},
		})
		if err == nil {
			granted := r.Granted
			r.take(t, a.now(), r.Requested)
			if _, told := t.Extra("scope").(string); !told {
				r.Granted = granted // RFC 6749, 6: "if omitted is treated as equal to the scope originally granted"
			}
			return nil
		}
		if a.cfg.Grant.person() || grantCode(err) == "" {
			return err
		}
	}
	p := &place{resource: r.Resource, issuer: r.Issuer,
		server: &oauthex.AuthServerMeta{Issuer: audience(r.Issuer, r.TokenURL), TokenEndpoint: r.TokenURL}}
	t, err := a.cfg.Grant.obtain(ctx, a, &signIn{place: p, client: r.Client, scopes: r.Requested})
	if err != nil {
		return err
	}
	r.Refresh = ""
	r.take(t, a.now(), r.Requested)
	return nil
}

// ended is a refusal of the token endpoint as the error of a request.
func (a *Authorizer) ended(err error) error {
	e := a.needed(nil, "the sign-in to "+a.label+" has ended")
	var own *transports.Error
	if asError(err, &own) {
		e.Text += ": " + own.Text
		e.Err = own.Err
	}
	return e
}

// storedVersion is the version that a Once must find: of what is stored, not of what could not be.
func (a *Authorizer) storedVersion(seen *held) auth.Version {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unsaved != nil && seen.version == auth.VersionOf(a.unsaved) {
		return a.over
	}
	return seen.version
}

func (a *Authorizer) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.current, a.unsaved = nil, nil
}

// storeTime bounds the storing of a sign-in, the waiting for a refresh by another process included.
const storeTime = 2 * time.Minute

// alone runs a sign-in with a person under a lock of its own: one person is asked once, whatever the number of
// processes.
func (a *Authorizer) alone(ctx context.Context, work func() (*held, error)) (*held, error) {
	unlock, err := a.cfg.Locks.Lock(ctx, a.key+" sign-in")
	if err != nil {
		return nil, a.storeError(ctx, err)
	}
	defer unlock()
	return work()
}

// acquire gets a token from nothing and stores it. more are scopes to ask for on top.
func (a *Authorizer) acquire(ctx context.Context, challenge *messages.Challenge, more []string, by courier,
	confirm Confirm) (*held, error) {
	var old record
	if cur := a.peek(); cur != nil {
		old = cur.record
	}
	p, err := a.discover(ctx, challenge, issuers(&old))
	if err != nil {
		return nil, err
	}
	s := &signIn{place: p, courier: by, confirm: confirm}
	var redirect func(string) (string, error)
	if by != nil {
		redirect = by.redirect
	}
	if s.client, s.redirect, err = a.identify(ctx, p, old.Clients, redirect); err != nil {
		return nil, err
	}
	var before []string
	if old.Issuer == p.issuer {
		before = union(old.Requested, old.Wanted)
	}
	s.scopes = union(askFor(a.cfg.Scopes, challenge, p, before), more)
	if a.cfg.Grant.person() {
		s.scopes = offline(s.scopes, p)
	}
	if s.client.Kind == kindRegistered && old.Clients[p.issuer] != s.client {
		// A sign-in that is not finished shall not cost another registration.
		if _, err := a.update(ctx, func(r *record) error { r.remember(p.issuer, s.client); return nil }); err != nil {
			return nil, err
		}
	}
	if err := a.bind(ctx, s, old.Clients); err != nil {
		return nil, err
	}
	t, err := a.cfg.Grant.obtain(ctx, a, s)
	if err != nil {
		return nil, a.unknown(ctx, p, s.client, err)
	}
	// The new token is stored, also if the caller has given up: the old one is spent.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	return a.update(ctx, func(r *record) error {
		r.Resource, r.Issuer, r.Client = p.resource, p.issuer, s.client
		r.TokenURL, r.RevokeURL = p.server.TokenEndpoint, p.server.RevocationEndpoint
		r.Refresh, r.Who, r.Wanted = "", "", nil
		r.Account = accountOf(rand.Text())
		r.remember(p.issuer, s.client)
		r.take(t, a.now(), s.scopes)
		return nil
	})
}

// unknown forgets a registration that the authorization server does not know any more, so that the next sign-in makes
// another one.
func (a *Authorizer) unknown(ctx context.Context, p *place, c client, err error) error {
	if code := grantCode(err); c.Kind == kindRegistered && (code == "invalid_client" || code == "unauthorized_client") {
		_, _ = a.update(ctx, func(r *record) error { // the refusal matters more
			r.Clients = maps.Clone(r.Clients)
			delete(r.Clients, p.issuer)
			return nil
		})
	}
	return err
}

// remember keeps client credentials by issuer.
//
// 2026-07-28, Authorization Server Binding: clients "MUST associate those credentials with the specific authorization
// server that issued them, keyed by the authorization server's issuer identifier."
func (r *record) remember(issuer string, c client) {
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

// issuers are those that credentials exist for, the one of the last sign-in first.
func issuers(r *record) []string {
	all := slices.Sorted(maps.Keys(r.Clients))
	if r.Issuer != "" {
		all = append([]string{r.Issuer}, all...)
	}
	return all
}
