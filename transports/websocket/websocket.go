package websocket

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/coder/websocket"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/budget"
	"github.com/mcpvisor/mcpvisor/transports/internal/errs"
	"github.com/mcpvisor/mcpvisor/transports/internal/lifetime"
	"github.com/mcpvisor/mcpvisor/transports/internal/origin"
)

// Config says where a server behind a WebSocket is. New copies it; neither the caller nor this package changes it afterwards, its
// map included.
type Config struct {
	// URL is absolute, ws or wss; http and https mean the same. User information in it becomes an Authorization header,
	// unless there is one.
	URL string
	// Headers go with the handshake, and only to the origin of URL. No error and no Info holds one of their values.
	Headers map[string]string
	// Auth gives the handshake its credentials, nil for none, as that of package web does.
	Auth transports.Authorizer
	// PlainCredentials lets Auth be used over plain ws to another machine, as in package web.
	PlainCredentials bool
	// MaxMessage is the largest incoming message in bytes, 0 for 16 MiB. One message is held whole in memory.
	MaxMessage int64
	// Share is the server's part of the memory for all servers: it bounds the bytes of half-received messages, and is charged for
	// pings, after which the reader pauses. nil means no bound and no pauses.
	Share *budget.Share
	// Client sends the handshake; nil is a client that all connections share. Only its Transport is used, which must
	// give a body that can be written to when the server switches protocols, as http.Transport does.
	Client *http.Client
	// Grace bounds the closing handshake when a connection is closed; 0 means 1 s.
	Grace time.Duration
	// Ping is the silence of the server after which it is pinged; 0 means 15 s, negative never. The connection is down after
	// three times as long without a sign of life: 45 s. A shorter time notices a dead network sooner, and gives up servers that
	// read nothing while they work.
	Ping time.Duration
}

// Transport carries one JSON-RPC message per text frame, subprotocol "mcp". No version of the specification describes it; servers
// and clients with a WebSocket agree on this much.
//
// Dial returns when the server has switched protocols. Send returns when the system has taken the message; answers arrive on the
// same stream, in the server's order. The end of the stream is the end of the connection, at once: it cannot be resumed, so that
// what the server would have said is lost.
//
// Everything that the server sends is a sign of life, pongs included, and so is progress in taking a message that is too large
// for the buffers on the way. A server that gives none for 3 × Ping is down, also if no packet ever says so.
//
// A proxy of the environment is asked for a tunnel to a wss server, and gets the handshake of a ws server as it is: many proxies
// do not pass that on.
//
// Frames that cannot hold a message (binary ones, and text that begins neither with { nor with [) are noise.
type Transport struct {
	cfg    Config
	origin *origin.Origin
	// err is the fault of the configuration that Dial returns, nil if there is none.
	err *transports.Error
}

var _ transports.Transport = (*Transport)(nil)

// subprotocol is the only protocol that this client proposes in the handshake.
const subprotocol = "mcp"

// defaultPing is the default of Config.Ping.
const defaultPing = 15 * time.Second

// New makes a transport and connects to nothing. A configuration that cannot work is reported by Dial, with ClassConfig.
func New(cfg Config) *Transport {
	if cfg.Grace <= 0 {
		cfg.Grace = time.Second
	}
	if cfg.Ping == 0 {
		cfg.Ping = defaultPing
	}
	t := &Transport{cfg: cfg}
	web, ok := webURL(cfg.URL)
	if !ok {
		t.err = &transports.Error{Class: messages.ClassConfig, Text: "the URL is not an absolute ws or wss URL",
			Fix: "write it like wss://example.com/mcp"}
		return t
	}
	t.origin, t.err = origin.New(origin.Config{
		URL: web, Headers: cfg.Headers, Auth: cfg.Auth, PlainCredentials: cfg.PlainCredentials,
		MaxMessage: cfg.MaxMessage, Share: cfg.Share, Client: cfg.Client,
	})
	if t.err == nil {
		// The library sets these headers itself, and a configured one would break the handshake.
		t.origin.Header.Del("Upgrade")
		t.origin.Header.Del("Sec-Websocket-Extensions")
	}
	return t
}

// webURL returns the URL of the handshake, which is a request over HTTP.
func webURL(raw string) (string, bool) {
	u, err := url.Parse(raw)
	if err != nil {
		return "", false
	}
	switch u.Scheme {
	case "ws":
		u.Scheme = "http"
	case "wss":
		u.Scheme = "https"
	case "http", "https":
	default:
		return "", false
	}
	return u.String(), u.Hostname() != ""
}

