package supervisor

import (
	"time"

	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// Commands to the supervisor actor. It calls each reply function exactly once, in its own turn: the function must not block. The
// commands of one sender take effect in the order in which they were sent.
type (
	// addServer adds a server at runtime, or replaces its spec. ticket is answered when the attempt that follows has ended.
	addServer struct {
		name   string
		spec   messages.Spec
		ticket uint64
		// early has the reply sent as soon as the spec is accepted, even if it must wait for the end of a removal.
		early bool
		// set marks a spec of SetServers: a server that has the same spec already stays as it is, also if it was disabled since.
		set   bool
		reply func(error)
	}
	// removeServer takes the runtime spec of a server away. A server that is configured too falls back to its file's spec.
	removeServer struct {
		name  string
		reply func(error)
	}
	// serverCommand is a command of package lifecycle (enable, disable, reconnect, wake, refresh) for a server that must exist.
	serverCommand struct {
		name  string
		event lifecycle.Event
		reply func(error)
	}
	// setServers replaces the whole set of runtime servers.
	setServers struct {
		specs map[string]messages.Spec
		reply func(messages.SetServersResult, error)
	}
	// configureServers replaces the whole set of configured servers and, unless managed is nil, the policies of the organisation.
	configureServers struct {
		specs   map[string]messages.Spec
		managed *[]config.Policy
		reply   func(config.Changes)
	}
	// barrier is replied to when every command before it has been handled and every server's actor has been sent a Barrier.
	barrier struct {
		ticket uint64
		reply  func()
	}
	// refilterAll makes every server's actor filter its tools again, because the access rules or pins have changed.
	refilterAll struct{}
	// closeAll ends every server, then replies. drain bounds how long their calls may still run.
	closeAll struct {
		drain time.Duration
		reply func()
	}

	// timerDue is the timer of starts and successors, clockDue the reading of the clocks every 10 s, sleepNoticed the call of
	// Woken.
	timerDue     struct{}
	clockDue     struct{}
	sleepNoticed struct{}
)
