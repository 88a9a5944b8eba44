package transports

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"

	"github.com/mcpvisor/mcpvisor/messages"
)

// maxRedirects is how many redirects of one request are followed. They all stay inside the origin.
const maxRedirects = 5

// roundTrip sends one request and returns the response, whatever its status. A redirect is followed only if it keeps
// the request what it is, within the same origin; any other redirect is an *Error. Other errors are not translated.
//
// The Delivery belongs to an error only. It is NotWritten if it is certain that no connection was ever given the
// request.
func (o *origin) roundTrip(ctx context.Context, method string, u *url.URL, f *headerSet, body *requestBody) (
	*http.Response, Delivery, error) {
	return o.sendAuthorized(ctx, func(used http.Header) (*http.Response, Delivery, error) {
		return o.roundTripWith(ctx, used, method, u, f, body)
	})
}

// roundTripWith is roundTrip with the credentials in used.
func (o *origin) roundTripWith(ctx context.Context, used http.Header, method string, u *url.URL, f *headerSet,
	body *requestBody) (*http.Response, Delivery, error) {
	var reached writeState
	ctx = reached.withTrace(ctx)
	for hops := 0; ; hops++ {
		resp, err := o.rt.RoundTrip(o.newRequest(ctx, method, u, used, f, body))
		if err != nil {
			if hops > 0 || reached.mayBeWritten() {
				return nil, MaybeWritten, err
			}
			return nil, NotWritten, err
		}
		if resp.StatusCode/100 != 3 {
			return resp, Written, nil
		}
		next, refused := o.redirectTarget(method, u, resp)
		_, _ = io.CopyN(io.Discard, resp.Body, keptEndSize) // so that the connection can be used again
		_ = resp.Body.Close()
		switch {
		case refused != nil:
			return nil, Written, refused
		case hops == maxRedirects:
			return nil, Written, &Error{Class: messages.ClassProtocol, Status: resp.StatusCode,
				Text: fmt.Sprintf("%s redirects in circles", o.label), Fix: "check the URL"}
		}
		u = next
	}
}

// redirectTarget is where to go next.
//
// RFC 9110, 15.4: "307 (Temporary Redirect) … the user agent MUST NOT change the request method if it performs an
// automatic redirection". The others turn a POST into a GET in practice, and the message would be lost without a word.
// Another origin is refused because it would be sent the message, and the credentials with it.
func (o *origin) redirectTarget(method string, from *url.URL, resp *http.Response) (*url.URL, *Error) {
	fail := func(text, fix string) *Error {
		return &Error{Class: messages.ClassProtocol, Status: resp.StatusCode,
			Text: fmt.Sprintf("%s answered with a redirect (%d)%s", o.label, resp.StatusCode, text), Fix: fix}
	}
	to, err := from.Parse(resp.Header.Get("Location"))
	if err != nil || resp.Header.Get("Location") == "" {
		return nil, fail(" that leads nowhere", "check the URL")
	}
	if !sameOrigin(from, to) {
		return nil, fail(" to another origin, "+messages.Line(to.Scheme+"://"+hostPort(to), 200)+
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

// writeState finds out whether a request may have been written. Between the moment when it is given to a connection and the
// moment when it is written, it cannot be taken back: from the first of them on, the request may have been delivered.
//
// A request that was given to a connection and asks for another one (GetConn again) has not been written: net/http
// repeats a POST only if nothing of it was, or if the HTTP/2 server has said that it did not look at it.
type writeState struct {
	connWanted, connGiven atomic.Bool
	trace                 httptrace.ClientTrace
}

func (r *writeState) withTrace(ctx context.Context) context.Context {
	r.trace.GetConn = func(string) { r.connGiven.Store(false); r.connWanted.Store(true) }
	r.trace.GotConn = func(httptrace.GotConnInfo) { r.connGiven.Store(true) }
	return httptrace.WithClientTrace(ctx, &r.trace)
}

// mayBeWritten is true as well for a RoundTripper that tells nothing.
func (r *writeState) mayBeWritten() bool { return r.connGiven.Load() || !r.connWanted.Load() }
