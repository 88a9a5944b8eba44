package performer

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

// wsConn is one connection over WebSocket: one JSON-RPC message per text frame, subprotocol "mcp". The server's lock guards the
// fields from opened on; the others do not change.
type wsConn struct {
	web  *webEndpoint
	conn int
	// handshake is the HTTP request; the machine's Accept ends it for the switch of protocols, Reject refuses it.
	handshake *httpExchange
	raw       net.Conn
	// ctx ends with the connection.
	ctx    context.Context
	cancel context.CancelFunc
	// writeQueue holds what writeLoop writes, at most maxQueuedSends entries.
	writeQueue chan func(*websocket.Conn) error

	// opened is set by the machine's Accept.
	opened bool
	// clientClosed and downRecorded are as in httpSession; with halfOpen the server writes nothing more.
	clientClosed bool
	downRecorded bool
	halfOpen     bool
	// ended is set when the server's side has ended.
	ended bool
}

// serveWebSocket serves one WebSocket from its handshake to its end. Its goroutine is that of the HTTP request, and becomes the
// reader.
func (w *webEndpoint) serveWebSocket(rw http.ResponseWriter, req *http.Request) {
	x := newHTTPExchange(rw, req, envelope{})
	l := &wsConn{web: w, handshake: x, writeQueue: make(chan func(*websocket.Conn) error, maxQueuedSends)}
	l.raw, _ = req.Context().Value(socketKey{}).(net.Conn)
	l.ctx, l.cancel = context.WithCancel(context.Background())
	defer l.recordEnd()
	s := w.owner
	s.addConn(func(conn int) serverConn { l.conn = conn; return l })
	// It returns when the machine has accepted or refused the dial, or the client has gone away.
	x.runDirectives(func() {})
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

// readLoop gives each text frame to the machine until the connection ends.
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

// writeLoop writes what is queued until the connection ends. An error of writing ends it.
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

// recordEnd releases the connection, after the client or the server has ended it. If the server had not, the machine learns
// that the client closed.
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

// performAction implements serverConn.
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
	// The connection has one stream only, so Cut never comes here.
	case peer.Cut:
	case peer.Exit:
		l.endServerSide(a)
	}
}

// queueWrite lets writeLoop write something. A half-open or ended connection drops it.
func (l *wsConn) queueWrite(f func(*websocket.Conn) error) {
	if l.halfOpen || l.ended {
		return
	}
	select {
	case l.writeQueue <- f:
	// A client that reads nothing for so long loses the connection, because the caller holds the server's lock and must not
	// wait.
	default:
		l.cancel()
	}
}

// endServerSide ends the server's side: with a close frame after the messages before it, or with a reset. A connection that was
// half-open can only be reset, since its silence must not end in a close frame.
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

// writeFrame writes a message as one text frame: at once, in chunks, or only its beginning.
func (l *wsConn) writeFrame(c *websocket.Conn, a peer.Send) error {
	if a.Cut <= 0 && a.Chunk <= 0 {
		return c.Write(l.ctx, websocket.MessageText, a.Body)
	}
	// The library writes whole frames only, so the head is written by hand: final text frame, unmasked as a server sends it,
	// length in eight bytes.
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

// processIDs implements serverConn.
func (l *wsConn) processIDs() []int { return nil }

// cutConn implements serverConn.
func (l *wsConn) cutConn() { l.cancel() }
