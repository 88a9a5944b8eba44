package oauth

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"sync"
	"syscall"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/addresses"
)

// web sends requests to places that a server names, and a server may name a place in the person's own network. What it refuses:
//   - anything but https, and http on this machine (unless plain http is allowed);
//   - addresses that are more private than those of the MCP server itself: a server on the internet has no business
//     with a router, an intranet, or a program on this machine.
//
// Addresses are judged on the connection that is used: of an authorization server when it is dialled, of the MCP server
// on connections that web made to it. The owner of a name gains nothing by changing what it means between two look-ups,
// because no look-up decides.
//
// Hosts that the configuration names are exempt from the second: a company's identity provider may stand in its
// intranet. Behind a proxy the proxy looks names up: only names and addresses that are written out can be judged.
type web struct {
	server    *url.URL // the MCP server
	allowHTTP bool
	trusted   map[string]bool // hosts with ports, as in a URL

	direct, proxied http.RoundTripper
	own             func() http.RoundTripper // for the MCP server's origin
	proxy           func(*http.Request) (*url.URL, error)
	// probe connects to the MCP server and says the address that answered.
	probe func(context.Context) (netip.Addr, error)

	mu   sync.Mutex
	near reachOf // of the MCP server, once known
	know bool
}

// newWeb makes a web for a server. secure is how the server's own connections are made safe, nil for as the system does.
func newWeb(server *url.URL, allowHTTP bool, rt http.RoundTripper, secure func() (*tls.Config, error)) *web {
	w := &web{server: server, allowHTTP: allowHTTP, trusted: map[string]bool{}, direct: rt, proxied: rt}
	w.own = func() http.RoundTripper { return rt }
	if rt != nil {
		return w
	}
	w.proxy = http.ProxyFromEnvironment
	w.direct = transport((&net.Dialer{Timeout: dialTime, ControlContext: w.control}).DialContext, nil)
	plain := (&net.Dialer{Timeout: dialTime}).DialContext
	proxied := transport(plain, nil)
	proxied.Proxy = w.proxy
	w.proxied = proxied
	config := func() *tls.Config {
		if secure == nil {
			return nil
		}
		cfg, err := secure()
		if err != nil {
			return nil // the connection fails, or is public: both are safe
		}
		return cfg
	}
	w.own = func() http.RoundTripper {
		t := transport((&net.Dialer{Timeout: dialTime, ControlContext: w.controlOwn}).DialContext, config())
		t.Proxy = w.proxy
		return t
	}
	w.probe = func(ctx context.Context) (netip.Addr, error) { return connect(ctx, server, config()) }
	return w
}

// dialTime bounds the making of one connection.
const dialTime = 10 * time.Second

// transport keeps no connection: these requests are rare, and no code closes a connection that stays idle.
func transport(dial func(context.Context, string, string) (net.Conn, error), secure *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext: dial, TLSHandshakeTimeout: dialTime, DisableKeepAlives: true, TLSClientConfig: secure,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// connect makes a connection to a server and ends it. Over https the address is that of a machine which has shown a
// certificate for the server's name.
func connect(ctx context.Context, server *url.URL, secure *tls.Config) (netip.Addr, error) {
	port := server.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[server.Scheme]
	}
	address := net.JoinHostPort(server.Hostname(), port)
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	var conn net.Conn
	var err error
	if server.Scheme == "https" {
		conn, err = (&tls.Dialer{Config: secure}).DialContext(ctx, "tcp", address)
	} else {
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}
	if err != nil {
		return netip.Addr{}, err
	}
	defer func() { _ = conn.Close() }()
	return remote(conn), nil
}

// remote is the address at the other end, the zero Addr if it is none of IP.
func remote(conn net.Conn) netip.Addr {
	at, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr()
}

// trust exempts the host of a URL that the configuration names.
func (w *web) trust(raw string) {
	if u, err := url.Parse(raw); err == nil && u.Host != "" {
		w.trusted[u.Host] = true
	}
}

// trustedKey marks the context of a request to a trusted host; dialling keeps a request's values.
type trustedKey struct{}

