package drills

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/web"
)

// webFront puts a server behind HTTP in memory, in the way of 2025-11-25: it gives sessions, each with one stream for messages that belong to no
// request. It is the http.RoundTripper of the program's client. The handlers run in goroutines of the drill.
type webFront struct {
	stage  *stage
	server *server
	// numbered says that the streams for messages that belong to no request number their events, and send what was missed.
	numbered bool

	mu       sync.Mutex
	sessions map[string]*webSession
	given    int
	// refusal is the status with which streams are refused, 0 for none, and retryAfter the seconds after which they may be asked for again; known is
	// the first event that a resumption may name. answer answers calls of tools in the place of the server, if it is not nil.
	refusal    int
	retryAfter int
	known      int
	answer     func(w *eventWriter, m message, last string)
	// calls are the calls whose streams answer goes on with, by the names that it gave them.
	calls map[string]message
}

// webSession is one session: the inprocess.Peer of the server's connection.
type webSession struct {
	inprocess.Peer
	front *webFront
	id    string
	conn  *conn

	mu     sync.Mutex
	posts  map[string]chan []byte
	events [][]byte // all that belonged to no request
	stream *openStream
	// dueFrom and dueBy are when the next stream may be asked for at the earliest, and must be at the latest; zero: at any time.
	dueFrom, dueBy time.Time
}

// openStream is a stream for messages that belong to no request.
type openStream struct {
	out    chan string
	cut    chan struct{}
	opened time.Time
}

// putBehindWeb has the manager reach a server over HTTP.
func (s *stage) putBehindWeb(srv *server) *webFront {
	f := &webFront{stage: s, server: srv, sessions: map[string]*webSession{}, calls: map[string]message{}}
	srv.spec.Type, srv.spec.URL = "http", "https://"+srv.name+".drill/mcp"
	srv.transport = func() transports.Transport {
		return web.NewHTTP(web.Config{URL: srv.spec.URL, Client: &http.Client{Transport: f}, Rand: func() float64 { return 0.5 }})
	}
	return f
}

// RoundTrip implements http.RoundTripper.
func (f *webFront) RoundTrip(r *http.Request) (*http.Response, error) {
	body, out := io.Pipe()
	w := &eventWriter{header: http.Header{}, out: out, began: make(chan struct{})}
	f.stage.runBeside(func() {
		defer func() {
			w.begin(http.StatusOK)
			_ = out.Close()
		}()
		f.serveRequest(w, r)
	})
	context.AfterFunc(r.Context(), func() { _ = body.CloseWithError(context.Cause(r.Context())) })
	select {
	case <-w.began:
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
	return &http.Response{StatusCode: w.status, Header: w.header, Body: body, Request: r, ProtoMajor: 1, ProtoMinor: 1}, nil
}

// eventWriter writes one response.
type eventWriter struct {
	header http.Header
	out    *io.PipeWriter
	once   sync.Once
	began  chan struct{}
	status int
}

// begin sends the head, once.
func (w *eventWriter) begin(status int) {
	w.once.Do(func() {
		w.status = status
		close(w.began)
	})
}

// writeText writes a part of the body.
func (w *eventWriter) writeText(text string) error {
	w.begin(http.StatusOK)
	_, err := io.WriteString(w.out, text)
	return err
}

// beginEvents begins a stream of events.
func (w *eventWriter) beginEvents() {
	w.header.Set("Content-Type", "text/event-stream")
	w.begin(http.StatusOK)
}

// serveRequest plays the server's side of one HTTP exchange.
func (f *webFront) serveRequest(w *eventWriter, r *http.Request) {
	f.mu.Lock()
	session, answer := f.sessions[r.Header.Get("Mcp-Session-Id")], f.answer
	f.mu.Unlock()
	var m message
	if r.Method == http.MethodPost {
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			w.begin(http.StatusBadRequest)
			return
		}
		if strings.HasPrefix(r.Header.Get("Mcp-Method"), "server/") || m.Method == "server/discover" { // it knows only the legacy era
			w.begin(http.StatusBadRequest)
			return
		}
	}
	last := r.Header.Get("Last-Event-Id")
	call, isCall := f.callOf(last)
	switch {
	case m.Method == "initialize":
		session = f.openSession(w)
	case session == nil:
		w.begin(http.StatusNotFound)
		return
	case r.Header.Get("Mcp-Protocol-Version") != "2025-11-25":
		f.stage.reportFinding("I23", f.server.name, "a %s (%s) in its session names the version %q", r.Method, m.Method, r.Header.Get("Mcp-Protocol-Version"))
	}
	switch {
	case r.Method == http.MethodDelete:
		f.forgetSessions(session.id)
	case r.Method == http.MethodGet && isCall && answer != nil:
		w.beginEvents()
		answer(w, call, last)
	case r.Method == http.MethodGet:
		session.checkDue()
		if status := session.refuseStream(w, last); status != 0 {
			w.begin(status)
			return
		}
		session.serveStream(w, r, last)
	case m.Method == "tools/call" && answer != nil:
		w.beginEvents()
		answer(w, m, "")
	case len(m.ID) == 0 || m.Method == "":
		session.conn.handleMessage(m, "")
		w.begin(http.StatusAccepted)
	default:
		session.answerPost(w, r, m)
	}
}

// callOf returns the call whose stream an event belongs to.
func (f *webFront) callOf(event string) (m message, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name, _, _ := strings.Cut(event, "/")
	m, ok = f.calls[name]
	return m, ok
}

