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

// webEndpoint is the door of a server behind a socket: a listener on a loopback port of its own.
type webEndpoint struct {
	owner       *chaosServer
	kind        messages.TransportKind
	address     string
	server      *http.Server
	descriptors *descriptorLimit
	apiKey      string // a secret that the manager sends with every request

	mu         sync.Mutex
	listener   net.Listener // nil while connections are refused
	goroutines sync.WaitGroup
	closed     bool

	// Guarded by the seat's lock: the connections by their sessions, those that have ended too; and the one that was
	// opened last.
	sessions map[string]int
	last     *httpSession
}

// socketKey is the key under which a request's context has its connection.
type socketKey struct{}

// newWebEndpoint listens on a port that the system chooses.
func newWebEndpoint(s *chaosServer, secret string, l *descriptorLimit) (*webEndpoint, error) {
	w := &webEndpoint{descriptors: l, owner: s, kind: s.plan.Kind, apiKey: secret, address: "127.0.0.1:0", sessions: map[string]int{}}
	w.server = &http.Server{
		Handler: w, ReadHeaderTimeout: time.Minute,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, socketKey{}, c) },
	}
	w.server.ErrorLog = discardLogger
	return w, w.allowConns()
}

// allowConns implements door. Other programs may have taken the port meanwhile, which is as good as refusing for a moment.
func (w *webEndpoint) allowConns() error {
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
		return &Error{Text: "the server " + w.owner.name + " cannot listen on " + w.address + ": " + err.Error(), Err: err}
	}
	w.listener, w.address = l, l.Addr().String()
	w.goroutines.Go(func() { _ = w.server.Serve(l) }) // it ends with its listener, and always with an error
	return nil
}

// refuseConns implements door. Connections that stand go on.
func (w *webEndpoint) refuseConns() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listener != nil {
		_ = w.listener.Close()
		w.listener = nil
	}
}

// endpointSpec implements door.
func (w *webEndpoint) endpointSpec() messages.Spec {
	s := messages.Spec{Type: w.kind, URL: "http://" + w.address + "/mcp", Headers: map[string]string{"X-Api-Key": w.apiKey}}
	if w.kind == messages.WebSocket {
		s.URL = "ws://" + w.address + "/mcp"
	}
	return s
}

// blockStart implements door: of what can be taken away only descriptors concern a socket.
func (w *webEndpoint) blockStart(class messages.Class, undo bool) {
	switch {
	case class != messages.ClassExhausted:
	case undo:
		w.descriptors.restoreLimit()
	default:
		w.descriptors.lowerLimit()
	}
}

// close implements door.
func (w *webEndpoint) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.refuseConns()
	_ = w.server.Close()
	w.goroutines.Wait()
}

// ServeHTTP is every request to the server.
func (w *webEndpoint) ServeHTTP(rw http.ResponseWriter, req *http.Request) {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return
	}
	w.goroutines.Add(1)
	w.mu.Unlock()
	defer w.goroutines.Done()
	switch {
	case w.kind == messages.WebSocket:
		w.serveWebSocket(rw, req)
	case w.kind == messages.SSE && req.Method == http.MethodGet:
		w.serveSSE(rw, req)
	case w.kind == messages.SSE && req.Method == http.MethodPost:
		w.serveSSEMessage(rw, req)
	case w.kind == messages.HTTP && req.Method == http.MethodPost:
		w.servePost(rw, req)
	case w.kind == messages.HTTP && req.Method == http.MethodGet:
		w.serveListenStream(rw, req)
	case w.kind == messages.HTTP && req.Method == http.MethodDelete:
		w.serveDelete(rw, req)
	default:
		http.Error(rw, "Method Not Allowed", http.StatusMethodNotAllowed)
	}
}

// maxBody bounds what a request may bring.
const maxBody = 64 << 20

// servePost is one message over streamable HTTP, and its answer.
func (w *webEndpoint) servePost(rw http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(rw, req.Body, maxBody))
	if err != nil {
		return // the client went away, and nobody reads what we say
	}
	m := parseEnvelope(body)
	x := newHTTPExchange(rw, req, m)
	s := w.owner
	s.mu.Lock()
	c := w.findConn(req, m)
	if c == nil {
		x.addDirective(statusDirective(http.StatusNotFound))
	} else {
		c.takeMessage(x, body, flattenHeader(req.Header))
	}
	s.mu.Unlock()
	x.runDirectives(func() {
		if c != nil {
			c.handleExchangeEnd(x)
		}
	})
}

