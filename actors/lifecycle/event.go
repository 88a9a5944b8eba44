package lifecycle

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Event is a message to the state machine: a command, a fact about the attempt, or a request of the registry.
type Event interface{ isEvent() }

// Commands. Each carries the Ticket of the caller that waits for its end; 0 if no caller waits.
type (
	// Init is the first event. Cached says that a lazy server's tools are known from an earlier run. Blocked is why the spec cannot
	// be tried at all.
	Init struct {
		Enabled, Lazy, Cached bool
		Blocked               *Cause
		Ticket                uint64
	}
	// Enable makes the server wanted, and starts it.
	Enable struct{ Ticket uint64 }
	// Disable makes it unwanted. Cold ends its connection; otherwise a connected server keeps it and is warm.
	Disable struct {
		Cold   bool
		Ticket uint64
	}
	// Reconnect ends the connection, after a drain, and dials again without a delay.
	Reconnect struct{ Ticket uint64 }
	// Wake dials a lazy server that rests; it does nothing to any other.
	Wake struct{ Ticket uint64 }
	// Refresh lists the tools again.
	Refresh struct{ Ticket uint64 }
	// Respec replaces the spec. Keep says that the present connection fits the new spec too, because the difference does not concern
	// connections.
	Respec struct {
		Enabled, Lazy, Keep bool
		Blocked             *Cause
		Ticket              uint64
	}
	// Remove ends the server for ever: Gone follows when the connection is closed.
	Remove struct{}
	// Announce is the request of a new registry for everything that its predecessor was sent.
	Announce struct{}
)

// Facts about the attempt Epoch. A fact of another epoch is stale and ignored.
type (
	// Granted is the supervisor's permission to start. It brings the new epoch.
	Granted struct{ Epoch uint64 }
	// Scheduled is the supervisor's answer to Report: whether and when the server is tried again.
	Scheduled struct {
		Epoch uint64
		Retry messages.Retry
		At    time.Time
	}
	// Dialed: the connection is open, and messages can be sent.
	Dialed struct{ Epoch uint64 }
	// Installing: the handshake is not answered because the command still fetches the program that it runs.
	Installing struct{ Epoch uint64 }
	// Greeted: the server has answered the handshake.
	Greeted struct{ Epoch uint64 }
	// Listed: a tool list has come, and the actor has it.
	Listed struct{ Epoch uint64 }
	// ListFailed: the server gave no tool list; the connection lives.
	ListFailed struct {
		Epoch uint64
		Cause Cause
	}
	// Failed: dialing, the handshake or the first list failed.
	Failed struct {
		Epoch uint64
		Cause Cause
	}
	// Lost: the connection died without an order.
	Lost struct {
		Epoch uint64
		Cause Cause
	}
	// Closed: everything that the attempt held is released. It comes exactly once for every Granted that was accepted.
	Closed struct{ Epoch uint64 }
	// Unauthorized: the server refused our credentials in the middle of a session.
	Unauthorized struct {
		Epoch uint64
		Cause Cause
	}
	// ToolsChanged: the server sent list_changed.
	ToolsChanged struct{ Epoch uint64 }
	// RelistDue: the coalescing period has ended.
	RelistDue struct{ Epoch uint64 }
	// IdleOut: no call used the connection for the idle timeout. While a list is being fetched, or is due, it changes nothing: the
	// actor must send it again later, if the server is still connected.
	IdleOut struct{ Epoch uint64 }
)

func (Init) isEvent()         {}
func (Enable) isEvent()       {}
func (Disable) isEvent()      {}
func (Reconnect) isEvent()    {}
func (Wake) isEvent()         {}
func (Refresh) isEvent()      {}
func (Respec) isEvent()       {}
func (Remove) isEvent()       {}
func (Announce) isEvent()     {}
func (Granted) isEvent()      {}
func (Scheduled) isEvent()    {}
func (Dialed) isEvent()       {}
func (Installing) isEvent()   {}
func (Greeted) isEvent()      {}
func (Listed) isEvent()       {}
func (ListFailed) isEvent()   {}
func (Failed) isEvent()       {}
func (Lost) isEvent()         {}
func (Closed) isEvent()       {}
func (Unauthorized) isEvent() {}
func (ToolsChanged) isEvent() {}
func (RelistDue) isEvent()    {}
func (IdleOut) isEvent()      {}
