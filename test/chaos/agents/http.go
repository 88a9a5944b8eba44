package agents

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// httpLink is a session over streamable HTTP. In the modern era it is only a word for what one agent does in a while.
type httpLink struct {
	session *session

	mu sync.Mutex
	// id is that of the legacy era, from the answer to initialize.
	id string
	// closeStream ends the stream of the session; nil without one.
	closeStream context.CancelFunc
	// hasStream is true while the agent reads a stream of the session.
	hasStream bool
	// usedAt is when the agent last sent something in the session, and longestIdle the longest time in which it had sent nothing.
	usedAt, longestIdle time.Duration
	// seen are the ids of the events that have come: each may come once, over whichever connection.
	seen map[string]bool
}

func newHTTPLink(s *session) *httpLink { return &httpLink{session: s, seen: map[string]bool{}} }

func (l *httpLink) sessionID() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.id
}

// readsCancelled reports whether an answer can be read of a request that was taken back: only where no socket is between.
func (l *httpLink) readsCancelled() bool {
	_, memory := l.session.agent.fleet.client.(*MemoryTransport)
	return memory
}

// newRequest makes a request with the headers of the agent.
func (l *httpLink) newRequest(ctx context.Context, method string, body []byte) *http.Request {
	a := l.session.agent
	r, err := http.NewRequestWithContext(ctx, method, a.fleet.address+a.path(), bytes.NewReader(body))
	if err != nil {
		panic(err) // the address is the harness's own
	}
	token, _ := tokenFor(&a.plan)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Accept", "application/json, text/event-stream")
	if a.number%3 == 1 {
		r.Host = expectedHost + ":8080"
		if a.number%2 == 1 {
			r.Header.Set("Origin", "https://"+expectedHost)
		}
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if id := l.sessionID(); id != "" {
		r.Header.Set("Mcp-Session-Id", id)
		r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	}
	return r
}

// send posts a message, and reads what comes back to its end.
func (l *httpLink) send(ctx context.Context, m outgoing) {
	s := l.session
	l.noteUse()
	r := l.newRequest(ctx, http.MethodPost, m.body)
	if s.agent.modern() {
		r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		r.Header.Set("Mcp-Method", m.method)
		if m.name != "" {
			r.Header.Set("Mcp-Name", m.name)
		}
	}
	if m.id == "" {
		if res, err := s.agent.fleet.client.RoundTrip(r); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
		return
	}
	res, err := s.agent.fleet.client.RoundTrip(r)
	if err != nil {
		s.dropRequest(ctx, m.id)
		return
	}
	defer func() { _ = res.Body.Close() }()
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		l.mu.Lock()
		l.id = id
		l.mu.Unlock()
	}
	events := &eventReader{link: l, body: res.Body, via: m.id}
	stop := context.AfterFunc(ctx, events.breakOff)
	l.readMessages(res, events)
	if !stop() && events.resumes() && s.isOpen(m.id) {
		ctx = s.lifetime
		s.recordStream(history.StreamCut, m.id)
		l.resumeAnswer(ctx, events)
	}
	s.dropRequest(ctx, m.id)
}

// noteUse notes that the agent uses the session.
func (l *httpLink) noteUse() {
	now := l.session.agent.fleet.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.id != "" {
		l.longestIdle = max(l.longestIdle, now-l.usedAt)
	}
	l.usedAt = now
}

// checkForgotten judges that the endpoint has not forgotten a session which is in use.
func (l *httpLink) checkForgotten() {
	f := l.session.agent.fleet
	l.mu.Lock()
	unused, hasStream := l.longestIdle, l.hasStream
	l.mu.Unlock()
	switch idle := f.serve.SessionIdle; {
	case hasStream:
		f.reportFinding("I28", "", l.session.agent.plan.Name+" was told that its session is not known, and has a stream of it")
	case idle == 0 || unused < idle:
		f.reportFinding("I28", "", fmt.Sprintf("%s was told that its session is not known, and had never left it unused for longer than %s", l.session.agent.plan.Name, unused))
	}
}

// readMessages reads the messages of a response, one or a stream.
func (l *httpLink) readMessages(res *http.Response, events *eventReader) {
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		body, _ := io.ReadAll(res.Body) // what came until the end counts
		if len(bytes.TrimSpace(body)) > 0 {
			l.session.receiveMessage(body, res.StatusCode, events.via)
		}
		return
	}
	events.readEvents()
}

