package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/procinfo"
)

// pipe is a connection with one ordered stream in each direction: a process, a websocket, or an in-process server.
type pipe struct {
	baseConn
	lines lineSplitter

	// mu guards these: notReading is set while the server does not read, freeBytes is the room left in the buffers meanwhile,
	// and waitingSends are the Sends that found no room, in order.
	notReading   bool
	freeBytes    int
	waitingSends []*exchange
}

// bufferSizes are the bytes that a Send can hand over while the server does not read, by kind: the pipe of a process, the
// buffers of two sockets, the queue of package inprocess.
var bufferSizes = map[messages.TransportKind]int{
	messages.Stdio: 64 << 10, messages.WebSocket: 256 << 10, messages.SDK: 4 << 20,
}

// newPipe makes a connection that is not open yet; the remote end answers its dial.
func newPipe(t *Transport, sink transports.Sink) *pipe {
	c := &pipe{baseConn: newBaseConn(t, sink), freeBytes: bufferSizes[t.Emulated]}
	c.lines = lineSplitter{limit: t.MaxMessage, onMessage: c.deliverToSink, onOversized: c.reportOversized, onNoise: c.reportNoise}
	return c
}

func (c *pipe) acceptOpening(session string) bool { return c.answerOpening(session, nil) }

func (c *pipe) refuseOpening(err *transports.Error, _ transports.Delivery) bool {
	return c.answerOpening("", err)
}

// Send implements transports.Conn. Once a byte of a message is in the buffer, the server will read all of it, so that its
// delivery is certain only if it fitted in whole.
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
	// A process or socket takes a part of a message; the in-process queue takes all or nothing.
	x.handedOver = !c.notReading || c.freeBytes > 0 && (c.kind != messages.SDK || len(x.body) <= c.freeBytes)
	// freeBytes goes below 0 by what the buffer cannot take, so that several Sends may wait at once; setReading starts anew.
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
	// A part of it is in the buffer, and the rest must follow, or the next message would be unreadable.
	delivery := transports.MaybeWritten
	if !x.handedOver {
		c.freeBytes += len(x.body)
		delivery = transports.NotWritten
	}
	if c.cause != nil {
		return delivery, c.cause
	}
	return delivery, contextError(ctx, "sending to "+c.label+", which does not read,")
}

// setReading stops or resumes the server's reading. On resuming, the Sends that wait return, and the messages that were not
// handed over yet follow in order.
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

// markTaken implements conn: a pipe has no responses to notifications.
func (c *pipe) markTaken(*exchange) {}

// cutStream and denyExchange implement conn: a pipe has no streams or exchanges of its own.
func (c *pipe) cutStream() {}

func (c *pipe) denyExchange(string, transports.Delivery, *transports.Error) bool { return false }

// deliverMessage implements conn.
func (c *pipe) deliverMessage(body []byte, _ string, _ bool) bool {
	switch {
	case c.kind != messages.Stdio:
		c.deliverToSink(body)
	case len(c.lines.lastPiece) == 0 && bytes.IndexByte(body, '\n') < 0:
		// Nearly every message takes this branch, and it copies nothing.
		c.lines.handleLine(body, int64(len(body)))
	default:
		c.deliverBytes(body)
		c.deliverBytes([]byte("\n"))
	}
	return true
}

// deliverBytes gives bytes to the line splitter of a process, and otherwise to the sink. A line that does not end breaks the
// connection, as in package stdio.
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

// looksLikeRPC reports whether a text may be JSON-RPC: it begins with an object or an array.
func looksLikeRPC(p []byte) bool {
	p = bytes.TrimSpace(p)
	return len(p) > 0 && (p[0] == '{' || p[0] == '[')
}

// endRemote ends the server's side. What it wrote before reaches the sink first.
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

// stopRemote makes the server end after Close. A process gets its end of input, after Grace SIGTERM, and after another Grace it
// counts as killed; its output still reaches the sink meanwhile. On other kinds the client waits for one Grace at most.
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

// Work implements transports.ProcessConn. The processes of most servers tell nothing, as on a system without such numbers, and one that
// has ended tells nothing any more.
func (c *pipe) Work() (procinfo.Usage, error) {
	select {
	case <-c.remoteExited:
		return procinfo.Usage{}, os.ErrProcessDone
	default:
	}
	used, known := c.usageNow()
	if !known {
		return procinfo.Usage{}, procinfo.ErrUnknown
	}
	c.remote.onMeasured(c, used)
	return used, nil
}

// writeStderr appends to the standard error of a process, of which the last 64 KiB are kept.
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

// lineSplitter cuts the output of a process into messages by the rules of package transports/internal/lines: a line that begins
// with { or [ is a message, an empty one is skipped, any other is noise.
type lineSplitter struct {
	// limit is in bytes. The functions are called for one line after the other.
	limit       int64
	onMessage   func(body []byte)
	onOversized func(p []byte, size int64)
	onNoise     func(line []byte)

	// lastPiece is the kept beginning of the current line, at most the limit and a little more; size is its whole length so
	// far.
	lastPiece []byte
	size      int64
}

// maxLine is the length in bytes at which a line counts as endless.
const maxLine = 2 << 30

// feedBytes takes the next bytes. It returns false if the current line is longer than maxLine.
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

// keepBytes appends to the current line, as far as there is room; the rest is only counted.
func (l *lineSplitter) keepBytes(p []byte) {
	l.size += int64(len(p))
	if room := l.limit + 2*endSize - int64(len(l.lastPiece)); room > 0 {
		l.lastPiece = append(l.lastPiece, p[:min(int64(len(p)), room)]...)
	}
}

// endLine hands the current line over and starts the next one. It frees a large buffer, because few lines are large.
func (l *lineSplitter) endLine() {
	piece, size := l.lastPiece, l.size
	l.lastPiece, l.size = l.lastPiece[:0], 0
	if cap(l.lastPiece) > 1<<20 {
		l.lastPiece = nil
	}
	l.handleLine(piece, size)
}

// handleLine classifies a line, or as much of it as was kept. It skips a byte order mark.
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

// endStream handles the end of the stream. A last line without a newline counts if it is a whole message, otherwise it is
// noise.
func (l *lineSplitter) endStream() {
	if looksLikeRPC(l.lastPiece) && !json.Valid(l.lastPiece) {
		l.onNoise(l.lastPiece)
		l.lastPiece, l.size = nil, 0
	}
	l.endLine()
}
