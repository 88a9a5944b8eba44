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

// outside performs downloads. Publishers choose their addresses, and so could have this machine ask its own services,
// those of its network, or a cloud's for credentials. Addresses are judged when they are dialled, at each redirect as well,
// so that nothing is gained by what a name means in between. Behind a proxy, which looks names up, and with a transport
// of the caller's own only what is written in the URL can be judged.
//
// A registry that is itself at such an address is somebody's own, and its bundles may be there, too.
type outside struct {
	given   http.RoundTripper // of Options.HTTP, or that of the registry
	direct  http.RoundTripper // judges what it dials; nil if the caller's own is used
	proxy   func(*http.Request) (*url.URL, error)
	written bool        // the registry's URL names a special address
	inside  atomic.Bool // a connection to the registry was made to a special address
	public  atomic.Bool // one was made to another
}

// dialTime bounds the making of one connection.
const dialTime = 15 * time.Second

// newOutside makes the performer of downloads for a registry. own is nil if mcpvisor's usual transport is used.
func newOutside(base *url.URL, own http.RoundTripper) *outside {
	o := &outside{given: own}
	_, o.written = addresses.Written(base.Hostname())
	if own != nil {
		return o
	}
	t := transports.NewClient().Transport.(*http.Transport)
	o.given, o.proxy = t, http.ProxyFromEnvironment
	direct := t.Clone()
	direct.Proxy, direct.DisableKeepAlives = nil, true
	direct.DialContext = (&net.Dialer{Timeout: dialTime, Control: judge}).DialContext
	o.direct = direct
	return o
}

// judge sees the address that is about to be dialled.
func judge(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return refusal("has no usable address")
	}
	if kind, special := addresses.Special(at.Addr()); special {
		return leads(at.Addr().String(), kind)
	}
	return nil
}

func leads(to, kind string) error {
	return refusal("leads to " + messages.Line(to, 100) + ", a " + kind + " address, and the registry is not at one")
}

// RoundTrip implements http.RoundTripper, for downloads.
func (o *outside) RoundTrip(q *http.Request) (*http.Response, error) {
	if o.near() {
		return o.given.RoundTrip(q)
	}
	if kind, special := addresses.Written(q.URL.Hostname()); special {
		return nil, leads(q.URL.Hostname(), kind)
	}
	if o.direct == nil || o.proxied(q) {
		return o.given.RoundTrip(q)
	}
	return o.direct.RoundTrip(q)
}

// near reports whether the registry is on this machine or in its network. Of several addresses the public one counts.
func (o *outside) near() bool { return o.written || o.inside.Load() && !o.public.Load() }

func (o *outside) proxied(q *http.Request) bool {
	if o.proxy == nil {
		return false
	}
	via, err := o.proxy(q)
	return err != nil || via != nil
}

// watch takes note of where the registry is when the request, which is for the registry, gets its connection. Over https
// the certificate was right by then.
func (o *outside) watch(q *http.Request) *http.Request {
	if o.direct == nil || o.proxied(q) {
		return q
	}
	return q.WithContext(httptrace.WithClientTrace(q.Context(), &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { o.reached(info.Conn.RemoteAddr().String()) },
	}))
}

func (o *outside) reached(address string) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return
	}
	if _, special := addresses.Special(at.Addr()); special {
		o.inside.Store(true)
	} else {
		o.public.Store(true)
	}
}

// asking performs requests to the registry.
type asking struct{ *outside }

// RoundTrip implements http.RoundTripper, for the registry.
func (a asking) RoundTrip(q *http.Request) (*http.Response, error) {
	return a.given.RoundTrip(a.watch(q))
}
