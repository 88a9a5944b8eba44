package config

import (
	"net/url"
	"path"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/addresses"
)

// RefusesURL returns the rule that keeps an address from being reached; empty if none does. Refuses calls it for the URLs of a
// server, and the command install for the registry.
func (p Policy) RefusesURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		// An address that cannot be parsed is refused elsewhere, as one that cannot be dialled.
		return ""
	}
	// A denied address stays denied whatever the other list allows.
	for _, pattern := range p.DenyURLs {
		if matchURL(pattern, u, false) {
			return "denyURLs" + p.originText() + " refuses " + quoteShort(u.Host) + " by " + quoteShort(messages.RedactURL(pattern))
		}
	}
	// Without the list every address is allowed; an empty one allows none.
	if p.AllowURLs == nil {
		return ""
	}
	for _, pattern := range p.AllowURLs {
		if matchURL(pattern, u, true) {
			return ""
		}
	}
	// The proposed line leaves the path out, because it may hold a secret.
	return "allowURLs" + p.originText() + " does not allow " + quoteShort(u.Host) + allowingLine("allowURLs", u.Scheme+"://"+u.Host)
}

// urlsOf returns the URLs that a spec names, the server's own first: those that mcpvisor reaches, those to which it sends
// credentials, and those from which it gets them. A redirect to this machine is the usual one and reaches no other machine. A
// resource counts only if it is an address; some servers use a plain name.
func urlsOf(s messages.Spec) []string {
	// A stdio server reaches addresses of its own, which no entry names.
	if !s.Kind().Remote() {
		return nil
	}
	all := []string{s.URL}
	a := s.Auth
	if a == nil {
		return all
	}
	for _, raw := range []string{a.AuthURL, a.TokenURL, a.Issuer, a.ClientMetadataURL} {
		if raw != "" {
			all = append(all, raw)
		}
	}
	if u, err := url.Parse(a.RedirectURL); err == nil && a.RedirectURL != "" && !addresses.ThisMachine(u.Hostname()) {
		all = append(all, a.RedirectURL)
	}
	if u, err := url.Parse(a.Resource); err == nil && (u.Scheme == "https" || u.Scheme == "http") {
		all = append(all, a.Resource)
	}
	return all
}

// matchURL reports whether a pattern [scheme://]host[:port][/path] names u. In an allow list a missing port means the scheme's
// own, and a path must be clean (no ".." and no "//"); in a deny list a missing port means any, and both the path and its clean
// form count.
func matchURL(pattern string, u *url.URL, allow bool) bool {
	if pattern == "*" {
		return true
	}
	// A pattern without a scheme matches any.
	scheme, rest, ok := strings.Cut(pattern, "://")
	if !ok {
		scheme, rest = "", pattern
	}
	if scheme != "" && !messages.MatchPattern(strings.ToLower(scheme), strings.ToLower(u.Scheme)) {
		return false
	}
	host, wantPath, hasPath := strings.Cut(rest, "/")
	port := ""
	// The colons of an IPv6 address stand in brackets.
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host, port = host[:i], host[i+1:]
	}
	// A final dot marks the root of DNS: "example.com." is the same host.
	host = strings.Trim(strings.ToLower(strings.TrimSuffix(host, ".")), "[]")
	if !messages.MatchPattern(host, strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))) {
		return false
	}
	own := map[string]string{"http": "80", "ws": "80", "https": "443", "wss": "443"}[strings.ToLower(u.Scheme)]
	// A missing port in the address means the scheme's own.
	actual := u.Port()
	if actual == "" {
		actual = own
	}
	switch {
	case port == "*", port == actual:
	case port == "" && (!allow || actual == own):
	default:
		return false
	}
	if !hasPath {
		return true
	}
	raw := u.Path
	if raw == "" {
		raw = "/"
	}
	// A server may resolve /a/../b to /b, so that the text of a path alone proves nothing.
	clean := path.Clean(raw)
	if strings.HasSuffix(raw, "/") && clean != "/" {
		clean += "/"
	}
	if allow {
		return clean == raw && messages.MatchPattern("/"+wantPath, raw)
	}
	return messages.MatchPattern("/"+wantPath, raw) || messages.MatchPattern("/"+wantPath, clean)
}
