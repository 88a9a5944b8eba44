// Package peer is an MCP server as a pure machine: messages, faults and times in, actions out. It has no clock, no goroutine
// and no I/O. The simulation and the real processes perform its actions, each in its own way, so that a fault means the same in
// both.
//
//	m := peer.New(peer.Config{Server: server, Seed: seed})
//	for _, a := range m.Open(now, 1) { perform(a) }               // Accept
//	for _, a := range m.Receive(now, 1, body, nil) { perform(a) } // Wait: the answer needs its time
//	for _, a := range m.Wake(later, token) { perform(a) }         // Send: here it is
//
// # How it fits
//
// The performer calls the machine: package test/chaos/sim with a clock in memory, package test/chaos/performer with processes and
// sockets. The performer owns the clock, the connections and the timers; the machine owns what the server knows (sessions, tool
// list, calls under way, active faults). The plan of faults comes from package scenario, the meaning of their parameters from
// transports/fault, and the facts go out as events of package history.
//
//	performer --Open, Receive, Closed, Wake--> Machine
//	performer <--Accept, Send, Exit, Wait, Note-- Machine
//
// # Guarantees
//
//   - Same configuration, same calls: same actions, byte for byte. The machine draws every random number from Config.Seed.
//   - A healthy server answers every request exactly once, unless the client cancelled it or its connection ended, and speaks
//     its era as the specification says.
//   - The machine counts the run of a tool in the same turn in which it sends the answer: a call that was cancelled while it
//     waited has not run, and no call runs on a connection that has ended.
//   - A fault that has ended leaves nothing behind: the machine serves the next message, or the next connection if the fault
//     broke the old one, as if there had been none. Instant faults have no duration; what they changed (a tool, a credential)
//     stays changed.
//   - The machine records Fired each time a fault has an effect, before the actions that are its effect, and at no other time.
//
// # What the machine records
//
// Executed, Listed, Changed, Offered, Notified and Fired, and a Violation when a client answers a question of the server
// wrongly. The performer records what it sees for itself: openings, messages received and answered, ends, releases.
//
// # Not promised
//
// If two faults decide the same thing, only the one that began first has its effect, and the machine records no Fired for the
// other.
package peer

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// Machine is one server over all of its connections. It is not safe for concurrent use: the performer serialises the calls.
// Times count from the start of the run and do not go back. Each method returns, in order, the actions that the performer
// carries out now or later. [New] makes one.
//
// A connection ends by an [Exit] that the machine returns, or by Killed. After either the machine has forgotten the connection:
// over HTTP it answers a later message of it like a server that was started again, elsewhere it ignores the message.
type Machine interface {
	// Begin and End switch a planned fault. An instant fault (crash) happens in Begin, and its End does nothing. A name that
	// transports/fault does not list, and a fault that does not apply to the server's kind or era, have no effect; scenario's
	// checks refuse such plans before a run.
	Begin(now time.Duration, f scenario.PlannedFault) []Action
	End(now time.Duration, f scenario.PlannedFault) []Action
	// Open handles a dial: a process is to be started, a socket or a session to be opened. At most one of the actions is Accept
	// or Reject. If neither is there, the dial hangs until one of them comes later (from End), or until its context ends, and
	// the performer then calls Abandoned.
	Open(now time.Duration, conn int) []Action
	// Abandoned reports that the client gave up a dial that hung (reply is empty), or closed the response stream of the request
	// reply over HTTP. In the modern era the latter cancels the request.
	Abandoned(now time.Duration, conn int, reply string) []Action
	// Receive takes one message (a line, a POST's body, a frame). header holds the HTTP headers of the message by canonical
	// name (Mcp-Session-Id, Authorization, Mcp-Method, …), and is nil on other transports. A POST that no action answers hangs.
	// The performer answers a POST that holds a notification with 202, unless a Status of the same turn refuses it.
	Receive(now time.Duration, conn int, body []byte, header map[string]string) []Action
	// Closed reports that the client has closed its side (end of input, DELETE, closed socket) or, with signal, that the
	// process was sent SIGTERM. The returned Exit says when the server goes; without one the server ignores the request to go.
	Closed(now time.Duration, conn int, signal bool) []Action
	// Killed reports that a connection ended without the machine's doing, by SIGKILL or because its socket broke. It takes
	// effect at once and returns no actions, because there is no connection left to perform them on.
	Killed(now time.Duration, conn int)
	// Wake runs what the machine had scheduled with the [Wait] that carries token. The performer calls it once Wait.After has
	// passed. A token that the machine has cancelled meanwhile does nothing.
	Wake(now time.Duration, token int) []Action
}

// Config describes the server that [New] makes.
type Config struct {
	Server scenario.Server
	// Seed is the only source of randomness. The performer derives it from the run's seed and the server's name, so that
	// servers do not share one sequence.
	Seed uint64
	// Canaries are planted secrets. The fault leak-canary writes them into logs, errors and results, and the run then looks for
	// them in everything that mcpvisor shows.
	Canaries []string
	// Client holds the capabilities that its clients have to declare; nil if they may declare what they want. A Machine of package sent
	// judges it.
	Client []string
}

// Action is something that the performer does. After counts from the call that returned the action; the performer does actions
// of one connection with equal times in their order. It drops an action whose connection has ended meanwhile.
type Action interface{ isAction() }

