package transports

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
)

// wsConn is one connection of WebSocket. An idle one has one goroutine, which reads; another one writes while there is something
// to write. The reader never waits for the writer: it queues pongs, so that a server that does not read cannot stop the reading.
type wsConn struct {
	origin    *origin
	lifetime  *lifetime
	grace     time.Duration
	ping      time.Duration
	conn      *websocket.Conn
	stream    *wsStream
	out       wsWriteQueue
	keepalive wsKeepalive
	noise     atomic.Int64
}

var _ Conn = (*wsConn)(nil)

// startLoops starts the reader, the end of the stream with the lifetime, and the keepalive. Dial calls it before it returns c.
func (c *wsConn) startLoops(conn *websocket.Conn, stream *wsStream) {
	c.conn, c.stream = conn, stream
	conn.SetReadLimit(-1) // readBody keeps the limit, so that a longer message costs itself and not the connection
	c.out = wsWriteQueue{
		lifetime: c.lifetime, writeControl: func(frame []byte) error { _, err := stream.Write(frame); return err },
		writeText:   func(body []byte) error { return conn.Write(context.Background(), websocket.MessageText, body) },
		writesBegun: stream.writesBegun.Load, onBroken: c.handleWriteError,
	}
	// One for the reader, one for closeStream, so that Down waits for both.
	c.lifetime.enter()
	c.lifetime.enter()
	go c.readLoop()
	context.AfterFunc(c.lifetime.ctx, c.closeStream)
	c.startKeepalive()
}

// Send implements Conn. It returns when the system has taken the message, which the server may not have read yet.
func (c *wsConn) Send(ctx context.Context, m Message) (Delivery, error) {
	if ctx.Err() != nil {
		return NotWritten, contextError(ctx, "sending to "+c.origin.label)
	}
	if len(m.Body) == 0 {
		return NotWritten, &Error{Class: messages.ClassInvalid, Text: "the message is empty"}
	}
	if !c.lifetime.enter() {
		return NotWritten, c.lifetime.endError()
	}
	defer c.lifetime.leave()
	d, err := c.out.sendMessage(ctx, m.Body)
	switch {
	case err != nil:
		return d, err
	case d != Written:
		return d, contextError(ctx, "sending to "+c.origin.label+", which does not read,")
	}
	return d, nil
}

// Negotiated implements Conn. It does nothing, because every version of the protocol has the same frames.
func (c *wsConn) Negotiated(string) {}

// Close implements Conn.
func (c *wsConn) Close(ctx context.Context) error { return c.lifetime.close(ctx) }

// Released implements Conn.
func (c *wsConn) Released() <-chan struct{} { return c.lifetime.released }

// Info implements Conn.
func (c *wsConn) Info() Info { return Info{Noise: c.noise.Load()} }

// readLoop gives the sink every message, until the stream ends or breaks a rule.
func (c *wsConn) readLoop() {
	defer c.lifetime.leaveRecovering()
	for {
		kind, r, err := c.conn.Reader(context.Background())
		if err != nil {
			c.lifetime.endConn(c.readError(err))
			return
		}
		msg, big, err := readBody(r, 0, c.origin.limit, memoryReservation{share: c.origin.share, connEnded: c.lifetime.ctx.Done()})
		if err == nil && c.stream.readFailed.Load() {
			// The library takes the end of the stream for the end of a message if it comes between two reads: half a message must
			// not reach the sink.
			err = net.ErrClosed
		}
		switch {
		case err != nil:
			c.lifetime.endConn(c.readError(err))
			return
		case big != nil:
			reportDiscarded(c.lifetime.sink, big)
			if big.size >= skipBound(c.origin.limit) {
				c.lifetime.endConn(&Error{Class: messages.ClassProtocol, Text: c.origin.label + " sent a message without an end"})
				return
			}
		case kind != websocket.MessageText, !beginsMessage(msg):
			if len(msg) > 0 {
				c.noise.Add(1)
				c.lifetime.sink.Noise(c.origin.redactStart(msg, noiseSize, ""))
			}
		default:
			c.lifetime.sink.Message(msg)
		}
		takePause(c.origin.share, c.lifetime.ctx.Done())
	}
}

