package performer

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
)

// webEndpoint is the endpoint of a server behind a socket: a listener on a loopback port of its own.
type webEndpoint struct {
	owner *Server
	kind  messages.TransportKind
	// address is chosen by the first Listen and kept: the client's spec names it for the whole run.
	address string
	server  *http.Server
	// memory takes the place of the network; nil if the server has a port.
	memory      *memoryNetwork
	descriptors *descriptorLimit
	// apiKey is a secret that the client sends with every request.
	apiKey string

	// mu guards the listener. listener is nil while connections are refused; goroutines counts Serve and the requests.
	mu         sync.Mutex
	listener   net.Listener
	goroutines sync.WaitGroup
	closed     bool

	// The server's lock guards these: sessions maps the id of each session, ended ones included, to its connection, and last is
	// the connection opened last.
	sessions map[string]int
	last     *httpSession
}

// socketKey is the key under which a request's context holds its net.Conn, so that resetAndAbort can reset it.
type socketKey struct{}

// newWebEndpoint makes an endpoint on a port that the system chooses.
func (g *Group) newWebEndpoint(s *Server, secret string) (*webEndpoint, error) {
	w := &webEndpoint{
		descriptors: g.descriptors, owner: s, kind: s.plan.Kind, apiKey: secret, address: "127.0.0.1:0", sessions: map[string]int{},
	}
	w.server = &http.Server{
		Handler: w, ReadHeaderTimeout: time.Minute,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, socketKey{}, c) },
	}
	w.server.ErrorLog = discardLogger
	if g.options.Memory {
		w.memory = &memoryNetwork{}
	}
	if g.options.Front != nil {
		w.server.Handler = g.options.Front(w)
	}
	return w, w.allowConns()
}

// allowConns implements serverEndpoint. After a refusal it listens on the same port again; another program may have taken it
// meanwhile, so it tries for a second.
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
		if w.memory != nil {
			l = w.memory.listen()
			break
		}
		if l, err = net.Listen("tcp", w.address); err == nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("the server %s cannot listen on %s: %w", w.owner.name, w.address, err)
	}
	w.listener, w.address = l, l.Addr().String()
	// Serve ends with its listener, and always returns an error.
	w.goroutines.Go(func() { _ = w.server.Serve(l) })
	return nil
}

// refuseConns implements serverEndpoint. Open connections go on.
func (w *webEndpoint) refuseConns() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listener != nil {
		_ = w.listener.Close()
		w.listener = nil
	}
}

// endpointSpec implements serverEndpoint.
func (w *webEndpoint) endpointSpec() messages.Spec {
	s := messages.Spec{Type: w.kind, URL: "http://" + w.address + "/mcp", Headers: map[string]string{"X-Api-Key": w.apiKey}}
	if w.kind == messages.WebSocket {
		s.URL = "ws://" + w.address + "/mcp"
	}
	return s
}

// blockStart implements serverEndpoint. A socket needs no program, only descriptors.
func (w *webEndpoint) blockStart(class messages.Class, undo bool) {
	switch {
	case class != messages.ClassExhausted || w.memory != nil:
	case undo:
		w.descriptors.restoreLimit()
	default:
		w.descriptors.lowerLimit()
	}
}

// close implements serverEndpoint. It returns when every request has ended.
func (w *webEndpoint) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.refuseConns()
	_ = w.server.Close()
	w.goroutines.Wait()
}

// ServeHTTP handles every request to the server, by the kind of the server and the method.
func (w *webEndpoint) ServeHTTP(rw http.ResponseWriter, req *http.Request) {
	// A page of a stranger may have the name of this machine in its own domain: both headers then name that.
	if !isLocal(req.Host) || !isLocal(strings.TrimPrefix(req.Header.Get("Origin"), "http://")) {
		http.Error(rw, "this server is for programs of its own machine", http.StatusForbidden)
		return
	}
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return
	}
	// The Add stands under mu, so that it cannot follow the Wait of close.
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

