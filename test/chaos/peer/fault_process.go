package peer

import "github.com/mcpvisor/mcpvisor/messages"

// crash ends every connection.
var crash = hooks{
	begin: func(m *machine, f *fault) {
		for _, c := range m.connections() {
			if f.with.Truth("midcall") && len(c.calls) == 0 {
				continue
			}
			f.fired(m, c.id)
			if signal := f.with.Text("signal"); signal != "" && m.cfg.Server.Kind == messages.Stdio {
				m.exit(c, Exit{Text: signal})
				continue
			}
			m.crash(c, f.with.Int("code"))
		}
		m.down = max(m.down, m.now+f.with.Duration("down"))
	},
}

// hangStart leaves the handshake unanswered, and answers it at the end.
var hangStart = hooks{
	receive: func(m *machine, f *fault, c *conn, q *message) bool {
		if partOf(q.Method) != handshake || q.ID == nil {
			return false
		}
		f.fired(m, c.id)
		f.held = append(f.held, held{c, q})
		return true
	},
	end: func(m *machine, f *fault) {
		for _, h := range f.held {
			if !m.over(h.conn) {
				h.conn.acts(func() { m.serve(h.conn, h.message) })
			}
		}
	},
}
