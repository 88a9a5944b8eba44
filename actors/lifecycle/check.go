package lifecycle

import (
	"fmt"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Check returns an error that names the first invariant of the package comment that s violates; nil if all hold.
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

// onItsWay reports whether connection and start request agree with phase and step, so that an event will come that leads on. A
// server for which this is false would hang.
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
