// Package sent judges what a client sends to the servers of the harness, message by message, by the rules of the specification that bind
// clients. It stands around the scripted server and changes nothing of what that does:
//
//	m := sent.NewMachine(peer.Config{Server: server, Seed: seed}) // instead of peer.New
//
// What breaks a rule is noted as a violation of I23 before the actions of the same turn.
//
// Guaranteed: a rule is only held against the client for what the server has said to it by then, on the same connection; and a server that
// breaks the protocol itself takes the rules away that depend on it.
//
// Not promised: that the content of what is asked for is right. What a call, a list or a read comes to is judged by the other invariants.
package sent

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// maxNotes bounds what is noted of one server: the first violation tells more than the thousandth.
const maxNotes = 5

// machine is a server whose clients are judged.
type machine struct {
	peer.Machine
	server        scenario.Server
	conversations map[int]*conversation
	noteCount     int
}

// NewMachine makes a healthy server whose clients are judged.
func NewMachine(c peer.Config) peer.Machine { return judgeClients(peer.New(c), c.Server) }

// judgeClients judges the clients of a server.
func judgeClients(m peer.Machine, s scenario.Server) peer.Machine {
	return &machine{Machine: m, server: s, conversations: map[int]*conversation{}}
}

// Begin implements peer.Machine.
func (m *machine) Begin(now time.Duration, f scenario.PlannedFault) []peer.Action {
	return m.observeActions(now, m.Machine.Begin(now, f))
}

// End implements peer.Machine.
func (m *machine) End(now time.Duration, f scenario.PlannedFault) []peer.Action {
	return m.observeActions(now, m.Machine.End(now, f))
}

// Open implements peer.Machine.
func (m *machine) Open(now time.Duration, conn int) []peer.Action {
	m.conversations[conn] = newConversation(m.server)
	return m.observeActions(now, m.Machine.Open(now, conn))
}

// Abandoned implements peer.Machine. Over HTTP in the modern era it is the cancellation.
func (m *machine) Abandoned(now time.Duration, conn int, reply string) []peer.Action {
	if c := m.conversations[conn]; c != nil && reply != "" {
		c.endRequest(now, reply, abandoned)
	}
	return m.observeActions(now, m.Machine.Abandoned(now, conn, reply))
}

// Receive implements peer.Machine.
func (m *machine) Receive(now time.Duration, conn int, body []byte, header map[string]string) []peer.Action {
	c := m.conversations[conn]
	if c == nil {
		c = newConversation(m.server)
		m.conversations[conn] = c
	}
	var notes []peer.Action
	for _, problem := range c.receiveBody(now, body, header) {
		if m.noteCount++; m.noteCount <= maxNotes {
			notes = append(notes, peer.Note{Event: history.Event{
				Side: history.Harness, Kind: history.Violation, Name: "I23", Conn: conn, Text: problem,
			}})
		}
	}
	actions := m.observeActions(now, m.Machine.Receive(now, conn, body, header))
	if len(notes) == 0 {
		return actions
	}
	return append(notes, actions...)
}

// Closed implements peer.Machine.
func (m *machine) Closed(now time.Duration, conn int, signal bool) []peer.Action {
	if c := m.conversations[conn]; c != nil {
		c.closed = true
	}
	return m.observeActions(now, m.Machine.Closed(now, conn, signal))
}

// Killed implements peer.Machine.
func (m *machine) Killed(now time.Duration, conn int) {
	m.endConversation(now, conn)
	m.Machine.Killed(now, conn)
}

// Wake implements peer.Machine.
func (m *machine) Wake(now time.Duration, token int) []peer.Action {
	return m.observeActions(now, m.Machine.Wake(now, token))
}

// endConversation follows the end of a connection. Over HTTP messages may still come that belong to it.
func (m *machine) endConversation(now time.Duration, conn int) {
	if m.server.Kind != messages.HTTP {
		delete(m.conversations, conn)
		return
	}
	if c := m.conversations[conn]; c != nil {
		for id := range c.requests {
			c.endRequest(now, id, abandoned)
		}
	}
}

// dripTime is how long after its first byte the last one of a message has arrived.
func dripTime(a peer.Send) time.Duration {
	if a.Chunk <= 0 || a.Every <= 0 {
		return 0
	}
	return time.Duration(len(a.Body)/a.Chunk) * a.Every
}

// observeActions looks at what the server says to its clients.
func (m *machine) observeActions(now time.Duration, actions []peer.Action) []peer.Action {
	for _, a := range actions {
		switch a := a.(type) {
		case peer.Send:
			if c := m.conversations[a.Conn]; c != nil {
				c.observeMessage(now+a.After+dripTime(a), a)
			}
		case peer.Status:
			if c := m.conversations[a.Conn]; c != nil {
				c.endRequest(now, a.Reply, refused)
			}
		case peer.Cut:
			if c := m.conversations[a.Conn]; c != nil {
				c.endRequest(now, a.Reply, abandoned)
			}
		case peer.Accept:
			if c := m.conversations[a.Conn]; c != nil {
				c.sessions = append(c.sessions, a.Session)
			}
		case peer.Raw:
			if c := m.conversations[a.Conn]; c != nil && !a.Stderr {
				c.misled = true
			}
		case peer.Exit:
			if !a.HalfOpen {
				m.endConversation(now, a.Conn)
			}
		}
	}
	return actions
}
