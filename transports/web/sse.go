package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/errs"
	"github.com/mcpvisor/mcpvisor/transports/internal/eventstream"
	"github.com/mcpvisor/mcpvisor/transports/internal/incoming"
	"github.com/mcpvisor/mcpvisor/transports/internal/lifetime"
	"github.com/mcpvisor/mcpvisor/transports/internal/origin"
)

// SSE is the HTTP+SSE transport of the specification version 2024-11-05: one stream of events from the server, opened by GET, and
// a POST for each message to it.
//
// Dial returns after the server has named the address for messages, which must be in the origin of the URL. Send returns when the
// server has accepted the message; the answer arrives on the stream. The end of the stream is the end of the connection, at once,
// because nothing in this version lets the client fetch the events that it has missed.
type SSE struct {
	// err is the fault of the configuration that Dial returns; origin is nil then.
	origin *origin.Origin
	err    *transports.Error
}

var _ transports.Transport = (*SSE)(nil)

// NewSSE makes a transport and connects to nothing. A configuration that cannot work is reported by Dial. FallbackSSE and Grace
// have no effect here.
func NewSSE(cfg Config) *SSE {
	t := &SSE{}
	t.origin, t.err = origin.New(cfg.originConfig())
	return t
}

// Kind implements Transport.
func (t *SSE) Kind() messages.TransportKind { return messages.SSE }

// Dial implements Transport. It blocks until the server has named the address for messages, or until ctx ends.
func (t *SSE) Dial(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	switch {
	case t.err != nil:
		return nil, t.err
	case ctx.Err() != nil:
		return nil, errs.ContextError(ctx, "connecting to "+t.origin.Label)
	}
	l := lifetime.NewForRequests(sink)
	c, err := openSSE(ctx, t.origin.ForConnection(ctx), l)
	if err != nil {
		l.Cancel()
		return nil, err
	}
	return c, nil
}

// sseConn is one connection of SSE. Its one goroutine reads the stream; senders run in their callers' goroutines.
type sseConn struct {
	origin   *origin.Origin
	lifetime *lifetime.Lifetime
	// postURL is the address for messages, which the server has named on the stream.
	postURL *url.URL
	// postHeaders are the headers of each POST. Negotiated replaces them when the version is known.
	postHeaders atomic.Pointer[origin.HeaderSet]
}

var _ transports.Conn = (*sseConn)(nil)

