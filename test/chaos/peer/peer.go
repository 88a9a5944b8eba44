// Package peer is an MCP server as a pure machine: messages, faults and times in, actions out. It has no clock, no
// goroutine and no I/O. The simulation and the real processes perform its actions, each in its own way, so that a fault
// means the same in both.
//
//	m := peer.New(peer.Config{Server: server, Seed: seed})
//	for _, a := range m.Open(now, 1) { perform(a) }            // Accept
//	for _, a := range m.Receive(now, 1, body, nil) { perform(a) } // Wait: the answer needs its time
//	for _, a := range m.Wake(later, token) { perform(a) }         // Send: here it is
//
// # Guarantees
//
//   - Same configuration, same calls: same actions, byte for byte. Chance comes from Config.Seed alone.
//   - A healthy server answers every request exactly once, unless it was cancelled or its connection ended, and speaks
//     its era as the specification says.
//   - What a tool did is counted when it does it, in the same turn in which its answer is sent: a call that was cancelled
//     while it waited has not run, and no call runs on a connection that has ended.
//   - A fault that has ended leaves nothing behind: the next message, or the next connection if its own was broken, is
//     served as if there had been none. Instants last no time; what they changed (a tool, a credential) stays changed.
//   - Fired is noted each time a fault has an effect, before the actions that are its effect, and never else.
//
// # What is noted
//
// Executed, Listed, Changed, Notified and Fired. What the performer sees for itself it notes for itself: openings,
// messages received and answered, ends, releases.
//
// # Not promised
//
// That two faults which both decide the same thing both have their effect: the one that began first decides, and the
// other has not fired.
package peer

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// Machine is one server over all of its connections. It is not safe for concurrent use. Times are since the start of the
// run and do not go back. Each method returns what is to be done now or later, in order. New makes one.
//
// A connection ends by an Exit of the machine's own, or by Killed. After either the machine knows nothing of it: over HTTP
// a message of it is answered as by a server that was started again, elsewhere it is ignored.
type Machine interface {
	// Begin and End switch a planned fault; an instant (crash) happens in Begin, and its End does nothing. A name that
	// nobody knows, and a fault that does not belong to the server's kind, does nothing: package faults tells beforehand.
	Begin(now time.Duration, f scenario.PlannedFault) []Action
	End(now time.Duration, f scenario.PlannedFault) []Action
	// Open is asked when a dial arrives: a process is to be started, a socket or a session to be opened. One of the actions
	// is Accept or Reject, or there is none of the two: the dial hangs until one of them comes later (from End) or its
	// context ends (then Abandoned is called).
	Open(now time.Duration, conn int) []Action
	// Abandoned says that the client gave up a dial that hung (reply is empty), or the exchange in which it had sent the
	// request reply: over HTTP it closed the response's stream. In the modern era that is a cancellation.
	Abandoned(now time.Duration, conn int, reply string) []Action
	// Receive takes one message (a line, a POST's body, a frame). header holds what came beside it over HTTP, by canonical
	// name: Mcp-Session-Id, Authorization, Mcp-Method, …; nil where there is none. A POST that no action answers hangs; one
	// that holds a notification is answered 202 by the performer, unless a Status of the same turn refuses it.
	Receive(now time.Duration, conn int, body []byte, header map[string]string) []Action
	// Closed says that the client has closed its side (end of input, DELETE, closed socket) or, with signal, that the
	// process was sent SIGTERM. The answer says how long the machine takes to go: an Exit, or nothing if it ignores it.
	Closed(now time.Duration, conn int, signal bool) []Action
	// Killed says that the connection is no more without the machine's doing: SIGKILL, or a socket that broke. It takes
	// effect at once and there is nothing to be done about it.
	Killed(now time.Duration, conn int)
	// Wake is called when the time of a Wait has come.
	Wake(now time.Duration, token int) []Action
}

// Config makes a Machine.
type Config struct {
	Server scenario.Server
	// Seed is derived from the run's seed and the server's name.
	Seed uint64
	// Canaries are secrets that a fault may write where they do not belong.
	Canaries []string
}

// Action is something to do. After counts from the call that returned it; actions of one connection with equal times are
// done in their order. An action for a connection that has ended meanwhile is dropped by whoever performs it.
type Action interface{ isAction() }

