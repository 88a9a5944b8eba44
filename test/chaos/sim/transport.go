package sim

import (
	"context"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// Transport is the way to one server in memory.
type Transport struct {
	// Server is the kind of transport that it behaves as: stdio, http, sse, websocket or sdk.
	Server messages.TransportKind
	// Label names the server in errors.
	Label string
	// MaxMessage is the largest incoming message in bytes, Grace how long each rung of the way down waits.
	MaxMessage int64
	Grace      time.Duration
	// Hide takes the server's secrets out of a text.
	Hide func(string) string
	// Headers go with every message over HTTP.
	Headers map[string]string

	far   far
	token *token
}

var _ transports.Transport = (*Transport)(nil)

// newTransport fills in the defaults of the real transports.
func newTransport(kind messages.TransportKind, label string, spec messages.Spec, far far) *Transport {
	t := &Transport{
		Server: kind, Label: label, MaxMessage: spec.MaxMessage, Grace: time.Duration(spec.StopGrace), Hide: spec.Hide,
		Headers: spec.Headers, far: far,
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
func (t *Transport) Kind() messages.TransportKind { return t.Server }

// Dial implements transports.Transport. Over HTTP nothing is opened before the first message is sent.
func (t *Transport) Dial(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	if ctx.Err() != nil {
		return nil, contextError(ctx, "opening the connection to "+t.Label)
	}
	var c conn
	switch t.Server {
	case messages.HTTP, messages.SSE, messages.ClaudeAIProxy:
		c = newWeb(t, sink)
	default:
		c = newPipe(t, sink)
	}
	t.far.dialed(c)
	if t.Server == messages.HTTP || t.Server == messages.ClaudeAIProxy {
		return c, nil
	}
	return c.base().open(ctx, c)
}
