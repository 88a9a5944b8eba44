package oauth

import (
	"crypto/tls"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/addresses"
	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// Config says how to be let in by one server. Only Server, URL, Store and Locks are required. It is a value: no code
// changes it after New.
type Config struct {
	// Server is the server's id: for texts, and part of the key of what is stored.
	Server string
	// URL is where the server is, as in its specification. A sign-in is stored for this address and used for no other.
	URL string
	// Store keeps the sign-in, and Locks see to one refresh at a time. All processes that share the Store must share the
	// Locks.
	Store auth.Store
	Locks *auth.Locks

	// Grant is how tokens are had; nil is AuthorizationCode, a person in a browser.
	Grant Grant

	// ClientID and, for a confidential client, ClientSecret or Key are credentials that were registered beforehand. They
	// go before everything else.
	ClientID, ClientSecret string
	// Key signs client assertions (private_key_jwt) in the place of a secret.
	Key *Key
	// Issuer is the authorization server: the server may name no other, and ClientID is registered with it. If it and
	// TokenURL are empty, a client secret and what a grant sends of ours (a token to exchange, an assertion) go to an
	// authorization server that a person has confirmed (Confirm), and else nowhere; a ClientID without a secret goes to the
	// first that it is used with. Either is remembered, also over a sign-out, and they are used with no other.
	Issuer string
	// ClientMetadataURL is an https URL where a client-id metadata document describes this client; it is the client id
	// at authorization servers that support that. Its redirect_uris must hold the redirect URL in use.
	ClientMetadataURL string
	// ClientName is the name that people see after a dynamic registration; "mcpvisor" if empty.
	ClientName string

	// AuthURL and TokenURL are the endpoints, for servers that publish no metadata: set, nothing is discovered, and PKCE
	// is taken to be supported. AuthURL is not needed for grants without a person.
	AuthURL, TokenURL string
	// Resource is the resource parameter in the place of the one that is discovered (the server's own URL, as a rule). A
	// metadata document about this resource is accepted, whatever the server's URL is: set it only to what you know.
	Resource string
	// Scopes are asked for in the place of what the server proposes. More may come by a step-up.
	Scopes []string

	// RedirectURL is the redirect URL in the place of http://127.0.0.1:PORT/callback: what was registered, or what is in
	// the client-id metadata document. Login listens on its port if its host is this machine.
	RedirectURL string
	// CallbackPort is the port that Login listens on at 127.0.0.1; 0 takes the one of the last registration if it is free,
	// else any free one. Set it if the authorization server compares ports, or if a firewall or an ssh -L must know it.
	CallbackPort int

	// Interactive, if set, lets Authorize and Refused begin a sign-in by themselves: it takes a person (or a test) to
	// ask.URL and returns the address they were redirected to. At most three are begun within five minutes. nil (the
	// default) leaves it to Login.
	Interactive Interactive

	// Confirm asks a person during sign-ins that requests begin, before something goes to an authorization server that the
	// server has named and no person has confirmed; see Prompt.Confirm. nil refuses.
	Confirm Confirm

	// Early is how long before its end a token is refreshed; each process draws up to half of it on top. 0 means a fifth
	// of the token's life, between 5 s and 5 min. More of it survives a longer outage of the token endpoint and costs more
	// refreshes.
	Early time.Duration
	// TLS is how connections to the server itself are made safe (an authority of a company's own, a certificate of ours),
	// asked anew for each; nil is as the system does. Authorization servers are judged by the system's authorities.
	TLS func() (*tls.Config, error)
	// AllowHTTP accepts endpoints over plain http on other machines. Tokens and codes are readable on the way then.
	AllowHTTP bool
	// Transport sends the requests to the authorization server and for metadata in the place of our own. It must guard
	// against private addresses itself.
	Transport http.RoundTripper
}

// New makes an Authorizer. It reads and sends nothing. The error is a *transports.Error of ClassConfig, whose text
// holds no value of the configuration but its URLs.
func New(cfg Config) (*Authorizer, error) {
	fail := func(text, fix string) (*Authorizer, error) {
		return nil, &transports.Error{Class: messages.ClassConfig, Text: text, Fix: fix}
	}
	resource, err := canonicalURL(cfg.URL)
	switch {
	case err != nil:
		return fail("the URL is not an absolute http or https URL", "write it like https://example.com/mcp")
	case cfg.Server == "" || cfg.Store == nil || cfg.Locks == nil:
		return fail("OAuth needs the server's name, a token store and its locks", "")
	case cfg.ClientSecret != "" && cfg.ClientID == "", cfg.Key != nil && cfg.ClientID == "" && cfg.ClientMetadataURL == "":
		return fail("there is a client secret or key but no clientId", "set clientId")
	case cfg.ClientSecret != "" && cfg.Key != nil:
		return fail("there are both a client secret and a client key", "keep one of them")
	case cfg.AuthURL != "" && cfg.TokenURL == "":
		return fail("authUrl is set and tokenUrl is not", "set both, or none for discovery")
	case cfg.CallbackPort < 0 || cfg.CallbackPort > 65535:
		return fail("the callback port is not a port", "use 1 to 65535")
	}
	if cfg.Grant == nil {
		cfg.Grant = AuthorizationCode{}
	}
	if text := cfg.Grant.checkConfig(cfg); text != "" {
		return fail(text, "")
	}
	if m, err := url.Parse(cfg.ClientMetadataURL); cfg.ClientMetadataURL != "" &&
		(err != nil || m.Scheme != "https" || m.Host == "" || strings.Trim(m.Path, "/") == "") {
		// 2026-07-28, client registration: "The client_id URL MUST use the "https" scheme and contain a path component".
		return fail("the client metadata URL is not an https URL with a path", "")
	}
	if r, err := url.Parse(cfg.RedirectURL); cfg.RedirectURL != "" &&
		(err != nil || r.Fragment != "" || r.Scheme != "https" && !(r.Scheme == "http" && addresses.ThisMachine(r.Hostname()))) {
		// 2026-07-28, security considerations: "All redirect URIs MUST be either localhost or use HTTPS."
		return fail("the redirect URL is neither https nor on this machine", "use http://127.0.0.1:PORT/callback")
	}
	if cfg.ClientName == "" {
		cfg.ClientName = "mcpvisor"
	}
	a := &Authorizer{
		cfg: cfg, url: resource, label: hostLabel(resource.String()), key: storeKey(cfg.Server, resource),
		refresher: auth.NewRefresher(cfg.Store, cfg.Locks),
	}
	a.transport = newGuardedTransport(resource, cfg.AllowHTTP, cfg.Transport, cfg.TLS)
	for _, named := range append(cfg.Grant.endpointURLs(), cfg.TokenURL, cfg.Issuer) {
		a.transport.trustHost(named)
	}
	for _, endpoint := range []string{cfg.AuthURL, cfg.TokenURL} {
		if endpoint != "" && a.transport.checkURL(endpoint) != nil {
			return fail("the endpoint "+hostLabel(endpoint)+" does not use https", "use https, or allow plain http on purpose")
		}
	}
	return a, nil
}

// canonicalURL is the server's URL as a resource identifier.
//
// 2026-07-28, Canonical Server URI: "While the canonical form uses lowercase scheme and host components …
// implementations SHOULD consistently use the form without the trailing slash for better interoperability unless the
// trailing slash is semantically significant". A path's last slash is kept, because only the server knows what it means.
func canonicalURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, err
	}
	u.Scheme = strings.ToLower(u.Scheme)
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, url.InvalidHostError(raw)
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port != "" && !(u.Scheme == "http" && port == "80") && !(u.Scheme == "https" && port == "443") {
		host += ":" + port
	}
	u.Host, u.User, u.Fragment, u.RawFragment = host, nil, "", ""
	if u.Path == "/" {
		u.Path, u.RawPath = "", ""
	}
	return u, nil
}
