package websocket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/errs"
	"github.com/mcpvisor/mcpvisor/transports/internal/incoming"
	"github.com/mcpvisor/mcpvisor/transports/internal/lifetime"
	"github.com/mcpvisor/mcpvisor/transports/internal/origin"
	"github.com/mcpvisor/mcpvisor/transports/internal/writequeue"
)

// connection is one connection of WebSocket. An idle one has one goroutine, which reads; another one writes while there is
// something to write. The reader never waits for the writer: it queues pongs, so that a server that does not read cannot stop the
// reading.
type connection struct {
	origin   *origin.Origin
	lifetime *lifetime.Lifetime
	grace    time.Duration
	ping     time.Duration
	// conn is the library's connection: one goroutine reads from it, and the goroutine of out writes. stream lies below it.
	conn      *websocket.Conn
	stream    *stream
	out       writequeue.Queue
	frames    controlFrames
	keepalive keepalive
	noise     atomic.Int64
}

var _ transports.Conn = (*connection)(nil)

// startLoops starts the reader, the end of the stream with the lifetime, and the keepalive. Dial calls it before it returns c.
func (c *connection) startLoops(conn *websocket.Conn, stream *stream) {
	c.conn, c.stream = conn, stream
	conn.SetReadLimit(-1) // ReadBody keeps the limit, so that a longer message costs itself and not the connection
	c.out = writequeue.Queue{Lifetime: c.lifetime, Write: c.writeMessage, Urgent: c.urgentFrame, OnBroken: c.handleWriteError}
	// One for the reader, one for closeStream, so that Down waits for both.
	c.lifetime.Enter()
	c.lifetime.Enter()
	go c.readLoop()
	context.AfterFunc(c.lifetime.Ctx, c.closeStream)
	c.startKeepalive()
}

// Send implements Conn. It returns when the system has taken the message, which the server may not have read yet.
func (c *connection) Send(ctx context.Context, m transports.Message) (transports.Delivery, error) {
	if ctx.Err() != nil {
		return transports.NotWritten, errs.ContextError(ctx, "sending to "+c.origin.Label)
	}
	if len(m.Body) == 0 {
		return transports.NotWritten, &transports.Error{Class: messages.ClassInvalid, Text: "the message is empty"}
	}
	if !c.lifetime.Enter() {
		return transports.NotWritten, c.lifetime.EndError()
	}
	defer c.lifetime.Leave()
	d, err := c.out.Send(ctx, m.Body)
	switch {
	case err != nil:
		return d, err
	case d != transports.Written:
		return d, errs.ContextError(ctx, "sending to "+c.origin.Label+", which does not read,")
	}
	return d, nil
}

// Negotiated implements Conn. It does nothing, because every version of the protocol has the same frames.
func (c *connection) Negotiated(string) {}

// Close implements Conn.
func (c *connection) Close(ctx context.Context) error { return c.lifetime.Close(ctx) }

// Released implements Conn.
func (c *connection) Released() <-chan struct{} { return c.lifetime.Released }

// Info implements Conn.
func (c *connection) Info() transports.Info { return transports.Info{Noise: c.noise.Load()} }

// readLoop gives the sink every message, until the stream ends or breaks a rule.
func (c *connection) readLoop() {
	defer c.lifetime.LeaveRecovering()
	for {
		kind, r, err := c.conn.Reader(context.Background())
		if err != nil {
			c.lifetime.End(c.readError(err))
			return
		}
		msg, big, err := incoming.ReadBody(r, 0, c.origin.Limit, incoming.Reservation{Share: c.origin.Share, ConnEnded: c.lifetime.Ctx.Done()})
		if err == nil && c.stream.readFailed.Load() {
			// The library takes the end of the stream for the end of a message if it comes between two reads: half a message must
			// not reach the sink.
			err = net.ErrClosed
		}
		switch {
		case err != nil:
			c.lifetime.End(c.readError(err))
			return
		case big != nil:
			incoming.ReportDiscarded(c.lifetime.Sink, big)
			if big.Size >= incoming.SkipBound(c.origin.Limit) {
				c.lifetime.End(&transports.Error{Class: messages.ClassProtocol, Text: c.origin.Label + " sent a message without an end"})
				return
			}
		case kind != websocket.MessageText, !beginsMessage(msg):
			if len(msg) > 0 {
				c.noise.Add(1)
				c.lifetime.Sink.Noise(c.origin.RedactStart(msg, incoming.NoiseSize, ""))
			}
		default:
			c.lifetime.Sink.Message(msg)
		}
		incoming.TakePause(c.origin.Share, c.lifetime.Ctx.Done())
	}
}

