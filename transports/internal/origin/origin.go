// Package origin sends the requests of one connection to the one place that they go to. Packages web and websocket share it: the
// configured headers, the credentials of an Authorizer and what happens when they are refused, redirects, and the errors that
// refusals and networks become.
//
// # How it fits
//
//	New(Config) ──> Origin ── ForConnection ──> RoundTrip ──> authorize ──> follow redirects within the origin ──> response
//	                                                 ^────────── refused: ask the Authorizer once ──┘
//
// No text that leaves the package holds a configured value, a credential or a session id: [Origin.RedactText] knows them all.
//
// # Guarantees
//
//   - Nothing is sent to another origin, whatever a redirect says, and no credentials go in the clear to another machine unless the
//     configuration allows that.
//   - A refused request asks the Authorizer once and is sent again at most once. Requests that are refused together share one call.
//   - An error says how far the request got. NotWritten is said only if no connection was ever given it, because the caller of a
//     tool may send a call again after that.
//
// # Locks
//
// The mutex of a connection's credentials is taken last and is not held while the Authorizer works, which may take as long as a
// person needs for a sign-in. The mutex of a [RequestBody] is held only while bytes are copied.
//
// # Not promised
//
// A text is free of the secrets that this process knows. A server can still repeat one in a form that messages.WrittenForms does not
// have.
package origin

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/budget"
	"github.com/mcpvisor/mcpvisor/transports/httpclient"
	"github.com/mcpvisor/mcpvisor/transports/internal/redact"
)

// Origin is the one place that all requests of a connection go to: its address, the headers that every request carries, and the
// secrets that no text may hold. It is immutable and shared by the connections of a transport; only ForConnection gives each
// connection a copy with credentials of its own.
type Origin struct {
	URL  *url.URL // without user information and fragment
	host string   // the Host header, if it was configured; else empty
	// Header has the configured headers, without reserved ones, with User-Agent and maybe Authorization.
	Header http.Header
	Label  string // host:port, for people
	// secrets are the values that no text may hold, longest first.
	secrets [][]byte
	rt      http.RoundTripper
	Limit   int64 // largest message in bytes
	// sharesHeaders is true if rt is known to leave requests as they are. The common headers of a connection's requests are made
	// once then, and shared.
	sharesHeaders bool

	Share *budget.Share

	auth        transports.Authorizer // nil if there is none
	credentials *credentials          // nil until ForConnection, and if there is no auth
	caller      string                // of Dial's context, empty for none; set with credentials
}

// defaultMaxBody is the limit of one message if MaxMessage is 0.
const defaultMaxBody = 16 << 20

// sharedClient is used by HTTP and SSE if the configuration names no client. Its idle connections outlive the last user's Close
// by up to 90 s; a program that must not leave any behind uses a client of its own.
var sharedClient = sync.OnceValue(httpclient.New)

// Config holds the fields that the configuration of any kind has about its origin.
type Config struct {
	// URL is absolute, http or https.
	URL string
	// Headers go with every request; every value counts as a secret.
	Headers map[string]string
	// Auth gives each request its credentials, nil for none; PlainCredentials allows that over plain http to another machine.
	Auth             transports.Authorizer
	PlainCredentials bool
	// MaxMessage is in bytes, 0 for 16 MiB. Share is nil for no bound.
	MaxMessage int64
	Share      *budget.Share
	// Client is nil for the one that all connections share; only its Transport is used.
	Client *http.Client
}

