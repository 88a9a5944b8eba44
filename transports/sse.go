package transports

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/mcpvisor/mcpvisor/messages"
)

// SSE is the HTTP+SSE transport of the specification version 2024-11-05: one stream of events from the server, opened
// by GET, and a POST for each message to it.
//
// Dial returns after the server has named the address for messages, which must be in the origin of the URL. Send
// returns when the server has accepted the message; answers arrive on the stream. The end of the stream is the end of the
// connection, at once: what the server would have said is lost.
type SSE struct {
	origin *origin
	err    *Error
}

var _ Transport = (*SSE)(nil)

// NewSSE makes a transport. A configuration that cannot work is reported by Dial. FallbackSSE and Grace mean nothing
// here.
func NewSSE(cfg HTTPConfig) *SSE {
	t := &SSE{}
	t.origin, t.err = newOrigin(cfg)
	return t
}

// Kind implements Transport.
func (t *SSE) Kind() messages.TransportKind { return messages.SSE }

// Dial implements Transport.
func (t *SSE) Dial(ctx context.Context, sink Sink) (Conn, error) {
	switch {
	case t.err != nil:
		return nil, t.err
	case ctx.Err() != nil:
		return nil, contextError(ctx, "connecting to "+t.origin.label)
	}
	l := newRequestLifetime(sink)
	c, err := openSSE(ctx, t.origin.forConnection(), l)
	if err != nil {
		l.cancel()
		return nil, err
	}
	return c, nil
}

// sseConn is one connection of SSE.
type sseConn struct {
	origin      *origin
	lifetime    *lifetime
	postURL     *url.URL // where messages go
	postHeaders atomic.Pointer[headerSet]
}

var _ Conn = (*sseConn)(nil)

// openSSE opens the stream and waits for the address. It gives the connection to l; if it fails, nothing is left of it
// and l is as it was.
func openSSE(ctx context.Context, o *origin, l *lifetime) (*sseConn, *Error) {
	stream, cancel := context.WithCancel(l.ctx)
	stop := context.AfterFunc(ctx, cancel)
	fail := func(err error) (*sseConn, *Error) {
		stop()
		cancel()
		switch {
		case l.endError() != nil:
			return nil, l.endError()
		case ctx.Err() != nil:
			return nil, contextError(ctx, "connecting to "+o.label)
		}
		return nil, o.networkError(err, "")
	}
	resp, _, err := o.roundTrip(stream, http.MethodGet, o.url,
		&headerSet{own: http.Header{"Accept": {mediaEventStream}}}, nil)
	if err != nil {
		return fail(err)
	}
	r := newEventReader(resp.Body, o.limit, memoryReservation{share: o.share, connEnded: l.ctx.Done()})
	c := &sseConn{lifetime: l}
	if c.postURL, err = o.readEndpoint(resp, r, cancel); err == nil && !stop() {
		err = ctx.Err()
	}
	if err == nil && !l.enter() {
		err = l.endError()
	}
	if err != nil {
		r.releaseBuffers()
		defer func() { _ = resp.Body.Close() }() // after cancel, which ends what may still be coming
		return fail(err)
	}
	c.origin = o.withQuerySecrets(c.postURL)
	c.Negotiated("")
	go func() {
		defer l.leaveRecovering()
		defer cancel()
		defer func() { _ = resp.Body.Close() }()
		defer r.releaseBuffers()
		l.endConn(c.readStream(r))
	}()
	return c, nil
}

// readEndpoint reads the stream up to the address for messages.
//
// 2024-11-05, HTTP with SSE: "When a client connects, the server MUST send an endpoint event containing a URI for the
// client to use for sending messages."
//
// An address in another origin is refused: the messages, and the credentials with them, would go to the host that the server
// names.
func (o *origin) readEndpoint(resp *http.Response, r *eventReader, cancel func()) (*url.URL, error) {
	if resp.StatusCode != http.StatusOK {
		return nil, o.statusError(resp, readErrorBody(resp.Body, cancel), "")
	}
	if mediaType(resp.Header) != mediaEventStream {
		return nil, &Error{Class: messages.ClassProtocol, Status: resp.StatusCode,
			Text: o.label + " answered with something else than an event stream",
			Fix:  "check that the URL is the stream of an HTTP+SSE server"}
	}
	for {
		e, err := r.nextEvent()
		switch {
		case errors.Is(err, io.EOF):
			return nil, &Error{Class: messages.ClassNetwork, Err: err,
				Text: o.label + " closed the event stream before it named the address for messages"}
		case err != nil:
			return nil, err
		case e.name != "endpoint":
			continue
		}
		base := o.url
		if resp.Request != nil && resp.Request.URL != nil {
			base = resp.Request.URL // after redirects
		}
		target, err := base.Parse(strings.TrimSpace(string(e.data)))
		if err != nil || len(e.data) == 0 {
			return nil, &Error{Class: messages.ClassProtocol,
				Text: o.label + " named an address for messages that is not a URL"}
		}
		if !sameOrigin(o.url, target) {
			return nil, &Error{Class: messages.ClassProtocol, Fix: "put that server's own URL into the configuration",
				Text: o.label + " wants messages to be sent to another origin, " +
					messages.Line(target.Scheme+"://"+hostPort(target), 200)}
		}
		target.User, target.Fragment, target.RawFragment = nil, "", ""
		return target, nil
	}
}

// readStream delivers messages until the stream ends, and says why it did.
func (c *sseConn) readStream(r *eventReader) *Error {
	x := exchange{origin: c.origin, lifetime: c.lifetime} // of no message: which one is whose answer is the session's business
	for {
		e, err := r.nextEvent()
		switch {
		case errors.Is(err, io.EOF):
			return &Error{Class: messages.ClassNetwork, Err: err, Text: c.origin.label + " closed the event stream"}
		case errors.Is(err, errEndlessEvent):
			return &Error{Class: messages.ClassProtocol, Err: err,
				Text: c.origin.label + " sent a message without an end"}
		case err != nil:
			return c.origin.networkError(err, "")
		}
		x.deliverEvent(e)
	}
}

// Send implements Conn.
func (c *sseConn) Send(ctx context.Context, m Message) (Delivery, error) {
	if ctx.Err() != nil {
		return NotWritten, contextError(ctx, "sending to "+c.origin.label)
	}
	if !c.lifetime.enter() {
		return NotWritten, c.lifetime.endError()
	}
	x := newExchange(ctx, c.origin, c.lifetime, m)
	defer x.endExchange()
	resp, d, err := c.origin.roundTrip(x.ctx, http.MethodPost, c.postURL, c.postHeaders.Load(), &x.body)
	switch {
	case err != nil:
		return d, x.exchangeError(err)
	case resp.StatusCode/100 != 2:
		return Written, x.readRefusal(resp)
	}
	x.drainResponse(resp, "")
	return Written, nil
}

// Negotiated implements Conn.
func (c *sseConn) Negotiated(protocolVersion string) {
	h := sessionHeader("", protocolVersion)
	h["Content-Type"] = []string{"application/json"}
	c.postHeaders.Store(&headerSet{own: h})
}

// Close implements Conn.
func (c *sseConn) Close(ctx context.Context) error { return c.lifetime.close(ctx) }

// Released implements Conn.
func (c *sseConn) Released() <-chan struct{} { return c.lifetime.released }

// Info implements Conn.
func (c *sseConn) Info() Info { return Info{} }
