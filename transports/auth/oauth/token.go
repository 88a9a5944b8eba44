package oauth

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
	"github.com/mcpvisor/mcpvisor/transports/files"
)

// signInVersion is the form of storedSignIn. It rises with every change of a member.
const signInVersion = 1

// storedSignIn is the record that is stored for one server, as JSON. Processes of other versions of this program read it, too.
type storedSignIn struct {
	Version int `json:"version"` // signInVersion
	// URL is the server that this record is for, with its query.
	URL string `json:"url"`
	// The origin of the token. Endpoints are remembered so that a refresh needs no discovery, and so that a refresh token goes to
	// the endpoint that issued it.
	Resource  string `json:"resource,omitempty"`
	Issuer    string `json:"issuer,omitempty"`
	TokenURL  string `json:"tokenUrl,omitempty"`
	RevokeURL string `json:"revokeUrl,omitempty"`
	Client    client `json:"client,omitzero"`

	Access    string    `json:"access,omitempty"`
	Refresh   string    `json:"refresh,omitempty"`
	Obtained  time.Time `json:"obtained,omitzero"`
	Expires   time.Time `json:"expires,omitzero"`    // zero: the authorization server has not said
	Requested []string  `json:"requested,omitempty"` // scopes
	Granted   []string  `json:"granted,omitempty"`   // scopes, as far as the server said
	Who       string    `json:"who,omitempty"`       // the person, as far as the server said
	// Account tells one person's sign-ins from another's: a digest of the subject that the authorization server named, or a
	// random one for each sign-in if it named none.
	Account string `json:"account,omitempty"`
	// Spent is true when the token endpoint has refused Refresh for good.
	Spent bool `json:"spent,omitempty"`
	// Trying is the start of a refresh whose outcome was not stored: the refresh token may be spent. Zero otherwise.
	Trying time.Time `json:"trying,omitzero"`
	// Wanted are scopes that a refusal asked for and that no sign-in has brought, at most maxWanted.
	Wanted []string `json:"wanted,omitempty"`

	// Clients are the client credentials by issuer, registered ones and configured ones with the issuer they are bound to.
	Clients map[string]client `json:"clients,omitempty"`
}

// storeKey returns the key of a server's record. Keys are not secret, so that the query, which may be, is left out.
func storeKey(server string, at *url.URL) string {
	u := *at
	u.RawQuery = ""
	return "oauth " + server + " " + u.String()
}

// loadedSignIn is a record as it was read, with its version in the store. It is immutable.
type loadedSignIn struct {
	storedSignIn
	version auth.Version
	// refreshAt is the time from which a request refreshes the token; zero: not before the token has ended.
	refreshAt time.Time
}

// decodeStored reads a record. A record of another resource or of another authorization server than the configured one comes back
// without its token: only the clients in it still count. The record of a newer program is an error that wraps a [*files.NewerError].
func (a *Authorizer) decodeStored(raw []byte) (*loadedSignIn, error) {
	h := &loadedSignIn{version: auth.VersionOf(raw)}
	format := files.Format{What: "the stored sign-in of " + a.label, Oldest: signInVersion, Newest: signInVersion}
	if _, err := format.Unmarshal(raw, &h.storedSignIn); err != nil {
		if isNewer(err) {
			return nil, &transports.Error{Class: messages.ClassConfig, Text: err.Error(), Fix: "upgrade mcpvisor", Err: err}
		}
		return nil, &transports.Error{Class: messages.ClassUnauthorized,
			Text: "what is stored for this sign-in cannot be read", Fix: "sign in again: " + a.loginCommand()}
	}
	if h.URL != a.url.String() { // the query differs: another resource
		return &loadedSignIn{version: h.version, storedSignIn: storedSignIn{Version: signInVersion, Clients: h.Clients}}, nil
	}
	if a.isForOtherServer(&h.storedSignIn) {
		return &loadedSignIn{version: h.version, storedSignIn: storedSignIn{Version: signInVersion, URL: h.URL, Clients: h.Clients}}, nil
	}
	// After an interrupted refresh the token is used to its end first: see storeIntent.
	if h.Trying.IsZero() {
		h.refreshAt = a.refreshTime(h.Obtained, h.Expires)
	}
	return h, nil
}

// encodeJSON returns the record as it is stored. It cannot fail, because every field has a plain type.
func (r *storedSignIn) encodeJSON() []byte {
	r.Version = signInVersion
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		panic("oauth: a record of plain fields cannot be encoded: " + err.Error())
	}
	return b.Bytes()
}

