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

// guardedTransport sends requests to addresses that a server names, and a server may name one in the person's own network. It
// refuses:
//   - anything but https, and http on this machine (unless plain http is allowed);
//   - addresses that are more private than those of the MCP server itself: a server on the internet has no business with a
//     router, an intranet, or a program on this machine.
//
// It judges the address of the connection in use: of an authorization server when it is dialled, of the MCP server on connections
// that guardedTransport made to it. The owner of a name gains nothing by changing its address between two look-ups, because no
// look-up decides.
//
// Hosts that the configuration names are exempt from the second rule: a company's identity provider may stand in its intranet.
// Behind a proxy the proxy looks names up, so that only names and addresses as they are written can be judged.
type guardedTransport struct {
	server    *url.URL // the MCP server
	allowHTTP bool
	trusted   map[string]bool // hosts with ports, as in a URL

	// direct checks each address as it dials; proxied uses the environment's proxy. Both are Config.Transport if that is set.
	direct, proxied    http.RoundTripper
	newServerTransport func() http.RoundTripper // for the MCP server's origin
	// proxy chooses the proxy of a request; nil with Config.Transport.
	proxy func(*http.Request) (*url.URL, error)
	// probe connects to the MCP server and returns the address that answered; nil with Config.Transport.
	probe func(context.Context) (netip.Addr, error)

	// mu guards serverZone, which counts once zoneKnown is true.
	mu         sync.Mutex
	serverZone networkZone // the most public zone of the MCP server seen
	zoneKnown  bool
}

// newGuardedTransport makes the transport for one server. rt replaces it if it is not nil. secure returns the TLS configuration
// of connections to the server itself, nil for the system's settings.
func newGuardedTransport(server *url.URL, allowHTTP bool, rt http.RoundTripper, secure func() (*tls.Config, error)) *guardedTransport {
	w := &guardedTransport{server: server, allowHTTP: allowHTTP, trusted: map[string]bool{}, direct: rt, proxied: rt}
	w.newServerTransport = func() http.RoundTripper { return rt }
	// A test or an embedding program brings its own transport, which must guard itself.
	if rt != nil {
		return w
	}
	// With a proxy the address of a connection is the proxy's, which says nothing about the host.
	w.proxy = http.ProxyFromEnvironment
	w.direct = newTransport((&net.Dialer{Timeout: dialTime, ControlContext: w.checkDial}).DialContext, nil)
	plain := (&net.Dialer{Timeout: dialTime}).DialContext
	proxied := newTransport(plain, nil)
	proxied.Proxy = w.proxy
	w.proxied = proxied
	config := func() *tls.Config {
		if secure == nil {
			return nil
		}
		cfg, err := secure()
		if err != nil {
			// Without it the connection fails, or the server has a public certificate: both are safe.
			return nil
		}
		return cfg
	}
	w.newServerTransport = func() http.RoundTripper {
		t := newTransport((&net.Dialer{Timeout: dialTime, ControlContext: w.checkOwnDial}).DialContext, config())
		t.Proxy = w.proxy
		return t
	}
	w.probe = func(ctx context.Context) (netip.Addr, error) { return probeAddr(ctx, server, config()) }
	return w
}

// dialTime bounds the making of one connection, and of its TLS handshake.
const dialTime = 10 * time.Second

// newTransport makes a transport that keeps no connection, because these requests are rare, and no code would close one that
// stays idle.
func newTransport(dial func(context.Context, string, string) (net.Conn, error), secure *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext: dial, TLSHandshakeTimeout: dialTime, DisableKeepAlives: true, TLSClientConfig: secure,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// probeAddr connects to a server and closes the connection. Over https the address is that of a machine which has shown a
// certificate for the server's name, so that a forged name look-up proves nothing.
func probeAddr(ctx context.Context, server *url.URL, secure *tls.Config) (netip.Addr, error) {
	port := server.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[server.Scheme]
	}
	// A dialer wants the port also where the URL leaves it out.
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
	return remoteAddr(conn), nil
}

// remoteAddr returns the address at the other end, the zero Addr if it is not an IP address.
func remoteAddr(conn net.Conn) netip.Addr {
	at, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr()
}

// trustHost exempts the host of a URL that the configuration names from the check of its address.
func (w *guardedTransport) trustHost(raw string) {
	if u, err := url.Parse(raw); err == nil && u.Host != "" {
		w.trusted[u.Host] = true
	}
}

// trustedKey marks the context of a request to a trusted host; the context of its dial keeps the values of the request's.
type trustedKey struct{}

// serverProbeKey marks the context of a request to the MCP server itself without credentials: the configuration asks for plain
// http then, and checkURL is left out.
type serverProbeKey struct{}