// findConn finds out to which connection a message over streamable HTTP belongs; a new one is opened if it begins one. It
// is nil if the message comes with a session that nobody remembers. The lock is held.
func (w *webEndpoint) findConn(req *http.Request, m envelope) *httpSession {
	if id := req.Header.Get("Mcp-Session-Id"); id != "" {
		c, _ := w.owner.conns[w.sessions[id]].(*httpSession)
		return c
	}
	if w.last != nil && w.owner.conns[w.last.conn] == serverConn(w.last) && !w.beginsConn(m) {
		return w.last
	}
	return w.openConn()
}

// beginsConn reports whether a message without a session opens a connection. The first question of a client is
// server/discover, which may be refused, and then initialize, perhaps with one version after another; all of them belong
// to one connection.
//
// JSON-RPC in MCP: "The request ID MUST NOT have been previously used by the requestor within the same session." So a
// handshake with an id that was used begins another one: that is how a connection of the modern era, which has no
// session, is told from the one before.
func (w *webEndpoint) beginsConn(m envelope) bool {
	switch m.Method {
	case "initialize":
		return w.last.initialized || w.last.usedIDs[string(m.ID)]
	case "server/discover":
		return w.last.usedIDs[string(m.ID)]
	}
	return false
}

// openConn opens a connection. What is left of those before is released first, if nothing of them is open: over HTTP a
// client that gives a connection up does not say so. The lock is held; it is given up while the ends of those before
// are waited for, which come as soon as the system tells us of them.
func (w *webEndpoint) openConn() *httpSession {
	w.awaitConnEnds()
	c := newHTTPSession(w)
	w.last = c
	w.owner.addConnLocked(func(conn int) serverConn { c.conn = conn; return c })
	return c
}

// connEndWait is how long the end of a connection that the client has closed may take to be seen here.
const connEndWait = time.Second

func (w *webEndpoint) awaitConnEnds() {
	for deadline := time.Now().Add(connEndWait); time.Now().Before(deadline); {
		open := false
		for _, l := range w.owner.conns {
			c, ok := l.(*httpSession)
			open = open || ok && !c.isGone()
		}
		if !open {
			return
		}
		w.owner.mu.Unlock()
		time.Sleep(2 * time.Millisecond)
		w.owner.mu.Lock()
	}
}

// flattenHeader are what came beside a message.
func flattenHeader(h http.Header) map[string]string {
	out := make(map[string]string, len(h))
	for name := range h {
		out[name] = h.Get(name)
	}
	return out
}

// serveListenStream is the stream for what the server says unasked (legacy era).
func (w *webEndpoint) serveListenStream(rw http.ResponseWriter, req *http.Request) {
	x := newHTTPExchange(rw, req, envelope{})
	s := w.owner
	s.mu.Lock()
	id := req.Header.Get("Mcp-Session-Id")
	c, _ := s.conns[w.sessions[id]].(*httpSession)
	switch {
	case id == "":
		x.addDirective(statusDirective(http.StatusMethodNotAllowed))
	case c == nil:
		x.addDirective(statusDirective(http.StatusNotFound))
	default:
		if c.stream != nil {
			c.stream.addDirective(directive{end: true})
		}
		c.stream = x
		x.sse = true
		x.addDirective(directive{begin: true})
	}
	s.mu.Unlock()
	x.runDirectives(func() {
		if c != nil {
			c.handleExchangeEnd(x)
		}
	})
}

// serveDelete is the end of a session by the client. It is answered when the server has let go.
func (w *webEndpoint) serveDelete(rw http.ResponseWriter, req *http.Request) {
	x := newHTTPExchange(rw, req, envelope{})
	s := w.owner
	s.mu.Lock()
	c, _ := s.conns[w.sessions[req.Header.Get("Mcp-Session-Id")]].(*httpSession)
	if c == nil {
		x.addDirective(statusDirective(http.StatusNotFound))
	} else {
		c.deleteExchange, c.clientClosed = x, true
		s.askMachineLocked(func(now time.Duration) []peer.Action { return s.machine.Closed(now, c.conn, false) })
	}
	s.mu.Unlock()
	x.runDirectives(func() {
		if c != nil {
			c.forgetConn()
		}
	})
}

// resetSocket breaks a connection without a word.
func resetSocket(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}
