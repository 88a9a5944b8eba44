package serve

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// legacyVersions are the versions of the legacy era, newest first; modernVersion is the one of the modern era.
var legacyVersions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

const modernVersion = "2026-07-28"

// serveLegacy handles a message of the legacy era over HTTP.
func (h *Handler) serveLegacy(x *exchange) {
	m := &x.message
	if m.method == "initialize" && m.isRequest() {
		h.initialize(x)
		return
	}
	s := h.session(x)
	if s == nil {
		return
	}
	if !m.isRequest() {
		receiveMessage(h.o.Service, s, m)
		x.w.WriteHeader(http.StatusAccepted)
		return
	}
	if m.method == "ping" {
		writeJSON(x.w, http.StatusOK, appendResult(nil, m.id, []byte("{}")))
		return
	}
	// 2025-11-25: "Disconnection MAY occur at any time … Disconnection SHOULD NOT be interpreted as the client cancelling its
	// request." So the request ends with its cancellation, with its session, or with the endpoint.
	q := s.newRequest(m)
	q.Header = x.r.Header
	h.answerRequest(context.WithoutCancel(x.r.Context()), x, q)
}

// newRequest makes a request of the legacy era.
func (s *Session) newRequest(m *message) *Request {
	return &Request{Session: s, Method: m.method, ID: m.id, Params: m.params, Meta: m.meta, Capabilities: s.Capabilities}
}

// receiveMessage acts on an answer or on a notification.
func receiveMessage(service Service, s *Session, m *message) {
	switch {
	case m.isAnswer():
		s.takeAnswer(m)
	case m.method == "notifications/cancelled":
		s.cancelRequest(m.params)
	default:
		service.Notified(s, m.method, m.params)
	}
}

// session returns the session that a request names, or answers that there is none.
//
// 2025-11-25: "Servers that require a session ID SHOULD respond to requests without an Mcp-Session-Id header (other than
// initialization) with HTTP 400 Bad Request." And: "The server MAY terminate the session at any time, after which it MUST respond
// to requests containing that session ID with HTTP 404 Not Found." And: "If the server receives a request with an invalid or unsupported
// MCP-Protocol-Version, it MUST respond with 400 Bad Request."
func (h *Handler) session(x *exchange) *Session {
	w, id := x.w, x.message.id
	if v := headerOf(x.r.Header, "Mcp-Protocol-Version"); v != "" && !slices.Contains(legacyVersions, v) {
		writeError(w, id, refused(CodeInvalidRequest, "the protocol version of the header is not supported"))
		return nil
	}
	name := headerOf(x.r.Header, "Mcp-Session-Id")
	if name == "" {
		writeError(w, id, refused(CodeInvalidRequest, "the request names no session, and no version of the modern era"))
		return nil
	}
	s := h.sessions.findSession(name, x.principal, x.path)
	if s == nil {
		writeError(w, id, &Error{Code: CodeSessionNotFound, Message: "Session not found", status: http.StatusNotFound})
	}
	return s
}

// initialize opens a session.
func (h *Handler) initialize(x *exchange) {
	w, m := x.w, &x.message
	s := &Session{Principal: x.principal, Path: x.path, agent: newAgent()}
	result, e := openSession(h.o.Service, s, m)
	if e != nil {
		writeError(w, m.id, e)
		return
	}
	if !h.sessions.addSession(s) {
		h.o.Service.Closed(s)
		writeError(w, m.id, &Error{Code: CodeBusy, Message: "there are too many sessions", status: http.StatusServiceUnavailable})
		return
	}
	w.Header().Set("Mcp-Session-Id", s.id)
	writeJSON(w, http.StatusOK, appendResult(nil, m.id, result))
}