// RoundTrip implements http.RoundTripper.
func (w *guardedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	via := (*url.URL)(nil)
	if w.proxy != nil {
		via, _ = w.proxy(r)
	}
	// Every request is checked here, redirects included, because net/http calls RoundTrip for each.
	if r.Context().Value(serverProbeKey{}) == nil {
		if err := w.checkURL(r.URL.String()); err != nil {
			return nil, err
		}
	}
	if w.isServerURL(r.URL) {
		return w.roundTripOwn(r, via != nil)
	}
	if w.trusted[r.URL.Host] {
		r = r.WithContext(context.WithValue(r.Context(), trustedKey{}, true))
	}
	// Without a proxy checkDial judges the address that the name has led to.
	if via == nil {
		return w.direct.RoundTrip(r)
	}
	if err := w.checkZone(r.Context(), zoneOfHost(r.URL.Hostname())); err != nil {
		return nil, err
	}
	return w.proxied.RoundTrip(r)
}

// roundTripOwn sends a request to the MCP server and notes its address for findServerZone.
func (w *guardedTransport) roundTripOwn(r *http.Request, proxied bool) (*http.Response, error) {
	if !proxied {
		r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
			// Over https the handshake is over by now, and the certificate was right.
			GotConn: func(info httptrace.GotConnInfo) { w.noteServerAddr(remoteAddr(info.Conn)) },
		}))
	}
	return w.newServerTransport().RoundTrip(r)
}

// isServerURL reports whether a URL is of the MCP server's origin.
func (w *guardedTransport) isServerURL(u *url.URL) bool { return sameOrigin(u, w.server) }

// sameOrigin compares scheme, host and port (RFC 6454).
func sameOrigin(x, y *url.URL) bool {
	a, err := canonicalURL(x.Scheme + "://" + x.Host)
	if err != nil {
		return false
	}
	b, err := canonicalURL(y.Scheme + "://" + y.Host)
	return err == nil && a.Scheme == b.Scheme && a.Host == b.Host
}

// checkDial refuses an address that is about to be dialled, after the name look-up.
func (w *guardedTransport) checkDial(ctx context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return refusalError("has no usable address")
	}
	return w.checkAddr(ctx, at.Addr())
}

// checkOwnDial keeps a server over plain http, which any machine on the way can pretend to be, from moving into a private
// network.
func (w *guardedTransport) checkOwnDial(_ context.Context, _, address string, _ syscall.RawConn) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, err := netip.ParseAddrPort(address)
	if err != nil || w.server.Scheme != "https" && w.zoneKnown && zoneOfAddr(at.Addr()) > w.serverZone && zoneOfAddr(at.Addr()) != zonePublic {
		return refusalError("is at an address inside a private network now, and was not before")
	}
	return nil
}

// checkAddr refuses an address by its zone.
func (w *guardedTransport) checkAddr(ctx context.Context, ip netip.Addr) error {
	return w.checkZone(ctx, zoneOfAddr(ip))
}

// checkZone refuses a zone that is more private than the MCP server's, unless the host is trusted. zoneForbidden is always
// refused.
func (w *guardedTransport) checkZone(ctx context.Context, zone networkZone) error {
	if zone == zonePublic || ctx.Value(trustedKey{}) != nil {
		return nil
	}
	if zone < zoneForbidden && zone <= w.findServerZone(ctx) {
		return nil
	}
	return refusalError("has an address inside a private network, and the MCP server is not in one")
}

// noteServerAddr notes an address that a connection to the MCP server was made to. Of several addresses the most public one
// counts.
func (w *guardedTransport) noteServerAddr(ip netip.Addr) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// A server with several addresses is only as private as the most public of them.
	zone := zoneOfAddr(ip)
	if zone == zoneForbidden { // nothing follows from such an address
		zone = zonePublic
	}
	if !w.zoneKnown || zone < w.serverZone {
		w.serverZone, w.zoneKnown = zone, true
	}
}

// findServerZone returns the zone of the MCP server itself. If no connection has shown it yet, it connects once; on any failure
// it returns zonePublic, which allows the least.
func (w *guardedTransport) findServerZone(ctx context.Context) networkZone {
	if near, ok := w.knownZone(); ok {
		return near
	}
	host := w.server.Hostname()
	ip, err := netip.ParseAddr(host)
	switch {
	case err == nil:
	case addresses.ThisMachine(host):
		ip = netip.IPv6Loopback()
	// The proxy looks the name up; only its text can be judged.
	case w.viaProxy():
		return zoneOfHost(host)
	case w.probe == nil:
		return zonePublic
	default:
		if ip, err = w.probe(ctx); err != nil {
			return zonePublic
		}
	}
	w.noteServerAddr(ip)
	near, _ := w.knownZone()
	return near
}

// knownZone returns the zone that connections have shown. ok is false before the first one.
func (w *guardedTransport) knownZone() (zone networkZone, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.serverZone, w.zoneKnown
}

// viaProxy reports whether requests to the MCP server go through a proxy, which hides the server's address.
func (w *guardedTransport) viaProxy() bool {
	if w.proxy == nil {
		return false
	}
	via, err := w.proxy(&http.Request{URL: w.server})
	return err == nil && via != nil
}