type (
	// Send delivers one JSON-RPC message. Reply is the id (as JSON text) of the request in whose exchange the message goes: of
	// the request that it answers, or with More of a request that it belongs to without ending it (progress, a notification of
	// a subscription). With an empty Reply the message belongs to no request: over HTTP the performer writes it on the stream
	// that the client opened with GET, and drops it if there is none.
	//
	// Chunk and Every slow the message down: the performer writes Chunk bytes each Every, and the message has arrived with its
	// last byte. A Cut above 0 is the number of bytes that are sent before the response (over HTTP), or the stream that carries
	// it, breaks off. Type replaces the content type of a response over HTTP; empty keeps the one of its form.
	Send struct {
		Conn  int
		After time.Duration
		Reply string
		More  bool
		Body  []byte
		Chunk int
		Every time.Duration
		Cut   int
		Type  string
	}
	// Raw writes bytes that are no whole message to the output of a process or to the open stream: noise, half a line, a flood.
	// The performer writes Chunk bytes each Every, or all at once if Chunk is 0. Stderr selects standard error. Bytes that do
	// not end in a newline share a line with what the performer writes next.
	Raw struct {
		Conn  int
		After time.Duration
		Bytes []byte
		// Repeat counts how often the bytes are written; 0 writes them once.
		Repeat int
		Chunk  int
		Every  time.Duration
		Stderr bool
		// Reply is the id of the request whose answer, Body, these bytes end; "" if they end none.
		Reply string
		Body  []byte
	}
	// Status refuses one POST with an HTTP status. Reply is the request's id, or "" for the POST of a notification. With code 0
	// the performer resets the socket without an answer. The machine never returns Status over a websocket, or while Open is
	// still unanswered.
	Status struct {
		Conn       int
		After      time.Duration
		Reply      string
		Code       int
		RetryAfter time.Duration
		Header     map[string]string
		Body       []byte
	}
	// Cut ends the stream of the request Reply without an answer (HTTP, modern era). With an empty Reply it ends the stream
	// that the client opened with GET for messages that belong to no request. The connection goes on.
	Cut struct {
		Conn  int
		After time.Duration
		Reply string
	}
	// Accept and Reject answer Open. Session is the id of the HTTP session, empty if the server has none. Code is the HTTP
	// status of the refusal; with 0 the connection is refused, or the process cannot be started for the reason that Class
	// gives. Header goes with the status.
	Accept struct {
		Conn    int
		After   time.Duration
		Session string
	}
	Reject struct {
		Conn       int
		After      time.Duration
		Class      messages.Class
		Code       int
		RetryAfter time.Duration
		Header     map[string]string
		Text       string
	}
	// Exit ends the server's side of a connection: a process exits with Code, or dies of the signal that Text names ("KILL",
	// "TERM", …); a socket is closed, or with Reset reset. Over HTTP the session, its streams and its exchanges are over. With
	// HalfOpen the socket stays open and silent; another Exit of the same connection may follow and end it.
	Exit struct {
		Conn     int
		After    time.Duration
		Code     int
		Reset    bool
		HalfOpen bool
		Text     string
	}
	// Stop stops a process (SIGSTOP), or with Resume continues it; a performer with sockets reads and writes nothing meanwhile.
	// The machine holds back its own actions too, so that a performer that cannot stop anything may ignore Stop.
	Stop struct {
		Conn   int
		After  time.Duration
		Resume bool
	}
	// PauseReading makes the performer stop reading what the client writes, so that pipes and socket buffers fill; with Resume
	// it reads again. The machine holds back the messages that it receives meanwhile, so that a performer without buffers may
	// ignore PauseReading.
	PauseReading struct {
		Conn   int
		After  time.Duration
		Resume bool
	}
	// Hold keeps a dial from returning before Accept or Reject, even after its context has ended. Only the simulation can do
	// that.
	Hold struct{ Conn int }
	// Busy says how the processes of a connection spend their time from now on: they run on a processor for the share Runs, and
	// wait for one for the share Waits. Only the simulation can do that.
	Busy struct {
		Conn        int
		Runs, Waits float64
	}
	// Spawn starts a child of the process that outlives it and keeps its output open for the time For. Only the real processes
	// can do that.
	Spawn struct {
		Conn  int
		After time.Duration
		For   time.Duration
		// OwnSession moves the child out of the process group, so that a signal to the group does not reach it.
		OwnSession bool
	}
	// BlockStart takes away what a process of the server is started from, and with Undo restores it: the file of the program
	// (Class is missing), the right to run it (config), or the free descriptors (exhausted). Open rejects dials meanwhile too.
	// A performer whose dials fail before they reach Open needs BlockStart to make them fail; it records Fired for such dials
	// itself, with Fault and Name.
	BlockStart struct {
		After time.Duration
		Class messages.Class
		Undo  bool
		Fault int
		Name  string
	}
	// Wait asks the performer to call Wake with Token after the time After.
	Wait struct {
		After time.Duration
		Token int
	}
	// Note is a fact for the history. The performer fills in the event's T and Server.
	Note struct{ Event history.Event }
)

// DripTime returns the time from the first to the last chunk of a slowed message, 0 for one that is sent at once.
func (s Send) DripTime() time.Duration {
	if s.Chunk <= 0 || s.Every <= 0 || len(s.Body) <= s.Chunk {
		return 0
	}
	return time.Duration((len(s.Body)-1)/s.Chunk) * s.Every
}

func (Send) isAction()         {}
func (Raw) isAction()          {}
func (Status) isAction()       {}
func (Cut) isAction()          {}
func (Accept) isAction()       {}
func (Reject) isAction()       {}
func (Exit) isAction()         {}
func (Stop) isAction()         {}
func (PauseReading) isAction() {}
func (Hold) isAction()         {}
func (Busy) isAction()         {}
func (Spawn) isAction()        {}
func (BlockStart) isAction()   {}
func (Wait) isAction()         {}
func (Note) isAction()         {}