// isLocal reports whether a host, with its port, is this machine; an empty one is no other.
func isLocal(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	return slices.Contains([]string{"", "localhost", "127.0.0.1", "::1", "[::1]"}, name)
}

// maxBody bounds the body of a request and a WebSocket message, in bytes.
const maxBody = 64 << 20

// servePost handles one message over streamable HTTP. The connection's machine answers through x, in this goroutine.
func (w *webEndpoint) servePost(rw http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(rw, req.Body, maxBody))
	if err != nil {
		// The client has gone away and reads no answer.
		return
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

// findConn returns the connection of a message over streamable HTTP. It opens one if the message begins one, and returns nil if
// the message names a session that no open connection has. The caller holds the server's lock.
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

// beginsConn reports whether a message without a session opens a connection. A client first asks server/discover, which the
// server may refuse, and then initialize, perhaps with one version after another; all of these belong to one connection.
//
// JSON-RPC in MCP: "The request ID MUST NOT have been previously used by the requestor within the same session." So a handshake
// with a used id begins another connection: this tells the connections of the modern era apart, which have no sessions.
func (w *webEndpoint) beginsConn(m envelope) bool {
	switch m.Method {
	case "initialize":
		// A client that has given its initialize up, and does not know what became of it, begins anew.
		return w.last.initializeID != "" && !w.last.refused || w.last.usedIDs[string(m.ID)]
	case "server/discover":
		return w.last.usedIDs[string(m.ID)]
	}
	return false
}

// openConn opens a connection. It first waits for the ends of the earlier ones, because a client that gives up a connection
// over HTTP does not announce it, and the record must not show two at once. The caller holds the server's lock, which
// awaitConnEnds gives up while it waits.
func (w *webEndpoint) openConn() *httpSession {
	w.awaitConnEnds()
	c := newHTTPSession(w)
	w.last = c
	w.owner.addConnLocked(func(conn int) serverConn { c.conn = conn; return c })
	return c
}

// connEndWait bounds the wait until this process sees the end of a connection that the client has closed.
const connEndWait = time.Second

// awaitConnEnds waits until no earlier session has an open exchange, at most connEndWait. The caller holds the server's lock;
// it is not held during the sleeps.
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

// flattenHeader returns the first value of each header, as the machine reads them.
func flattenHeader(h http.Header) map[string]string {
	out := make(map[string]string, len(h))
	for name := range h {
		out[name] = h.Get(name)
	}
	return out
}

// serveListenStream opens the GET stream of a session, for messages that belong to no request (legacy era). A second stream of
// a session ends the first.
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

// serveDelete handles the client's end of a session. The response comes once the machine has ended the connection.
func (w *webEndpoint) serveDelete(rw http.ResponseWriter, req *http.Request) {
	x := newHTTPExchange(rw, req, envelope{})
	s := w.owner
	s.mu.Lock()
	c, _ := s.conns[w.sessions[req.Header.Get("Mcp-Session-Id")]].(*httpSession)
	if c == nil {
		x.addDirective(statusDirective(http.StatusNotFound))
	} else {
		// clientClosed comes first: the machine's Exit in the same turn must not be recorded as a failure of the server.
		c.deleteExchange, c.clientClosed = x, true
		s.askMachineLocked(func(now time.Duration) []peer.Action { return w.endAtOnce(s.machine.Closed(now, c.conn, false)) })
	}
	s.mu.Unlock()
	x.runDirectives(func() {
		if c != nil {
			c.forgetConn()
		}
	})
}

// endAtOnce takes the delay from the ends of connections for a server in memory. A client may hold a mutex while it ends its session, as
// that of the Go SDK does, and virtual time stands still while a goroutine waits for a mutex.
func (w *webEndpoint) endAtOnce(actions []peer.Action) []peer.Action {
	for i, a := range actions {
		if e, ok := a.(peer.Exit); ok && w.memory != nil {
			e.After = 0
			actions[i] = e
		}
	}
	return actions
}

// resetSocket closes a TCP connection with RST instead of FIN.
func resetSocket(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}
