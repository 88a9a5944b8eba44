package live

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
)

// asked is a request that has not been answered yet.
type asked struct{ method, call string }

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

// read takes from a message what is there; of one that is no message, nothing.
func read(body []byte) (e envelope) {
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
			var of struct {
				Code int `json:"code"`
			}
			_ = d.Decode(&of)
			return of.Code
		}
		var skipped json.RawMessage
		if d.Decode(&skipped) != nil {
			return 0
		}
	}
	return 0
}

// receive notes a message of the manager's and gives it to the machine. The lock is held.
func (s *seat) receive(conn int, body []byte, header map[string]string) {
	if s.closed {
		return
	}
	m := read(body)
	s.noteLocked(history.Event{Kind: history.Received, Conn: conn, Method: m.Method, ID: string(m.ID), Call: m.Params.Arguments.Call})
	if m.Method != "" && len(m.ID) > 0 {
		if s.asked[conn] == nil {
			s.asked[conn] = map[string]asked{}
		}
		s.asked[conn][string(m.ID)] = asked{m.Method, m.Params.Arguments.Call}
	}
	s.tellLocked(func(now time.Duration) []peer.Action { return s.machine.Receive(now, conn, body, header) })
}

// answered notes the answer to a request, or that it was refused. The lock is held.
func (s *seat) answered(conn int, id string, code int, retryAfter time.Duration) {
	r := s.asked[conn][id]
	delete(s.asked[conn], id)
	s.noteLocked(history.Event{
		Kind: history.Answered, Conn: conn, ID: id, Method: r.method, Call: r.call, Code: code, RetryAfter: retryAfter,
	})
}
