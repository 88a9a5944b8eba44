package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// pipe is a connection with one ordered stream in each direction: a process, a websocket, a server of the same program.
type pipe struct {
	baseConn
	lines lineSplitter

	notReading   bool        // under mu: the far side does not read
	freeBytes    int         // under mu: how many bytes are taken meanwhile before a Send has to wait
	waitingSends []*exchange // under mu: what waits, in order
}

// bufferSizes are how many bytes are taken from a sender while nobody reads, by the kind: the pipe of a process, the
// buffers of two sockets, the queue of package transports.
var bufferSizes = map[messages.TransportKind]int{
	messages.Stdio: 64 << 10, messages.WebSocket: 256 << 10, messages.SDK: 4 << 20,
}

func newPipe(t *Transport, sink transports.Sink) *pipe {
	c := &pipe{baseConn: newBaseConn(t, sink), freeBytes: bufferSizes[t.Emulated]}
	c.lines = lineSplitter{limit: t.MaxMessage, onMessage: c.deliverToSink, onOversized: c.reportOversized, onNoise: c.reportNoise}
	return c
}

func (c *pipe) acceptOpening(session string) bool { return c.answerOpening(session, nil) }

func (c *pipe) refuseOpening(err *transports.Error, _ transports.Delivery) bool {
	return c.answerOpening("", err)
}

// Send implements transports.Conn. A message of which a byte was taken is the far side's, whether it reads or not.
func (c *pipe) Send(ctx context.Context, m transports.Message) (transports.Delivery, error) {
	switch {
	case ctx.Err() != nil:
		return transports.NotWritten, contextError(ctx, "sending the message")
	case len(m.Body) == 0 || c.kind == messages.Stdio && bytes.IndexByte(m.Body, '\n') >= 0:
		return transports.NotWritten, &transports.Error{Class: messages.ClassInvalid,
			Text: "the message is empty or holds a newline"}
	}
	x := newExchange(m)
	c.mu.Lock()
	if cause := c.cause; cause != nil {
		c.mu.Unlock()
		return transports.NotWritten, cause
	}
	x.handedOver = !c.notReading || c.freeBytes > 0 && (c.kind != messages.SDK || len(x.body) <= c.freeBytes)
	waits := false
	if c.notReading {
		c.freeBytes -= len(x.body)
		waits = c.freeBytes < 0
	}
	if waits {
		c.waitingSends = append(c.waitingSends, x)
	}
	c.mu.Unlock()
	if x.handedOver {
		c.remote.onSent(c, x)
	}
	if !waits {
		return transports.Written, nil
	}
	select {
	case <-x.done:
	case <-ctx.Done():
	case <-c.connEnded:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if x.completed {
		return x.delivery, x.err
	}
	x.completed = true
	c.waitingSends = slices.DeleteFunc(c.waitingSends, func(h *exchange) bool { return h == x })
	delivery := transports.MaybeWritten // the rest of it follows, or the next message would be unreadable
	if !x.handedOver {
		c.freeBytes += len(x.body)
		delivery = transports.NotWritten
	}
	if c.cause != nil {
		return delivery, c.cause
	}
	return delivery, contextError(ctx, "sending to "+c.label+", which does not read,")
}

func (c *pipe) setReading(reading bool) {
	c.mu.Lock()
	c.notReading = !reading
	var sends []*exchange
	if reading {
		sends, c.waitingSends, c.freeBytes = c.waitingSends, nil, bufferSizes[c.kind]
		for _, x := range sends {
			x.completeLocked(transports.Written, nil)
		}
	}
	c.mu.Unlock()
	for _, x := range sends {
		if !x.handedOver {
			c.remote.onSent(c, x)
		}
	}
}

func (c *pipe) markTaken(*exchange) {}

func (c *pipe) cutStream() {}

func (c *pipe) denyExchange(string, transports.Delivery, *transports.Error) bool { return false }

func (c *pipe) deliverMessage(body []byte, _ string, _ bool) bool {
	switch {
	case c.kind != messages.Stdio:
		c.deliverToSink(body)
	case len(c.lines.lastPiece) == 0 && bytes.IndexByte(body, '\n') < 0:
		c.lines.handleLine(body, int64(len(body))) // nearly every message: nothing is copied
	default:
		c.deliverBytes(body)
		c.deliverBytes([]byte("\n"))
	}
	return true
}

func (c *pipe) deliverBytes(p []byte) {
	switch {
	case c.kind == messages.Stdio:
		if !c.lines.feedBytes(p) && c.endConn(&transports.Error{Class: messages.ClassProtocol, Text: "the server wrote a line that does not end"}) {
			c.reportDown()
			go c.stopRemote()
		}
	case c.kind == messages.WebSocket && !looksLikeRPC(p):
		c.reportNoise(p)
	default:
		c.deliverToSink(p)
	}
}

// looksLikeRPC reports whether a text can be JSON-RPC.
func looksLikeRPC(p []byte) bool {
	p = bytes.TrimSpace(p)
	return len(p) > 0 && (p[0] == '{' || p[0] == '[')
}

// endRemote is the end of the far side: what it wrote before is delivered, and beats the death.
func (c *pipe) endRemote(e ending) {
	if c.kind == messages.Stdio {
		c.lines.endStream()
	}
	c.markExited(e.text)
	if c.endConn(e.err) {
		c.reportDown()
		c.releaseConn(c)
	}
}

// Close implements transports.Conn.
func (c *pipe) Close(ctx context.Context) error {
	if c.endConn(closedError()) {
		go c.stopRemote()
	}
	return c.awaitRelease(ctx)
}

// stopRemote makes the far side end. A process is asked twice and killed then; what it says meanwhile is heard. The others are
// left alone after a moment.
func (c *pipe) stopRemote() {
	defer c.releaseConn(c)
	defer c.reportDown()
	if c.kind != messages.Stdio {
		c.reportDown()
	}
	c.remote.onClosing(c, false)
	if c.awaitExit(c.grace) || c.kind != messages.Stdio {
		return
	}
	c.remote.onClosing(c, true)
	if !c.awaitExit(c.grace) {
		c.markExited("signal: killed")
	}
}

// writeStderr is what the far side writes to its standard error.
func (c *pipe) writeStderr(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	const kept = 64 << 10
	if len(p) > kept {
		p = p[len(p)-kept:]
	}
	if over := len(c.stderr) + len(p) - kept; over > 0 {
		c.stderr = c.stderr[over:]
	}
	c.stderr += string(p)
}

// lineSplitter cuts what a process writes into messages, as package transports does: a line that begins with { or [ is a message,
// an empty one is nothing, any other is noise.
type lineSplitter struct {
	limit       int64
	onMessage   func(body []byte)
	onOversized func(p []byte, size int64)
	onNoise     func(line []byte)

	lastPiece []byte // of the line at hand, at most the limit and a little
	size      int64  // of the line at hand
}

// maxLine is the length at which a line is given up.
const maxLine = 2 << 30

// feedBytes takes the next piece. It reports false if the line at hand has no end.
func (l *lineSplitter) feedBytes(p []byte) bool {
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			l.keepBytes(p)
			return l.size <= maxLine
		}
		l.keepBytes(p[:i])
		l.endLine()
		p = p[i+1:]
	}
}

