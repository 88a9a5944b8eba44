package oauth

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// Prompt says how to ask a person to sign in. At least one of Open and Show is required.
type Prompt struct {
	// Open shows a URL in the person's browser. Its error ends the sign-in only if there is no Show. nil opens nothing.
	Open func(ctx context.Context, url string) error
	// Show shows the person the address to open. It is called before Open.
	Show func(SignInRequest)
	// Paste reads the text that the person pasted: the address that the browser was sent to, or the code that was shown. It is
	// called again after an unusable text, with the problem, and must return when ctx ends. It may run while the listener waits:
	// the first answer counts. nil reads nothing.
	Paste func(ctx context.Context, problem string) (string, error)
	// NoListen leaves out the listener on this machine, for SSH and containers. Paste is required then.
	NoListen bool
	// Scopes are requested in addition to those that the server asks for.
	Scopes []string
	// Timeout bounds the whole sign-in; 0 means 5 min.
	Timeout time.Duration
	// Confirm asks the person before a client secret, or a secret that a grant sends, goes to an authorization server that the
	// server has named and the configuration does not (Config.Issuer); a yes is remembered. It also asks before a page is opened
	// whose answer would go to another host, if nothing shows that they belong together. nil refuses both, and the error says
	// what to configure.
	Confirm Confirm
	// Challenge is the server's, as its status has it. Without one Login sends the server a request to get it.
	Challenge *messages.Challenge
}

// Login signs in anew, whatever is stored, and stores the outcome; if it fails, the stored sign-in stays. For a grant without a
// person p may be empty. The error is a *transports.Error.
func (a *Authorizer) Login(ctx context.Context, p Prompt) (Status, error) {
	fail := func(text string) (Status, error) {
		return Status{}, &transports.Error{Class: messages.ClassInvalid, Text: text}
	}
	if p.Timeout <= 0 {
		p.Timeout = 5 * time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	var handler redirectHandler
	if a.cfg.Grant.needsPerson() {
		switch {
		case p.Open == nil && p.Show == nil:
			return fail("a sign-in needs a browser or somebody to show an address to")
		case p.NoListen && p.Paste == nil:
			return fail("a sign-in without a listener needs somebody who pastes the answer")
		}
		// The listener is opened later, by redirectURL, when the client and its redirect URL are chosen.
		d := &loginServer{prompt: p, configuredURL: a.cfg.RedirectURL, port: a.cfg.CallbackPort}
		defer d.close()
		handler = d
	}
	// A damaged record, or a store that fails, shows when the outcome is to be stored. A newer program's record will not be replaced,
	// and no person is to sign in for nothing.
	if _, err := a.reloadSignIn(ctx); isNewer(err) {
		return Status{}, err
	}
	challenge := p.Challenge
	if challenge == nil && a.cfg.TokenURL == "" {
		challenge = a.probeChallenge(ctx)
	}
	var h *loadedSignIn
	var err error
	if handler == nil {
		h, err = a.acquireToken(ctx, challenge, p.Scopes, nil, p.Confirm)
	} else {
		h, err = a.runExclusive(ctx, func() (*loadedSignIn, error) { return a.acquireToken(ctx, challenge, p.Scopes, handler, p.Confirm) })
	}
	if err != nil {
		// The time was over: whatever failed last, the reason is that no answer came.
		if ctx.Err() != nil && !isTransient(err) && a.cfg.Grant.needsPerson() {
			err = a.interruptedError(ctx, ctx.Err())
		}
		return Status{}, err
	}
	// A person has acted: earlier failures do not hold up the next requests.
	a.mu.Lock()
	a.backoff, a.autoSignIns = backoff{}, nil
	a.mu.Unlock()
	return a.statusOf(h), nil
}

// probeChallenge sends the server a request without credentials, to get the challenge of its refusal: a ping, or, for a server of
// the version 2024-11-05, the opening of a stream. Without a challenge discovery uses the well-known addresses.
func (a *Authorizer) probeChallenge(ctx context.Context) *messages.Challenge {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	// A streamable HTTP server answers the POST, an HTTP+SSE server the GET.
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		if c := a.challengeBy(ctx, method); c != nil {
			return c
		}
	}
	return nil
}