// openSSE opens the stream and waits for the address. If it succeeds, its goroutine reads the stream until l ends. If it fails,
// nothing is left open and l is as it was, so that HTTP's fallback can report its own error.
func openSSE(ctx context.Context, o *origin.Origin, l *lifetime.Lifetime) (*sseConn, *transports.Error) {
	stream, cancel := context.WithCancel(l.Ctx)
	// ctx bounds the opening alone: stop detaches it when the address is known, because the stream outlives Dial.
	stop := context.AfterFunc(ctx, cancel)
	fail := func(err error) (*sseConn, *transports.Error) {
		stop()
		cancel()
		switch {
		case l.EndError() != nil:
			return nil, l.EndError()
		case ctx.Err() != nil:
			return nil, errs.ContextError(ctx, "connecting to "+o.Label)
		}
		return nil, o.NetworkError(err, "")
	}
	resp, _, err := o.RoundTrip(stream, http.MethodGet, o.URL,
		&origin.HeaderSet{Own: http.Header{"Accept": {origin.MediaEventStream}}}, nil)
	if err != nil {
		return fail(err)
	}
	r := eventstream.NewReader(resp.Body, o.Limit, incoming.Reservation{Share: o.Share, ConnEnded: l.Ctx.Done()})
	c := &sseConn{lifetime: l}
	// If ctx ended between the address and stop, the stream is being canceled already, and the opening has failed.
	if c.postURL, err = readEndpoint(o, resp, r, cancel); err == nil && !stop() {
		err = ctx.Err()
	}
	// From here on the reading goroutine counts as inside, so that Down waits until it has delivered its last message.
	if err == nil && !l.Enter() {
		err = l.EndError()
	}
	if err != nil {
		r.ReleaseBuffers()
		// Closing comes after fail has canceled the request: it would wait for bytes otherwise that may never come.
		defer func() { _ = resp.Body.Close() }()
		return fail(err)
	}
	// The address often has a session id in its query, which is a credential: errors of this connection hide it.
	c.origin = o.WithQuerySecrets(c.postURL)
	c.Negotiated("")
	go func() {
		defer l.LeaveRecovering()
		defer cancel()
		defer func() { _ = resp.Body.Close() }()
		defer r.ReleaseBuffers()
		l.End(c.readStream(r))
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
func readEndpoint(o *origin.Origin, resp *http.Response, r *eventstream.Reader, cancel func()) (*url.URL, error) {
	if resp.StatusCode != http.StatusOK {
		return nil, o.StatusError(resp, origin.ReadErrorBody(resp.Body, cancel), "")
	}
	if origin.MediaType(resp.Header) != origin.MediaEventStream {
		return nil, &transports.Error{Class: messages.ClassProtocol, Status: resp.StatusCode,
			Text: o.Label + " answered with something else than an event stream",
			Fix:  "check that the URL is the stream of an HTTP+SSE server"}
	}
	for {
		e, err := r.NextEvent()
		switch {
		case errors.Is(err, io.EOF):
			return nil, &transports.Error{Class: messages.ClassNetwork, Err: err,
				Text: o.Label + " closed the event stream before it named the address for messages"}
		case err != nil:
			return nil, err
		case e.Name != "endpoint":
			continue
		}
		// A relative address starts at the URL that answered, which is another one after a redirect.
		base := o.URL
		if resp.Request != nil && resp.Request.URL != nil {
			base = resp.Request.URL
		}
		target, err := base.Parse(strings.TrimSpace(string(e.Data)))
		if err != nil || len(e.Data) == 0 {
			return nil, &transports.Error{Class: messages.ClassProtocol,
				Text: o.Label + " named an address for messages that is not a URL"}
		}
		if !origin.SameOrigin(o.URL, target) {
			return nil, &transports.Error{Class: messages.ClassProtocol, Fix: "put that server's own URL into the configuration",
				Text: o.Label + " wants messages to be sent to another origin, " +
					messages.Line(target.Scheme+"://"+origin.HostPort(target), 200)}
		}
		// Credentials in the address would replace the configured ones, and a fragment is never sent.
		target.User, target.Fragment, target.RawFragment = nil, "", ""
		return target, nil
	}
}

// readStream delivers messages until the stream ends, and returns the reason as the cause of the connection's end.
func (c *sseConn) readStream(r *eventstream.Reader) *transports.Error {
	// The exchange belongs to no message: on the common stream the session finds out which answer is whose.
	x := exchange{origin: c.origin, lifetime: c.lifetime}
	for {
		e, err := r.NextEvent()
		switch {
		case errors.Is(err, io.EOF):
			return &transports.Error{Class: messages.ClassNetwork, Err: err, Text: c.origin.Label + " closed the event stream"}
		case errors.Is(err, eventstream.ErrEndless):
			return &transports.Error{Class: messages.ClassProtocol, Err: err,
				Text: c.origin.Label + " sent a message without an end"}
		case err != nil:
			return c.origin.NetworkError(err, "")
		}
		x.deliverEvent(e)
	}
}

// Send implements Conn. It returns when the server has accepted the POST; the answer to a request comes on the stream.
func (c *sseConn) Send(ctx context.Context, m transports.Message) (transports.Delivery, error) {
	if ctx.Err() != nil {
		return transports.NotWritten, errs.ContextError(ctx, "sending to "+c.origin.Label)
	}
	if !c.lifetime.Enter() {
		return transports.NotWritten, c.lifetime.EndError()
	}
	x := newExchange(ctx, c.origin, c.lifetime, m)
	defer x.endExchange()
	resp, d, err := c.origin.RoundTrip(x.ctx, http.MethodPost, c.postURL, c.postHeaders.Load(), &x.body)
	switch {
	case err != nil:
		return d, x.exchangeError(err)
	case resp.StatusCode/100 != 2:
		return transports.Written, x.readRefusal(resp)
	}
	// The body of an accepted POST says nothing. It is read so that the HTTP connection can be used again.
	x.drainResponse(resp, "")
	return transports.Written, nil
}

// Negotiated implements Conn. Later messages carry the version in their header.
func (c *sseConn) Negotiated(protocolVersion string) {
	h := sessionHeader("", protocolVersion)
	h["Content-Type"] = []string{"application/json"}
	c.postHeaders.Store(&origin.HeaderSet{Own: h})
}

// Close implements Conn.
func (c *sseConn) Close(ctx context.Context) error { return c.lifetime.Close(ctx) }

// Released implements Conn.
func (c *sseConn) Released() <-chan struct{} { return c.lifetime.Released }

// Info implements Conn. There is nothing to say: the session id is a part of the server's address here.
func (c *sseConn) Info() transports.Info { return transports.Info{} }
