package transports

import (
	"context"
	"net/http"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/budget"
)

// HTTPConfig says where a remote server is. It is a value: neither you nor this package changes it after NewHTTP or NewSSE.
type HTTPConfig struct {
	// URL is absolute, http or https. User information in it becomes an Authorization header, unless there is one.
	URL string
	// Headers go with every request, and only to the origin of URL. No error and no Info holds one of their values.
	Headers map[string]string
	// Auth gives every request its credentials, nil for none. They go only to the origin of URL, as Headers do, and no
	// error and no Info holds one of their values.
	Auth Authorizer
	// PlainCredentials lets Auth be used over plain http to another machine, where everybody on the way can read what it
	// gives. Without it such a URL is an error, unless it names this machine (localhost, 127.0.0.0/8, ::1).
	PlainCredentials bool
	// FallbackSSE lets HTTP go on as SSE on the same connection if the server answers the first initialize with 400, 404
	// or 405. It means nothing to SSE.
	FallbackSSE bool
	// MaxMessage is the largest incoming message in bytes, 0 for 16 MiB. More costs memory: one message is held whole.
	MaxMessage int64
	// Share bounds the bytes that are held for the server of the memory for all servers, and charges it for its floods; nil is no
	// bound.
	Share *budget.Share
	// Client sends the requests; nil is a client that all connections share. Only its Transport is used: a timeout for
	// whole exchanges would cut streams, cookies belong to browsers, and redirects follow rules of our own. The
	// Transport must not change the request it is given, and must end when the request's context does.
	Client *http.Client
	// Grace bounds the farewell to the server when a connection is closed; 0 means 1 s.
	Grace time.Duration
}

// HTTP is the streamable HTTP transport of the specification versions 2025-03-26 to 2026-07-28.
//
// Every message is a POST of its own. Dial sends nothing and therefore cannot see whether the server lives: the first
// Send shows it. A failed exchange fails its Send and nothing else; the connection goes Down by itself only when the
// server has forgotten its session (ClassSession).
//
// A message with a Version is of the modern era: its headers repeat what it says, it belongs to no session, and the end
// of its Send's context closes the response's stream, which is its cancellation. An answer whose stream breaks is lost.
// However a server answers such messages, initialize may follow on the same connection.
//
// All others are of the legacy era. After Negotiated and the notification notifications/initialized, one stream for
// what the server sends unasked is kept open (GET), if the server has one, and opened again when it breaks; what the
// server says while it is broken is lost, unless the server numbers its events, and a sink that is a Resumer is told.
// An answer that comes as an event stream and breaks before its end is resumed if the server numbers its events, at
// the time that the server asks for, and for as long as it does; otherwise Send returns MaybeWritten and an error.
//
// An answer over MaxMessage, and one that carries another id than the request, reach the sink as they are and make Send
// return an error as well (ClassProtocol, Written): the caller must not wait for an answer that cannot come. An answer that comes on
// another stream of the connection is its request's all the same; a Send whose own response ended without one waits 2
// s for it, if there is such a stream.
//
// When the session is lost, the Send whose message was refused returns Written and an error with the refusal's status;
// those under way have a second to be answered or refused themselves, and return MaybeWritten (Written, if the answer
// was being read) and an error of ClassSession without a status if they are not, for the server may have been at work
// on them; later ones return NotWritten.
//
// A server that vanishes without a word is noticed within a minute (DefaultDeadAfter, SetDeadAfter), by the Sends under
// way and by the stream; not if something in between is alive and hides it. A server that is alive and silent is not
// dead: only the context of a Send bounds that.
type HTTP struct {
	cfg    HTTPConfig
	origin *origin
	err    *Error
}

var _ Transport = (*HTTP)(nil)

// NewHTTP makes a transport. A configuration that cannot work is reported by Dial.
func NewHTTP(cfg HTTPConfig) *HTTP {
	t := &HTTP{cfg: cfg}
	t.origin, t.err = newOrigin(cfg)
	return t
}

// Kind implements Transport.
func (t *HTTP) Kind() messages.TransportKind { return messages.HTTP }

// Dial implements Transport. It does not block.
func (t *HTTP) Dial(ctx context.Context, sink Sink) (Conn, error) {
	switch {
	case t.err != nil:
		return nil, t.err
	case ctx.Err() != nil:
		return nil, contextError(ctx, "connecting to "+t.origin.label)
	}
	c := &httpConn{origin: t.origin.forConnection(), lifetime: newRequestLifetime(sink), canFallBack: t.cfg.FallbackSSE, grace: t.cfg.Grace}
	c.reopenSink, _ = sink.(StreamReopenSink)
	c.requestSink, _ = sink.(RequestStreamSink)
	if c.grace <= 0 {
		c.grace = time.Second
	}
	c.lifetime.afterDown = c.deleteSession
	return c, nil
}
