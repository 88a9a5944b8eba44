package oauth

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/addresses"
)

// authTarget is the authorization server for one server, with everything in it validated.
type authTarget struct {
	// resource is the resource parameter of every request (RFC 8707).
	resource string
	// scopes are the resource's scopes_supported, nil if its metadata names none.
	scopes []string
	server *oauthex.AuthServerMeta
	// issuer is the key by which credentials are kept: the authorization server's issuer, or configuredIssuer and the token
	// endpoint if the endpoints were configured without an issuer.
	issuer string
	// unadvertised is true without metadata, so that nothing is known about the server's features.
	unadvertised bool
}

// discoverTarget finds the authorization server. challenge may be nil. prefer are issuers that there are credentials for: of
// several authorization servers that a resource names, the first preferred one is taken, else the first.
func (a *Authorizer) discoverTarget(ctx context.Context, challenge *messages.Challenge, prefer []string) (*authTarget, error) {
	// Configured endpoints leave nothing to discover, and no document of the server can change them.
	if a.cfg.TokenURL != "" {
		return a.configuredTarget(), nil
	}
	resource, err := a.resourceMetadata(ctx, challenge)
	if err != nil {
		return nil, err
	}
	p := &authTarget{resource: withoutQuery(a.url)}
	if a.cfg.Issuer != "" {
		prefer = append([]string{a.cfg.Issuer}, prefer...)
	}
	var legacy bool
	var issuer string
	if resource != nil {
		p.resource, p.scopes = withoutSecretQuery(resource.Resource), resource.ScopesSupported
		issuer = resource.AuthorizationServers[0]
		for _, known := range prefer {
			i := slices.IndexFunc(resource.AuthorizationServers, func(s string) bool { return sameIssuer(s, known) })
			if i >= 0 {
				issuer = resource.AuthorizationServers[i]
				break
			}
		}
	} else {
		// Servers of the version 2025-03-26 have no resource metadata. 2025-03-26, 2.3.2: "the authorization base URL MUST be
		// determined from the MCP server URL by discarding any existing path component."
		legacy, issuer = true, a.url.Scheme+"://"+a.url.Host
	}
	if a.cfg.Resource != "" {
		p.resource = a.cfg.Resource
	}
	// The server has named this address, so that it may be anything.
	if err := a.transport.checkURL(issuer); err != nil {
		return nil, &transports.Error{Class: messages.ClassDenied,
			Text: "the authorization server " + hostLabel(issuer) + " " + err.Error()}
	}
	if a.cfg.Issuer != "" && !sameIssuer(a.cfg.Issuer, issuer) {
		return nil, a.otherIssuer(issuer, a.cfg.Issuer)
	}
	// serverMetadata checks every endpoint before it returns them.
	if p.server, err = a.serverMetadata(ctx, issuer); err != nil {
		return nil, err
	}
	switch {
	case p.server != nil:
	case legacy:
		// 2025-03-26, 2.3.3: "For servers that do not implement OAuth 2.0 Authorization Server Metadata, clients MUST use
		// the following default endpoint paths relative to the authorization base URL".
		p.unadvertised = true
		p.server = &oauthex.AuthServerMeta{
			Issuer: issuer, AuthorizationEndpoint: issuer + "/authorize", TokenEndpoint: issuer + "/token",
			RegistrationEndpoint: issuer + "/register", CodeChallengeMethodsSupported: []string{"S256"},
		}
	default:
		return nil, &transports.Error{Class: messages.ClassProtocol,
			Text: "the authorization server " + hostLabel(issuer) + " publishes no metadata",
			Fix:  "set authUrl, tokenUrl and clientId if you know them"}
	}
	p.issuer = p.server.Issuer
	return p, nil
}

// configuredIssuer begins the issuer of endpoints that were configured without one. No URL begins so.
const configuredIssuer = "configured "

// withoutQuery returns a URL as a resource identifier. It leaves the query out, because that may hold a key.
//
// RFC 8707, 2: the resource parameter "SHOULD NOT include a query component, but it is recognized that there are cases that make
// a query component a useful and necessary part of the resource parameter": Config.Resource is for those.
func withoutQuery(at *url.URL) string {
	u := *at
	u.RawQuery, u.ForceQuery = "", false
	return u.String()
}

