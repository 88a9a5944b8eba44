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

// Grant is a way to get tokens: [AuthorizationCode], [ClientCredentials], [TokenExchange], [JWTBearer] or [Enterprise]. All but
// the first work without a person: an Authorizer uses them by itself when the server asks for authorization. Only this package
// implements it.
type Grant interface {
	// checkConfig returns what the configuration lacks, empty for nothing.
	checkConfig(cfg Config) string
	// needsPerson reports whether a person has to sign in.
	needsPerson() bool
	// sentSecret names the secret that the grant sends to the authorization server and that would be useful elsewhere; empty for
	// none.
	sentSecret() string
	// endpointURLs are the endpoints that the configuration names; they may be in a private network.
	endpointURLs() []string
	// obtainToken gets a token from nothing. It blocks, for a person as long as ctx allows.
	obtainToken(ctx context.Context, a *Authorizer, s *signInAttempt) (*oauth2.Token, error)
}

// signInAttempt is one attempt to get a token from nothing, with the choices made for it. One goroutine uses it.
type signInAttempt struct {
	target *authTarget
	client client
	scopes []string
	// redirect and handler are empty and nil for a grant without a person.
	redirect string
	handler  redirectHandler
	confirm  Confirm // nil if no person can be asked
}

// tokenParams adds the resource and the scopes to the parameters of a token request.
func (s *signInAttempt) tokenParams(params url.Values) url.Values {
	params.Set("resource", s.target.resource)
	if len(s.scopes) > 0 {
		params.Set("scope", strings.Join(s.scopes, " "))
	}
	return params
}

// Values of grant_type and of token types that oauthex does not define.
const (
	grantJWTBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	tokenAccess    = "urn:ietf:params:oauth:token-type:access_token"
)

// ClientCredentials is the grant of programs that act for themselves (extension
// io.modelcontextprotocol/oauth-client-credentials), with Config.ClientID and ClientSecret or Key.
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

// Source returns a token or an assertion, from a file, a metadata service or a command. It is called again for every new access
// token, and must return when ctx ends. Its result is never stored.
type Source func(ctx context.Context) (string, error)

// readToken calls the source and trims the result. what names it in errors.
func (s Source) readToken(ctx context.Context, what string) (string, error) {
	v, err := s(ctx)
	// An error of package auth holds no secret, and says more.
	if own := (*transports.Error)(nil); asError(err, &own) {
		return "", own
	}
	if v = strings.TrimSpace(v); err != nil || v == "" {
		// The error's text comes from the source's own code, and may hold the token.
		return "", &transports.Error{Class: messages.ClassUnauthorized, Text: "there is no " + what + " to sign in with"}
	}
	return v, nil
}

// TokenExchange exchanges a token that this program has for one that the server takes (RFC 8693).
type TokenExchange struct {
	// Subject returns the token to exchange. Required.
	Subject Source
	// SubjectType is the type of that token; an access token (urn:ietf:params:oauth:token-type:access_token) if empty.
	SubjectType string
	// Audience names the server at the authorization server, where the resource parameter does not suffice.
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

// JWTBearer presents an assertion of an issuer that the authorization server trusts, such as a workload's identity (RFC 7523,
// 2.1).
type JWTBearer struct {
	// Assertion returns the JWT. Required.
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

// Enterprise signs in by a company's identity provider (extension io.modelcontextprotocol/enterprise-managed-authorization). It
// exchanges an ID token there for an identity assertion (ID-JAG), and that at the server's authorization server for an access
// token.
type Enterprise struct {
	// Issuer is the identity provider, and TokenURL its token endpoint if it publishes no metadata.
	Issuer, TokenURL string
	// ClientID and ClientSecret are those of this client's registration at the identity provider. ClientID is required.
	ClientID, ClientSecret string
	// IDToken returns the person's ID token. Required.
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

// checkAssertion refuses a token that an identity provider issued in place of an identity assertion for this authorization
// server: an access token of its own, for example, or an assertion for another one. The MCP server has named the authorization
// server, and could use either elsewhere.
//
// Identity Assertion JWT Authorization Grant, 4.3 and 5: issued_token_type is "urn:ietf:params:oauth:token-type:id-jag", and aud
// "the issuer URL of the Authorization Server of the Resource".
func checkAssertion(t *oauth2.Token, issuer, endpoint string) error {
	refuse := func(text string) error {
		return &transports.Error{Class: messages.ClassProtocol,
			Text: "the identity provider " + hostLabel(endpoint) + " " + text + "; it was not sent on"}
	}
	if kind, _ := t.Extra("issued_token_type").(string); kind != oauthex.TokenTypeIDJAG {
		return refuse("issues something else than an identity assertion")
	}
	// The signature is for the authorization server to check; only the audience matters here.
	claims, _, err := jwt.NewParser().ParseUnverified(t.AccessToken, jwt.MapClaims{})
	if err != nil {
		return refuse("issues an identity assertion that cannot be read")
	}
	// More than one audience would let another server use the assertion.
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
	// The identity provider is configured by the person, so that its metadata is fetched but not confirmed.
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
	// This client's registration at the identity provider; the one at the authorization server is s.client.
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
