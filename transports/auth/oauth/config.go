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

// Config says how to sign in to one server. Only Server, URL, Store and Locks are required. New copies it, and nothing changes it
// afterwards.
type Config struct {
	// Server is the server's id. It is used in texts, and is a part of the key under which the sign-in is stored.
	Server string
	// URL is the server's address, as in its specification. A sign-in is stored for this address and used for no other.
	URL string
	// Store keeps the sign-in, and Locks let one process refresh at a time. All processes that share the Store must share the
	// Locks.
	Store auth.Store
	Locks *auth.Locks

	// Grant is the way to get tokens; nil is AuthorizationCode, a person in a browser.
	Grant Grant

	// ClientID and, for a confidential client, ClientSecret or Key are credentials that were registered beforehand. They are
	// preferred to a metadata document and to a registration.
	ClientID, ClientSecret string
	// Key signs client assertions (private_key_jwt) in place of a secret.
	Key *Key
	// Issuer is the authorization server that ClientID is registered with; the server may name no other one. If Issuer and
	// TokenURL are empty, a client secret and the secrets that a grant sends (a token to exchange, an assertion) go only to an
	// authorization server that a person has confirmed (Confirm), and a ClientID without a secret goes to the first authorization
	// server that it is used with. Either is remembered, also over a sign-out, and they are used with no other.
	Issuer string
	// ClientMetadataURL is the https URL of a client-id metadata document that describes this client. The URL is the client id at
	// authorization servers that support such documents. Its redirect_uris must hold the redirect URL in use.
	ClientMetadataURL string
	// ClientName is the name that people see after a dynamic registration; "mcpvisor" if empty.
	ClientName string

	// AuthURL and TokenURL are the endpoints, for servers that publish no metadata. If they are set, nothing is discovered, and
	// PKCE is assumed to be supported. AuthURL is not needed for grants without a person.
	AuthURL, TokenURL string
	// Resource replaces the resource parameter that is discovered (in most cases the server's own URL). A metadata document about
	// this resource is accepted, whatever the server's URL is: set it only to a resource that you know.
	Resource string
	// Scopes are requested in place of those that the server proposes. A step-up may add more.
	Scopes []string

	// RedirectURL replaces http://127.0.0.1:PORT/callback: it is the URL that was registered, or that stands in the client-id
	// metadata document. Login listens on its port if its host is this machine.
	RedirectURL string
	// CallbackPort is the port that Login listens on at 127.0.0.1; with 0 it uses the one of the last registration if that is
	// free, else any free one. Set it if the authorization server compares ports, or if a firewall or an ssh -L must know it.
	CallbackPort int

	// Interactive, if set, lets Authorize and Refused begin a sign-in by themselves: it takes a person (or a test) to ask.URL and
	// returns the address that the browser was redirected to. At most three are begun within five minutes, so that a server that
	// refuses every token does not open pages without an end. nil (the default) leaves sign-ins to Login.
	Interactive Interactive

	// Confirm asks a person, during sign-ins that requests begin, before a secret goes to an authorization server that the server
	// has named and no person has confirmed; see Prompt.Confirm. nil refuses.
	Confirm Confirm

	// Early is the time before its end at which a token is refreshed; each process adds a random part of up to half of it, so
	// that not all refresh at once. 0 means a fifth of the token's life, between 5 s and 5 min. A longer time survives a longer
	// outage of the token endpoint and costs more refreshes.
	Early time.Duration
	// TLS returns the configuration of connections to the server itself (a company's own authority, a client certificate). It is
	// called for each connection; nil means the system's settings. Authorization servers are verified by the system's
	// authorities.
	TLS func() (*tls.Config, error)
	// AllowHTTP accepts endpoints over plain http on other machines. Every machine on the way can read tokens and codes then.
	AllowHTTP bool
	// Transport sends the requests to the authorization server and for metadata in place of the guarded one. It must itself
	// refuse private addresses.
	Transport http.RoundTripper
}

// New makes an Authorizer. It reads and sends nothing. The error is a *transports.Error of ClassConfig, whose text holds no value
// of the configuration but its URLs.
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
	// Defaults come after the checks, which look at what the person wrote.
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
	// The person who configured these hosts may have put them into a private network; a server may not.
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

// canonicalURL returns the server's URL as a resource identifier.
//
// 2026-07-28, Canonical Server URI: "While the canonical form uses lowercase scheme and host components … implementations SHOULD
// consistently use the form without the trailing slash for better interoperability unless the trailing slash is semantically
// significant". The last slash of a path is kept, because only the server knows what it means.
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
	// The default port is left out, so that equal servers have equal keys in the store.
	if port != "" && !(u.Scheme == "http" && port == "80") && !(u.Scheme == "https" && port == "443") {
		host += ":" + port
	}
	u.Host, u.User, u.Fragment, u.RawFragment = host, nil, "", ""
	if u.Path == "/" {
		u.Path, u.RawPath = "", ""
	}
	return u, nil
}
