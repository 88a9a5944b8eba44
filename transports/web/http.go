package web

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/budget"
	"github.com/mcpvisor/mcpvisor/transports/internal/errs"
	"github.com/mcpvisor/mcpvisor/transports/internal/lifetime"
	"github.com/mcpvisor/mcpvisor/transports/internal/origin"
)

// Config says where a remote server is. NewHTTP and NewSSE copy it; neither the caller nor this package changes it
// afterwards, its map included.
type Config struct {
	// URL is absolute, http or https. User information in it becomes an Authorization header, unless Headers has one.
	URL string
	// Headers go with every request, and only to the origin of URL. No error and no Info holds one of their values.
	Headers map[string]string
	// Auth gives every request its credentials, nil for none. They go only to the origin of URL, as Headers do, and no
	// error and no Info holds one of their values.
	Auth transports.Authorizer
	// PlainCredentials lets Auth be used over plain http to another machine, where every machine on the way can read what Auth
	// gives. Without it such a URL is an error, unless it names this machine (localhost, 127.0.0.0/8, ::1).
	PlainCredentials bool
	// FallbackSSE lets HTTP go on as SSE on the same connection if the server answers the first initialize with 400, 404 or 405,
	// as servers of the version 2024-11-05 do. It has no effect on SSE.
	FallbackSSE bool
	// MaxMessage is the largest incoming message in bytes, 0 for 16 MiB. One message is held whole in memory.
	MaxMessage int64
	// Share is the server's part of the memory for all servers: it bounds the bytes of half-received messages, and is charged for
	// events without a message, after which the reader pauses. nil means no bound and no pauses.
	Share *budget.Share
	// Client sends the requests; nil is a client that all connections share. Only its Transport is used: a timeout for whole
	// exchanges would cut streams, cookies belong to browsers, and this package follows redirects by its own rules. The Transport
	// must not change the request that it is given, and must end when the request's context does.
	Client *http.Client
	// Rand draws a number in [0,1) for the pauses before a broken stream is opened again; nil draws at random. A program that must do
	// the same thing twice gives its own.
	Rand func() float64
	// Grace bounds the DELETE that ends the session when a connection is closed; 0 means 1 s.
	Grace time.Duration
}

// HTTP is the streamable HTTP transport of the specification versions 2025-03-26 to 2026-07-28.
//
// Every message is a POST of its own. Dial sends nothing and therefore cannot see whether the server lives: the first Send shows
// it. A failed exchange fails its Send and nothing else; the connection goes Down by itself only when the server has forgotten
// its session (ClassSession).
//
// # Modern era
//
// A message with a Version is of the modern era: its headers repeat what its body says, it belongs to no session, and the end of
// its Send's context closes the response's stream, which cancels the request. An answer whose stream breaks is lost. However a
// server answers such messages, initialize may follow on the same connection.
//
// # Legacy era
//
// All other messages are of the legacy era. After Negotiated and the notification notifications/initialized, the connection keeps
// one stream open for unasked messages (GET), if the server has one, and opens it again when it breaks. What the server says
// while it is broken is lost, unless the server numbers its events; a sink that is a [transports.StreamReopenSink] learns of
// that. An answer that comes as an event stream and breaks before its end is resumed if the server numbers its events, at the
// time that the server asks for, and for as long as it does; otherwise Send returns MaybeWritten and an error.
//
// An answer over MaxMessage, and one that carries another id than the request, reach the sink as they are and make Send return an
// error as well (ClassProtocol, Written), because the caller must not wait for an answer that cannot come. An answer that comes
// on another stream of the connection completes its request all the same; a Send whose own response ended without an answer waits
// 2 s for it, if there is such a stream.
//
// When the session is lost, the Send whose message was refused returns Written and an error with the refusal's status. Those
// under way have a second to be answered or refused themselves. If they are not, they return MaybeWritten (Written, if the answer
// was being read) and an error of ClassSession without a status, because the server may have been at work on them. Later ones
// return NotWritten.
//
// # Dead servers
//
// A server that vanishes without a word is noticed within a minute (httpclient.DefaultDeadAfter, SetDeadAfter), by the Sends
// under way and by the stream; not if a proxy in between is alive and hides it. A server that is alive and silent is not dead:
// only the context of a Send bounds that.
type HTTP struct {
	cfg Config
	// origin is the checked configuration, nil if err is set, which Dial returns then.
	origin *origin.Origin
	err    *transports.Error
}

var _ transports.Transport = (*HTTP)(nil)

// NewHTTP makes a transport and connects to nothing. A configuration that cannot work is reported by Dial, with ClassConfig.
func NewHTTP(cfg Config) *HTTP {
	t := &HTTP{cfg: cfg}
	t.origin, t.err = origin.New(cfg.originConfig())
	return t
}

// originConfig returns what the configuration says about the origin.
func (cfg *Config) originConfig() origin.Config {
	return origin.Config{
		URL: cfg.URL, Headers: cfg.Headers, Auth: cfg.Auth, PlainCredentials: cfg.PlainCredentials,
		MaxMessage: cfg.MaxMessage, Share: cfg.Share, Client: cfg.Client,
	}
}

// Kind implements Transport.
func (t *HTTP) Kind() messages.TransportKind { return messages.HTTP }

// Dial implements Transport. It does not block and sends nothing.
func (t *HTTP) Dial(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	switch {
	case t.err != nil:
		return nil, t.err
	case ctx.Err() != nil:
		return nil, errs.ContextError(ctx, "connecting to "+t.origin.Label)
	}
	c := &httpConn{origin: t.origin.ForConnection(ctx), lifetime: lifetime.NewForRequests(sink), canFallBack: t.cfg.FallbackSSE, grace: t.cfg.Grace}
	c.rand = t.cfg.Rand
	if c.rand == nil {
		c.rand = rand.Float64
	}
	c.reopenSink, _ = sink.(transports.StreamReopenSink)
	c.requestSink, _ = sink.(transports.RequestStreamSink)
	if c.grace <= 0 {
		c.grace = time.Second
	}
	// The DELETE goes out after Down, so that a slow server does not hold up the actor that waits for Down.
	c.lifetime.AfterDown = c.deleteSession
	return c, nil
}
