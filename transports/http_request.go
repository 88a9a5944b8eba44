package transports

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
)

// headerSet are the headers that a kind of request adds to the configured ones, for as long as a session and its version
// stay what they are. They are immutable.
type headerSet struct {
	own    http.Header
	merged atomic.Pointer[mergedHeader]
}

// mergedHeader is everything that a request carries with the credentials in used.
type mergedHeader struct{ auth, all http.Header }

// header is the header of a request: the credentials in used come on top of the configured headers, and f on top of both.
// It must not be written to if o shares; then it is made once for all requests with these credentials.
func (o *origin) mergeHeaders(f *headerSet, used http.Header) http.Header {
	if w := f.merged.Load(); w != nil && o.sharesHeaders && sameHeader(w.auth, used) {
		return w.all
	}
	all := make(http.Header, len(o.header)+len(used)+len(f.own))
	maps.Copy(all, o.header)
	maps.Copy(all, used)
	maps.Copy(all, f.own)
	if o.sharesHeaders {
		f.merged.Store(&mergedHeader{used, all})
		return all
	}
	for k, v := range all {
		all[k] = slices.Clip(v) // the slices are shared: appending to one must copy it
	}
	return all
}

// newRequest builds one request. body may be nil.
func (o *origin) newRequest(ctx context.Context, method string, u *url.URL, used http.Header, f *headerSet, body *requestBody) *http.Request {
	if !o.sharesHeaders {
		target := *u // a RoundTripper that changes its request must not change the next one
		u = &target
	}
	req := (&http.Request{
		Method: method, URL: u, Host: o.host, Header: o.mergeHeaders(f, used),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	if body != nil {
		req.Body = body.newReader()
		req.GetBody = func() (io.ReadCloser, error) { return body.newReader(), nil }
		req.ContentLength = int64(len(body.data))
	}
	return req
}
