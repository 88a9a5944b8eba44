package sim

import (
	"context"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// Transport connects to one server in memory.
type Transport struct {
	// Emulated is the kind of transport whose behaviour it shows: stdio, http, sse, websocket or sdk.
	Emulated messages.TransportKind
	// Label names the server in errors.
	Label string
	// MaxMessage is the largest incoming message in bytes. Grace is the time that each step of a stop waits for the server.
	MaxMessage int64
	Grace      time.Duration
	// Redact removes the server's secrets from a text.
	Redact func(string) string
	// Headers go with every message over HTTP.
	Headers map[string]string

	remote remoteEnd
	token  *bearerToken
	// web is that of the scenario's server: with it the program's own HTTP client connects to url, and draws with random.
	web, url string
	random   func() float64
	// onDial, if not nil, is called with the context of each dial.
	onDial func(context.Context)
}

var _ transports.Transport = (*Transport)(nil)

// newTransport makes a transport with the defaults of the real transports: messages up to 16 MiB, and the Grace of the kind.
func newTransport(kind messages.TransportKind, label string, spec messages.Spec, remote remoteEnd) *Transport {
	t := &Transport{
		Emulated: kind, Label: label, MaxMessage: spec.MaxMessage, Grace: time.Duration(spec.StopGrace), Redact: spec.RedactText,
		Headers: spec.Headers, remote: remote,
	}
	if t.MaxMessage <= 0 {
		t.MaxMessage = 16 << 20
	}
	if t.Grace <= 0 {
		switch kind {
		case messages.Stdio:
			t.Grace = 2 * time.Second
		case messages.SDK:
			t.Grace = 5 * time.Second
		default:
			t.Grace = time.Second
		}
	}
	return t
}

// Kind implements transports.Transport.
func (t *Transport) Kind() messages.TransportKind { return t.Emulated }

// Dial implements transports.Transport. Over streamable HTTP it returns at once, because nothing is opened before the first
// message.
func (t *Transport) Dial(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	if ctx.Err() != nil {
		return nil, contextError(ctx, "opening the connection to "+t.Label)
	}
	if t.onDial != nil {
		t.onDial(ctx)
	}
	if t.web != "" {
		return t.dialOwnWeb(ctx, sink)
	}
	var c conn
	switch t.Emulated {
	case messages.HTTP, messages.SSE, messages.ClaudeAIProxy:
		c = newWeb(t, sink)
	default:
		c = newPipe(t, sink)
	}
	t.remote.onDialed(c)
	if t.Emulated == messages.HTTP || t.Emulated == messages.ClaudeAIProxy {
		return c, nil
	}
	return c.base().awaitOpening(ctx, c)
}
