package live

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
)

// web is the door of a server behind a socket: a listener on a loopback port of its own.
type web struct {
	seat    *seat
	kind    messages.TransportKind
	address string
	server  *http.Server
	limits  *limits
	header  string // a secret that the manager sends with every request

	mu       sync.Mutex
	listener net.Listener // nil while connections are refused
	living   sync.WaitGroup
	closed   bool

	// Guarded by the seat's lock: the connections by their sessions, those that have ended too; and the one that was
	// opened last.
	sessions map[string]int
	last     *session
}

// socket is the key under which a request's context has its connection.
type socket struct{}

// newWeb listens on a port that the system chooses.
func newWeb(s *seat, secret string, l *limits) (*web, error) {
	w := &web{limits: l, seat: s, kind: s.plan.Kind, header: secret, address: "127.0.0.1:0", sessions: map[string]int{}}
	w.server = &http.Server{
		Handler: w, ReadHeaderTimeout: time.Minute,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, socket{}, c) },
	}
	w.server.ErrorLog = quiet
	return w, w.open()
}

// open implements door. Other programs may have taken the port meanwhile, which is as good as refusing for a moment.
func (w *web) open() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listener != nil || w.closed {
		return nil
	}
	var l net.Listener
	var err error
	for try := range 50 {
		if try > 0 {
			time.Sleep(20 * time.Millisecond)
		}
		if l, err = net.Listen("tcp", w.address); err == nil {
			break
		}
	}
	if err != nil {
		return &Error{Text: "the server " + w.seat.name + " cannot listen on " + w.address + ": " + err.Error(), Err: err}
	}
	w.listener, w.address = l, l.Addr().String()
	w.living.Go(func() { _ = w.server.Serve(l) }) // it ends with its listener, and always with an error
	return nil
}

// shut implements door. Connections that stand go on.
func (w *web) shut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listener != nil {
		_ = w.listener.Close()
		w.listener = nil
	}
}

// spec implements door.
func (w *web) spec() messages.Spec {
	s := messages.Spec{Type: w.kind, URL: "http://" + w.address + "/mcp", Headers: map[string]string{"X-Api-Key": w.header}}
	if w.kind == messages.WebSocket {
		s.URL = "ws://" + w.address + "/mcp"
	}
	return s
}

// hide implements door: of what can be taken away only descriptors concern a socket.
func (w *web) hide(class messages.Class, back bool) {
	switch {
	case class != messages.ClassExhausted:
	case back:
		w.limits.restore()
	default:
		w.limits.exhaust()
	}
}

// close implements door.
func (w *web) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.shut()
	_ = w.server.Close()
	w.living.Wait()
}

// ServeHTTP is every request to the server.
func (w *web) ServeHTTP(rw http.ResponseWriter, req *http.Request) {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return
	}
	w.living.Add(1)
	w.mu.Unlock()
	defer w.living.Done()
	switch {
	case w.kind == messages.WebSocket:
		w.upgrade(rw, req)
	case w.kind == messages.SSE && req.Method == http.MethodGet:
		w.stream(rw, req)
	case w.kind == messages.SSE && req.Method == http.MethodPost:
		w.take(rw, req)
	case w.kind == messages.HTTP && req.Method == http.MethodPost:
		w.post(rw, req)
	case w.kind == messages.HTTP && req.Method == http.MethodGet:
		w.listen(rw, req)
	case w.kind == messages.HTTP && req.Method == http.MethodDelete:
		w.goodbye(rw, req)
	default:
		http.Error(rw, "Method Not Allowed", http.StatusMethodNotAllowed)
	}
}

// maxBody bounds what a request may bring.
const maxBody = 64 << 20

// post is one message over streamable HTTP, and its answer.
func (w *web) post(rw http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(rw, req.Body, maxBody))
	if err != nil {
		return // the client went away, and nobody reads what we say
	}
	m := read(body)
	x := newExchange(rw, req, m)
	s := w.seat
	s.mu.Lock()
	c := w.connection(req, m)
	if c == nil {
		x.tell(status(http.StatusNotFound))
	} else {
		c.take(x, body, headers(req.Header))
	}
	s.mu.Unlock()
	x.run(func() {
		if c != nil {
			c.left(x)
		}
	})
}