// openSession gives a new session.
func (f *webFront) openSession(w *eventWriter) *webSession {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.given++
	session := &webSession{front: f, id: fmt.Sprintf("session-%d", f.given), posts: map[string]chan []byte{}}
	session.conn = &conn{server: f.server, peer: session, questions: map[int]chan reply{}, running: map[string]context.CancelFunc{}}
	session.conn.ctx, session.conn.end = context.WithCancelCause(f.stage.ctx)
	f.sessions[session.id] = session
	f.server.mu.Lock()
	f.server.conns = append(f.server.conns, session.conn)
	f.server.mu.Unlock()
	w.header.Set("Mcp-Session-Id", session.id)
	return session
}

// forgetSessions ends sessions; what comes in them afterwards is refused with 404. Without ids it ends all.
func (f *webFront) forgetSessions(ids ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(ids) == 0 {
		for id := range f.sessions {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		session := f.sessions[id]
		delete(f.sessions, id)
		session.cutStream()
		f.server.mu.Lock()
		for i, c := range f.server.conns {
			if c == session.conn {
				f.server.conns = append(f.server.conns[:i:i], f.server.conns[i+1:]...)
				break
			}
		}
		f.server.mu.Unlock()
		session.conn.end(nil)
	}
}

// refuseStreams lets streams be refused with a status from now on, and asked for again only after some seconds; 0 opens them.
func (f *webFront) refuseStreams(status, retryAfter int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refusal, f.retryAfter = status, retryAfter
}

// forgetEvents lets the server forget the events that it has sent: no resumption may name them.
func (f *webFront) forgetEvents() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, session := range f.sessions {
		session.mu.Lock()
		f.known = max(f.known, len(session.events)+1)
		session.mu.Unlock()
	}
}

// refuseStream returns the status with which a stream is refused, 0 if it is given.
func (w *webSession) refuseStream(out *eventWriter, last string) int {
	f := w.front
	f.mu.Lock()
	defer f.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	var after int
	switch n, _ := fmt.Sscanf(last, "all/%d", &after); {
	case f.refusal != 0:
		if f.retryAfter > 0 {
			out.header.Set("Retry-After", fmt.Sprint(f.retryAfter))
			w.dueFrom = time.Now().Add(time.Duration(f.retryAfter) * time.Second)
		}
		return f.refusal
	case n == 1 && after < f.known:
		return http.StatusBadRequest
	}
	return 0
}

// checkDue judges when a stream is asked for.
func (w *webSession) checkDue() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if now.Before(w.dueFrom) {
		w.front.stage.reportFinding("I23", w.front.server.name, "a stream is asked for %s before the time that it asked for", w.dueFrom.Sub(now))
	}
	if !w.dueBy.IsZero() && now.After(w.dueBy) {
		w.front.stage.reportFinding("I23", w.front.server.name, "a stream that had worked broke, and another one is asked for %s too late", now.Sub(w.dueBy))
	}
	w.dueFrom, w.dueBy = time.Time{}, time.Time{}
}

// cutStreams breaks the streams of all sessions.
func (f *webFront) cutStreams() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, session := range f.sessions {
		session.cutStream()
	}
}

// answerPost answers a request in the body of its response.
func (w *webSession) answerPost(out *eventWriter, r *http.Request, m message) {
	answer := make(chan []byte, 1)
	w.mu.Lock()
	w.posts[string(m.ID)] = answer
	w.mu.Unlock()
	w.conn.handleMessage(m, "")
	select {
	case body := <-answer:
		out.header.Set("Content-Type", "application/json")
		_ = out.writeText(string(body))
	case <-r.Context().Done():
	case <-w.conn.ctx.Done():
		out.begin(http.StatusNotFound)
	}
}

// Write implements inprocess.Peer: an answer goes to the request that waits for it, everything else to the stream, if there is one.
func (w *webSession) Write(_ context.Context, body []byte) error {
	var m message
	_ = json.Unmarshal(body, &m)
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.Method == "" {
		if answer := w.posts[string(m.ID)]; answer != nil {
			delete(w.posts, string(m.ID))
			answer <- body
		}
		return nil
	}
	w.events = append(w.events, body)
	if w.stream != nil {
		w.stream.out <- w.eventText(len(w.events) - 1)
	}
	return nil
}

// eventText writes an event; the caller holds mu.
func (w *webSession) eventText(n int) string {
	id := ""
	if w.front.numbered {
		id = fmt.Sprintf("id: all/%d\n", n)
	}
	return id + "data: " + string(w.events[n]) + "\n\n"
}

// cutStream breaks the session's stream, if it has one.
func (w *webSession) cutStream() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stream != nil {
		if time.Since(w.stream.opened) >= 10*time.Second {
			w.dueBy = time.Now().Add(time.Second)
		}
		close(w.stream.cut)
		w.stream = nil
	}
}

// serveStream serves the stream for messages that belong to no request, from an event on if it is named.
func (w *webSession) serveStream(out *eventWriter, r *http.Request, last string) {
	stream := &openStream{make(chan string, 1000), make(chan struct{}), time.Now()}
	w.mu.Lock()
	if w.stream != nil {
		w.front.stage.reportFinding("I23", w.front.server.name, "a second stream is asked for while the first is open")
	}
	var after int
	if n, _ := fmt.Sscanf(last, "all/%d", &after); n == 1 {
		for n := after + 1; n < len(w.events); n++ {
			stream.out <- w.eventText(n)
		}
	} else if w.front.numbered {
		stream.out <- fmt.Sprintf("id: all/%d\ndata:\n\n", len(w.events)-1)
	}
	w.stream = stream
	w.mu.Unlock()
	out.beginEvents()
	for {
		select {
		case text := <-stream.out:
			if out.writeText(text) != nil {
				return
			}
		case <-stream.cut:
			return
		case <-r.Context().Done():
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.stream == stream {
				w.stream = nil
			}
			return
		}
	}
}
