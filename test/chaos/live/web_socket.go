package live

import (
	"context"
	"encoding/binary"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
)

// wsLink is one connection over WebSocket: a JSON-RPC message per text frame, subprotocol "mcp". Its fields are guarded by
// the seat's lock, but for those that are never changed.
type wsLink struct {
	web    *web
	conn   int
	opener *exchange // the handshake; it is told to switch, or refused
	raw    net.Conn
	ctx    context.Context // ends with the connection
	cancel context.CancelFunc
	out    chan func(*websocket.Conn) error

	opened  bool
	closing bool // the client has closed
	down    bool
	hung    bool
	ended   bool
}

// upgrade is the handshake and the life of a WebSocket.
func (w *web) upgrade(rw http.ResponseWriter, req *http.Request) {
	x := newExchange(rw, req, envelope{})
	l := &wsLink{web: w, opener: x, out: make(chan func(*websocket.Conn) error, outgoing)}
	l.raw, _ = req.Context().Value(socket{}).(net.Conn)
	l.ctx, l.cancel = context.WithCancel(context.Background())
	defer l.end()
	s := w.seat
	s.attach(func(conn int) link { l.conn = conn; return l })
	x.run(func() {}) // until it is accepted or refused
	s.mu.Lock()
	opened := l.opened
	if !opened && !l.ended {
		s.tellLocked(func(now time.Duration) []peer.Action { return s.machine.Abandoned(now, l.conn, "") })
	}
	s.mu.Unlock()
	if !opened {
		return
	}
	c, err := websocket.Accept(rw, req, &websocket.AcceptOptions{Subprotocols: []string{"mcp"}})
	if err != nil {
		return
	}
	defer func() { _ = c.CloseNow() }()
	c.SetReadLimit(maxBody)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		l.send(c)
	}()
	l.hear(c)
	l.cancel()
	<-sent
}

// hear reads until the connection ends.
func (l *wsLink) hear(c *websocket.Conn) {
	for {
		kind, body, err := c.Read(l.ctx)
		if err != nil {
			return
		}
		if kind == websocket.MessageText {
			l.web.seat.mu.Lock()
			l.web.seat.receive(l.conn, body, nil)
			l.web.seat.mu.Unlock()
		}
	}
}

// send does what was queued until the connection ends.
func (l *wsLink) send(c *websocket.Conn) {
	for {
		select {
		case f := <-l.out:
			if f(c) != nil {
				l.cancel()
				return
			}
		case <-l.ctx.Done():
			return
		}
	}
}

// end notes the end of the connection, whoever made it.
func (l *wsLink) end() {
	s := l.web.seat
	l.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.links[l.conn] != link(l) {
		return
	}
	if !l.ended && l.opened {
		l.closing = true
		s.tellLocked(func(now time.Duration) []peer.Action { return s.machine.Closed(now, l.conn, false) })
		s.machine.Killed(s.now(), l.conn)
	}
	l.ended = true
	s.releaseLocked(l.conn, l)
}

// perform implements link.
func (l *wsLink) perform(a peer.Action) {
	switch a := a.(type) {
	case peer.Accept:
		l.opened = true
		l.opener.tell(directive{end: true})
	case peer.Reject:
		l.ended = true
		l.opener.tell(refusal(a.Code, a.RetryAfter, a.Header, []byte(a.Text)))
	case peer.Send:
		l.queue(func(c *websocket.Conn) error { return l.frame(c, a) })
	case peer.Raw:
		l.queue(func(c *websocket.Conn) error {
			for range max(a.Repeat, 1) {
				if err := c.Write(l.ctx, websocket.MessageText, a.Bytes); err != nil {
					return err
				}
				if a.Repeat > 1 && a.Every > 0 && !pause(l.ctx, a.Every) {
					return l.ctx.Err()
				}
			}
			return nil
		})
	case peer.Cut: // there is but one stream, and it is the connection
	case peer.Exit:
		l.exit(a)
	}
}

// queue lets the sender do something; a half-open connection says nothing.
func (l *wsLink) queue(f func(*websocket.Conn) error) {
	if l.hung || l.ended {
		return
	}
	select {
	case l.out <- f:
	default: // the client takes nothing: what it does not take is lost with the connection
		l.cancel()
	}
}

func (l *wsLink) exit(a peer.Exit) {
	if a.HalfOpen {
		l.hung = true
		return
	}
	if !l.down && !l.closing {
		l.down = true
		l.web.seat.noteLocked(history.Event{Kind: history.Down, Conn: l.conn, Class: messages.ClassNetwork, Text: a.Text})
	}
	wasHung := l.hung
	l.ended = true
	switch {
	case a.Reset || wasHung:
		reset(l.raw)
		l.cancel()
	default:
		select {
		case l.out <- func(c *websocket.Conn) error {
			_ = c.Close(websocket.StatusGoingAway, "") // an error means that it is closed
			return net.ErrClosed
		}:
		default:
			l.cancel()
		}
	}
}

// frame writes a message as one text frame: at once, in pieces, or only its beginning.
func (l *wsLink) frame(c *websocket.Conn, a peer.Send) error {
	if a.Cut <= 0 && a.Chunk <= 0 {
		return c.Write(l.ctx, websocket.MessageText, a.Body)
	}
	// The library writes whole frames only. A server's frame is not masked: this is its head.
	head := []byte{0x81, 127, 0, 0, 0, 0, 0, 0, 0, 0}
	binary.BigEndian.PutUint64(head[2:], uint64(len(a.Body)))
	rest := a.Body
	if a.Cut > 0 {
		rest = rest[:min(a.Cut, len(rest))]
	}
	if _, err := l.raw.Write(head); err != nil {
		return err
	}
	for len(rest) > 0 {
		n := len(rest)
		if a.Chunk > 0 {
			n = min(n, a.Chunk)
		}
		if _, err := l.raw.Write(rest[:n]); err != nil {
			return err
		}
		if rest = rest[n:]; len(rest) > 0 && a.Every > 0 && !pause(l.ctx, a.Every) {
			return l.ctx.Err()
		}
	}
	if a.Cut > 0 {
		_ = l.raw.Close()
		return net.ErrClosed
	}
	return nil
}

// pids implements link.
func (l *wsLink) pids() []int { return nil }

// cut implements link.
func (l *wsLink) cut() { l.cancel() }