// New checks the configuration. Its errors name keys and never values, because values may be secrets.
func New(cfg Config) (*Origin, *transports.Error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, &transports.Error{Class: messages.ClassConfig, Text: "the URL is not an absolute http or https URL",
			Fix: "write it like https://example.com/mcp"}
	}
	o := &Origin{URL: u, Header: http.Header{}, Limit: cfg.MaxMessage, Share: cfg.Share, Label: messages.Line(HostPort(u), 100)}
	if o.Limit <= 0 {
		o.Limit = defaultMaxBody
	}
	// Only the Transport counts: a client's own redirects, cookies and timeout would break the rules of this package.
	o.rt = sharedClient().Transport
	if cfg.Client != nil {
		o.rt = cfg.Client.Transport
	}
	if o.rt == nil {
		o.rt = http.DefaultTransport
	}
	// A RoundTripper of another program may change the headers of its request, although it must not.
	_, o.sharesHeaders = o.rt.(*http.Transport)
	for name, value := range cfg.Headers {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, &transports.Error{Class: messages.ClassConfig,
				Text: "the header " + messages.Line(name, 100) + " has a name or value that HTTP does not allow",
				Fix:  "look for line breaks and stray characters in it"}
		}
		// Any header may hold a key, so that every value counts as secret.
		o.addSecret(value)
		// net/http takes the host from a field of the request, and ignores the header.
		if name = textproto.CanonicalMIMEHeaderKey(name); name == "Host" {
			o.host = value
			continue
		}
		o.Header.Set(name, value)
	}
	o.takeURLSecrets()
	// Only now, after the secrets of all headers were noted: also those that are not sent must not be shown.
	maps.DeleteFunc(o.Header, func(name string, _ []string) bool { return isReservedHeader(name) })
	if o.auth = cfg.Auth; o.auth != nil {
		if err := checkCredentialURL(u, cfg.PlainCredentials); err != nil {
			return nil, err
		}
	}
	if o.Header.Get("User-Agent") == "" {
		o.Header.Set("User-Agent", "mcpvisor")
	}
	sortSecrets(o.secrets)
	return o, nil
}

// takeURLSecrets moves credentials from the URL to the header and notes the secrets in the URL. A query often holds an API key,
// so that all its values count.
func (o *Origin) takeURLSecrets() {
	if user := o.URL.User; user != nil {
		password, _ := user.Password()
		o.addSecret(password)
		if o.Header.Get("Authorization") == "" {
			basic := base64.StdEncoding.EncodeToString([]byte(user.Username() + ":" + password))
			o.addSecret(basic)
			o.Header.Set("Authorization", "Basic "+basic)
		}
		o.URL.User = nil
	}
	o.URL.Fragment, o.URL.RawFragment = "", ""
	o.addQuerySecrets(o.URL)
}

// addQuerySecrets notes every value in the query of u.
func (o *Origin) addQuerySecrets(u *url.URL) {
	for _, values := range u.Query() {
		for _, v := range values {
			o.addSecret(v)
		}
	}
}

// WithQuerySecrets returns a copy of o that also hides the values in the query of u, a session id for example.
func (o *Origin) WithQuerySecrets(u *url.URL) *Origin {
	k := *o
	k.secrets = slices.Clone(o.secrets)
	k.addQuerySecrets(u)
	sortSecrets(k.secrets)
	return &k
}

// sortSecrets puts longer ones first: one may contain the other, and would be hidden only in part.
func sortSecrets(secrets [][]byte) {
	slices.SortFunc(secrets, func(a, b []byte) int { return cmp.Compare(len(b), len(a)) })
}

// addSecret notes a value that no text may hold, and its words: of "Bearer abc", a server may repeat abc alone.
func (o *Origin) addSecret(value string) { o.secrets = appendSecret(o.secrets, value) }

// RedactText replaces every secret in a text of the server, in each form in which programs write it. extra is a secret that
// became known later (a session id), or empty. Call it before the text is cut, or use RedactStart: half a secret is not found.
func (o *Origin) RedactText(text []byte, extra string) []byte {
	return o.RedactStart(text, len(text), extra)
}

// RedactStart does the work of RedactText for the first size bytes of a text: a secret that the cut goes through is hidden whole.
func (o *Origin) RedactStart(text []byte, size int, extra string) []byte {
	// Only so much of the text can matter: a body may have megabytes.
	text = text[:min(len(text), size+messages.LongestWritten)]
	known := append(o.credentials.secretValues(), o.secrets...)
	if extra != "" {
		known = append(known, []byte(extra))
	}
	values := make([]string, len(known))
	for i, s := range known {
		values[i] = string(s)
	}
	r := redact.New(values)
	clean := []byte(r.RedactStart(string(text), size))
	// Secrets that are too short for the redactor are replaced where they stand as they are.
	for _, s := range known {
		clean = bytes.ReplaceAll(clean, s, []byte(redact.Mark))
	}
	return clean
}

// HostPort returns the host with its port, also where the URL leaves the port out, so that equal origins have equal texts.
func HostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "80"
		if u.Scheme == "https" {
			port = "443"
		}
	}
	host := strings.ToLower(u.Hostname())
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + port
}

// SameOrigin compares scheme, host and port, as RFC 6454 does.
func SameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && HostPort(a) == HostPort(b) }