// hasEnded reports whether the access token is not worth sending: it ends within the time that a request may be on its way, which
// is 10 s or a tenth of its life.
func (r *storedSignIn) hasEnded(now time.Time) bool {
	if r.Access == "" {
		return true
	}
	if r.Expires.IsZero() {
		return false
	}
	// A tenth keeps tokens that live for seconds usable at all.
	margin := min(10*time.Second, r.Expires.Sub(r.Obtained)/10)
	return !now.Before(r.Expires.Add(-margin))
}

// isUnusable reports whether there is no token, or one that has ended.
func (h *loadedSignIn) isUnusable(now time.Time) bool { return h == nil || h.hasEnded(now) }

// canRenew reports whether the refresh token can bring a new access token without a person.
func (r *storedSignIn) canRenew() bool { return r.Refresh != "" && !r.Spent && r.TokenURL != "" }

// refreshTime returns the time at which a token is to be refreshed: early enough that the old one outlasts an outage of the token
// endpoint, and the death of the process that refreshes, but never in the first half of its life.
func (a *Authorizer) refreshTime(obtained, expires time.Time) time.Time {
	if expires.IsZero() {
		return time.Time{}
	}
	lifetime := expires.Sub(obtained)
	early := a.cfg.Early
	if early <= 0 {
		early = min(max(lifetime/5, 5*time.Second), 5*time.Minute)
	}
	// The random part spreads the refreshes of processes that share a sign-in.
	early += time.Duration(a.randomFraction() * float64(early/2))
	return expires.Add(-min(early, lifetime/2))
}

// takeToken puts the answer of a token endpoint into the record. An answer without a refresh token keeps the old one (RFC 6749,
// 6).
func (r *storedSignIn) takeToken(t *oauth2.Token, now time.Time, requested []string) {
	r.Access, r.Obtained, r.Expires = t.AccessToken, now, t.Expiry
	if t.RefreshToken != "" {
		r.Refresh = t.RefreshToken
	}
	// The new refresh token is neither refused nor in doubt.
	r.Spent, r.Trying = false, time.Time{}
	r.Requested = requested
	// RFC 6749, 5.1: scope is "OPTIONAL, if identical to the scope requested by the client; otherwise, REQUIRED."
	r.Granted = requested
	if scope, ok := t.Extra("scope").(string); ok && scope != "" {
		r.Granted = scopesOf(scope)
	}
	// Only authorization servers that speak OpenID Connect send one.
	if id, ok := t.Extra("id_token").(string); ok {
		// A refresh may come without these claims; the values of the sign-in stay then.
		who, subject := whoIs(id)
		if who != "" {
			r.Who = who
		}
		if subject != "" {
			r.Account = accountOf(r.Issuer, subject)
		}
	}
}

// accountOf returns a digest, because a status and an error need only show that two accounts differ.
func accountOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:12])
}

// Account identifies the account that requests are sent for, as far as it is known; empty while no person is signed in. It is
// neither a name nor a secret. The supervisor ends a session when it changes, because lists in that session may belong to the
// former account alone.
func (a *Authorizer) Account() string {
	switch cur := a.currentSignIn(); {
	case cur == nil || cur.Access == "":
		return ""
	// A program's own account is the client itself.
	case !a.cfg.Grant.needsPerson():
		return accountOf(cur.Issuer, cur.Client.ID)
	case cur.Account == "":
		return "unknown"
	default:
		return cur.Account
	}
}

// whoIs reads the name and the subject of a person out of an ID token. The token comes straight from the token endpoint over TLS,
// so that its signature need not be checked (OpenID Connect Core, 3.1.3.7, 6).
func whoIs(id string) (who, subject string) {
	parts := strings.Split(id, ".")
	// A signed token has a header, a payload and a signature.
	if len(parts) != 3 {
		return "", ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	var claims struct {
		Email    string `json:"email"`
		Username string `json:"preferred_username"`
		Name     string `json:"name"`
		Subject  string `json:"sub"`
	}
	if err != nil || rawjson.Unmarshal(payload, &claims) != nil {
		return "", ""
	}
	for _, s := range []string{claims.Email, claims.Username, claims.Name, claims.Subject} {
		if s != "" {
			return messages.Line(s, 100), claims.Subject
		}
	}
	return "", ""
}