type (
	// Send delivers one JSON-RPC message. Reply is the id (as JSON text) of the request in whose exchange it goes: the one
	// that it answers, or with More the one that it belongs to without ending it (progress, what a subscription tells).
	// Empty is a message that belongs to no request: over HTTP it goes on the stream that the client opened for such (GET),
	// and is lost if there is none.
	//
	// Chunk and Every drip it: Chunk bytes every Every; it has arrived with its last byte. Cut, if it is not 0, is how many
	// of its bytes are sent before the response (over HTTP), or the stream that carries it, breaks off. Type is the content
	// type of a response over HTTP if it is not the one that belongs to its form.
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
	// Raw writes bytes that are no whole message to the output of a process or to the open stream: noise, half a line, a
	// flood. Chunk and Every drip them: Chunk bytes every Every. Stderr writes to standard error. Bytes without a newline at
	// their end stand before whatever is written next, in one line with it.
	Raw struct {
		Conn   int
		After  time.Duration
		Bytes  []byte
		Repeat int // how many times, 0 is once
		Chunk  int
		Every  time.Duration
		Stderr bool
	}
	// Status refuses one POST (Reply is the request's id; "" is a notification's POST) with an HTTP status. Code 0 breaks
	// the exchange instead: the socket is reset without an answer. Over a websocket, and where Open is still unanswered, it
	// does not occur.
	Status struct {
		Conn       int
		After      time.Duration
		Reply      string
		Code       int
		RetryAfter time.Duration
		Header     map[string]string
		Body       []byte
	}
	// Cut ends the stream of the request Reply without an answer (over HTTP in the modern era), or with an empty Reply the
	// stream that the client has opened for what the server says unasked (GET). The connection goes on.
	Cut struct {
		Conn  int
		After time.Duration
		Reply string
	}
	// Accept and Reject answer Open. Session is the HTTP session's id, if the server has one. Code is an HTTP status; with 0
	// the connection is refused, or the process cannot be started for the reason that Class says. Header goes with the
	// status.
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
	// Exit ends the server's side of a connection: a process exits with Code (or dies of the signal in Text: "KILL"), a
	// socket is closed, or reset if Reset. Over HTTP the session, its streams and its exchanges are over. HalfOpen leaves the
	// socket standing and says nothing any more; another Exit of the same connection may follow then and end it.
	Exit struct {
		Conn     int
		After    time.Duration
		Code     int
		Reset    bool
		HalfOpen bool
		Text     string
	}
	// Stop stops a process (SIGSTOP) or, with Resume, lets it go on; on a socket nothing is read or written meanwhile. The
	// machine holds back what it would do itself, so that a performer that cannot stop anything may ignore it.
	Stop struct {
		Conn   int
		After  time.Duration
		Resume bool
	}
	// PauseReading stops reading what the client writes, with Hear it goes on: pipes and socket buffers fill. The machine looks at
	// nothing that it receives meanwhile until it hears again, so that a performer without buffers may ignore it.
	PauseReading struct {
		Conn   int
		After  time.Duration
		Resume bool
	}
	// Hold keeps a dial from returning before Accept or Reject, whatever its context says. Only simulated dials can be so.
	Hold struct{ Conn int }
	// Spawn starts a child of the process that outlives it and holds its output, for so long. Only real processes can.
	Spawn struct {
		Conn  int
		After time.Duration
		For   time.Duration
		// OwnSession takes it out of the process group.
		OwnSession bool
	}
	// BlockStart takes away what a process of the server is started from, with Back it is there again: the file with the program
	// (Class is missing), the right to run it (config), or the machine's free descriptors (exhausted). Open rejects meanwhile
	// all the same; a performer whose dials fail before it is asked needs this to make them fail, and notes Fired for them,
	// with Fault and Name.
	BlockStart struct {
		After time.Duration
		Class messages.Class
		Undo  bool
		Fault int
		Name  string
	}
	// Wait asks for Wake.
	Wait struct {
		After time.Duration
		Token int
	}
	// Note is a fact for the record: T and Server are filled in by whoever performs it.
	Note struct{ Event history.Event }
)

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
func (Spawn) isAction()        {}
func (BlockStart) isAction()   {}
func (Wait) isAction()         {}
func (Note) isAction()         {}