// connection finds out to which connection a message over streamable HTTP belongs; a new one is opened if it begins one. It
// is nil if the message comes with a session that nobody remembers. The lock is held.
func (w *web) connection(req *http.Request, m envelope) *session {
	if id := req.Header.Get("Mcp-Session-Id"); id != "" {
		c, _ := w.seat.links[w.sessions[id]].(*session)
		return c
	}
	if w.last != nil && w.seat.links[w.last.conn] == link(w.last) && !w.begins(m) {
		return w.last
	}
	return w.dial()
}

// begins reports whether a message without a session opens a connection. The first question of a client is
// server/discover, which may be refused, and then initialize, perhaps with one version after another; all of them belong
// to one connection.
//
// JSON-RPC in MCP: "The request ID MUST NOT have been previously used by the requestor within the same session." So a
// handshake with an id that was used begins another one: that is how a connection of the modern era, which has no
// session, is told from the one before.
func (w *web) begins(m envelope) bool {
	switch m.Method {
	case "initialize":
		return w.last.greeted || w.last.used[string(m.ID)]
	case "server/discover":
		return w.last.used[string(m.ID)]
	}
	return false
}

// dial opens a connection. What is left of those before is released first, if nothing of them is open: over HTTP a
// client that gives a connection up does not say so. The lock is held; it is given up while the ends of those before
// are waited for, which come as soon as the system tells us of them.
func (w *web) dial() *session {
	w.lastGasp()
	c := newSession(w)
	w.last = c
	w.seat.attachLocked(func(conn int) link { c.conn = conn; return c })
	return c
}

// gaspTime is how long the end of a connection that the client has closed may take to be seen here.
const gaspTime = time.Second

func (w *web) lastGasp() {
	for deadline := time.Now().Add(gaspTime); time.Now().Before(deadline); {
		open := false
		for _, l := range w.seat.links {
			c, ok := l.(*session)
			open = open || ok && !c.over()
		}
		if !open {
			return
		}
		w.seat.mu.Unlock()
		time.Sleep(2 * time.Millisecond)
		w.seat.mu.Lock()
	}
}

// headers are what came beside a message.
func headers(h http.Header) map[string]string {
	out := make(map[string]string, len(h))
	for name := range h {
		out[name] = h.Get(name)
	}
	return out
}

// listen is the stream for what the server says unasked (legacy era).
func (w *web) listen(rw http.ResponseWriter, req *http.Request) {
	x := newExchange(rw, req, envelope{})
	s := w.seat
	s.mu.Lock()
	id := req.Header.Get("Mcp-Session-Id")
	c, _ := s.links[w.sessions[id]].(*session)
	switch {
	case id == "":
		x.tell(status(http.StatusMethodNotAllowed))
	case c == nil:
		x.tell(status(http.StatusNotFound))
	default:
		if c.stream != nil {
			c.stream.tell(directive{end: true})
		}
		c.stream = x
		x.sse = true
		x.tell(directive{begin: true})
	}
	s.mu.Unlock()
	x.run(func() {
		if c != nil {
			c.left(x)
		}
	})
}

// goodbye is the end of a session by the client. It is answered when the server has let go.
func (w *web) goodbye(rw http.ResponseWriter, req *http.Request) {
	x := newExchange(rw, req, envelope{})
	s := w.seat
	s.mu.Lock()
	c, _ := s.links[w.sessions[req.Header.Get("Mcp-Session-Id")]].(*session)
	if c == nil {
		x.tell(status(http.StatusNotFound))
	} else {
		c.farewell, c.closing = x, true
		s.tellLocked(func(now time.Duration) []peer.Action { return s.machine.Closed(now, c.conn, false) })
	}
	s.mu.Unlock()
	x.run(func() {
		if c != nil {
			c.forget()
		}
	})
}

// reset breaks a connection without a word.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}
