package origin

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
)

// HeaderSet has the headers that a kind of request adds to the configured ones, for as long as the session and its version stay
// the same. own is immutable; merged keeps the last result of mergeHeaders.
type HeaderSet struct {
	// Own holds the headers that this kind of request adds; no code writes to it after the set was made.
	Own    http.Header
	merged atomic.Pointer[mergedHeader]
}

// mergedHeader has all headers of a request that carries the credentials in auth.
type mergedHeader struct{ auth, all http.Header }

// mergeHeaders returns all headers of a request: the credentials in used replace configured headers, and those of f replace both.
// The caller must not write to the result if o shares headers; then it is made once for all requests with these credentials.
func (o *Origin) mergeHeaders(f *HeaderSet, used http.Header) http.Header {
	if w := f.merged.Load(); w != nil && o.sharesHeaders && sameHeader(w.auth, used) {
		return w.all
	}
	// Two requests may come here at once and both make the map: the last one stays, and both are right.
	all := make(http.Header, len(o.Header)+len(used)+len(f.Own))
	maps.Copy(all, o.Header)
	maps.Copy(all, used)
	maps.Copy(all, f.Own)
	if o.sharesHeaders {
		f.merged.Store(&mergedHeader{used, all})
		return all
	}
	for k, v := range all {
		all[k] = slices.Clip(v) // the values are shared: appending to one must copy it
	}
	return all
}

// newRequest builds one request. body may be nil. It skips http.NewRequest, which would parse the URL for every message.
func (o *Origin) newRequest(ctx context.Context, method string, u *url.URL, used http.Header, f *HeaderSet, body *RequestBody) *http.Request {
	if !o.sharesHeaders {
		// A RoundTripper of another program that changes its request must not change the next one.
		target := *u
		u = &target
	}
	req := (&http.Request{
		Method: method, URL: u, Host: o.host, Header: o.mergeHeaders(f, used),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	if body != nil {
		req.Body = body.newReader()
		// net/http calls GetBody when it repeats a request on another connection.
		req.GetBody = func() (io.ReadCloser, error) { return body.newReader(), nil }
		req.ContentLength = int64(len(body.data))
	}
	return req
}
