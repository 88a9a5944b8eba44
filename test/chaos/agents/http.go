package agents

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"

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
}

func newHTTPLink(s *session) *httpLink { return &httpLink{session: s} }

func (l *httpLink) sessionID() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.id
}

// readsCancelled reports whether an answer can be read of a request that was taken back: only where no socket is between.
func (l *httpLink) readsCancelled() bool {
	_, memory := l.session.agent.fleet.client.(*memoryTransport)
	return memory
}

// newRequest makes a request with the headers of the agent.
func (l *httpLink) newRequest(ctx context.Context, method string, body []byte) *http.Request {
	a := l.session.agent
	r, err := http.NewRequestWithContext(ctx, method, a.fleet.address+a.path(), bytes.NewReader(body))
	if err != nil {
		panic(err) // the address is the harness's own
	}
	r.Header.Set("Authorization", "Bearer "+tokenOf(a.plan.As))
	r.Header.Set("Accept", "application/json, text/event-stream")
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
	l.readMessages(res, m.id)
	s.dropRequest(ctx, m.id)
}

// readMessages reads the messages of a response, one or a stream: that to the request via, or the stream of the session if that is empty.
func (l *httpLink) readMessages(res *http.Response, via string) {
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		body, _ := io.ReadAll(res.Body) // what came until the end counts
		if len(bytes.TrimSpace(body)) > 0 {
			l.session.receiveMessage(body, res.StatusCode, via)
		}
		return
	}
	in := bufio.NewReaderSize(res.Body, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok && err == nil {
			l.session.receiveMessage(bytes.TrimSpace(data), 0, via)
		}
		if err != nil {
			return
		}
	}
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

// openStream opens the stream of a session of the legacy era, for what belongs to no request.
func (l *httpLink) openStream() {
	s := l.session
	ctx, cancel := context.WithCancel(s.agent.fleet.lifetime)
	l.mu.Lock()
	l.closeStream = cancel
	l.mu.Unlock()
	s.agent.fleet.running.Go(func() {
		defer cancel()
		res, err := s.agent.fleet.client.RoundTrip(l.newRequest(ctx, http.MethodGet, nil))
		if err != nil {
			return
		}
		defer func() { _ = res.Body.Close() }()
		if res.StatusCode == http.StatusOK {
			l.readMessages(res, "")
		}
	})
}

// cancels implements link: DELETE ends what runs in a session, and the end of an exchange of the modern era is its cancellation. In the legacy
// era "disconnection SHOULD NOT be interpreted as the client cancelling its request".
func (l *httpLink) cancels(polite bool) bool { return polite || l.session.agent.modern() }

// end ends the session with DELETE; an agent that is killed only drops its stream, and its session ends some day.
func (l *httpLink) end(polite bool) {
	l.mu.Lock()
	cancel, id := l.closeStream, l.id
	l.mu.Unlock()
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
