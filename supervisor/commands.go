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
	// wish is one of lifecycle's wishes, for a server that must exist.
	wish struct {
		name  string
		event lifecycle.Event
		reply func(error)
	}
	// setServers replaces the whole set of runtime servers.
	setServers struct {
		specs map[string]Spec
		reply func(SetServersResult, error)
	}
	// configure replaces the whole set of configured servers and, unless managed is nil, the policies of the organisation.
	configure struct {
		specs   map[string]Spec
		managed *[]config.Policy
		reply   func(config.Changes)
	}
	// look is answered when every command before it has been handled, and every server been sent a Look.
	look struct {
		ticket uint64
		reply  func()
	}
	// rescreen has every server show anew what is offered: the rules are others.
	rescreen struct{}
	// closeAll ends every server and then the supervisor. drain bounds the calls in flight.
	closeAll struct {
		drain time.Duration
		reply func()
	}

	// tick is the one timer of starts, clock the regular look at the clocks, slept what that look may find.
	tick  struct{}
	clock struct{}
	slept struct{}
)
