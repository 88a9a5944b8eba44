package oauth

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"
)

// web sends requests to places that a server names: that is what makes them dangerous. What it refuses:
//   - anything but https, and http on this machine (unless plain http is allowed);
//   - addresses that are more private than those of the MCP server itself: a server on the internet has no business
//     with a router, an intranet, or a program on this machine. The address that is dialled is looked at, not the
//     name's, so that a name that changes its mind between look-up and use gains nothing.
//
// Hosts that the configuration names are exempt from the second: a company's identity provider may stand in its
// intranet. Behind a proxy the proxy looks names up, and only addresses that are written out can be judged.
type web struct {
	server    string // the MCP server's host
	allowHTTP bool
	trusted   map[string]bool // hosts with ports, as in a URL

	direct, proxied http.RoundTripper
	proxy           func(*http.Request) (*url.URL, error)

	mu   sync.Mutex
	near reachOf // of the MCP server, once known
	know bool
}

// reachOf orders addresses by how far away they may be used from.
type reachOf int

const (
	public   reachOf = iota // everybody's
	private                 // RFC 1918, unique local, carrier-grade
	loopback                // this machine
	never                   // link-local (cloud metadata), multicast, unspecified
)

func newWeb(server string, allowHTTP bool, rt http.RoundTripper) *web {
	w := &web{server: server, allowHTTP: allowHTTP, trusted: map[string]bool{}, direct: rt}
	if rt != nil {
		return w
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second, ControlContext: w.control}
	w.direct = transport(dialer.DialContext)
	plain := transport((&net.Dialer{Timeout: 10 * time.Second}).DialContext)
	w.proxy = http.ProxyFromEnvironment
	plain.Proxy = w.proxy
	w.proxied = plain
	return w
}

// transport keeps no connection: these requests are rare, and nobody closes what stays idle.
func transport(dial func(context.Context, string, string) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		DialContext: dial, TLSHandshakeTimeout: 10 * time.Second, DisableKeepAlives: true,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// trust exempts the host of a URL that the configuration names.
func (w *web) trust(raw string) {
	if u, err := url.Parse(raw); err == nil && u.Host != "" {
		w.trusted[u.Host] = true
	}
}

// trustedKey marks the context of a request to a trusted host; dialling keeps a request's values.
type trustedKey struct{}

// RoundTrip implements http.RoundTripper.
func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := w.check(r.URL.String()); err != nil {
		return nil, err
	}
	if w.trusted[r.URL.Host] {
		r = r.WithContext(context.WithValue(r.Context(), trustedKey{}, true))
	}
	if w.proxy != nil {
		if via, err := w.proxy(r); err == nil && via != nil {
			if ip, err := netip.ParseAddr(r.URL.Hostname()); err == nil {
				if err := w.reachable(r.Context(), ip); err != nil {
					return nil, err
				}
			}
			return w.proxied.RoundTrip(r)
		}
	}
	return w.direct.RoundTrip(r)
}

// check judges a URL by what is written in it.
//
// 2026-07-28, security considerations: "All authorization server endpoints MUST be served over HTTPS."
func (w *web) check(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Hostname() == "" || u.User != nil:
		return refusal("is not a usable URL")
	case u.Scheme == "https":
	case u.Scheme == "http" && (w.allowHTTP || isLoopbackName(u.Hostname())):
	default:
		return refusal("does not use https")
	}
	return nil
}

// refusal is our own no, in words that follow the name of a host.
type refusal string

func (r refusal) Error() string { return string(r) }

// control sees the address that is about to be dialled.
func (w *web) control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return refusal("has no usable address")
	}
	return w.reachable(ctx, at.Addr())
}

func (w *web) reachable(ctx context.Context, ip netip.Addr) error {
	far := reach(ip)
	if far == public || ctx.Value(trustedKey{}) != nil {
		return nil
	}
	if far < never && far <= w.nearness(ctx) {
		return nil
	}
	return refusal("has an address inside a private network, and the MCP server is not in one")
}

// nearness is the reach of the MCP server itself. Of several addresses the most public counts: whoever owns the name
// must not raise it by adding one.
func (w *web) nearness(ctx context.Context) reachOf {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.know {
		return w.near
	}
	if ip, err := netip.ParseAddr(w.server); err == nil {
		w.near, w.know = reach(ip), true
		return w.near
	}
	if isLoopbackName(w.server) {
		w.near, w.know = loopback, true
		return w.near
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", w.server)
	if err != nil || len(ips) == 0 {
		return public
	}
	w.near = never
	for _, ip := range ips {
		w.near = min(w.near, reach(ip))
	}
	w.know = true
	return w.near
}

// carrierGrade is the shared address space of RFC 6598, which VPNs use as well.
var carrierGrade = netip.MustParsePrefix("100.64.0.0/10")

func reach(ip netip.Addr) reachOf {
	ip = ip.Unmap().WithZone("")
	switch {
	case ip.IsLoopback():
		return loopback
	case ip.IsPrivate(), carrierGrade.Contains(ip):
		return private
	case ip.IsGlobalUnicast() && ip != netip.AddrFrom4([4]byte{255, 255, 255, 255}) && !thisNetwork.Contains(ip) &&
		!embeds.Contains(ip):
		return public
	}
	return never
}

var (
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
	// embeds are IPv6 addresses that a translator (RFC 6052) turns into any IPv4 address.
	embeds = netip.MustParsePrefix("64:ff9b::/96")
)

// isLoopbackName reports names and addresses that mean this machine without asking anybody (RFC 6761, 6.3).
func isLoopbackName(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && ip.Unmap().IsLoopback()
}