// askKey marks the context of a request that is for the MCP server itself and carries nothing: plain http to it is the
// configuration's wish.
type askKey struct{}

// RoundTrip implements http.RoundTripper.
func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	via := (*url.URL)(nil)
	if w.proxy != nil {
		via, _ = w.proxy(r)
	}
	if r.Context().Value(askKey{}) == nil {
		if err := w.check(r.URL.String()); err != nil {
			return nil, err
		}
	}
	if w.ofServer(r.URL) {
		return w.roundTripOwn(r, via != nil)
	}
	if w.trusted[r.URL.Host] {
		r = r.WithContext(context.WithValue(r.Context(), trustedKey{}, true))
	}
	if via == nil {
		return w.direct.RoundTrip(r)
	}
	if err := w.allow(r.Context(), reachByName(r.URL.Hostname())); err != nil {
		return nil, err
	}
	return w.proxied.RoundTrip(r)
}

// roundTripOwn sends a request to the MCP server and takes note of where it is.
func (w *web) roundTripOwn(r *http.Request, proxied bool) (*http.Response, error) {
	if !proxied {
		r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
			// Over https the handshake is over by now, and the certificate was right.
			GotConn: func(info httptrace.GotConnInfo) { w.reached(remote(info.Conn)) },
		}))
	}
	return w.own().RoundTrip(r)
}

// ofServer reports whether a URL is of the MCP server's origin.
func (w *web) ofServer(u *url.URL) bool { return sameOrigin(u, w.server) }

// sameOrigin compares scheme, host and port (RFC 6454).
func sameOrigin(x, y *url.URL) bool {
	a, err := canonical(x.Scheme + "://" + x.Host)
	if err != nil {
		return false
	}
	b, err := canonical(y.Scheme + "://" + y.Host)
	return err == nil && a.Scheme == b.Scheme && a.Host == b.Host
}

// control sees the address that is about to be dialled.
func (w *web) control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return refusal("has no usable address")
	}
	return w.reachable(ctx, at.Addr())
}

// controlOwn keeps a server over plain http, which anybody can pretend to be, where it has been.
func (w *web) controlOwn(_ context.Context, _, address string, _ syscall.RawConn) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, err := netip.ParseAddrPort(address)
	if err != nil || w.server.Scheme != "https" && w.know && reach(at.Addr()) > w.near && reach(at.Addr()) != public {
		return refusal("is at an address inside a private network now, and was not before")
	}
	return nil
}

func (w *web) reachable(ctx context.Context, ip netip.Addr) error { return w.allow(ctx, reach(ip)) }

// allow judges how far away something may be used from.
func (w *web) allow(ctx context.Context, far reachOf) error {
	if far == public || ctx.Value(trustedKey{}) != nil {
		return nil
	}
	if far < never && far <= w.nearness(ctx) {
		return nil
	}
	return refusal("has an address inside a private network, and the MCP server is not in one")
}

// reached takes note of an address that a connection to the MCP server was made to. Of several the most public counts.
func (w *web) reached(ip netip.Addr) {
	w.mu.Lock()
	defer w.mu.Unlock()
	far := reach(ip)
	if far == never { // no place that anything follows from
		far = public
	}
	if !w.know || far < w.near {
		w.near, w.know = far, true
	}
}

// nearness is the reach of the MCP server itself.
func (w *web) nearness(ctx context.Context) reachOf {
	if near, ok := w.known(); ok {
		return near
	}
	host := w.server.Hostname()
	ip, err := netip.ParseAddr(host)
	switch {
	case err == nil:
	case addresses.ThisMachine(host):
		ip = netip.IPv6Loopback()
	case w.viaProxy():
		return reachByName(host)
	case w.probe == nil:
		return public
	default:
		if ip, err = w.probe(ctx); err != nil {
			return public
		}
	}
	w.reached(ip)
	near, _ := w.known()
	return near
}

func (w *web) known() (near reachOf, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.near, w.know
}

// viaProxy reports whether requests to the MCP server go through a proxy.
func (w *web) viaProxy() bool {
	if w.proxy == nil {
		return false
	}
	via, err := w.proxy(&http.Request{URL: w.server})
	return err == nil && via != nil
}
