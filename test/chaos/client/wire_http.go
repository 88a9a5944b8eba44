package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

const (
	sessionHeader = "Mcp-Session-Id"
	// afterEnd is how long after the answer 404 requests of the session may still be on their way.
	afterEnd = time.Second
	// freeRequests are the requests of one second that cost no time: a client that asks without a pause would keep the day in one
	// instant for ever.
	freeRequests = 200
	// headerSince is the first version of the protocol with the header Mcp-Protocol-Version.
	headerSince = "2025-06-18"
)

// wireTransport reads what a client sends over HTTP.
type wireTransport struct {
	next http.RoundTripper
	wire *wire
	// flips is set if the server speaks the other era for a while, which has no sessions.
	flips bool

	// mu guards the sessions by id, the time at which the server said 404 of one, and the requests counted since second.
	mu       sync.Mutex
	sessions map[string]*wireConn
	ended    map[string]time.Duration
	given    bool
	second   time.Duration
	count    int
}

// RoundTrip implements http.RoundTripper.
func (t *wireTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	session := req.Header.Get(sessionHeader)
	m, err := readRequest(req)
	if err != nil {
		return nil, err
	}
	if t.noteRequest(req, session, m) {
		time.Sleep(time.Second)
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if id := resp.Header.Get(sessionHeader); id != "" && m != nil && m.Method == "initialize" {
		t.given = true
		t.conn(id).version = m.Params.Version
	}
	if _, known := t.ended[session]; !known && session != "" && resp.StatusCode == http.StatusNotFound {
		t.ended[session] = t.wire.now()
	}
	return resp, nil
}

// CloseIdleConnections implements what http.Client looks for.
func (t *wireTransport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// readRequest returns the message of a POST, nil for another request, and puts its body back.
func readRequest(req *http.Request) (*wireMessage, error) {
	if req.Method != http.MethodPost || req.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	_ = req.Body.Close() // it was read to its end
	req.Body = io.NopCloser(bytes.NewReader(body))
	m := &wireMessage{}
	_ = json.Unmarshal(body, m) // what cannot be read is refused by the server
	return m, nil
}

// conn returns what is known of a session. The caller holds mu.
func (t *wireTransport) conn(session string) *wireConn {
	if t.sessions == nil {
		t.sessions, t.ended = map[string]*wireConn{}, map[string]time.Duration{}
	}
	if t.sessions[session] == nil {
		t.sessions[session] = newWireConn()
	}
	return t.sessions[session]
}

// noteRequest checks a request, and reports whether it must wait because there were very many.
func (t *wireTransport) noteRequest(req *http.Request, session string, m *wireMessage) (slow bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.wire.now()
	if t.count++; now-t.second >= time.Second {
		t.second, t.count = now, 0
	}
	legacy := t.wire.plan.Era == messages.EraLegacy
	c := t.conn(session)
	if at, ended := t.ended[session]; ended && now-at > afterEnd && req.Method != http.MethodDelete {
		t.wire.report("C10", fmt.Sprintf("The client sends %s with the session %s, of which the server said 404 at %s. A client must begin a new session then, with an initialize "+
			"without Mcp-Session-Id.", describeRequest(req, m), messages.Line(session, 40), at))
		delete(t.ended, session) // said once
	}
	if m == nil {
		return t.count > freeRequests && t.count%freeRequests == 0
	}
	t.checkHeaders(req, m)
	if legacy && !t.flips && session == "" && t.given && m.isRequest() && m.Method != "initialize" && m.Method != "server/discover" && m.Method != "ping" {
		t.wire.report("C10", fmt.Sprintf("The client sends %s without Mcp-Session-Id, though the server gave it a session: the header must be in every request after initialize.", m.Method))
	}
	// A request that follows a redirect is the same one as before.
	if session != "" && legacy && req.Response == nil {
		if c.version >= headerSince && req.Header.Get("Mcp-Protocol-Version") == "" {
			t.wire.report("C10", fmt.Sprintf("The client sends %s without Mcp-Protocol-Version: the header must be in every request after initialize.", describeRequest(req, m)))
		}
		t.wire.readMessage(c, m)
	}
	return t.count > freeRequests && t.count%freeRequests == 0
}

// checkHeaders checks what every POST must carry.
func (t *wireTransport) checkHeaders(req *http.Request, m *wireMessage) {
	accept := strings.Join(req.Header.Values("Accept"), ",")
	if !strings.Contains(accept, "application/json") || !strings.Contains(accept, "text/event-stream") {
		t.wire.report("C10", fmt.Sprintf("The client sends %s with Accept: %q. It must list application/json and text/event-stream: a server may answer in either, and refuses with 406.",
			describeRequest(req, m), messages.Line(accept, 60)))
	}
	if kind, _, err := mime.ParseMediaType(req.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		t.wire.report("C10", fmt.Sprintf("The client sends %s with Content-Type: %q; it must be application/json.", describeRequest(req, m), messages.Line(req.Header.Get("Content-Type"), 60)))
	}
}

// describeRequest names a request for a report.
func describeRequest(req *http.Request, m *wireMessage) string {
	if m == nil || m.Method == "" {
		return "a " + req.Method
	}
	return messages.Line(m.Method, 60)
}