func (l *lineSplitter) keepBytes(p []byte) {
	l.size += int64(len(p))
	if room := l.limit + 2*endSize - int64(len(l.lastPiece)); room > 0 {
		l.lastPiece = append(l.lastPiece, p[:min(int64(len(p)), room)]...)
	}
}

func (l *lineSplitter) endLine() {
	piece, size := l.lastPiece, l.size
	l.lastPiece, l.size = l.lastPiece[:0], 0
	if cap(l.lastPiece) > 1<<20 {
		l.lastPiece = nil
	}
	l.handleLine(piece, size)
}

// handleLine takes a line, or as much of it as was kept.
func (l *lineSplitter) handleLine(text []byte, size int64) {
	line := bytes.TrimRight(text, "\r \t")
	body := bytes.TrimLeft(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")), " \t")
	switch {
	case len(body) == 0:
	case body[0] != '{' && body[0] != '[':
		l.onNoise(line)
	case int64(len(body)) > l.limit:
		l.onOversized(body, size)
	default:
		l.onMessage(body)
	}
}

// endStream is the end of the stream. A last line without a newline counts if it is a whole message.
func (l *lineSplitter) endStream() {
	if looksLikeRPC(l.lastPiece) && !json.Valid(l.lastPiece) {
		l.onNoise(l.lastPiece)
		l.lastPiece, l.size = nil, 0
	}
	l.endLine()
}