// challengeBy sends one request and returns the Bearer challenge of a 401, nil for any other outcome.
func (a *Authorizer) challengeBy(ctx context.Context, method string) *messages.Challenge {
	var body io.Reader
	if method == http.MethodPost {
		body = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	}
	ctx = context.WithValue(ctx, serverProbeKey{}, true)
	req, err := http.NewRequestWithContext(ctx, method, a.url.String(), body)
	if err != nil {
		return nil
	}
	req.Header.Set("Accept", "text/event-stream")
	if body != nil {
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", "mcpvisor")
	resp, err := a.transport.newClient().Do(req)
	if err != nil {
		return nil
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		return nil
	}
	all, err := oauthex.ParseWWWAuthenticate(resp.Header.Values("Www-Authenticate"))
	if err != nil {
		return nil
	}
	for _, c := range all {
		if c.Scheme == "bearer" {
			return &messages.Challenge{Scheme: "Bearer", Scope: messages.Line(c.Params["scope"], 2000),
				ResourceMetadata: messages.Line(c.Params["resource_metadata"], 2000)}
		}
	}
	return nil
}

// Logout removes the stored sign-in, and asks the authorization server to revoke it, if it has an endpoint for that. revoked says
// whether it did. Registered client credentials are removed as well; the binding of configured ones to their authorization server
// stays: see [Authorizer.Forget]. An error is one of the store, or about a sign-in that a newer program stored, which stays.
func (a *Authorizer) Logout(ctx context.Context) (revoked bool, err error) {
	return a.signOut(ctx, false)
}

// Forget does what Logout does, and also removes the binding of configured credentials, so that a person is asked anew.
func (a *Authorizer) Forget(ctx context.Context) (revoked bool, err error) {
	return a.signOut(ctx, true)
}

// signOut removes the record first and revokes then, because a revocation that hangs must not keep the token in use. The
// revocation needs no lock: the record is gone, and a sign-in that another process begins meanwhile gets another token.
func (a *Authorizer) signOut(ctx context.Context, all bool) (revoked bool, err error) {
	removed, err := a.removeSignIn(ctx, all)
	if removed == nil || err != nil {
		return false, err
	}
	return a.revokeToken(ctx, removed), nil
}

// removeSignIn takes the sign-in out of the store, under the lock of the record, and returns it; nil if it could not be read.
// The bindings of configured clients stay unless all is set.
func (a *Authorizer) removeSignIn(ctx context.Context, all bool) (*storedSignIn, error) {
	unlock, err := a.cfg.Locks.Lock(ctx, a.key)
	if err != nil {
		return nil, a.storeError(ctx, err)
	}
	defer unlock()
	raw, err := a.cfg.Store.Get(ctx, a.key)
	if err != nil && !errors.Is(err, auth.ErrNotFound) {
		return nil, a.storeError(ctx, err)
	}
	// A damaged record is deleted all the same; there is then no token to revoke. What a newer program stored, it must revoke.
	h, unreadable := a.decodeStored(raw)
	if isNewer(unreadable) {
		return nil, unreadable
	}
	var configured map[string]client
	if unreadable == nil && !all {
		configured = h.configuredClients()
	}
	// The bindings of configured clients stay, in a record without a token.
	if len(configured) > 0 {
		remaining := storedSignIn{URL: a.url.String(), Clients: configured}
		err = a.cfg.Store.Put(ctx, a.key, remaining.encodeJSON())
	} else {
		err = a.cfg.Store.Delete(ctx, a.key)
	}
	if err != nil {
		return nil, a.storeError(ctx, err)
	}
	a.dropCurrent()
	if unreadable != nil {
		return nil, nil
	}
	return &h.storedSignIn, nil
}

// revokeToken asks the authorization server to end the grant (RFC 7009), and reports whether it has. It makes one attempt.
func (a *Authorizer) revokeToken(ctx context.Context, r *storedSignIn) bool {
	token, hint := r.Refresh, "refresh_token"
	// Without a refresh token the access token itself is revoked.
	if token == "" {
		token, hint = r.Access, "access_token"
	}
	// Revocation with a signed assertion is not supported.
	if token == "" || r.RevokeURL == "" || r.Client.Method == methodKey {
		return false
	}
	form := url.Values{"token": {token}, "token_type_hint": {hint}}
	if r.Client.Method != methodBasic {
		form.Set("client_id", r.Client.ID)
		if s := a.secretOf(r.Client); s != "" && r.Client.Method == methodPost {
			form.Set("client_secret", s)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.RevokeURL, strings.NewReader(form.Encode()))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if r.Client.Method == methodBasic {
		// RFC 6749, 2.3.1: both values are form-encoded before they go into the header.
		req.SetBasicAuth(url.QueryEscape(r.Client.ID), url.QueryEscape(a.secretOf(r.Client)))
	}
	resp, err := a.transport.newClient().Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// Status describes a sign-in for people and programs. It holds no secret.
type Status struct {
	// SignedIn is true if there is a token that is good or can be refreshed.
	SignedIn bool `json:"signedIn"`
	// Who is the person, if the authorization server named one.
	Who string `json:"who,omitempty"`
	// Issuer is the authorization server. Resource is the server that the token is for.
	Issuer   string `json:"issuer,omitempty"`
	Resource string `json:"resource,omitempty"`
	// Scopes were granted. Wanted are those that the server has asked for since; the next sign-in requests them.
	Scopes []string `json:"scopes,omitempty"`
	Wanted []string `json:"wanted,omitempty"`
	// Expires is the end of the access token, zero if the authorization server did not say. Renewable is true if it is refreshed
	// without a person.
	Expires   time.Time `json:"expires,omitzero"`
	Renewable bool      `json:"renewable"`
	// Refused is true if the authorization server has refused to refresh it.
	Refused bool `json:"refused,omitempty"`
	// Client is the kind of client credentials: "configured", "metadata" (the id is Config.ClientMetadataURL) or "registered".
	Client string `json:"client,omitempty"`
	// Where names the place of the stored sign-in, for people.
	Where string `json:"where"`
	// Unsaved is true if the newest token could not be stored, and is only in memory.
	Unsaved bool `json:"unsaved,omitempty"`
}

// Status reads the store. It sends nothing.
func (a *Authorizer) Status(ctx context.Context) (Status, error) {
	h, err := a.reloadSignIn(ctx)
	if err != nil {
		return Status{Where: a.cfg.Store.Where()}, err
	}
	return a.statusOf(h), nil
}

// statusOf describes a record, nil for none.
func (a *Authorizer) statusOf(h *loadedSignIn) Status {
	s := Status{Where: a.cfg.Store.Where()}
	if h == nil || h.Access == "" {
		return s
	}
	a.mu.Lock()
	s.Unsaved = a.unsaved != nil
	a.mu.Unlock()
	s.Renewable = h.canRenew() || !a.cfg.Grant.needsPerson()
	// A grant without a person can always get a token again.
	s.SignedIn = s.Renewable || !h.hasEnded(a.now())
	s.Who, s.Resource = h.Who, h.Resource
	s.Issuer = strings.TrimPrefix(h.Issuer, configuredIssuer)
	s.Scopes, s.Wanted, s.Expires, s.Refused, s.Client = h.Granted, h.Wanted, h.Expires, h.Spent, h.Client.Kind
	return s
}
