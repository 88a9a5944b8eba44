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

// SSE is the HTTP+SSE transport of the specification version 2024-11-05: one stream of events from the server, opened by GET, and
// a POST for each message to it.
//
// Dial returns after the server has named the address for messages, which must be in the origin of the URL. Send returns when the
// server has accepted the message; the answer arrives on the stream. The end of the stream is the end of the connection, at once,
// because nothing in this version lets the client fetch the events that it has missed.
type SSE struct {
	// err is the fault of the configuration that Dial returns; origin is nil then.
	origin *origin
	err    *Error
}

var _ Transport = (*SSE)(nil)

// NewSSE makes a transport and connects to nothing. A configuration that cannot work is reported by Dial. FallbackSSE and Grace
// have no effect here.
func NewSSE(cfg HTTPConfig) *SSE {
	t := &SSE{}
	t.origin, t.err = newOrigin(cfg.originConfig())
	return t
}

// Kind implements Transport.
func (t *SSE) Kind() messages.TransportKind { return messages.SSE }

// Dial implements Transport. It blocks until the server has named the address for messages, or until ctx ends.
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

// sseConn is one connection of SSE. Its one goroutine reads the stream; senders run in their callers' goroutines.
type sseConn struct {
	origin   *origin
	lifetime *lifetime
	// postURL is the address for messages, which the server has named on the stream.
	postURL *url.URL
	// postHeaders are the headers of each POST. Negotiated replaces them when the version is known.
	postHeaders atomic.Pointer[headerSet]
}

var _ Conn = (*sseConn)(nil)

// openSSE opens the stream and waits for the address. If it succeeds, its goroutine reads the stream until l ends. If it fails,
// nothing is left open and l is as it was, so that HTTP's fallback can report its own error.
func openSSE(ctx context.Context, o *origin, l *lifetime) (*sseConn, *Error) {
	stream, cancel := context.WithCancel(l.ctx)
	// ctx bounds the opening alone: stop detaches it when the address is known, because the stream outlives Dial.
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
	// If ctx ended between the address and stop, the stream is being canceled already, and the opening has failed.
	if c.postURL, err = o.readEndpoint(resp, r, cancel); err == nil && !stop() {
		err = ctx.Err()
	}
	// From here on the reading goroutine counts as inside, so that Down waits until it has delivered its last message.
	if err == nil && !l.enter() {
		err = l.endError()
	}
	if err != nil {
		r.releaseBuffers()
		// Closing comes after fail has canceled the request: it would wait for bytes otherwise that may never come.
		defer func() { _ = resp.Body.Close() }()
		return fail(err)
	}
	// The address often has a session id in its query, which is a credential: errors of this connection hide it.
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

// readEndpoint reads the stream up to the event with the address for messages.
//
// 2024-11-05, HTTP with SSE: "When a client connects, the server MUST send an endpoint event containing a URI for the client to
// use for sending messages."
//
// It refuses an address in another origin, because the messages, and the credentials with them, would go to any host that the
// server names.
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
		// A relative address starts at the URL that answered, which is another one after a redirect.
		base := o.url
		if resp.Request != nil && resp.Request.URL != nil {
			base = resp.Request.URL
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
		// Credentials in the address would replace the configured ones, and a fragment is never sent.
		target.User, target.Fragment, target.RawFragment = nil, "", ""
		return target, nil
	}
}

// readStream delivers messages until the stream ends, and returns the reason as the cause of the connection's end.
func (c *sseConn) readStream(r *eventReader) *Error {
	// The exchange belongs to no message: on the common stream the session finds out which answer is whose.
	x := exchange{origin: c.origin, lifetime: c.lifetime}
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

// Send implements Conn. It returns when the server has accepted the POST; the answer to a request comes on the stream.
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
	// The body of an accepted POST says nothing. It is read so that the HTTP connection can be used again.
	x.drainResponse(resp, "")
	return Written, nil
}

// Negotiated implements Conn. Later messages carry the version in their header.
func (c *sseConn) Negotiated(protocolVersion string) {
	h := sessionHeader("", protocolVersion)
	h["Content-Type"] = []string{"application/json"}
	c.postHeaders.Store(&headerSet{own: h})
}

// Close implements Conn.
func (c *sseConn) Close(ctx context.Context) error { return c.lifetime.close(ctx) }

// Released implements Conn.
func (c *sseConn) Released() <-chan struct{} { return c.lifetime.released }

// Info implements Conn. There is nothing to say: the session id is a part of the server's address here.
func (c *sseConn) Info() Info { return Info{} }
