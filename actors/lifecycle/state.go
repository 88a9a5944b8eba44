package lifecycle

import (
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Conn says what there is of a connection.
type Conn uint8

const (
	// None: nothing is held.
	None Conn = iota
	// Opening: an attempt runs: dialing, handshaking or waiting for the first list.
	Opening
	// Open: the session can be called.
	Open
	// Closing: it was told to end, or ended by itself, and has not released everything yet.
	Closing
)

// String is for transcripts and logs.
func (c Conn) String() string { return [...]string{"none", "opening", "open", "closing"}[c] }

// Cause is why a server is not connected.
type Cause struct {
	Class messages.Class
	// Text is one line for a person, with what to do if something can be done.
	Text       string
	RetryAfter time.Duration
	Challenge  *messages.Challenge
}

// State is everything that decides what a server does next. It is a value; the zero State is a server before Init.
type State struct {
	// Wanted is the wish; Removing ends it for ever.
	Wanted, Removing bool
	// Lazy servers are dialled by use. Blocked, if not nil, is why the spec cannot start at all.
	Lazy    bool
	Blocked *Cause

	Phase messages.Phase
	// Step is set while Phase is pending.
	Step messages.Step
	// Epoch is that of the current or last attempt, 0 before the first.
	Epoch uint64
	Conn  Conn
	// Cause is the last failure; nil while connected.
	Cause *Cause
	// Retry and NextAt are the supervisor's decision after a failure; empty until it came.
	Retry  messages.Retry
	NextAt time.Time
	// StartRequested: the supervisor will grant a start, now or when the time has come.
	StartRequested bool
	// WasUp: this attempt reached connected.
	WasUp bool
	// EverConnected: this spec reached connected at least once, in this life or, as its cached tools tell, in an earlier one.
	EverConnected bool
	// DueUrgency is the urgency of the start that waits for the old connection's release.
	DueUrgency Urgency

	// Listing: a list is in flight. Dirty: the server's tools changed since the last list was asked for.
	Listing, Dirty bool
	// RelistAfter: the list in flight is older than a wish for it; one more follows at once.
	RelistAfter bool
	// ListFailures counts consecutive re-lists that failed.
	ListFailures int
	// Refreshing: somebody waits for the list that is in flight.
	Refreshing bool
	// ToolsShown: the registry was told tools of this server and not yet told to withdraw them.
	ToolsShown bool
	// Rev numbers what the registry is told, for its tombstones.
	Rev uint64

	// Ticket is the newest request whose end somebody waits for; Answered the newest whose end has come.
	Ticket, Answered uint64
}

// Warm reports whether a disabled server keeps its connection.
func (s State) Warm() bool { return s.Phase == messages.Disabled && s.Conn == Open }

// Keeps reports whether a server goes on with what it has when its spec is replaced by e: with its connection or attempt,
// or with the tools that are known while it rests.
func (s State) Keeps(e Respec) bool {
	return e.Keep && e.Blocked == nil && s.Blocked == nil && !s.Removing &&
		(s.Conn == Opening || s.Conn == Open || s.Step == messages.Idle)
}

// Settled reports whether nothing is on its way without an end in sight: the server is connected, failed, disabled,
// needs credentials, or rests until it is used.
func (s State) Settled() bool { return s.Phase != messages.Pending || s.Step == messages.Idle }

// Check returns an error that names the first invariant of the package comment that s breaks.
func (s State) Check() error {
	fail := func(n int, text string) error { return fmt.Errorf("L%d: %s: %+v", n, text, s) }
	if s.Phase == "" { // before Init
		return nil
	}
	up := s.Phase == messages.Connected
	hasConn := s.Conn == Opening || s.Conn == Open
	if up && (!s.Wanted || s.Conn != Open) {
		return fail(1, "connected without wish or connection")
	}
	if (s.Phase == messages.Disabled) == s.Wanted || s.Removing && s.Wanted {
		return fail(2, "disabled and wanted disagree")
	}
	if s.StartRequested && s.Conn != None {
		return fail(3, "a start is asked for beside a connection")
	}
	if s.Phase == messages.NeedsAuth && s.StartRequested {
		return fail(4, "needs-auth asks for a start")
	}
	if !s.NextAt.IsZero() && (!s.StartRequested || s.Phase != messages.Failed && s.Step != messages.Restarting) {
		return fail(4, "a next attempt of what has not failed, or asks for none")
	}
	if (s.Listing || s.Dirty) && !hasConn || (s.RelistAfter || s.Refreshing) && !s.Listing {
		return fail(5, "a list without a connection")
	}
	if s.StartRequested && !s.Wanted {
		return fail(6, "a start is asked for that nobody wants")
	}
	if s.Answered > s.Ticket || s.Settled() && !s.Refreshing && s.Answered != s.Ticket {
		return fail(8, "tickets")
	}
	if (s.Step != "") != (s.Phase == messages.Pending) || !s.onItsWay() {
		return fail(9, "phase, step and connection disagree")
	}
	if up && s.Cause != nil || s.Cause == nil && (s.Step == messages.Restarting || s.Phase == messages.Failed ||
		s.Phase == messages.NeedsAuth) {
		return fail(10, "the cause is told of what is not connected, and only of that")
	}
	return nil
}

// onItsWay reports whether the connection, or the start that was asked for, is what the phase and step tell, so that
// there is always an event to come that leads on.
func (s State) onItsWay() bool {
	switch s.Step {
	case messages.Queued:
		return s.StartRequested
	case messages.Dialing, messages.Handshaking, messages.Installing:
		return s.Conn == Opening && !s.Listing
	case messages.Listing:
		return (s.Conn == Opening || s.Conn == Open) && s.Listing
	case messages.Restarting:
		return s.Conn == Closing || s.StartRequested
	case messages.Closing:
		return s.Conn == Closing
	case messages.Idle:
		return !s.StartRequested && (s.Conn == Closing || s.Conn == None)
	}
	switch s.Phase {
	case messages.Failed:
		return s.Conn == Closing || s.Conn == None && (s.StartRequested || s.Retry == messages.RetryNever)
	case messages.NeedsAuth:
		return s.Conn == Closing || s.Conn == None
	case messages.Pending, messages.Connected, messages.Disabled:
	}
	return s.Conn != Opening
}
