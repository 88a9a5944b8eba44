package oauth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/addresses"
)

// The kinds of client credentials: from the configuration, a metadata document, or a dynamic registration.
const (
	kindConfigured = "configured"
	kindMetadata   = "metadata"
	kindRegistered = "registered"
)

// chooseClient chooses the client credentials for an authorization server. known are those kept by issuer. redirect returns the
// redirect URL, given that of a registered client; it is nil for grants without a person.
//
// 2026-07-28, client registration: "1. Use pre-registered client information for the server if the client has it available. 2.
// Use Client ID Metadata Documents if the Authorization Server indicates that it supports them … 3. Use Dynamic Client
// Registration as a fallback … 4. Prompt the user to enter the client information if no other option is available."
func (a *Authorizer) chooseClient(ctx context.Context, p *authTarget, known map[string]client,
	redirect func(registered string) (string, error)) (c client, to string, err error) {
	// The zero client if none was registered there.
	old := known[p.issuer]
	if redirect != nil {
		if to, err = redirect(old.Redirect); err != nil {
			return client{}, "", err
		}
	}
	switch {
	// Configured credentials come first, as the specification orders them.
	case a.cfg.ClientID != "":
		if err := a.checkBinding(p, known); err != nil {
			return client{}, "", err
		}
		return client{ID: a.cfg.ClientID, Kind: kindConfigured,
			Method: authMethod(p, a.cfg.ClientSecret != "", a.cfg.Key != nil)}, to, nil
	case a.cfg.ClientMetadataURL != "" && p.server.ClientIDMetadataDocumentSupported:
		return client{ID: a.cfg.ClientMetadataURL, Kind: kindMetadata, Method: authMethod(p, false, a.cfg.Key != nil)}, to, nil
	case redirect == nil:
		return client{}, "", &transports.Error{Class: messages.ClassConfig,
			Text: "this way of signing in needs client credentials for " + hostLabel(p.server.TokenEndpoint), Fix: "set clientId"}
	// A registration with another redirect URL would be refused at the authorization page.
	case old.Kind == kindRegistered && old.Redirect == to:
		return old, to, nil
	case p.server.RegistrationEndpoint != "":
		c, err := a.registerClient(ctx, p, to)
		return c, to, err
	}
	return client{}, "", &transports.Error{Class: messages.ClassConfig,
		Text: "the authorization server " + hostLabel(p.server.TokenEndpoint) + " lets no unknown client in",
		Fix:  "register mcpvisor there, with the redirect URL " + to + ", and set clientId"}
}

// checkBinding refuses the configured client id at another authorization server than the one that it belongs to.
//
// 2026-07-28, Authorization Server Binding: "If the authorization server indicated by protected resource metadata no
// longer matches the one the credentials were registered with, clients SHOULD surface an error rather than silently
// attempting to use mismatched credentials."
func (a *Authorizer) checkBinding(p *authTarget, known map[string]client) error {
	bound := a.boundTo(known)
	if a.cfg.Issuer != "" {
		bound = []string{a.cfg.Issuer}
	}
	if len(bound) == 0 || slices.ContainsFunc(bound, func(issuer string) bool { return sameIssuer(issuer, p.issuer) }) {
		return nil
	}
	return a.otherIssuer(p.issuer, bound[0])
}

// otherIssuer is the error for a server that names another authorization server than the right one.
func (a *Authorizer) otherIssuer(named, right string) error {
	what := "the configured clientId belongs to "
	if a.cfg.ClientID == "" {
		what = "the configured one is "
	}
	return &transports.Error{Class: messages.ClassConfig,
		Text: "the server names the authorization server " + messages.Line(named, 200) + ", and " + what +
			messages.Line(right, 200),
		Fix: "if the change is right, register a client there and set clientId and issuer; " +
			"to forget the old one: mcpvisor logout --forget " + messages.Line(a.cfg.Server, 100)}
}