// withoutSecretQuery leaves out the query of a resource that a server has named, if it may hold a secret, because the resource is
// shown to a person, and goes to a browser and to the authorization server.
func withoutSecretQuery(resource string) string {
	u, err := url.Parse(resource)
	if err != nil || u.RawQuery == "" {
		return resource
	}
	for name, values := range u.Query() {
		name = strings.ToLower(name)
		secret := slices.ContainsFunc(secretNames, func(word string) bool { return strings.Contains(name, word) })
		if secret || slices.ContainsFunc(values, func(v string) bool { return len(v) >= secretLength }) {
			return withoutQuery(u)
		}
	}
	return resource
}

// secretNames are parts of the names that keys have in queries; secretLength is the length from which a value may be a key under
// any name.
var secretNames = []string{"key", "token", "secret", "auth", "pass", "pwd", "sig", "cred", "code", "session"}

const secretLength = 20

// configuredTarget returns the target that Config.AuthURL and TokenURL name.
func (a *Authorizer) configuredTarget() *authTarget {
	p := &authTarget{resource: a.cfg.Resource, issuer: a.cfg.Issuer, unadvertised: true,
		server: &oauthex.AuthServerMeta{
			Issuer: a.cfg.Issuer, AuthorizationEndpoint: a.cfg.AuthURL, TokenEndpoint: a.cfg.TokenURL,
			CodeChallengeMethodsSupported: []string{"S256"},
		}}
	if p.resource == "" {
		p.resource = withoutQuery(a.url)
	}
	if p.issuer == "" {
		p.issuer = configuredIssuer + a.cfg.TokenURL
	}
	return p
}

// resourceMetadata gets the protected-resource metadata, nil if the server has none.
//
// 2026-07-28, authorization server discovery: "MCP clients MUST … use the resource metadata URL from the parsed WWW-Authenticate
// headers when present; otherwise, they MUST fall back to constructing and requesting the well-known URIs in the order listed":
// at the path of the MCP endpoint, then at the root. If the named document is missing (4xx), these places are tried as well.
func (a *Authorizer) resourceMetadata(ctx context.Context, challenge *messages.Challenge) (
	*oauthex.ProtectedResourceMetadata, error) {
	var locations []string
	if challenge != nil && challenge.ResourceMetadata != "" && a.mayName(challenge.ResourceMetadata) {
		locations = append(locations, challenge.ResourceMetadata)
	}
	locations = append(locations, wellKnownURL(a.url, resourceWellKnown))
	// The well-known document of the whole host, for servers that publish only that.
	root := *a.url
	root.Path, root.RawPath, root.RawQuery = "", "", ""
	if at := wellKnownURL(&root, resourceWellKnown); !slices.Contains(locations, at) {
		locations = append(locations, at)
	}
	for _, at := range locations {
		var doc oauthex.ProtectedResourceMetadata
		found, err := a.transport.fetchMetadata(ctx, at, "the resource metadata", &doc)
		if err != nil {
			return nil, err
		}
		if !found {
			continue
		}
		switch {
		// RFC 9728, 3.3: "If these values are not identical, the data contained in the response MUST NOT be used." Going on
		// without the document would be using it, too: the server might mean another issuer than the one that would be guessed.
		case !a.coversServer(doc.Resource, at):
			return nil, &transports.Error{Class: messages.ClassProtocol,
				Text: "the resource metadata of " + hostLabel(at) + " is about another resource, " +
					messages.Line(doc.Resource, 200),
				Fix: "nobody was asked to sign in; check the URL, or configure that resource if it is the right one"}
		case len(doc.AuthorizationServers) == 0:
			return nil, &transports.Error{Class: messages.ClassProtocol,
				Text: "the resource metadata of " + hostLabel(at) + " names no authorization server"}
		}
		return &doc, nil
	}
	return nil, nil
}

// mayName reports whether the server may name another host for its metadata. A server over plain http has shown no certificate,
// so that it may name its own host only: any machine on the way could have answered in its place.
func (a *Authorizer) mayName(at string) bool {
	if a.url.Scheme == "https" || addresses.ThisMachine(a.url.Hostname()) {
		return true
	}
	u, err := url.Parse(at)
	return err == nil && a.transport.isServerURL(u)
}

const (
	resourceWellKnown = "/.well-known/oauth-protected-resource"
	serverWellKnown   = "/.well-known/oauth-authorization-server"
	openIDWellKnown   = "/.well-known/openid-configuration"
)

