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
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/addresses"
)

// downloadTransport performs downloads. Publishers choose their addresses, and so could have this machine ask its own services,
// those of its network, or a cloud's for credentials. Addresses are judged when they are dialled, at each redirect as well,
// so that nothing is gained by what a name means in between. Behind a proxy, which looks names up, and with a transport
// of the caller's own only what is written in the URL can be judged.
//
// A registry that is itself at such an address is somebody's own, and its bundles may be there, too.
type downloadTransport struct {
	fallback   http.RoundTripper // of Options.HTTP, or that of the registry
	direct     http.RoundTripper // judges what it dials; nil if the caller's own is used
	proxy      func(*http.Request) (*url.URL, error)
	specialURL bool        // the registry's URL names a special address
	sawSpecial atomic.Bool // a connection to the registry was made to a special address
	sawPublic  atomic.Bool // one was made to another
}

// dialTime bounds the making of one connection.
const dialTime = 15 * time.Second

// newDownloadTransport makes the performer of downloads for a registry. own is nil if mcpvisor's usual transport is used.
func newDownloadTransport(base *url.URL, custom http.RoundTripper) *downloadTransport {
	o := &downloadTransport{fallback: custom}
	_, o.specialURL = addresses.SpecialHost(base.Hostname())
	if custom != nil {
		return o
	}
	t := transports.NewClient().Transport.(*http.Transport)
	o.fallback, o.proxy = t, http.ProxyFromEnvironment
	direct := t.Clone()
	direct.Proxy, direct.DisableKeepAlives = nil, true
	direct.DialContext = (&net.Dialer{Timeout: dialTime, Control: checkDialAddress}).DialContext
	o.direct = direct
	return o
}

// checkDialAddress sees the address that is about to be dialled.
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

func addressRefusal(to, kind string) error {
	return refusalError("leads to " + messages.Line(to, 100) + ", a " + kind + " address, and the registry is not at one")
}

// RoundTrip implements http.RoundTripper, for downloads.
func (o *downloadTransport) RoundTrip(q *http.Request) (*http.Response, error) {
	if o.isRegistryLocal() {
		return o.fallback.RoundTrip(q)
	}
	if kind, special := addresses.SpecialHost(q.URL.Hostname()); special {
		return nil, addressRefusal(q.URL.Hostname(), kind)
	}
	if o.direct == nil || o.usesProxy(q) {
		return o.fallback.RoundTrip(q)
	}
	return o.direct.RoundTrip(q)
}

// isRegistryLocal reports whether the registry is on this machine or in its network. Of several addresses the public one counts.
func (o *downloadTransport) isRegistryLocal() bool {
	return o.specialURL || o.sawSpecial.Load() && !o.sawPublic.Load()
}

func (o *downloadTransport) usesProxy(q *http.Request) bool {
	if o.proxy == nil {
		return false
	}
	via, err := o.proxy(q)
	return err != nil || via != nil
}

// traceConn takes note of where the registry is when the request, which is for the registry, gets its connection. Over https
// the certificate was right by then.
func (o *downloadTransport) traceConn(q *http.Request) *http.Request {
	if o.direct == nil || o.usesProxy(q) {
		return q
	}
	return q.WithContext(httptrace.WithClientTrace(q.Context(), &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { o.noteAddress(info.Conn.RemoteAddr().String()) },
	}))
}

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

// registryTransport performs requests to the registry.
type registryTransport struct{ *downloadTransport }

// RoundTrip implements http.RoundTripper, for the registry.
func (a registryTransport) RoundTrip(q *http.Request) (*http.Response, error) {
	return a.fallback.RoundTrip(a.traceConn(q))
}