// Kind implements Transport.
func (t *Transport) Kind() messages.TransportKind { return messages.WebSocket }

// Dial implements Transport. It blocks until the server has answered the handshake, or until ctx ends.
func (t *Transport) Dial(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	switch {
	case t.err != nil:
		return nil, t.err
	case ctx.Err() != nil:
		return nil, errs.ContextError(ctx, "connecting to "+t.origin.Label)
	}
	o := t.origin.ForConnection(ctx)
	c := &connection{origin: o, lifetime: lifetime.New(sink), grace: t.cfg.Grace, ping: t.cfg.Ping}
	shake := &handshake{origin: o, lifetime: c.lifetime}
	//nolint:bodyclose // "You never need to close resp.Body yourself."
	conn, _, err := websocket.Dial(ctx, o.URL.String(), &websocket.DialOptions{
		HTTPClient:     &http.Client{Transport: shake},
		Subprotocols:   []string{subprotocol},
		OnPingReceived: c.onPing,
	})
	if err != nil {
		c.lifetime.Cancel()
		if ctx.Err() != nil {
			return nil, errs.ContextError(ctx, "connecting to "+o.Label)
		}
		return nil, shake.handshakeError(err)
	}
	c.startLoops(conn, shake.stream)
	return c, nil
}

// handshake sends the request that the library makes, by the rules of origin: to one place, with the configured headers,
// redirected only within its origin. It keeps the stream that the connection is made of.
type handshake struct {
	origin   *origin.Origin
	lifetime *lifetime.Lifetime
	stream   *stream
}

// RoundTrip implements http.RoundTripper. All its errors are *Error.
//
// RFC 6455, 4.1: "If the status code received from the server is not 101, the client handles the response per HTTP
// [RFC2616] procedures."
func (h *handshake) RoundTrip(req *http.Request) (*http.Response, error) {
	o := h.origin
	// The response's body is the connection, which must not end with the context of Dial.
	ctx, cancel := context.WithCancel(h.lifetime.Ctx)
	stop := context.AfterFunc(req.Context(), cancel)
	resp, _, err := o.RoundTrip(ctx, http.MethodGet, o.URL, &origin.HeaderSet{Own: req.Header}, nil)
	if err != nil {
		stop()
		cancel()
		return nil, o.NetworkError(err, "")
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		defer stop()
		defer cancel()
		defer func() { _ = resp.Body.Close() }()
		return nil, noSwitchError(o, resp, origin.ReadErrorBody(resp.Body, cancel))
	}
	// From here on the stream belongs to the connection; ctx may only have ended before.
	if !stop() {
		_ = resp.Body.Close()
		return nil, errs.ContextError(req.Context(), "connecting to "+o.Label)
	}
	if chosen := resp.Header.Get("Sec-Websocket-Protocol"); chosen != "" && chosen != subprotocol {
		_ = resp.Body.Close()
		return nil, &transports.Error{Class: messages.ClassProtocol, Status: resp.StatusCode,
			Text: o.Label + " wants to speak the subprotocol " + messages.Line(string(o.RedactText([]byte(chosen), "")), 60) +
				" and not mcp", Fix: "check that the URL is an MCP endpoint"}
	}
	// A body that cannot be written to is left to the library, which refuses it.
	if stream, ok := newStream(resp.Body); ok {
		h.stream, resp.Body = stream, stream
	}
	return resp, nil
}

// noSwitchError translates a response that has not switched protocols.
func noSwitchError(o *origin.Origin, resp *http.Response, body []byte) *transports.Error {
	if resp.StatusCode/100 != 2 && resp.StatusCode != http.StatusUpgradeRequired {
		return o.StatusError(resp, body, "")
	}
	e := &transports.Error{Class: messages.ClassProtocol, Status: resp.StatusCode, Body: o.RedactText(body, ""),
		Text: o.Label + " does not speak WebSocket at this address", Fix: "check the path of the URL"}
	return e
}

// handshakeError returns the error of the handshake: this package's own, or the library's about the response.
func (h *handshake) handshakeError(err error) *transports.Error {
	var own *transports.Error
	if errors.As(err, &own) {
		return own
	}
	return &transports.Error{Class: messages.ClassProtocol, Err: redactedError(h.origin, err),
		Text: h.origin.Label + " did not answer the WebSocket handshake as it must",
		Fix:  "check that the URL is an MCP endpoint"}
}

// redactedError returns err, or an error with its text without the secrets that it held.
func redactedError(o *origin.Origin, err error) error {
	text := err.Error()
	if clean := string(o.RedactText([]byte(text), "")); clean != text {
		return errors.New(clean)
	}
	return err
}
