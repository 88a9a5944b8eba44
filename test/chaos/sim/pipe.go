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
	wire
	lines lines

	deafened bool        // under mu: the far side does not read
	room     int         // under mu: how many bytes are taken meanwhile before a Send has to wait
	held     []*exchange // under mu: what waits, in order
}

// capacities are how many bytes are taken from a sender while nobody reads, by the kind: the pipe of a process, the
// buffers of two sockets, the queue of package transports.
var capacities = map[messages.TransportKind]int{
	messages.Stdio: 64 << 10, messages.WebSocket: 256 << 10, messages.SDK: 4 << 20,
}

func newPipe(t *Transport, sink transports.Sink) *pipe {
	c := &pipe{wire: newWire(t, sink), room: capacities[t.Server]}
	c.lines = lines{limit: t.MaxMessage, message: c.message, large: c.oversized, noise: c.disturb}
	return c
}

func (c *pipe) accept(session string) bool { return c.answer(session, nil) }

func (c *pipe) refuse(err *transports.Error, _ transports.Delivery) bool { return c.answer("", err) }

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
	x.begun = !c.deafened || c.room > 0 && (c.kind != messages.SDK || len(x.body) <= c.room)
	waits := false
	if c.deafened {
		c.room -= len(x.body)
		waits = c.room < 0
	}
	if waits {
		c.held = append(c.held, x)
	}
	c.mu.Unlock()
	if x.begun {
		c.far.sent(c, x)
	}
	if !waits {
		return transports.Written, nil
	}
	select {
	case <-x.done:
	case <-ctx.Done():
	case <-c.dead:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if x.settled {
		return x.delivery, x.err
	}
	x.settled = true
	c.held = slices.DeleteFunc(c.held, func(h *exchange) bool { return h == x })
	delivery := transports.MaybeWritten // the rest of it follows, or the next message would be unreadable
	if !x.begun {
		c.room += len(x.body)
		delivery = transports.NotWritten
	}
	if c.cause != nil {
		return delivery, c.cause
	}
	return delivery, contextError(ctx, "sending to "+c.label+", which does not read,")
}

func (c *pipe) hear(ears bool) {
	c.mu.Lock()
	c.deafened = !ears
	var held []*exchange
	if ears {
		held, c.held, c.room = c.held, nil, capacities[c.kind]
		for _, x := range held {
			x.settle(transports.Written, nil)
		}
	}
	c.mu.Unlock()
	for _, x := range held {
		if !x.begun {
			c.far.sent(c, x)
		}
	}
}

func (c *pipe) took(*exchange) {}

func (c *pipe) cut() {}

func (c *pipe) deny(string, transports.Delivery, *transports.Error) bool { return false }

func (c *pipe) give(body []byte, _ string, _ bool) bool {
	switch {
	case c.kind != messages.Stdio:
		c.message(body)
	case len(c.lines.held) == 0 && bytes.IndexByte(body, '\n') < 0:
		c.lines.line(body, int64(len(body))) // nearly every message: nothing is copied
	default:
		c.raw(body)
		c.raw([]byte("\n"))
	}
	return true
}

func (c *pipe) raw(p []byte) {
	switch {
	case c.kind == messages.Stdio:
		if !c.lines.feed(p) && c.end(&transports.Error{Class: messages.ClassProtocol, Text: "the server wrote a line that does not end"}) {
			c.down()
			go c.ladder()
		}
	case c.kind == messages.WebSocket && !begins(p):
		c.disturb(p)
	default:
		c.message(p)
	}
}

// begins reports whether a text can be JSON-RPC.
func begins(p []byte) bool {
	p = bytes.TrimSpace(p)
	return len(p) > 0 && (p[0] == '{' || p[0] == '[')
}

// exit is the end of the far side: what it wrote before is delivered, and beats the death.
func (c *pipe) exit(e ending) {
	if c.kind == messages.Stdio {
		c.lines.end()
	}
	c.leave(e.text)
	if c.end(e.err) {
		c.down()
		c.release(c)
	}
}

// Close implements transports.Conn.
func (c *pipe) Close(ctx context.Context) error {
	if c.end(closedByUs()) {
		go c.ladder()
	}
	return c.wait(ctx)
}

// ladder makes the far side end. A process is asked twice and killed then; what it says meanwhile is heard. The others are
// left alone after a moment.
func (c *pipe) ladder() {
	defer c.release(c)
	defer c.down()
	if c.kind != messages.Stdio {
		c.down()
	}
	c.far.closing(c, false)
	if c.exits(c.grace) || c.kind != messages.Stdio {
		return
	}
	c.far.closing(c, true)
	if !c.exits(c.grace) {
		c.leave("signal: killed")
	}
}

// complain is what the far side writes to its standard error.
func (c *pipe) complain(p []byte) {
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

// lines cuts what a process writes into messages, as package transports does: a line that begins with { or [ is a message,
// an empty one is nothing, any other is noise.
type lines struct {
	limit   int64
	message func(body []byte)
	large   func(p []byte, size int64)
	noise   func(line []byte)

	held []byte // of the line at hand, at most the limit and a little
	size int64  // of the line at hand
}

// endless is the length at which a line is given up.
const endless = 2 << 30

// feed takes the next piece. It reports false if the line at hand has no end.
func (l *lines) feed(p []byte) bool {
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			l.hold(p)
			return l.size <= endless
		}
		l.hold(p[:i])
		l.close()
		p = p[i+1:]
	}
}

func (l *lines) hold(p []byte) {
	l.size += int64(len(p))
	if room := l.limit + 2*endSize - int64(len(l.held)); room > 0 {
		l.held = append(l.held, p[:min(int64(len(p)), room)]...)
	}
}

func (l *lines) close() {
	held, size := l.held, l.size
	l.held, l.size = l.held[:0], 0
	if cap(l.held) > 1<<20 {
		l.held = nil
	}
	l.line(held, size)
}

// line takes a line, or as much of it as was kept.
func (l *lines) line(text []byte, size int64) {
	line := bytes.TrimRight(text, "\r \t")
	body := bytes.TrimLeft(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")), " \t")
	switch {
	case len(body) == 0:
	case body[0] != '{' && body[0] != '[':
		l.noise(line)
	case int64(len(body)) > l.limit:
		l.large(body, size)
	default:
		l.message(body)
	}
}

// end is the end of the stream. A last line without a newline counts if it is a whole message.
func (l *lines) end() {
	if begins(l.held) && !json.Valid(l.held) {
		l.noise(l.held)
		l.held, l.size = nil, 0
	}
	l.close()
}
