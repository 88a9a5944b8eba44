package origin

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/incoming"
)

// maxRedirects bounds the redirects that one request follows. All of them stay inside the origin.
const maxRedirects = 5

// RoundTrip sends one request and returns the response, whatever its status. It follows a redirect only if that keeps the method
// and the body, within the same origin; any other redirect is an *Error. Other errors are not translated.
//
// The Delivery counts only with an error. It is NotWritten if it is certain that no connection was ever given the request.
func (o *Origin) RoundTrip(ctx context.Context, method string, u *url.URL, f *HeaderSet, body *RequestBody) (
	*http.Response, transports.Delivery, error) {
	return o.sendAuthorized(ctx, func(used http.Header) (*http.Response, transports.Delivery, error) {
		return o.roundTripWith(ctx, used, method, u, f, body)
	})
}

// roundTripWith does the work of RoundTrip with the credentials in used.
func (o *Origin) roundTripWith(ctx context.Context, used http.Header, method string, u *url.URL, f *HeaderSet,
	body *RequestBody) (*http.Response, transports.Delivery, error) {
	var reached writeState
	ctx = reached.withTrace(ctx)
	for hops := 0; ; hops++ {
		resp, err := o.rt.RoundTrip(o.newRequest(ctx, method, u, used, f, body))
		// net/http has repeated the request by itself where that is safe; an error is final for this attempt.
		if err != nil {
			// After a redirect, the first server has read the message, even if the second one never got it.
			if hops > 0 || reached.mayBeWritten() {
				return nil, transports.MaybeWritten, err
			}
			return nil, transports.NotWritten, err
		}
		if resp.StatusCode/100 != 3 {
			return resp, transports.Written, nil
		}
		next, refused := o.redirectTarget(method, u, resp)
		// The rest of the body is read so that the connection can be used again.
		_, _ = io.CopyN(io.Discard, resp.Body, incoming.KeptEndSize)
		_ = resp.Body.Close()
		switch {
		case refused != nil:
			return nil, transports.Written, refused
		case hops == maxRedirects:
			return nil, transports.Written, &transports.Error{Class: messages.ClassProtocol, Status: resp.StatusCode,
				Text: fmt.Sprintf("%s redirects in circles", o.Label), Fix: "check the URL"}
		}
		// The next request goes to the same origin, with the same headers and credentials.
		u = next
	}
}

// redirectTarget returns the address that a redirect leads to, or why it is not followed.
//
// RFC 9110, 15.4: "307 (Temporary Redirect) … the user agent MUST NOT change the request method if it performs an automatic
// redirection". The other codes turn a POST into a GET in practice, and the message would be lost without a word. Another origin
// is refused because the message, and the credentials with it, would go there.
func (o *Origin) redirectTarget(method string, from *url.URL, resp *http.Response) (*url.URL, *transports.Error) {
	fail := func(text, fix string) *transports.Error {
		return &transports.Error{Class: messages.ClassProtocol, Status: resp.StatusCode,
			Text: fmt.Sprintf("%s answered with a redirect (%d)%s", o.Label, resp.StatusCode, text), Fix: fix}
	}
	to, err := from.Parse(resp.Header.Get("Location"))
	if err != nil || resp.Header.Get("Location") == "" {
		return nil, fail(" that leads nowhere", "check the URL")
	}
	if !SameOrigin(from, to) {
		return nil, fail(" to another origin, "+messages.Line(to.Scheme+"://"+HostPort(to), 200)+
			"; nothing was sent there", "put that address into the configuration if you trust it")
	}
	to.User, to.Fragment, to.RawFragment = nil, "", ""
	switch resp.StatusCode {
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return to, nil
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther:
		if method == http.MethodGet {
			return to, nil
		}
		return nil, fail(" that would turn the message into a GET", "put the new address into the configuration")
	}
	return nil, fail("", "check the URL")
}

// writeState finds out whether a request may have been written. Between the moment when net/http gives it to a connection and the
// moment when it is written, it cannot be taken back: from the first moment on it may have been delivered.
//
// A request that was given to a connection and asks for another one (GetConn again) has not been written: net/http repeats a POST
// only if nothing of it was written, or if the HTTP/2 server has said that it did not look at it.
type writeState struct {
	connWanted, connGiven atomic.Bool
	trace                 httptrace.ClientTrace
}

// withTrace returns a context by which net/http reports to r. net/http may call the functions from other goroutines.
func (r *writeState) withTrace(ctx context.Context) context.Context {
	r.trace.GetConn = func(string) { r.connGiven.Store(false); r.connWanted.Store(true) }
	r.trace.GotConn = func(httptrace.GotConnInfo) { r.connGiven.Store(true) }
	return httptrace.WithClientTrace(ctx, &r.trace)
}

// mayBeWritten reports whether the peer may have the request. It is also true for a RoundTripper that calls no trace function,
// because nothing is known then.
func (r *writeState) mayBeWritten() bool { return r.connGiven.Load() || !r.connWanted.Load() }
