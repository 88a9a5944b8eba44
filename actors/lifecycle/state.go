package lifecycle

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Conn says what exists of a connection.
type Conn uint8

const (
	// None: nothing is held, and a start may be requested.
	None Conn = iota
	// Opening: an attempt runs: dialing, handshaking or waiting for the first list.
	Opening
	// Open: the session accepts calls.
	Open
	// Closing: the connection is being closed, or ended by itself, and has not released everything yet.
	Closing
)

// String returns the name for transcripts and logs.
func (c Conn) String() string { return [...]string{"none", "opening", "open", "closing"}[c] }

// Cause says why a server is not connected.
type Cause struct {
	Class messages.Class
	// Text is one line for a person, with what to do if something can be done.
	Text string
	// RetryAfter is the wait that the server asked for, 0 if it asked for none. Challenge is that of ClassUnauthorized.
	RetryAfter time.Duration
	Challenge  *messages.Challenge
	// Displaced: the attempt gave its place to other servers before it was decided. Nothing is known of this one.
	Displaced bool
}

// State is everything that decides about a server's next step. It is a value; the zero State is a server before Init.
type State struct {
	// Wanted is set by commands; Removing says that the server ends for ever.
	Wanted, Removing bool
	// Lazy servers are dialled by their first use. Blocked, if not nil, is why the spec cannot be tried at all.
	Lazy    bool
	Blocked *Cause

	Phase messages.Phase
	// Step is set only while Phase is pending.
	Step messages.Step
	// Epoch is that of the present or last attempt, 0 before the first.
	Epoch uint64
	Conn  Conn
	// Cause is the last failure; nil while connected or disabled.
	Cause *Cause
	// Retry and NextAt are the supervisor's decision after a failure; zero until it has come.
	Retry  messages.Retry
	NextAt time.Time
	// StartRequested: the supervisor has a request, and will grant a start, now or at NextAt.
	StartRequested bool
	// WasUp: this attempt reached connected.
	WasUp bool
	// EverConnected: this spec has connected at least once, in this run or, as its cached tools show, in an earlier one.
	EverConnected bool
	// DueUrgency is the urgency of the start that waits for the old connection's Closed.
	DueUrgency Urgency

	// Listing: a list is being fetched. Dirty: the server's tools have changed since the last list was requested.
	Listing, Dirty bool
	// RelistAfter: the list that is being fetched is older than a command for one; another follows at once.
	RelistAfter bool
	// ListFailures counts the lists in a row that failed, after the first.
	ListFailures int
	// Refreshing: a caller of Refresh waits for the list that is being fetched.
	Refreshing bool
	// ToolsShown: the registry has tools of this server, live, cached or lost.
	ToolsShown bool
	// Rev numbers the changes that are sent to the registry, which drops those that come out of order.
	Rev uint64

	// Ticket is the newest command whose end a caller waits for; Answered the newest whose end has come.
	Ticket, Answered uint64
}

// Warm reports whether a disabled server keeps its connection.
func (s State) Warm() bool { return s.Phase == messages.Disabled && s.Conn == Open }

// Keeps reports whether a server keeps what it has when e replaces its spec: its connection or attempt, or the known tools while
// it rests.
func (s State) Keeps(e Respec) bool {
	return e.Keep && e.Blocked == nil && s.Blocked == nil && !s.Removing &&
		(s.Conn == Opening || s.Conn == Open || s.Step == messages.Idle)
}

// Settled reports whether the server changes by itself no more: it is connected, failed, disabled, needs credentials, or rests.
func (s State) Settled() bool { return s.Phase != messages.Pending || s.Step == messages.Idle }
