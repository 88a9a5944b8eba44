package core

import (
	"time"

	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// Commands to the supervisor actor. It calls each reply function exactly once, in its own turn: the function must not block. The
// commands of one sender take effect in the order in which they were sent.
type (
	// AddServer adds a server at runtime, or replaces its spec. Ticket is answered when the attempt that follows has ended.
	AddServer struct {
		Name   string
		Spec   messages.Spec
		Ticket uint64
		// Early has the reply sent as soon as the spec is accepted, even if it must wait for the end of a removal.
		Early bool
		// set marks a spec of SetServers: a server that has the same spec already stays as it is, also if it was disabled since.
		set   bool
		Reply func(error)
	}
	// RemoveServer takes the runtime spec of a server away. A server that is configured too falls back to its file's spec.
	RemoveServer struct {
		Name string
		// Ticket, if not nil, is set before the reply: the server's actor has handled the removal when it has seen that ticket.
		Ticket *uint64
		Reply  func(error)
	}
	// ServerCommand is a command of package lifecycle (enable, disable, reconnect, wake, refresh) for a server that must exist.
	ServerCommand struct {
		Name  string
		Event lifecycle.Event
		Reply func(error)
	}
	// StartInstance makes the instance of a server for a principal, if the server's spec has share "principal" and there is none. It is
	// replied to when the instance has a cell; the attempt follows.
	StartInstance struct {
		Server, Principal string
		Reply             func(error)
	}
	// SetServers replaces the whole set of runtime servers.
	SetServers struct {
		Specs map[string]messages.Spec
		Reply func(messages.SetServersResult, error)
	}
	// ConfigureServers replaces the whole set of configured servers and, unless Managed is nil, the policies of the organisation.
	ConfigureServers struct {
		Specs   map[string]messages.Spec
		Managed *[]config.Policy
		Reply   func(config.Changes)
	}
	// Barrier is replied to when every command before it has been handled and every server's actor has been sent a Barrier. The
	// supervisor draws the ticket in its turn and replies with it: callers that drew one before they sent the command would
	// overtake each other, and an older ticket would take the place of a newer one.
	Barrier struct {
		Reply func(ticket uint64)
	}
	// RefilterAll makes every server's actor filter its tools again, because the access rules or pins have changed.
	RefilterAll struct{}
	// CloseAll ends every server, then replies. Drain bounds how long their calls may still run.
	CloseAll struct {
		Drain time.Duration
		Reply func()
	}

	// SleepNoticed says that the machine has slept, or that the network is back: waiting servers are tried again soon.
	SleepNoticed struct{}

	// timerDue is the timer of starts and successors, clockDue the reading of the clocks every 10 s, instancesDue the timer by which
	// idle instances end.
	timerDue struct{}
	// gateChanged says that another supervisor has changed the gate that both share.
	gateChanged  struct{}
	clockDue     struct{}
	instancesDue struct{}
)