// openSession opens a new session with its initialize, and returns the answer.
//
// 2025-11-25: "If the server supports the requested protocol version, it MUST respond with the same version. Otherwise, the server
// MUST respond with another protocol version it supports. This SHOULD be the latest version supported by the server."
func openSession(service Service, s *Session, m *message) ([]byte, *Error) {
	wanted, _ := rawjson.Text(rawjson.Member(m.params, "protocolVersion"))
	if wanted == "" {
		return nil, InvalidParams("initialize names no protocolVersion")
	}
	s.Version = legacyVersions[0]
	if slices.Contains(legacyVersions, wanted) {
		s.Version = wanted
	}
	if c := rawjson.Member(m.params, "capabilities"); len(c) > maxCapabilities {
		return nil, capabilitiesError()
	} else if rawjson.IsObject(c) {
		s.Capabilities = bytes.Clone(c)
	}
	d, e := service.Describe(s)
	if e != nil {
		return nil, e
	}
	b := append([]byte(`{"protocolVersion":"`), s.Version...)
	b = append(b, `","capabilities":`...)
	b = append(b, d.Capabilities...)
	b = append(b, `,"serverInfo":`...)
	b = append(b, d.ServerInfo...)
	if d.Instructions != "" {
		b = rawjson.AppendText(append(b, `,"instructions":`...), d.Instructions)
	}
	return append(b, '}'), nil
}

// maxCapabilities bounds what is kept of an agent's words: for a session, or for a request that has asked.
const maxCapabilities = 16 << 10

func capabilitiesError() *Error {
	return InvalidParams(fmt.Sprintf("the capabilities have more than %d bytes", maxCapabilities))
}

// serveStream handles GET: the stream of a session, for what belongs to no request.
func (h *Handler) serveStream(x *exchange) {
	w, r := x.w, x.r
	if r.Header.Get("Mcp-Session-Id") == "" || r.Header.Get("Mcp-Protocol-Version") == modernVersion {
		w.Header().Set("Allow", "POST")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if !acceptsType(r, "text/event-stream") {
		writeError(w, nil, &Error{Code: CodeInvalidRequest, Message: "the agent must accept text/event-stream",
			status: http.StatusNotAcceptable})
		return
	}
	s := h.session(x)
	if s == nil {
		return
	}
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // the body of a GET is nothing; its end would end the stream
	}
	missed, number, resumes := readEventID(r.Header.Get("Last-Event-ID"))
	if resumes && s.replay.isOver(missed, number) {
		// An agent that is told so does not come back. It would, behind an answer that is an error, and behind a request that it has
		// taken back, and each time take the stream of its session away from itself.
		w.WriteHeader(http.StatusNoContent)
		return
	}
	stream := newEventStream(w, h.o.KeepAlive)
	stream.over = make(chan struct{})
	defer stream.stopWriting()
	stream.beginEvents()
	_ = stream.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if stream.control.Flush() != nil {
		return
	}
	if resumes {
		if s.replay.follow(missed, number, stream) {
			defer s.replay.unfollow(missed, stream)
			h.awaitStream(x, stream)
		}
		if isOfRequest(missed) {
			return // the answer is the end
		}
	}
	stream.keepEvents(s, false)
	stream.stayAlive() // with the id that it gets so, an agent fetches also the first notice, if its connection is lost before
	// 2025-11-25: "The client MAY remain connected to multiple SSE streams simultaneously. The server MUST send each of its
	// JSON-RPC messages on only one of the connected streams". The newest one is the one: an agent that reconnects has lost
	// the other, which may not have noticed yet.
	for !s.setStream(stream) {
		if !s.replaceStream() {
			return
		}
	}
	defer s.releaseStream(stream)
	h.awaitStream(x, stream)
}

// awaitStream waits until a stream has ended, or its agent, its credential or the endpoint has.
func (h *Handler) awaitStream(x *exchange, stream *eventStream) {
	var withdrawn <-chan struct{} // nil: there is no token
	if p := &x.principal; p.credential != nil {
		withdrawn = p.credential.known.Done()
	}
	select {
	case <-x.r.Context().Done():
	case <-withdrawn:
	case <-stream.over:
	case <-h.closing:
	}
}

// replaceStream ends the stream of a session; false if the session has ended.
func (s *Session) replaceStream() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if s.stream != nil {
		s.stream.endStream()
		s.stream = nil
	}
	return true
}

// releaseStream forgets the stream, if it still is the one of the session.
func (s *Session) releaseStream(ended stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stream == ended {
		s.stream = nil
	}
}

// endSession handles DELETE.
func (h *Handler) endSession(x *exchange) {
	w, r := x.w, x.r
	if r.Header.Get("Mcp-Session-Id") == "" || r.Header.Get("Mcp-Protocol-Version") == modernVersion {
		w.Header().Set("Allow", "POST")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if s := h.session(x); s != nil {
		h.sessions.dropSession(s)
		w.WriteHeader(http.StatusNoContent)
	}
}