// beginsMessage reports whether text can be JSON-RPC: an object, or a batch.
func beginsMessage(text []byte) bool {
	i := rawjson.SkipSpace(text, 0)
	return i < len(text) && isMessageStart(text[i])
}

// readError returns the cause of the end when reading has failed: the server's closing handshake, the network, or a broken rule.
func (c *wsConn) readError(err error) *Error {
	var closed websocket.CloseError
	switch {
	case errors.As(err, &closed):
		return c.origin.closeError(closed)
	case c.stream.readFailed.Load(), errors.Is(err, net.ErrClosed):
		e := c.origin.networkError(err, "")
		if c.stream.readFailed.Load() && errors.Is(err, net.ErrClosed) {
			e.Text = c.origin.label + " broke the connection"
		}
		return e
	}
	return &Error{Class: messages.ClassProtocol, Err: c.origin.redactedError(err),
		Text: c.origin.label + " sent something that WebSocket does not allow"}
}

// wsDrainTime bounds the reading when nothing can be written any more: the server's last messages and the reason
// for its end may still be on their way.
const wsDrainTime = time.Second

// handleWriteError ends the connection wsDrainTime after a write has failed, unless the reader finds the reason before. The queue
// calls it with its lock held, so that it must not block.
func (c *wsConn) handleWriteError(err error) {
	time.AfterFunc(wsDrainTime, func() { c.lifetime.endConn(c.origin.networkError(err, "")) })
}

// closeError translates the code of a closing handshake that the server began (RFC 6455, 7.4, and IANA's registry).
func (o *origin) closeError(closed websocket.CloseError) *Error {
	e := &Error{Class: messages.ClassNetwork, Text: o.label + " closed the connection", Err: o.redactedError(closed)}
	switch closed.Code {
	case websocket.StatusNormalClosure, websocket.StatusNoStatusRcvd, websocket.StatusGoingAway:
	case websocket.StatusProtocolError, websocket.StatusUnsupportedData, websocket.StatusInvalidFramePayloadData,
		websocket.StatusMessageTooBig, websocket.StatusMandatoryExtension:
		e.Class = messages.ClassProtocol
		e.Text = o.label + " closed the connection over what it was sent"
	case websocket.StatusTryAgainLater:
		e.Class, e.Text = messages.ClassThrottled, o.label+" asks to come again later"
	// 3000 and 3003 are registered with IANA for what 401 and 403 mean over HTTP.
	case 3000: // Unauthorized
		e.Class, e.Text = messages.ClassUnauthorized, o.label+" asks for authorization"
	case 3003: // Forbidden
		e.Class, e.Text = messages.ClassForbidden, o.label+" forbids this"
	}
	if closed.Code != websocket.StatusNoStatusRcvd {
		e.Text += fmt.Sprintf(" (%d)", closed.Code)
	}
	if said := shortSentence(string(o.redactText([]byte(closed.Reason), ""))); said != "" {
		e.Text += ": " + said
	}
	return e
}

// closeStream closes the stream when the lifetime has ended. It runs once, in a goroutine of its own.
//
// RFC 6455, 7.1.1: "To _Close the WebSocket Connection_, an endpoint closes the underlying TCP connection. An endpoint SHOULD use
// a method that cleanly closes the TCP connection". If the owner has closed the connection, the server is asked first, and gets
// Grace to agree.
func (c *wsConn) closeStream() {
	defer c.lifetime.leaveRecovering()
	cause := c.lifetime.endError()
	c.out.failAll(cause)
	c.stopKeepalive()
	// The library's own timeout may be longer than Grace.
	timer := time.AfterFunc(c.grace, c.stream.closeOnce)
	defer timer.Stop()
	if cause.Class == messages.ClassCanceled {
		_ = c.conn.Close(websocket.StatusNormalClosure, "")
	}
	_ = c.conn.CloseNow()
}
