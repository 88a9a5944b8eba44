package peer

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

// defaultLevel is the least severe level of log messages that a server of the legacy era sends as long as it is asked for no other.
const defaultLevel = "info"

// setLogLevel notes the level that a client of the legacy era asks for.
func (c *conn) setLogLevel(q *message) {
	var p struct {
		Level string `json:"level"`
	}
	if json.Unmarshal(q.Params, &p) == nil && slices.Contains(messages.LogLevels, p.Level) {
		c.logLevel = p.Level
	}
}

// logCall writes two log messages about a call that has run, of levels that follow each other over the runs, as far as the client wants
// them: in the legacy era its connection says so, in the modern one each request.
func (m *machine) logCall(c *conn, k *call) {
	least := cmp.Or(c.logLevel, defaultLevel)
	if c.era == messages.EraModern {
		least = k.q.meta.logLevel
	}
	wanted := slices.Index(messages.LogLevels, least)
	if !m.cfg.Server.Logs || wanted < 0 || k.q.task != nil {
		return
	}
	for n := range 2 {
		rank := (3*k.value + 5*n) % len(messages.LogLevels)
		if rank < wanted {
			continue
		}
		level := messages.LogLevels[rank]
		e := notifiedEvent(c.id, "notifications/message")
		e.Level, e.Call = level, k.id
		m.sendOrHold(c, Note{e})
		m.sendOrHold(c, Send{Conn: c.id, Reply: string(k.q.ID), More: true, Body: json.RawMessage(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":` +
			quoteJSON(level) + `,"logger":"chaos","data":{"call":` + quoteJSON(k.id) + `}}}`)})
	}
}
