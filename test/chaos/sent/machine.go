// Package sent judges what a client sends to the servers of the harness, message by message, by the rules of the specification
// that bind clients. It wraps the scripted server and changes nothing of its behavior:
//
//	m := sent.NewMachine(peer.Config{Server: server, Seed: seed}) // instead of peer.New
//
// A breach is recorded as a violation of I23 before the actions of the same turn.
//
// Guaranteed: the client is judged only by what the server has sent to it by then, on the same connection; and a server that
// breaks the protocol itself suspends the rules that depend on it.
//
// Not promised: that the requests have the right content. The other invariants judge the effect of a call, a list or a read.
//
// # How it fits
//
//	client -> driver (sim, live) -> sent.machine -> peer.Machine
//	                                     |
//	                                conversation, one per connection
//
// The drivers of packages sim and live call the machine in place of the one of package peer. This package owns the
// conversations; package invariant reads the recorded violations.
package sent

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// maxNotes bounds the violations that are recorded of one server: the first one tells more than the thousandth.
const maxNotes = 5

// A machine is a server that judges its clients. It is called by one goroutine at a time, as every peer.Machine.
type machine struct {
	peer.Machine
	server scenario.Server
	// declared are the capabilities that its clients have to declare, nil if they may declare what they want.
	declared      []string
	crossTime     time.Duration
	conversations map[int]*conversation // by connection; nil for one that has ended
	noteCount     int
	// knownTasks are the tasks of which the server has told, on whichever connection.
	knownTasks map[string]bool
	// knownRounds are the conversations in which it has given the states of its rounds.
	knownRounds map[string]*conversation
}

// NewMachine returns a healthy server that judges its clients, in virtual time.
func NewMachine(c peer.Config) peer.Machine {
	return judgeClients(peer.New(c), c, virtualCrossTime)
}

// NewRealMachine returns one for real processes and the time of a machine that may be busy.
func NewRealMachine(c peer.Config) peer.Machine {
	return judgeClients(peer.New(c), c, realCrossTime)
}

// judgeClients wraps a server. The tests wrap scripted ones.
func judgeClients(m peer.Machine, c peer.Config, crossTime time.Duration) peer.Machine {
	return &machine{Machine: m, server: c.Server, declared: c.Client, crossTime: crossTime, conversations: map[int]*conversation{}, knownTasks: map[string]bool{}, knownRounds: map[string]*conversation{}}
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
	m.conversations[conn] = newConversation(m.server, m.declared, m.crossTime, m.knownTasks, m.knownRounds)
	return m.observeActions(now, m.Machine.Open(now, conn))
}

// Abandoned implements peer.Machine. Over HTTP in the modern era the client cancels a request by closing its response.
func (m *machine) Abandoned(now time.Duration, conn int, reply string) []peer.Action {
	if c := m.conversations[conn]; c != nil && reply != "" {
		c.endRequest(now, reply, abandoned)
	}
	return m.observeActions(now, m.Machine.Abandoned(now, conn, reply))
}

// Receive implements peer.Machine.
func (m *machine) Receive(now time.Duration, conn int, body []byte, header map[string]string) []peer.Action {
	c, known := m.conversations[conn]
	if known && c == nil {
		// The connection has ended: the client had sent the message before it knew, and a process may still read it.
		return m.observeActions(now, m.Machine.Receive(now, conn, body, header))
	}
	// Over HTTP a message may come for a connection that the record has not seen opened.
	if c == nil {
		c = newConversation(m.server, m.declared, m.crossTime, m.knownTasks, m.knownRounds)
		m.conversations[conn] = c
	}
	var notes []peer.Action
	for _, problem := range c.receiveBody(now, body, header) {
		// The violation comes first, so that the record has it before its consequences.
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
	if c := m.conversations[conn]; c != nil && !c.closed {
		c.closed, c.closedAt = true, now
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

// endConversation ends the conversation with its connection. Over HTTP only the requests end, see ends.go.
func (m *machine) endConversation(now time.Duration, conn int) {
	if m.server.Kind != messages.HTTP {
		m.conversations[conn] = nil
		return
	}
	if c := m.conversations[conn]; c != nil {
		for id, r := range c.requests {
			c.loseRequest(now, id, r)
		}
	}
}

// observeActions follows what the server sends, and returns the actions unchanged.
func (m *machine) observeActions(now time.Duration, actions []peer.Action) []peer.Action {
	for _, a := range actions {
		switch a := a.(type) {
		case peer.Send:
			if c := m.conversations[a.Conn]; c != nil {
				c.observeMessage(now+a.After+a.DripTime(), a)
			}
		case peer.Status:
			if c := m.conversations[a.Conn]; c != nil {
				c.receiveStatus(now+a.After, a.Reply, a.Code, a.Body)
			}
		case peer.Cut:
			if c := m.conversations[a.Conn]; c != nil {
				if r := c.requests[a.Reply]; r != nil {
					c.loseRequest(now, a.Reply, r)
				} else if a.Reply == "" {
					c.tearStreams(now)
				}
			}
		case peer.Stop:
			if c := m.conversations[a.Conn]; c != nil {
				c.pause.noteReading(now+a.After, a.Resume)
			}
		case peer.PauseReading:
			if c := m.conversations[a.Conn]; c != nil {
				c.pause.noteReading(now+a.After, a.Resume)
			}
		case peer.Accept:
			if c := m.conversations[a.Conn]; c != nil {
				c.sessions = append(c.sessions, a.Session)
			}
		case peer.Raw:
			// Bytes on standard error are no part of the protocol.
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
