package live

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
)

// openRequest is a request that has not been answered yet.
type openRequest struct{ method, call string }

// envelope is what the record needs to know of a message.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Arguments struct {
			Call string `json:"call"`
		} `json:"arguments"`
	} `json:"params"`
}

// parseEnvelope takes from a message what is there; of one that is no message, nothing.
func parseEnvelope(body []byte) (e envelope) {
	_ = json.Unmarshal(body, &e)
	if string(e.ID) == "null" {
		e.ID = nil
	}
	return e
}

// errorCode is the code of an answer that is an error, 0 for a result. It reads no further than it must: a result may have
// megabytes.
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

// receiveMessage notes a message of the manager's and gives it to the machine. The lock is held.
func (s *chaosServer) receiveMessage(conn int, body []byte, header map[string]string) {
	if s.closed {
		return
	}
	m := parseEnvelope(body)
	s.recordLocked(history.Event{Kind: history.Received, Conn: conn, Method: m.Method, ID: string(m.ID), Call: m.Params.Arguments.Call})
	if m.Method != "" && len(m.ID) > 0 {
		if s.openRequests[conn] == nil {
			s.openRequests[conn] = map[string]openRequest{}
		}
		s.openRequests[conn][string(m.ID)] = openRequest{m.Method, m.Params.Arguments.Call}
	}
	s.askMachineLocked(func(now time.Duration) []peer.Action { return s.machine.Receive(now, conn, body, header) })
}

// recordAnswer notes the answer to a request, or that it was refused. The lock is held.
func (s *chaosServer) recordAnswer(conn int, id string, code int, retryAfter time.Duration) {
	r := s.openRequests[conn][id]
	delete(s.openRequests[conn], id)
	s.recordLocked(history.Event{
		Kind: history.Answered, Conn: conn, ID: id, Method: r.method, Call: r.call, Code: code, RetryAfter: retryAfter,
	})
}
