package install

import (
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/addresses"
	"github.com/mcpvisor/mcpvisor/transports/httpclient"
)

// downloadTransport performs downloads. Publishers choose the addresses, and could otherwise make this machine request
// its own services, those of its network, or the credentials of a cloud. Each address is checked when it is dialled, at
// redirects as well, so that a name which resolves differently a moment later gains nothing. Behind a proxy, which
// resolves names itself, and with a transport of the caller, only the host in the URL can be checked.
//
// A registry that is itself at such an address is a private one, and its bundles may be there, too.
type downloadTransport struct {
	// fallback is Options.HTTP, or the transport that also asks the registry.
	fallback http.RoundTripper
	// direct checks the addresses that it dials; nil if the caller gave a transport.
	direct http.RoundTripper
	// proxy returns the proxy of a request; nil if the caller gave a transport.
	proxy func(*http.Request) (*url.URL, error)
	// specialURL means that the registry's URL names an address of this machine, its network or a cloud.
	specialURL bool
	// sawSpecial is set when a connection to the registry reached such an address, and sawPublic when one reached
	// another. Requests set them concurrently.
	sawSpecial atomic.Bool
	sawPublic  atomic.Bool
}

// dialTime bounds the making of one connection.
const dialTime = 15 * time.Second

// newDownloadTransport returns the transport of downloads for a registry. custom is Options.HTTP, or nil for mcpvisor's
// usual transport.
func newDownloadTransport(base *url.URL, custom http.RoundTripper) *downloadTransport {
	o := &downloadTransport{fallback: custom}
	_, o.specialURL = addresses.SpecialHost(base.Hostname())
	if custom != nil {
		return o
	}
	t := httpclient.New().Transport.(*http.Transport)
	o.fallback, o.proxy = t, http.ProxyFromEnvironment
	// Connections are not reused, so that the check of each dial covers each request.
	direct := t.Clone()
	direct.Proxy, direct.DisableKeepAlives = nil, true
	direct.DialContext = (&net.Dialer{Timeout: dialTime, Control: checkDialAddress}).DialContext
	o.direct = direct
	return o
}

// checkDialAddress refuses to connect to a special address. net.Dialer calls it with the resolved address, after the
// name was looked up.
func checkDialAddress(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return refusalError("has no usable address")
	}
	if kind, special := addresses.Special(at.Addr()); special {
		return addressRefusal(at.Addr().String(), kind)
	}
	return nil
}

// addressRefusal returns the error for a special address.
func addressRefusal(to, kind string) error {
	return refusalError("leads to " + messages.Line(to, 100) + ", a " + kind + " address, and the registry is not at one")
}

// RoundTrip implements http.RoundTripper, for downloads.
func (o *downloadTransport) RoundTrip(q *http.Request) (*http.Response, error) {
	if o.isRegistryLocal() {
		return o.fallback.RoundTrip(q)
	}
	// The host in the URL is checked in every case: a proxy or the caller's transport resolves it itself.
	if kind, special := addresses.SpecialHost(q.URL.Hostname()); special {
		return nil, addressRefusal(q.URL.Hostname(), kind)
	}
	if o.direct == nil || o.usesProxy(q) {
		return o.fallback.RoundTrip(q)
	}
	return o.direct.RoundTrip(q)
}

// isRegistryLocal reports whether the registry is on this machine or in its network. If it was seen at both kinds of
// addresses it counts as public.
func (o *downloadTransport) isRegistryLocal() bool {
	return o.specialURL || o.sawSpecial.Load() && !o.sawPublic.Load()
}

// usesProxy reports whether a request goes through a proxy. A proxy setting that cannot be read counts as one, and the
// usual transport then reports the error.
func (o *downloadTransport) usesProxy(q *http.Request) bool {
	if o.proxy == nil {
		return false
	}
	via, err := o.proxy(q)
	return err != nil || via != nil
}

// traceConn returns a request to the registry that notes the address of its connection. Over https the certificate has
// been verified by then, so that the address is really the registry's.
func (o *downloadTransport) traceConn(q *http.Request) *http.Request {
	if o.direct == nil || o.usesProxy(q) {
		return q
	}
	return q.WithContext(httptrace.WithClientTrace(q.Context(), &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { o.noteAddress(info.Conn.RemoteAddr().String()) },
	}))
}

// noteAddress notes the remote address of a connection to the registry.
func (o *downloadTransport) noteAddress(address string) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return
	}
	if _, special := addresses.Special(at.Addr()); special {
		o.sawSpecial.Store(true)
	} else {
		o.sawPublic.Store(true)
	}
}

// registryTransport performs requests to the registry, and tells the downloadTransport where the registry is.
type registryTransport struct{ *downloadTransport }

// RoundTrip implements http.RoundTripper, for the registry.
func (a registryTransport) RoundTrip(q *http.Request) (*http.Response, error) {
	return a.fallback.RoundTrip(a.traceConn(q))
}
