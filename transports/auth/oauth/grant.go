package oauth

import (
	"context"
	"net/url"
	"strings"

	"github.com/golang-jwt/jwt/v5"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// Grant is a way to get tokens: AuthorizationCode, ClientCredentials, TokenExchange, JWTBearer or Enterprise. All but
// the first work without a person: an Authorizer uses them by itself when the server asks for authorization.
type Grant interface {
	// check says what the configuration lacks, empty for nothing.
	check(cfg Config) string
	// person reports that a person has to sign in.
	person() bool
	// secret names what of ours goes to the authorization server and would be good elsewhere, in words; empty for nothing.
	secret() string
	// endpoints are those that the configuration names.
	endpoints() []string
	// obtain gets a token.
	obtain(ctx context.Context, a *Authorizer, s *signIn) (*oauth2.Token, error)
}

// signIn is one attempt to get a token from nothing.
type signIn struct {
	place    *place
	client   client
	scopes   []string
	redirect string
	courier  courier
	confirm  Confirm // nil if there is no person
}

// with adds the resource and the scopes to the parameters of a token request.
func (s *signIn) with(params url.Values) url.Values {
	params.Set("resource", s.place.resource)
	if len(s.scopes) > 0 {
		params.Set("scope", strings.Join(s.scopes, " "))
	}
	return params
}

const (
	grantJWTBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	tokenAccess    = "urn:ietf:params:oauth:token-type:access_token"
)

// ClientCredentials is for programs that act for themselves (extension
// io.modelcontextprotocol/oauth-client-credentials): Config.ClientID with ClientSecret or Key.
type ClientCredentials struct{}

func (ClientCredentials) check(cfg Config) string {
	if cfg.ClientID == "" || cfg.ClientSecret == "" && cfg.Key == nil {
		return "client credentials need a clientId and a client secret or a client key"
	}
	return ""
}

func (ClientCredentials) person() bool        { return false }
func (ClientCredentials) secret() string      { return "" }
func (ClientCredentials) endpoints() []string { return nil }

func (ClientCredentials) obtain(ctx context.Context, a *Authorizer, s *signIn) (*oauth2.Token, error) {
	return a.token(ctx, s.client, s.place.server.TokenEndpoint, s.place.issuer,
		s.with(url.Values{"grant_type": {"client_credentials"}}))
}

// Source gives a token or an assertion whenever one is needed, from a file, a metadata service or a command. It is
// called again for every new access token, and must return when ctx ends. What it returns is never stored.
type Source func(ctx context.Context) (string, error)

func (s Source) get(ctx context.Context, what string) (string, error) {
	v, err := s(ctx)
	if own := (*transports.Error)(nil); asError(err, &own) {
		return "", own
	}
	if v = strings.TrimSpace(v); err != nil || v == "" {
		// The error's text is not ours, and may hold the token.
		return "", &transports.Error{Class: messages.ClassUnauthorized, Text: "there is no " + what + " to sign in with"}
	}
	return v, nil
}

// TokenExchange exchanges a token that we have for one that the server takes (RFC 8693).
type TokenExchange struct {
	// Subject gives the token that we have. Required.
	Subject Source
	// SubjectType is its kind; an access token (urn:ietf:params:oauth:token-type:access_token) if empty.
	SubjectType string
	// Audience names the server at the authorization server, where the resource parameter does not do.
	Audience string
}

func (x TokenExchange) check(cfg Config) string {
	if x.Subject == nil || cfg.ClientID == "" {
		return "token exchange needs a clientId and a source of subject tokens"
	}
	return ""
}

func (TokenExchange) person() bool        { return false }
func (TokenExchange) secret() string      { return "the token that is to be exchanged" }
func (TokenExchange) endpoints() []string { return nil }

func (x TokenExchange) obtain(ctx context.Context, a *Authorizer, s *signIn) (*oauth2.Token, error) {
	subject, err := x.Subject.get(ctx, "subject token")
	if err != nil {
		return nil, err
	}
	params := s.with(url.Values{
		"grant_type": {oauthex.GrantTypeTokenExchange}, "subject_token": {subject}, "subject_token_type": {x.SubjectType},
		"requested_token_type": {tokenAccess},
	})
	if x.SubjectType == "" {
		params.Set("subject_token_type", tokenAccess)
	}
	if x.Audience != "" {
		params.Set("audience", x.Audience)
	}
	return a.token(ctx, s.client, s.place.server.TokenEndpoint, s.place.issuer, params)
}

// JWTBearer presents an assertion of an issuer that the authorization server trusts, such as a workload's identity
// (RFC 7523, 2.1).
type JWTBearer struct {
	// Assertion gives the JWT. Required.
	Assertion Source
}

func (j JWTBearer) check(cfg Config) string {
	if j.Assertion == nil || cfg.ClientID == "" {
		return "the JWT bearer grant needs a clientId and a source of assertions"
	}
	return ""
}

func (JWTBearer) person() bool        { return false }
func (JWTBearer) secret() string      { return "the assertion" }
func (JWTBearer) endpoints() []string { return nil }

func (j JWTBearer) obtain(ctx context.Context, a *Authorizer, s *signIn) (*oauth2.Token, error) {
	assertion, err := j.Assertion.get(ctx, "assertion")
	if err != nil {
		return nil, err
	}
	return a.token(ctx, s.client, s.place.server.TokenEndpoint, s.place.issuer,
		s.with(url.Values{"grant_type": {grantJWTBearer}, "assertion": {assertion}}))
}

// Enterprise signs in by a company's identity provider (extension io.modelcontextprotocol/enterprise-managed-
// authorization): an ID token is exchanged there for an identity assertion (ID-JAG), and that at the server's
// authorization server for an access token.
type Enterprise struct {
	// Issuer is the identity provider, and TokenURL its token endpoint if it publishes no metadata.
	Issuer, TokenURL string
	// ClientID and ClientSecret are those of our registration there. ClientID is required.
	ClientID, ClientSecret string
	// IDToken gives the person's ID token. Required.
	IDToken Source
}

func (e Enterprise) check(cfg Config) string {
	if e.IDToken == nil || e.ClientID == "" || e.Issuer == "" || cfg.ClientID == "" {
		return "enterprise-managed authorization needs the identity provider's issuer, a clientId at both, and ID tokens"
	}
	return ""
}

func (Enterprise) person() bool          { return false }
func (Enterprise) secret() string        { return "" } // an identity assertion is for one authorization server
func (e Enterprise) endpoints() []string { return []string{e.Issuer, e.TokenURL} }

// checkAssertion refuses what an identity provider issued in the place of an identity assertion for one authorization
// server: an access token of its own, for one, or an assertion for another. The MCP server has named the authorization
// server, and could use either elsewhere.
//
// Identity Assertion JWT Authorization Grant, 4.3 and 5: issued_token_type is
// "urn:ietf:params:oauth:token-type:id-jag", and aud "the issuer URL of the Authorization Server of the Resource".
func checkAssertion(t *oauth2.Token, issuer, endpoint string) error {
	refuse := func(text string) error {
		return &transports.Error{Class: messages.ClassProtocol,
			Text: "the identity provider " + label(endpoint) + " " + text + "; it was not sent on"}
	}
	if kind, _ := t.Extra("issued_token_type").(string); kind != oauthex.TokenTypeIDJAG {
		return refuse("issues something else than an identity assertion")
	}
	claims, _, err := jwt.NewParser().ParseUnverified(t.AccessToken, jwt.MapClaims{})
	if err != nil {
		return refuse("issues an identity assertion that cannot be read")
	}
	audience, err := claims.Claims.GetAudience()
	if err != nil || len(audience) != 1 || !sameIssuer(audience[0], issuer) {
		return refuse("issues an identity assertion that is not for " + label(issuer))
	}
	return nil
}

func (e Enterprise) obtain(ctx context.Context, a *Authorizer, s *signIn) (*oauth2.Token, error) {
	id, err := e.IDToken.get(ctx, "ID token")
	if err != nil {
		return nil, err
	}
	provider := &place{server: &oauthex.AuthServerMeta{Issuer: e.Issuer, TokenEndpoint: e.TokenURL}, issuer: e.Issuer}
	if e.TokenURL == "" {
		if err := a.web.check(e.Issuer); err != nil {
			return nil, &transports.Error{Class: messages.ClassConfig,
				Text: "the identity provider " + label(e.Issuer) + " " + err.Error()}
		}
		if provider.server, err = a.serverMetadata(ctx, e.Issuer); err != nil {
			return nil, err
		}
		if provider.server == nil {
			return nil, &transports.Error{Class: messages.ClassProtocol,
				Text: "the identity provider " + label(e.Issuer) + " publishes no metadata", Fix: "set its tokenUrl"}
		}
	}
	us := client{ID: e.ClientID, Secret: e.ClientSecret, Method: method(provider, e.ClientSecret != "", false)}
	params := s.with(url.Values{
		"grant_type": {oauthex.GrantTypeTokenExchange}, "subject_token": {id},
		"subject_token_type": {oauthex.TokenTypeIDToken}, "requested_token_type": {oauthex.TokenTypeIDJAG},
		"audience": {s.place.server.Issuer},
	})
	assertion, err := a.request(ctx, us, provider.server.TokenEndpoint, provider.issuer, params)
	if err != nil {
		return nil, err
	}
	if err := checkAssertion(assertion, s.place.server.Issuer, provider.server.TokenEndpoint); err != nil {
		return nil, err
	}
	return a.token(ctx, s.client, s.place.server.TokenEndpoint, s.place.issuer,
		s.with(url.Values{"grant_type": {grantJWTBearer}, "assertion": {assertion.AccessToken}}))
}
