package oauth

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// client has the credentials by which this program identifies itself to one authorization server.
type client struct {
	ID string `json:"id,omitempty"`
	// Kind is kindConfigured, kindMetadata or kindRegistered.
	Kind string `json:"kind,omitempty"`
	// Method is the client authentication at the token endpoint: client_secret_basic, client_secret_post, private_key_jwt or
	// none.
	Method string `json:"method,omitempty"`
	// Secret is kept only for registered clients, because a configured secret stays in the configuration.
	Secret string `json:"secret,omitempty"`
	// Redirect is the redirect URL of a client's registration, empty for other clients.
	Redirect string `json:"redirect,omitempty"`
}

// The methods of RFC 7591, 2, and OpenID Connect Core, 9.
const (
	methodBasic = "client_secret_basic"
	methodPost  = "client_secret_post"
	methodKey   = "private_key_jwt"
	methodNone  = "none"
)

// assertionType is the value of client_assertion_type (RFC 7523, 2.2).
const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// grantError marks a refusal with an OAuth error code: the server has understood the request, and will refuse it again.
type grantError struct{ code string }

func (e *grantError) Error() string { return e.code }

// lostAnswerError marks an exchange whose answer was lost: the server may have carried it out and spent the refresh token.
type lostAnswerError struct{ error }

func (e *lostAnswerError) Unwrap() error { return e.error }

// isAnswerLost reports whether err is of such an exchange.
func isAnswerLost(err error) bool {
	var l *lostAnswerError
	return errors.As(err, &l)
}

// requestToken makes one request to a token endpoint. params have grant_type and the parameters of that grant. issuer becomes the
// audience of a client assertion.
//
// The error is a *transports.Error: of ClassUnauthorized, around a *grantError, if the endpoint refused; of ClassNetwork or
// ClassThrottled if it could not answer. Its text repeats no value of the request.
func (a *Authorizer) requestToken(ctx context.Context, c client, endpoint, issuer string, params url.Values) (
	*oauth2.Token, error) {
	t, err := a.requestAnyToken(ctx, c, endpoint, issuer, params)
	// RFC 8693, 2.2.1: N_A means that what was issued is no access token.
	if err == nil && !strings.EqualFold(t.TokenType, "Bearer") && t.TokenType != "" {
		return nil, &transports.Error{Class: messages.ClassProtocol, Text: "the token endpoint of " + hostLabel(endpoint) +
			" gives out tokens of the kind " + messages.Line(t.TokenType, 40) + ", which is not known here"}
	}
	return t, err
}

