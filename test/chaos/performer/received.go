package performer

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
)

// openRequest is a request of the client that the server has not answered yet. call is the harness's id of a tool call, empty
// for other methods.
type openRequest struct{ method, call string }

// envelope holds the members of a message that the history records.
// Call is the id that the load puts into the arguments of each call, by which the judges find it again.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Arguments struct {
			Call string `json:"call"`
		} `json:"arguments"`
		Cursor    *string         `json:"cursor"`
		URI       string          `json:"uri"`
		Level     string          `json:"level"`
		Cancelled json.RawMessage `json:"requestId"`
	} `json:"params"`
}

// parseEnvelope reads the members of a message. An unreadable message gives the zero envelope, and null as an id counts as
// none.
func parseEnvelope(body []byte) (e envelope) {
	_ = json.Unmarshal(body, &e)
	if string(e.ID) == "null" {
		e.ID = nil
	}
	return e
}

// errorCode returns the code of a response that is an error, 0 for a result. It stops at the first of the two members, because
// a result may have megabytes.
func errorCode(body []byte) int {
	d := json.NewDecoder(bytes.NewReader(body))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return 0
	}
	for d.More() {
		key, err := d.Token()
		if err != nil || key == "result" {
			return 0
		}
		if key == "error" {
			var rpcError struct {
				Code int `json:"code"`
			}
			_ = d.Decode(&rpcError)
			return rpcError.Code
		}
		var skipped json.RawMessage
		if d.Decode(&skipped) != nil {
			return 0
		}
	}
	return 0
}

// receiveMessage records a message of the client and gives it to the machine. The caller holds s.mu.
func (s *Server) receiveMessage(conn int, body []byte, header map[string]string) {
	if s.closed {
		return
	}
	m := parseEnvelope(body)
	e := history.Event{Kind: history.Received, Conn: conn, Method: m.Method, ID: string(m.ID), Call: m.Params.Arguments.Call,
		Cursor: m.Method == "tools/list" && m.Params.Cursor != nil}
	if m.Method == "resources/subscribe" || m.Method == "resources/unsubscribe" {
		e.About = m.Params.URI
	}
	if m.Method == "logging/setLevel" {
		e.Level = m.Params.Level
	}
	if m.Method == "notifications/cancelled" {
		e.About = string(m.Params.Cancelled)
	}
	s.recordLocked(e)
	if m.Method != "" && len(m.ID) > 0 {
		if s.openRequests[conn] == nil {
			s.openRequests[conn] = map[string]openRequest{}
		}
		s.openRequests[conn][string(m.ID)] = openRequest{m.Method, m.Params.Arguments.Call}
	}
	s.askMachineLocked(func(now time.Duration) []peer.Action { return s.machine.Receive(now, conn, body, header) })
}

// recordAnswer records that a request was answered, or refused with an HTTP status (code). The caller holds s.mu.
func (s *Server) recordAnswer(conn int, id string, code int, retryAfter time.Duration) {
	r := s.openRequests[conn][id]
	delete(s.openRequests[conn], id)
	s.recordLocked(history.Event{
		Kind: history.Answered, Conn: conn, ID: id, Method: r.method, Call: r.call, Code: code, RetryAfter: retryAfter,
	})
}
