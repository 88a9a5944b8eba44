package transports

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
	"github.com/mcpvisor/mcpvisor/transports/budget"
)

// origin is the one place that all requests of a connection go to: its address, the headers that every request carries, and the
// secrets that no text may hold. It is immutable and shared by the connections of a transport; only forConnection gives each
// connection a copy with credentials of its own.
type origin struct {
	url  *url.URL // without user information and fragment
	host string   // the Host header, if it was configured; else empty
	// header has the configured headers, without reserved ones, with User-Agent and maybe Authorization.
	header http.Header
	label  string // host:port, for people
	// secrets are the values that no text may hold, longest first.
	secrets [][]byte
	rt      http.RoundTripper
	limit   int64 // largest message in bytes
	// sharesHeaders is true if rt is known to leave requests as they are. The common headers of a connection's requests are made
	// once then, and shared.
	sharesHeaders bool

	share *budget.Share

	auth        Authorizer   // nil if there is none
	credentials *credentials // nil until forConnection, and if there is no auth
}

// defaultMaxBody is the limit of one message if MaxMessage is 0.
const defaultMaxBody = 16 << 20

// sharedClient is used by HTTP and SSE if the configuration names no client. Its idle connections outlive the last user's Close
// by up to 90 s; a program that must not leave any behind uses a client of its own.
var sharedClient = sync.OnceValue(NewClient)

// originConfig is what a configuration of any kind says about its origin; HTTPConfig describes the fields.
type originConfig struct {
	url              string
	headers          map[string]string
	auth             Authorizer
	plainCredentials bool
	maxMessage       int64
	share            *budget.Share
	client           *http.Client
}

// newOrigin checks the configuration. Its errors name keys and never values, because values may be secrets.
func newOrigin(cfg originConfig) (*origin, *Error) {
	u, err := url.Parse(cfg.url)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, &Error{Class: messages.ClassConfig, Text: "the URL is not an absolute http or https URL",
			Fix: "write it like https://example.com/mcp"}
	}
	o := &origin{url: u, header: http.Header{}, limit: cfg.maxMessage, share: cfg.share, label: messages.Line(hostPort(u), 100)}
	if o.limit <= 0 {
		o.limit = defaultMaxBody
	}
	o.rt = sharedClient().Transport
	if cfg.client != nil {
		o.rt = cfg.client.Transport
	}
	if o.rt == nil {
		o.rt = http.DefaultTransport
	}
	_, o.sharesHeaders = o.rt.(*http.Transport)
	for name, value := range cfg.headers {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, &Error{Class: messages.ClassConfig,
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
		o.header.Set(name, value)
	}
	o.takeURLSecrets()
	// Only now, after the secrets of all headers were noted: also those that are not sent must not be shown.
	maps.DeleteFunc(o.header, func(name string, _ []string) bool { return isReservedHeader(name) })
	if o.auth = cfg.auth; o.auth != nil {
		if err := checkCredentialURL(u, cfg.plainCredentials); err != nil {
			return nil, err
		}
	}
	if o.header.Get("User-Agent") == "" {
		o.header.Set("User-Agent", "mcpvisor")
	}
	sortSecrets(o.secrets)
	return o, nil
}

// takeURLSecrets moves credentials from the URL to the header and notes the secrets in the URL. A query often holds an API key,
// so that all its values count.
func (o *origin) takeURLSecrets() {
	if user := o.url.User; user != nil {
		password, _ := user.Password()
		o.addSecret(password)
		if o.header.Get("Authorization") == "" {
			basic := base64.StdEncoding.EncodeToString([]byte(user.Username() + ":" + password))
			o.addSecret(basic)
			o.header.Set("Authorization", "Basic "+basic)
		}
		o.url.User = nil
	}
	o.url.Fragment, o.url.RawFragment = "", ""
	o.addQuerySecrets(o.url)
}

// addQuerySecrets notes every value in the query of u.
func (o *origin) addQuerySecrets(u *url.URL) {
	for _, values := range u.Query() {
		for _, v := range values {
			o.addSecret(v)
		}
	}
}

// withQuerySecrets returns a copy of o that also hides the values in the query of u, a session id for example.
func (o *origin) withQuerySecrets(u *url.URL) *origin {
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
func (o *origin) addSecret(value string) { o.secrets = appendSecret(o.secrets, value) }

// redactText replaces every secret in a text of the server, in each form in which programs write it. extra is a secret that
// became known later (a session id), or empty. Call it before the text is cut, or use redactStart: half a secret is not found.
func (o *origin) redactText(text []byte, extra string) []byte {
	return o.redactStart(text, len(text), extra)
}

// redactStart does the work of redactText for the first size bytes of a text: a secret that the cut goes through is hidden whole.
func (o *origin) redactStart(text []byte, size int, extra string) []byte {
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
	r := newRedactor(values)
	clean := []byte(r.redactStart(string(text), size))
	// Secrets that are too short for the redactor are replaced where they stand as they are.
	for _, s := range known {
		clean = bytes.ReplaceAll(clean, s, []byte(redactedMark))
	}
	return clean
}

// hostPort returns the host with its port, also where the URL leaves the port out, so that equal origins have equal texts.
func hostPort(u *url.URL) string {
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

// sameOrigin compares scheme, host and port, as RFC 6454 does.
func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && hostPort(a) == hostPort(b) }
