package oauth

import (
	"net/netip"
	"net/url"
	"strings"

	"github.com/mcpvisor/mcpvisor/transports/addresses"
)

// maxURL bounds an address that a stranger names, in bytes, because it is shown to a person, stored, and sent on.
const maxURL = 8 << 10

// checkWellFormed refuses an address of a stranger that people, browsers and this program may read differently: anything but
// printable ASCII, user information, fragments, escapes in the host, and hosts that browsers take for an address in another
// writing (127.1, 0x7f000001).
//
// RFC 6749, 3.1 and 3.2: "The endpoint URI MUST NOT include a fragment component." RFC 8414, 2, says the same of issuers.
func checkWellFormed(raw string) error {
	if len(raw) > maxURL {
		return refusalError("has an address of more than 8 KiB")
	}
	if !isPrintable(raw) || strings.ContainsAny(raw, "\\\"<>^`{|}#") {
		return refusalError("is not a usable URL")
	}
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Opaque != "" {
		return refusalError("is not a usable URL")
	}
	if !isPlainHost(u.Host) {
		return refusalError("has a host that is written in an unusual way")
	}
	return nil
}

// isPrintable reports whether s has visible ASCII characters alone.
func isPrintable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// isPlainHost reports whether a host, with or without a port, reads the same for every program.
func isPlainHost(host string) bool {
	for i := range len(host) {
		switch c := host[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._:[]", c) >= 0:
		default:
			return false
		}
	}
	// The port is no part of the name; a colon inside brackets belongs to an IPv6 address.
	name := host
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		name = host[:i]
	}
	if strings.HasPrefix(name, "[") {
		_, err := netip.ParseAddr(strings.Trim(name, "[]"))
		return err == nil
	}
	// A final dot makes a name absolute and changes nothing else.
	name = strings.TrimSuffix(name, ".")
	last := strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		// The URL standard of browsers takes a host with such an end for an IPv4 address.
		_, err := netip.ParseAddr(name)
		return err == nil
	}
	return true
}

// checkURL checks the text of an address that a stranger names. The address that it leads to is checked on the connection.
//
// 2026-07-28, security considerations: "All authorization server endpoints MUST be served over HTTPS."
func (w *guardedTransport) checkURL(raw string) error {
	u, err := url.Parse(raw)
	// The MCP server's own host is the person's choice, however it is written.
	own := err == nil && w.isServerURL(u) && u.User == nil && !strings.Contains(raw, "#") && len(raw) <= maxURL
	if !own {
		if err := checkWellFormed(raw); err != nil {
			return err
		}
	}
	switch {
	case u.Scheme == "https":
	case u.Scheme == "http" && (w.allowHTTP || addresses.ThisMachine(u.Hostname())):
	default:
		return refusalError("does not use https")
	}
	return nil
}

// checkPage checks an address that a browser is to open. It looks up no name, because the browser does that itself; over https a
// page at a private address would have to show a certificate for the name.
func (w *guardedTransport) checkPage(u *url.URL, serverZone networkZone) error {
	zone := zoneOfHost(u.Hostname())
	if zone == zonePublic || w.trusted[u.Host] || zone < zoneForbidden && zone <= serverZone {
		return nil
	}
	return refusalError("is inside a private network or on this machine, and the MCP server is not")
}

// refusalError is this package's refusal of an address, in words that follow the name of a host.
type refusalError string

func (r refusalError) Error() string { return string(r) }
