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

// fields are the headers that a kind of request adds to the configured ones, for as long as a session and its version
// stay what they are. They are immutable.
type fields struct {
	own   http.Header
	whole atomic.Pointer[wholeHeader]
}

// wholeHeader is everything that a request carries with the credentials in used.
type wholeHeader struct{ used, all http.Header }

// header is the header of a request: the credentials in used come on top of the configured headers, and f on top of both.
// It must not be written to if o shares; then it is made once for all requests with these credentials.
func (o *origin) headerOf(f *fields, used http.Header) http.Header {
	if w := f.whole.Load(); w != nil && o.shares && sameHeader(w.used, used) {
		return w.all
	}
	all := make(http.Header, len(o.header)+len(used)+len(f.own))
	maps.Copy(all, o.header)
	maps.Copy(all, used)
	maps.Copy(all, f.own)
	if o.shares {
		f.whole.Store(&wholeHeader{used, all})
		return all
	}
	for k, v := range all {
		all[k] = slices.Clip(v) // the slices are shared: appending to one must copy it
	}
	return all
}

// request builds one request. body may be nil.
func (o *origin) request(ctx context.Context, method string, u *url.URL, used http.Header, f *fields, body *sendBody) *http.Request {
	if !o.shares {
		target := *u // a RoundTripper that changes its request must not change the next one
		u = &target
	}
	req := (&http.Request{
		Method: method, URL: u, Host: o.host, Header: o.headerOf(f, used),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	if body != nil {
		req.Body = body.reader()
		req.GetBody = func() (io.ReadCloser, error) { return body.reader(), nil }
		req.ContentLength = int64(len(body.data))
	}
	return req
}