// registerClient registers a public client, if the server accepts one. The server may decide otherwise, and its decision counts.
//
// 2026-07-28, Dynamic Client Registration: "MCP clients MUST specify an appropriate application_type … Native
// applications (desktop applications, mobile apps, CLI tools, and locally-hosted web applications accessed via
// localhost) SHOULD use application_type: "native"".
func (a *Authorizer) registerClient(ctx context.Context, p *authTarget, redirect string) (client, error) {
	ask := oauthex.ClientRegistrationMetadata{
		ClientName: a.cfg.ClientName, RedirectURIs: []string{redirect}, ResponseTypes: []string{"code"},
		GrantTypes: []string{"authorization_code", "refresh_token"}, ApplicationType: "web",
		TokenEndpointAuthMethod: methodNone,
	}
	// The specification's "native" is for redirect URLs on this machine.
	if u, err := url.Parse(redirect); err == nil && addresses.ThisMachine(u.Hostname()) {
		ask.ApplicationType = "native"
	}
	// The server has no public clients, so that one with a secret is registered.
	if m := p.server.TokenEndpointAuthMethodsSupported; len(m) > 0 && !slices.Contains(m, methodNone) {
		ask.TokenEndpointAuthMethod = authMethod(p, true, false)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	seen := &responseRecorder{RoundTripper: strictTransport{a.transport}}
	web := a.transport.newClient()
	web.Transport = seen
	at := p.server.RegistrationEndpoint
	got, err := oauthex.RegisterClient(ctx, at, &ask, web)
	if err != nil {
		return client{}, a.registrationError(err, at, seen.last, ask.ApplicationType, redirect)
	}
	if !usableID(got.ClientID) || !usableID(got.ClientSecret) && got.ClientSecret != "" {
		return client{}, &transports.Error{Class: messages.ClassProtocol,
			Text: "the registration endpoint of " + hostLabel(at) + " gives out a client id or secret that cannot be used",
			Fix:  "register one by hand and set clientId"}
	}
	c := client{ID: got.ClientID, Secret: got.ClientSecret, Kind: kindRegistered, Redirect: redirect}
	switch c.Method = got.TokenEndpointAuthMethod; {
	// Without a secret there is nothing to authenticate with, whatever method the server names.
	case c.Secret == "":
		c.Method = methodNone
	case c.Method != methodBasic && c.Method != methodPost && c.Method != methodNone:
		c.Method = authMethod(p, true, false)
	}
	return c, nil
}

// maxID bounds a client id or secret that a server gives out, in bytes, because it is stored and sent with every request.
const maxID = 8 << 10

// usableID reports whether s is a client id or secret of RFC 6749, appendix A: visible ASCII and spaces.
func usableID(s string) bool {
	return len(s) <= maxID && isPrintable(strings.ReplaceAll(s, " ", "-")) && s != ""
}

// registrationError translates an error of RegisterClient. It keeps nothing of its text, which may repeat the whole response with
// a client secret in it.
func (a *Authorizer) registrationError(err error, at string, resp *http.Response, kind, redirect string) error {
	var no *oauthex.ClientRegistrationError
	who := "the registration endpoint of " + hostLabel(at)
	switch {
	case errors.As(err, &no):
		e := &transports.Error{Class: messages.ClassConfig, Text: who + " refuses: " + messages.Line(no.ErrorCode, 60),
			Fix: "it was asked for a client of the type " + kind + " with the redirect URL " + redirect +
				"; register one by hand and set clientId"}
		if no.ErrorDescription != "" {
			e.Text += " (" + messages.Line(no.ErrorDescription, 200) + ")"
		}
		return e
	case resp == nil:
		return a.transport.fetchError("the registration endpoint", at, errors.Unwrap(err))
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode >= 500:
		return unavailableError(who, resp)
	}
	return &transports.Error{Class: messages.ClassConfig, Status: resp.StatusCode,
		Text: who + " does not register clients (" + resp.Status[:min(3, len(resp.Status))] + ")",
		Fix:  "register one by hand and set clientId"}
}

// responseRecorder remembers the last response, of which registrationError uses the status. One request uses it.
type responseRecorder struct {
	http.RoundTripper
	last *http.Response
}

// RoundTrip implements http.RoundTripper.
func (w *responseRecorder) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.RoundTripper.RoundTrip(r)
	w.last = resp
	return resp, err
}
