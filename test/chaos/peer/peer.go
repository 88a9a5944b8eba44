// Package peer is an MCP server as a pure machine: messages, faults and times in, actions out. It has no clock, no
// goroutine and no I/O. The simulation and the real processes perform its actions, each in its own way, so that a fault
// means the same in both.
package peer

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// Machine is one server over all of its connections. It is not safe for concurrent use. Times are since the start of the
// run. Each method returns what is to be done now or later, in order. New makes one.
type Machine interface {
	// Begin and End switch a planned fault; an instant (kill) happens in Begin.
	Begin(now time.Duration, f scenario.Planned) []Action
	End(now time.Duration, f scenario.Planned) []Action
	// Open is asked when a dial arrives. The last action is Accept or Reject, or there is none of the two: the dial hangs
	// until its context ends (then Abandoned is called).
	Open(now time.Duration, conn int) []Action
	// Abandoned says that the client gave up a dial that hung, or a message whose answer hung.
	Abandoned(now time.Duration, conn int) []Action
	// Receive takes one message (a line, a POST's body, a frame). header holds what came beside it over HTTP, by canonical
	// name: Mcp-Session-Id, Authorization, Last-Event-Id, …
	Receive(now time.Duration, conn int, body []byte, header map[string]string) []Action
	// Closed says that the client has closed its side (end of input, DELETE, closed socket) or, with signal, that the
	// process was sent SIGTERM. The answer says how long the machine takes to go: an Exit, or nothing if it ignores it.
	Closed(now time.Duration, conn int, signal bool) []Action
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
// done in their order.
type Action interface{ action() }

type (
	// Send delivers one JSON-RPC message. Reply is the id (as JSON text) of the request that it answers, empty for a
	// notification or a request of the server's own: over HTTP it decides on which stream the message goes.
	Send struct {
		Conn  int
		After time.Duration
		Reply string
		Body  []byte
	}
	// Raw writes bytes that are no whole message to the output of a process or to the open stream: noise, half a line, a
	// flood. Chunk and Every drip them: Chunk bytes every Every. Stderr writes to standard error.
	Raw struct {
		Conn   int
		After  time.Duration
		Bytes  []byte
		Repeat int // how many times, 0 is once
		Chunk  int
		Every  time.Duration
		Stderr bool
	}
	// Status refuses one POST (Reply is the request's id; "" is a notification's POST) with an HTTP status.
	Status struct {
		Conn       int
		After      time.Duration
		Reply      string
		Code       int
		RetryAfter time.Duration
		Header     map[string]string
		Body       []byte
	}
	// Accept and Reject answer Open. Session is the HTTP session's id, if the server has one.
	Accept struct {
		Conn    int
		After   time.Duration
		Session string
	}
	Reject struct {
		Conn       int
		After      time.Duration
		Class      messages.Class
		Code       int // HTTP status, 0: the connection is refused
		RetryAfter time.Duration
		Text       string
	}
	// Exit ends the server's side of a connection: a process exits with Code (or dies of the signal in Text), a socket is
	// closed, or reset if Reset. HalfOpen leaves the socket standing and says nothing any more.
	Exit struct {
		Conn     int
		After    time.Duration
		Code     int
		Reset    bool
		HalfOpen bool
		Text     string
	}
	// Stop stops a process (SIGSTOP) or, with Resume, lets it go on; on a socket nothing is read or written meanwhile.
	Stop struct {
		Conn   int
		After  time.Duration
		Resume bool
	}
	// Deafen stops reading what the client writes, with Hear it goes on: pipes and socket buffers fill.
	Deafen struct {
		Conn  int
		After time.Duration
		Hear  bool
	}
	// Spawn starts a child of the process that outlives it and holds its output, for so long. Only real processes can.
	Spawn struct {
		Conn  int
		After time.Duration
		For   time.Duration
		// OwnSession takes it out of the process group.
		OwnSession bool
	}
	// Wait asks for Wake.
	Wait struct {
		After time.Duration
		Token int
	}
	// Note is a fact for the record: T, Server and Side World are filled in by whoever performs it.
	Note struct{ Event history.Event }
)

func (Send) action()   {}
func (Raw) action()    {}
func (Status) action() {}
func (Accept) action() {}
func (Reject) action() {}
func (Exit) action()   {}
func (Stop) action()   {}
func (Deafen) action() {}
func (Spawn) action()  {}
func (Wait) action()   {}
func (Note) action()   {}
