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

// wsConn is one connection over WebSocket: a JSON-RPC message per text frame, subprotocol "mcp". Its fields are guarded by
// the seat's lock, but for those that are never changed.
type wsConn struct {
	web        *webEndpoint
	conn       int
	handshake  *httpExchange // the handshake; it is told to switch, or refused
	raw        net.Conn
	ctx        context.Context // ends with the connection
	cancel     context.CancelFunc
	writeQueue chan func(*websocket.Conn) error

	opened       bool
	clientClosed bool // the client has closed
	downRecorded bool
	halfOpen     bool
	ended        bool
}

// serveWebSocket is the handshake and the life of a WebSocket.
func (w *webEndpoint) serveWebSocket(rw http.ResponseWriter, req *http.Request) {
	x := newHTTPExchange(rw, req, envelope{})
	l := &wsConn{web: w, handshake: x, writeQueue: make(chan func(*websocket.Conn) error, maxQueuedSends)}
	l.raw, _ = req.Context().Value(socketKey{}).(net.Conn)
	l.ctx, l.cancel = context.WithCancel(context.Background())
	defer l.recordEnd()
	s := w.owner
	s.addConn(func(conn int) serverConn { l.conn = conn; return l })
	x.runDirectives(func() {}) // until it is accepted or refused
	s.mu.Lock()
	opened := l.opened
	if !opened && !l.ended {
		s.askMachineLocked(func(now time.Duration) []peer.Action { return s.machine.Abandoned(now, l.conn, "") })
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
		l.writeLoop(c)
	}()
	l.readLoop(c)
	l.cancel()
	<-sent
}

// readLoop reads until the connection ends.
func (l *wsConn) readLoop(c *websocket.Conn) {
	for {
		kind, body, err := c.Read(l.ctx)
		if err != nil {
			return
		}
		if kind == websocket.MessageText {
			l.web.owner.mu.Lock()
			l.web.owner.receiveMessage(l.conn, body, nil)
			l.web.owner.mu.Unlock()
		}
	}
}

// writeLoop does what was queued until the connection ends.
func (l *wsConn) writeLoop(c *websocket.Conn) {
	for {
		select {
		case f := <-l.writeQueue:
			if f(c) != nil {
				l.cancel()
				return
			}
		case <-l.ctx.Done():
			return
		}
	}
}

// recordEnd notes the end of the connection, whoever made it.
func (l *wsConn) recordEnd() {
	s := l.web.owner
	l.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns[l.conn] != serverConn(l) {
		return
	}
	if !l.ended && l.opened {
		l.clientClosed = true
		s.askMachineLocked(func(now time.Duration) []peer.Action { return s.machine.Closed(now, l.conn, false) })
		s.machine.Killed(s.now(), l.conn)
	}
	l.ended = true
	s.releaseConnLocked(l.conn, l)
}

// performAction implements link.
func (l *wsConn) performAction(a peer.Action) {
	switch a := a.(type) {
	case peer.Accept:
		l.opened = true
		l.handshake.addDirective(directive{end: true})
	case peer.Reject:
		l.ended = true
		l.handshake.addDirective(refusalDirective(a.Code, a.RetryAfter, a.Header, []byte(a.Text)))
	case peer.Send:
		l.queueWrite(func(c *websocket.Conn) error { return l.writeFrame(c, a) })
	case peer.Raw:
		l.queueWrite(func(c *websocket.Conn) error {
			for range max(a.Repeat, 1) {
				if err := c.Write(l.ctx, websocket.MessageText, a.Bytes); err != nil {
					return err
				}
				if a.Repeat > 1 && a.Every > 0 && !sleepOrDone(l.ctx, a.Every) {
					return l.ctx.Err()
				}
			}
			return nil
		})
	case peer.Cut: // there is but one stream, and it is the connection
	case peer.Exit:
		l.endServerSide(a)
	}
}

// queueWrite lets the sender do something; a half-open connection says nothing.
func (l *wsConn) queueWrite(f func(*websocket.Conn) error) {
	if l.halfOpen || l.ended {
		return
	}
	select {
	case l.writeQueue <- f:
	default: // the client takes nothing: what it does not take is lost with the connection
		l.cancel()
	}
}

func (l *wsConn) endServerSide(a peer.Exit) {
	if a.HalfOpen {
		l.halfOpen = true
		return
	}
	if !l.downRecorded && !l.clientClosed {
		l.downRecorded = true
		l.web.owner.recordLocked(history.Event{Kind: history.Down, Conn: l.conn, Class: messages.ClassNetwork, Text: a.Text})
	}
	wasHung := l.halfOpen
	l.ended = true
	switch {
	case a.Reset || wasHung:
		resetSocket(l.raw)
		l.cancel()
	default:
		select {
		case l.writeQueue <- func(c *websocket.Conn) error {
			_ = c.Close(websocket.StatusGoingAway, "") // an error means that it is closed
			return net.ErrClosed
		}:
		default:
			l.cancel()
		}
	}
}

// writeFrame writes a message as one text frame: at once, in pieces, or only its beginning.
func (l *wsConn) writeFrame(c *websocket.Conn, a peer.Send) error {
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
		if rest = rest[n:]; len(rest) > 0 && a.Every > 0 && !sleepOrDone(l.ctx, a.Every) {
			return l.ctx.Err()
		}
	}
	if a.Cut > 0 {
		_ = l.raw.Close()
		return net.ErrClosed
	}
	return nil
}

// processIDs implements link.
func (l *wsConn) processIDs() []int { return nil }

// cutConn implements link.
func (l *wsConn) cutConn() { l.cancel() }
