package oauth

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// checkServer checks the endpoints in an authorization server's metadata, before any of them is used or shown.
func (a *Authorizer) checkServer(ctx context.Context, doc *oauthex.AuthServerMeta, issuer string) error {
	for _, endpoint := range []string{
		doc.AuthorizationEndpoint, doc.TokenEndpoint, doc.RegistrationEndpoint, doc.RevocationEndpoint,
	} {
		if endpoint == "" {
			continue
		}
		if err := a.transport.checkURL(endpoint); err != nil {
			return badEndpoint(endpoint, err)
		}
	}
	if doc.TokenEndpoint == "" {
		return &transports.Error{Class: messages.ClassProtocol,
			Text: "the metadata of " + hostLabel(issuer) + " names no token endpoint"}
	}
	// Without a person no page is opened, so that its address does not matter.
	if doc.AuthorizationEndpoint == "" || !a.cfg.Grant.needsPerson() {
		return nil
	}
	return a.checkAuthorization(ctx, doc.AuthorizationEndpoint)
}

// badEndpoint is the error for an endpoint that is refused. err completes the sentence.
func badEndpoint(endpoint string, err error) error {
	return &transports.Error{Class: messages.ClassDenied,
		Text: "an endpoint of the authorization server, " + hostLabel(endpoint) + ", " + err.Error()}
}

// checkAuthorization checks the page that the browser is to open: it must not be in a private network if the MCP server is not,
// and must not have parameters of its own that replace this program's.
//
// RFC 6749, 3.1: the endpoint's query "MUST be retained when adding additional query parameters", and "Request and response
// parameters MUST NOT be included more than once."
func (a *Authorizer) checkAuthorization(ctx context.Context, endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil {
		return badEndpoint(endpoint, refusalError("is not a usable URL"))
	}
	// An issuer that the person has configured may name pages in a private network.
	if a.cfg.Issuer == "" && zoneOfHost(u.Hostname()) != zonePublic {
		if err := a.transport.checkPage(u, a.transport.findServerZone(ctx)); err != nil {
			e := badEndpoint(endpoint, err).(*transports.Error) //nolint:errorlint // as badEndpoint returns it
			e.Fix = `if the authorization server is the right one, add its "issuer" to the server's auth`
			return e
		}
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return badEndpoint(endpoint, refusalError("has a query that cannot be read"))
	}
	for name := range q {
		if slices.Contains(ourParameters, strings.ToLower(name)) {
			return badEndpoint(endpoint, refusalError("has a parameter of its own for what this program sets, "+
				messages.Line(name, 40)))
		}
	}
	return nil
}

// ourParameters are the parameters of an authorization request that the client decides on, in lower case: those of RFC 6749, RFC
// 7636, RFC 8707 and OpenID Connect, and those that replace them all (RFC 9101).
var ourParameters = []string{
	"response_type", "client_id", "redirect_uri", "scope", "state", "code_challenge", "code_challenge_method", "resource",
	"response_mode", "nonce", "request", "request_uri", "claims", "authorization_details", "dpop_jkt",
}

// authorizationURL returns the page's URL with this program's parameters, each once. It drops those of a configured page.
func authorizationURL(endpoint string, params url.Values) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", err
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "", err
	}
	for name := range q {
		if slices.Contains(ourParameters, strings.ToLower(name)) {
			q.Del(name)
		}
	}
	for name, values := range params {
		q[name] = values
	}
	u.RawQuery, u.Fragment, u.RawFragment = q.Encode(), "", ""
	return u.String(), nil
}
