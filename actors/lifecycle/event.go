package lifecycle

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Event is what a server actor can be told.
type Event interface{ isEvent() }

// Wishes. Each carries the Ticket of whoever waits for its end (0: nobody waits).
type (
	// Init is the first event. Cached says that a lazy server's tools are known from an earlier life.
	Init struct {
		Enabled, Lazy, Cached bool
		Blocked               *Cause
		Ticket                uint64
	}
	// Enable makes the server wanted.
	Enable struct{ Ticket uint64 }
	// Disable makes it unwanted. Cold ends its connection; otherwise a connected server stays warm.
	Disable struct {
		Cold   bool
		Ticket uint64
	}
	// Reconnect tears the connection down and dials again, at once.
	Reconnect struct{ Ticket uint64 }
	// Wake dials a lazy server that rests.
	Wake struct{ Ticket uint64 }
	// Refresh lists the tools again.
	Refresh struct{ Ticket uint64 }
	// Respec replaces the spec. Keep says that a connection of the spec before is one of this spec, too: what differs does
	// not concern it.
	Respec struct {
		Enabled, Lazy, Keep bool
		Blocked             *Cause
		Ticket              uint64
	}
	// Remove ends the server for ever.
	Remove struct{}
	// Announce is the registry's request, after its own restart, to be told again.
	Announce struct{}
)

// Facts about the attempt Epoch.
type (
	// Granted is the supervisor's leave to start.
	Granted struct{ Epoch uint64 }
	// Scheduled is the supervisor's answer to Report.
	Scheduled struct {
		Epoch uint64
		Retry messages.Retry
		At    time.Time
	}
	// Dialed: messages can be sent.
	Dialed struct{ Epoch uint64 }
	// Installing: the handshake is not answered because the command is still fetching what it runs.
	Installing struct{ Epoch uint64 }
	// Greeted: the handshake is done.
	Greeted struct{ Epoch uint64 }
	// Listed: a tool list is in.
	Listed struct{ Epoch uint64 }
	// ListFailed: a tool list could not be had; the connection lives.
	ListFailed struct {
		Epoch uint64
		Cause Cause
	}
	// Failed: dialing, the handshake or the first list failed.
	Failed struct {
		Epoch uint64
		Cause Cause
	}
	// Lost: the connection died.
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
	// ToolsChanged: the server said that its list changed.
	ToolsChanged struct{ Epoch uint64 }
	// RelistDue: the coalescing period has ended.
	RelistDue struct{ Epoch uint64 }
	// IdleOut: no call used the connection for the idle timeout. While a list is in flight it changes nothing: if the
	// server is still connected after it, it must come again.
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