// recordStream records that the connection of a request is lost, or that the agent has another one for it.
func (s *session) recordStream(kind history.Kind, id string) {
	e := history.Event{Kind: kind, Epoch: s.epoch, ID: id}
	s.mu.Lock()
	if r := s.asked[id]; r != nil {
		e.Method, e.About = r.method, r.about
	}
	s.mu.Unlock()
	s.agent.recordEvent(e)
}

// isOpen reports whether a request has no answer yet.
func (s *session) isOpen(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[id] != nil && !s.parted
}

// dropRequest ends the waiting for a request whose exchange is over; it does nothing if the answer has come. A request that the agent has taken
// back needs none.
func (s *session) dropRequest(ctx context.Context, id string) {
	s.mu.Lock()
	r := s.asked[id]
	delete(s.asked, id)
	parted := s.parted
	s.mu.Unlock()
	if r == nil {
		return
	}
	why := history.NoAnswer
	if ctx.Err() != nil || r.takenBack {
		why = history.TakenBack
	}
	if !parted {
		s.agent.recordEvent(history.Event{Kind: history.Replied, Epoch: s.epoch, ID: id, Method: r.method, About: r.about, Name: why, Text: "the exchange is over"})
	}
	if r.method == "tools/call" && !parted && !r.takenBack {
		s.agent.fleet.service.disownCall(r.about, s.agent)
	}
	r.done <- answer{status: noAnswer}
}

// cancels implements link: DELETE ends what runs in a session, and the end of an exchange of the modern era is its cancellation. In the legacy
// era "disconnection SHOULD NOT be interpreted as the client cancelling its request".
func (l *httpLink) cancels(polite bool) bool { return polite || l.session.agent.modern() }

// end ends the session with DELETE; an agent that is killed only drops its stream, and its session ends some day.
func (l *httpLink) end(polite bool) {
	l.mu.Lock()
	cancel, id := l.closeStream, l.id
	l.mu.Unlock()
	if id != "" && !polite && !l.session.agent.modern() {
		l.session.agent.fleet.noteAbandoned()
	}
	if polite && id != "" && !l.session.agent.modern() {
		if res, err := l.session.agent.fleet.client.RoundTrip(l.newRequest(l.session.agent.fleet.lifetime, http.MethodDelete, nil)); err == nil {
			_ = res.Body.Close()
		}
	}
	if cancel != nil {
		cancel()
	}
}

// trespass asks in a way in which the endpoint must refuse: in a session of another principal, without a token, with a wrong one, from
// a page of another origin.
func (l *httpLink) trespass(number int) {
	a := l.session.agent
	body := l.session.encodeMessage(`"t"`, "tools/list", "")
	// But for its sender the request is one that is answered: a list, or in the legacy era the beginning of a session.
	inSession := number/6%4 == 0
	if !a.modern() && !inSession {
		body = []byte(`{"jsonrpc":"2.0","id":"t","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
	}
	r := l.newRequest(a.fleet.lifetime, http.MethodPost, body)
	if a.modern() {
		r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		r.Header.Set("Mcp-Method", "tools/list")
	} else if !inSession {
		r.Header.Del("Mcp-Session-Id")
	}
	var name string
	expected := http.StatusUnauthorized
	switch number / 6 % 4 {
	case 0:
		id := a.foreignSession()
		if id == "" || a.modern() {
			return
		}
		r.Header.Set("Mcp-Session-Id", id)
		name, expected = "foreign-session", http.StatusNotFound
	case 1:
		r.Header.Del("Authorization")
		name = "no-token"
	case 2:
		r.Header.Set("Authorization", "Bearer "+TokenMark)
		name = "wrong-token"
	default:
		r.Header.Set("Origin", "https://elsewhere.sim")
		name, expected = "foreign-origin", http.StatusForbidden
	}
	a.recordEvent(history.Event{Kind: history.Asked, Epoch: l.session.epoch, ID: `"t"`, Method: "tools/list", Name: name, Code: expected})
	res, err := a.fleet.client.RoundTrip(r)
	if err != nil {
		a.recordEvent(history.Event{Kind: history.Replied, Epoch: l.session.epoch, ID: `"t"`, Method: "tools/list", Name: name, Text: err.Error(), Code: -1})
		return
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	a.recordEvent(history.Event{Kind: history.Replied, Epoch: l.session.epoch, ID: `"t"`, Method: "tools/list", Name: name, Code: res.StatusCode})
}
