package supervisor

import (
	"time"

	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// Commands to the supervisor actor. Each reply function is called exactly once, from the actor's own turn: it must not
// block. The commands of one sender take effect in the order in which they were sent.
type (
	// addServer adds a server at runtime, or replaces its spec.
	addServer struct {
		name   string
		spec   Spec
		ticket uint64
		// early replies as soon as the spec is accepted, also when it must wait for a removal to end.
		early bool
		// set: the spec is one of a whole set. What has it already stays as it is, also if somebody disabled it.
		set   bool
		reply func(error)
	}
	// removeServer takes a runtime server away. A configured server comes back to what its file says.
	removeServer struct {
		name  string
		reply func(error)
	}
	// serverCommand is one of lifecycle's wishes, for a server that must exist.
	serverCommand struct {
		name  string
		event lifecycle.Event
		reply func(error)
	}
	// handleSetServers replaces the whole set of runtime servers.
	setServers struct {
		specs map[string]Spec
		reply func(SetServersResult, error)
	}
	// configureServers replaces the whole set of configured servers and, unless managed is nil, the policies of the organisation.
	configureServers struct {
		specs   map[string]Spec
		managed *[]config.Policy
		reply   func(config.Changes)
	}
	// barrier is answered when every command before it has been handled, and every server been sent a Look.
	barrier struct {
		ticket uint64
		reply  func()
	}
	// refilterAll has every server show anew what is offered: the rules are others.
	refilterAll struct{}
	// closeAll ends every server and then the supervisor. drain bounds the calls in flight.
	closeAll struct {
		drain time.Duration
		reply func()
	}

	// timerDue is the one timer of starts, clock the regular look at the clocks, slept what that look may find.
	timerDue     struct{}
	clockDue     struct{}
	sleepNoticed struct{}
)
