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
	// checkConfig says what the configuration lacks, empty for nothing.
	checkConfig(cfg Config) string
	// needsPerson reports that a person has to sign in.
	needsPerson() bool
	// sentSecret names what of ours goes to the authorization server and would be good elsewhere, in words; empty for nothing.
	sentSecret() string
	// endpointURLs are those that the configuration names.
	endpointURLs() []string
	// obtainToken gets a token.
	obtainToken(ctx context.Context, a *Authorizer, s *signInAttempt) (*oauth2.Token, error)
}

// signInAttempt is one attempt to get a token from nothing.
type signInAttempt struct {
	target   *authTarget
	client   client
	scopes   []string
	redirect string
	handler  redirectHandler
	confirm  Confirm // nil if there is no person
}

// tokenParams adds the resource and the scopes to the parameters of a token request.
func (s *signInAttempt) tokenParams(params url.Values) url.Values {
	params.Set("resource", s.target.resource)
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

func (ClientCredentials) checkConfig(cfg Config) string {
	if cfg.ClientID == "" || cfg.ClientSecret == "" && cfg.Key == nil {
		return "client credentials need a clientId and a client secret or a client key"
	}
	return ""
}

func (ClientCredentials) needsPerson() bool      { return false }
func (ClientCredentials) sentSecret() string     { return "" }
func (ClientCredentials) endpointURLs() []string { return nil }

func (ClientCredentials) obtainToken(ctx context.Context, a *Authorizer, s *signInAttempt) (*oauth2.Token, error) {
	return a.requestToken(ctx, s.client, s.target.server.TokenEndpoint, s.target.issuer,
		s.tokenParams(url.Values{"grant_type": {"client_credentials"}}))
}

// Source gives a token or an assertion whenever one is needed, from a file, a metadata service or a command. It is
// called again for every new access token, and must return when ctx ends. What it returns is never stored.
type Source func(ctx context.Context) (string, error)

func (s Source) readToken(ctx context.Context, what string) (string, error) {
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

func (x TokenExchange) checkConfig(cfg Config) string {
	if x.Subject == nil || cfg.ClientID == "" {
		return "token exchange needs a clientId and a source of subject tokens"
	}
	return ""
}

func (TokenExchange) needsPerson() bool      { return false }
func (TokenExchange) sentSecret() string     { return "the token that is to be exchanged" }
func (TokenExchange) endpointURLs() []string { return nil }

func (x TokenExchange) obtainToken(ctx context.Context, a *Authorizer, s *signInAttempt) (*oauth2.Token, error) {
	subject, err := x.Subject.readToken(ctx, "subject token")
	if err != nil {
		return nil, err
	}
	params := s.tokenParams(url.Values{
		"grant_type": {oauthex.GrantTypeTokenExchange}, "subject_token": {subject}, "subject_token_type": {x.SubjectType},
		"requested_token_type": {tokenAccess},
	})
	if x.SubjectType == "" {
		params.Set("subject_token_type", tokenAccess)
	}
	if x.Audience != "" {
		params.Set("audience", x.Audience)
	}
	return a.requestToken(ctx, s.client, s.target.server.TokenEndpoint, s.target.issuer, params)
}

// JWTBearer presents an assertion of an issuer that the authorization server trusts, such as a workload's identity
// (RFC 7523, 2.1).
type JWTBearer struct {
	// Assertion gives the JWT. Required.
	Assertion Source
}

func (j JWTBearer) checkConfig(cfg Config) string {
	if j.Assertion == nil || cfg.ClientID == "" {
		return "the JWT bearer grant needs a clientId and a source of assertions"
	}
	return ""
}

func (JWTBearer) needsPerson() bool      { return false }
func (JWTBearer) sentSecret() string     { return "the assertion" }
func (JWTBearer) endpointURLs() []string { return nil }

func (j JWTBearer) obtainToken(ctx context.Context, a *Authorizer, s *signInAttempt) (*oauth2.Token, error) {
	assertion, err := j.Assertion.readToken(ctx, "assertion")
	if err != nil {
		return nil, err
	}
	return a.requestToken(ctx, s.client, s.target.server.TokenEndpoint, s.target.issuer,
		s.tokenParams(url.Values{"grant_type": {grantJWTBearer}, "assertion": {assertion}}))
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

func (e Enterprise) checkConfig(cfg Config) string {
	if e.IDToken == nil || e.ClientID == "" || e.Issuer == "" || cfg.ClientID == "" {
		return "enterprise-managed authorization needs the identity provider's issuer, a clientId at both, and ID tokens"
	}
	return ""
}

func (Enterprise) needsPerson() bool        { return false }
func (Enterprise) sentSecret() string       { return "" } // an identity assertion is for one authorization server
func (e Enterprise) endpointURLs() []string { return []string{e.Issuer, e.TokenURL} }

// checkAssertion refuses what an identity provider issued in the place of an identity assertion for one authorization
// server: an access token of its own, for one, or an assertion for another. The MCP server has named the authorization
// server, and could use either elsewhere.
//
// Identity Assertion JWT Authorization Grant, 4.3 and 5: issued_token_type is
// "urn:ietf:params:oauth:token-type:id-jag", and aud "the issuer URL of the Authorization Server of the Resource".
func checkAssertion(t *oauth2.Token, issuer, endpoint string) error {
	refuse := func(text string) error {
		return &transports.Error{Class: messages.ClassProtocol,
			Text: "the identity provider " + hostLabel(endpoint) + " " + text + "; it was not sent on"}
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
		return refuse("issues an identity assertion that is not for " + hostLabel(issuer))
	}
	return nil
}

func (e Enterprise) obtainToken(ctx context.Context, a *Authorizer, s *signInAttempt) (*oauth2.Token, error) {
	id, err := e.IDToken.readToken(ctx, "ID token")
	if err != nil {
		return nil, err
	}
	provider := &authTarget{server: &oauthex.AuthServerMeta{Issuer: e.Issuer, TokenEndpoint: e.TokenURL}, issuer: e.Issuer}
	if e.TokenURL == "" {
		if err := a.transport.checkURL(e.Issuer); err != nil {
			return nil, &transports.Error{Class: messages.ClassConfig,
				Text: "the identity provider " + hostLabel(e.Issuer) + " " + err.Error()}
		}
		if provider.server, err = a.serverMetadata(ctx, e.Issuer); err != nil {
			return nil, err
		}
		if provider.server == nil {
			return nil, &transports.Error{Class: messages.ClassProtocol,
				Text: "the identity provider " + hostLabel(e.Issuer) + " publishes no metadata", Fix: "set its tokenUrl"}
		}
	}
	us := client{ID: e.ClientID, Secret: e.ClientSecret, Method: authMethod(provider, e.ClientSecret != "", false)}
	params := s.tokenParams(url.Values{
		"grant_type": {oauthex.GrantTypeTokenExchange}, "subject_token": {id},
		"subject_token_type": {oauthex.TokenTypeIDToken}, "requested_token_type": {oauthex.TokenTypeIDJAG},
		"audience": {s.target.server.Issuer},
	})
	assertion, err := a.requestAnyToken(ctx, us, provider.server.TokenEndpoint, provider.issuer, params)
	if err != nil {
		return nil, err
	}
	if err := checkAssertion(assertion, s.target.server.Issuer, provider.server.TokenEndpoint); err != nil {
		return nil, err
	}
	return a.requestToken(ctx, s.client, s.target.server.TokenEndpoint, s.target.issuer,
		s.tokenParams(url.Values{"grant_type": {grantJWTBearer}, "assertion": {assertion.AccessToken}}))
}