// requestAnyToken does the work of requestToken for any type of token.
func (a *Authorizer) requestAnyToken(ctx context.Context, c client, endpoint, issuer string, params url.Values) (
	*oauth2.Token, error) {
	// This type of the library sends any grant: its EndpointParams replace its own grant_type.
	cfg := clientcredentials.Config{
		ClientID: c.ID, TokenURL: endpoint, EndpointParams: params, AuthStyle: oauth2.AuthStyleInParams,
	}
	switch c.Method {
	// The library encodes id and secret for the header, as RFC 6749, 2.3.1, demands.
	case methodBasic:
		cfg.ClientSecret, cfg.AuthStyle = a.secretOf(c), oauth2.AuthStyleInHeader
	case methodPost:
		cfg.ClientSecret = a.secretOf(c)
	case methodKey:
		if a.cfg.Key == nil {
			return nil, &transports.Error{Class: messages.ClassConfig,
				Text: "the client key that this sign-in was made with is not configured any more", Fix: "sign in again"}
		}
		// Each request has an assertion of its own.
		assertion, err := a.cfg.Key.signAssertion(c.ID, assertionAudience(issuer, endpoint), a.now())
		if err != nil {
			return nil, err
		}
		params.Set("client_assertion_type", assertionType)
		params.Set("client_assertion", assertion)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	// A RoundTripper that calls no trace function may have sent everything.
	var connWanted, connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { connWanted.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	// The client follows no redirect, because the request carries secrets.
	web := a.transport.newClient()
	web.Transport = strictTransport{a.transport}
	t, err := cfg.Token(context.WithValue(ctx, oauth2.HTTPClient, web))
	if err != nil {
		// A server's text may repeat any parameter, the refresh token above all.
		e := a.tokenError(err, endpoint, secretValues(params, a.secretOf(c)))
		// After a status of a gateway or without an answer the server may have acted, if the request reached a connection.
		switch e.Status {
		case 0, http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout:
			if connected.Load() || !connWanted.Load() {
				e.Err = &lostAnswerError{error: cmp.Or(e.Err, io.ErrUnexpectedEOF)}
			}
		}
		return nil, e
	}
	return t, nil
}

// secretOf returns the client's secret. That of a configured client comes from the configuration.
func (a *Authorizer) secretOf(c client) string {
	if c.Kind == kindConfigured && c.ID == a.cfg.ClientID {
		return a.cfg.ClientSecret
	}
	return c.Secret
}

// secretValues returns the values of a request that no text may repeat. Every parameter counts that is not known to be harmless.
func secretValues(params url.Values, secret string) []string {
	all := []string{secret}
	for name, values := range params {
		switch name {
		case "grant_type", "resource", "scope", "redirect_uri", "audience", "client_assertion_type",
			"requested_token_type", "subject_token_type":
		default:
			all = append(all, values...)
		}
	}
	return all
}

// redactSecrets replaces the secrets in a server's text, as they are and URL-encoded, the longest first.
func redactSecrets(text string, secrets []string) string {
	slices.SortFunc(secrets, func(x, y string) int { return len(y) - len(x) })
	for _, s := range secrets {
		// A shorter value would hide harmless words of the text.
		if len(s) >= 5 {
			text = strings.ReplaceAll(text, s, "[redacted]")
			text = strings.ReplaceAll(text, url.QueryEscape(s), "[redacted]")
		}
	}
	return text
}

// transientCodes are OAuth error codes for a failure that may pass (RFC 6749, 4.1.2.1; RFC 8628, 3.5).
var transientCodes = []string{"temporarily_unavailable", "server_error", "slow_down"}

// tokenError translates an error of x/oauth2, and does not keep it, because it holds the whole response.
func (a *Authorizer) tokenError(err error, endpoint string, secrets []string) *transports.Error {
	var no *oauth2.RetrieveError
	if !errors.As(err, &no) {
		var at *url.Error
		if errors.As(err, &at) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			return a.transport.fetchError("the token endpoint", endpoint, err)
		}
		return &transports.Error{Class: messages.ClassNetwork,
			Text: "the token endpoint of " + hostLabel(endpoint) + " answered with something else than a token"}
	}
	status := no.Response.StatusCode
	// These say nothing about the refresh token, which must not count as spent for them.
	if status == http.StatusTooManyRequests || status >= 500 || slices.Contains(transientCodes, no.ErrorCode) ||
		no.ErrorCode == "" { // a page of a proxy, and no refusal
		return unavailableError("the token endpoint of "+hostLabel(endpoint), no.Response)
	}
	code := messages.Line(redactSecrets(no.ErrorCode, secrets), 60)
	e := &transports.Error{Class: messages.ClassUnauthorized, Status: status, Err: &grantError{code: code},
		Text: "the token endpoint of " + hostLabel(endpoint) + " refuses: " + code}
	if said := messages.Line(redactSecrets(no.ErrorDescription, secrets), 200); said != "" {
		e.Text += " (" + strings.TrimRight(said, ". ") + ")"
	}
	return e
}

// grantCode returns the OAuth error code of a refusal, empty if err is not one.
func grantCode(err error) string {
	var no *grantError
	if errors.As(err, &no) {
		return no.code
	}
	return ""
}

// authMethod chooses the client authentication at the token endpoint, by its metadata.
func authMethod(p *authTarget, secret bool, key bool) string {
	supported := p.server.TokenEndpointAuthMethodsSupported
	switch {
	case key:
		return methodKey
	case !secret:
		return methodNone
	case slices.Contains(supported, methodBasic), len(supported) == 0, !slices.Contains(supported, methodPost):
		// RFC 8414, 2: "If omitted, the default is client_secret_basic".
		return methodBasic
	}
	return methodPost
}

// assertionAudience returns the aud claim of an assertion: the issuer, or the endpoint if no issuer is known.
func assertionAudience(issuer, endpoint string) string {
	if issuer == "" || strings.HasPrefix(issuer, configuredIssuer) {
		return endpoint
	}
	return issuer
}