// beginsMessage reports whether text can be JSON-RPC: an object, or a batch.
func beginsMessage(text []byte) bool {
	i := rawjson.SkipSpace(text, 0)
	return i < len(text) && incoming.IsMessageStart(text[i])
}

// readError returns the cause of the end when reading has failed: the server's closing handshake, the network, or a broken rule.
func (c *connection) readError(err error) *transports.Error {
	var closed websocket.CloseError
	switch {
	case errors.As(err, &closed):
		return closeError(c.origin, closed)
	case c.stream.readFailed.Load(), errors.Is(err, net.ErrClosed):
		e := c.origin.NetworkError(err, "")
		if c.stream.readFailed.Load() && errors.Is(err, net.ErrClosed) {
			e.Text = c.origin.Label + " broke the connection"
		}
		return e
	}
	return &transports.Error{Class: messages.ClassProtocol, Err: redactedError(c.origin, err),
		Text: c.origin.Label + " sent something that WebSocket does not allow"}
}

// drainTime bounds the reading when nothing can be written any more: the server's last messages and the reason for its end may
// still be on their way.
const drainTime = time.Second

// handleWriteError ends the connection drainTime after a write has failed, unless the reader finds the reason before. The queue
// calls it with its lock held, so that it must not block.
func (c *connection) handleWriteError(err error) {
	time.AfterFunc(drainTime, func() { c.lifetime.End(c.origin.NetworkError(err, "")) })
}

// closeError translates the code of a closing handshake that the server began (RFC 6455, 7.4, and IANA's registry).
func closeError(o *origin.Origin, closed websocket.CloseError) *transports.Error {
	e := &transports.Error{Class: messages.ClassNetwork, Text: o.Label + " closed the connection", Err: redactedError(o, closed)}
	switch closed.Code {
	case websocket.StatusNormalClosure, websocket.StatusNoStatusRcvd, websocket.StatusGoingAway:
	case websocket.StatusProtocolError, websocket.StatusUnsupportedData, websocket.StatusInvalidFramePayloadData,
		websocket.StatusMessageTooBig, websocket.StatusMandatoryExtension:
		e.Class = messages.ClassProtocol
		e.Text = o.Label + " closed the connection over what it was sent"
	case websocket.StatusTryAgainLater:
		e.Class, e.Text = messages.ClassThrottled, o.Label+" asks to come again later"
	// 3000 and 3003 are registered with IANA for what 401 and 403 mean over HTTP.
	case 3000: // Unauthorized
		e.Class, e.Text = messages.ClassUnauthorized, o.Label+" asks for authorization"
	case 3003: // Forbidden
		e.Class, e.Text = messages.ClassForbidden, o.Label+" forbids this"
	}
	if closed.Code != websocket.StatusNoStatusRcvd {
		e.Text += fmt.Sprintf(" (%d)", closed.Code)
	}
	if said := errs.ShortSentence(string(o.RedactText([]byte(closed.Reason), ""))); said != "" {
		e.Text += ": " + said
	}
	return e
}

// closeStream closes the stream when the lifetime has ended. It runs once, in a goroutine of its own.
//
// RFC 6455, 7.1.1: "To _Close the WebSocket Connection_, an endpoint closes the underlying TCP connection. An endpoint SHOULD use
// a method that cleanly closes the TCP connection". If the owner has closed the connection, the server is asked first, and gets
// Grace to agree.
func (c *connection) closeStream() {
	defer c.lifetime.LeaveRecovering()
	cause := c.lifetime.EndError()
	c.out.FailAll(cause)
	c.stopKeepalive()
	// The library's own timeout may be longer than Grace.
	timer := time.AfterFunc(c.grace, c.stream.closeOnce)
	defer timer.Stop()
	if cause.Class == messages.ClassCanceled {
		_ = c.conn.Close(websocket.StatusNormalClosure, "")
	}
	_ = c.conn.CloseNow()
}