// wellKnownURL inserts a well-known path between the host and the path of a URL (RFC 8414, 3.1; RFC 9728, 3.1).
func wellKnownURL(u *url.URL, path string) string {
	at := *u
	at.Path = path + strings.TrimSuffix(u.Path, "/")
	at.RawPath = ""
	// An escaped slash must stay escaped in the new path.
	if u.RawPath != "" {
		at.RawPath = path + strings.TrimSuffix(u.RawPath, "/")
	}
	return at.String()
}

// coversServer reports whether a metadata document from the address at speaks for this server. Its resource must be the server's
// own URL, or a parent of it on the same origin whose own well-known document this is: so a host can speak for all servers on it.
// It does not suffice that a document names such a resource, because the program that serves one path of a host must not get
// tokens for the whole host.
//
// A resource that the configuration names was chosen by the person who wrote it: it may be any.
func (a *Authorizer) coversServer(resource, at string) bool {
	if a.cfg.Resource != "" && resource == a.cfg.Resource {
		return true
	}
	r, err := canonicalURL(resource)
	if err != nil || checkWellFormed(resource) != nil && resource != a.url.String() {
		return false
	}
	// Paths are compared escaped, because an escaped slash is another path.
	own := func(u *url.URL) string { return strings.TrimSuffix(u.EscapedPath(), "/") }
	if r.Scheme != a.url.Scheme || r.Host != a.url.Host {
		return false
	}
	if own(r) == own(a.url) && (r.RawQuery == a.url.RawQuery || r.RawQuery == "") {
		return true
	}
	// The document of a parent counts only at the parent's own well-known address.
	from, err := canonicalURL(at)
	if err != nil || r.RawQuery != "" {
		return false
	}
	return strings.HasPrefix(own(a.url)+"/", own(r)+"/") && from.String() == wellKnownURL(r, resourceWellKnown)
}

// serverMetadata gets an authorization server's metadata, nil if it publishes none.
//
// 2026-07-28, authorization server metadata discovery, for issuers with a path: "1. OAuth 2.0 Authorization Server Metadata with
// path insertion … 2. OpenID Connect Discovery 1.0 with path insertion … 3. OpenID Connect Discovery 1.0 path appending".
func (a *Authorizer) serverMetadata(ctx context.Context, issuer string) (*oauthex.AuthServerMeta, error) {
	u, err := canonicalURL(issuer)
	if err != nil || u.RawQuery != "" || strings.ContainsAny(issuer, "?#") {
		return nil, &transports.Error{Class: messages.ClassProtocol,
			Text: "the authorization server " + hostLabel(issuer) + " has no usable issuer URL"}
	}
	locations := []string{wellKnownURL(u, serverWellKnown), wellKnownURL(u, openIDWellKnown)}
	// An issuer without a path would get the same address twice.
	if u.Path != "" {
		locations = append(locations, strings.TrimSuffix(u.String(), "/")+openIDWellKnown)
	}
	for _, at := range locations {
		var doc oauthex.AuthServerMeta
		found, err := a.transport.fetchMetadata(ctx, at, "the authorization server's metadata", &doc)
		if err != nil {
			return nil, err
		}
		if !found {
			continue
		}
		// RFC 8414, 3.3: "The issuer value returned MUST be identical to the authorization server's issuer identifier
		// value into which the well-known URI string was inserted … If these values are not identical, the data contained
		// in the response MUST NOT be used."
		if !sameIssuer(doc.Issuer, issuer) {
			return nil, &transports.Error{Class: messages.ClassProtocol,
				Text: "the metadata of " + hostLabel(issuer) + " is that of another issuer, " + messages.Line(doc.Issuer, 200)}
		}
		if err := a.checkServer(ctx, &doc, issuer); err != nil {
			return nil, err
		}
		return &doc, nil
	}
	return nil, nil
}

// sameIssuer compares issuers as identifiers, but ignores the slash of an empty path: programs that print URLs add it to one of
// two documents (RFC 3986, 6.2.3: "an empty path … should be normalized to a path of "/""). The iss parameter of an authorization
// response is compared exactly, and not by this.
func sameIssuer(x, y string) bool {
	if x == y {
		return true
	}
	trim := func(s string) string {
		if u, err := url.Parse(s); err == nil && u.Path == "/" && u.RawQuery == "" && u.Fragment == "" {
			return strings.TrimSuffix(s, "/")
		}
		return s
	}
	return trim(x) == trim(y)
}
