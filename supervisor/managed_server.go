package supervisor

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
)

// managedServer is what the supervisor keeps of one server. It survives the death of the server's actor.
type managedServer struct {
	name string
	// configured and runtime are the specs by source; the runtime one wins. spec is the one in force.
	configured, runtime *Spec
	spec                *Spec
	// wanted is the wish: the spec's, until somebody enables or disables the server.
	wanted bool

	pid        *actor.PID // nil while there is no actor
	actorEpoch uint64     // tells this actor's words from those of its predecessors
	cell       *actors.Cell
	holder     *actors.Holder

	// blocked is why the spec in force is not tried, as the server was told; nil if it is.
	blocked *lifecycle.Cause

	policy restart.Record
	// liveEpoch is the epoch that was granted and has not been released, 0 if there is none.
	liveEpoch uint64
	upSince   time.Time
	isUp      bool
	// Of a successor after a panic: when it may be spawned, and that its first Ask must not forget the failures.
	spawnAt   time.Time
	successor bool
	reason    string // of the panic

	removing bool
	// waitingSpec is the configured spec with which it begins again when the removal has ended; nil if there is none.
	waitingSpec     *Spec
	waitingCommands []func(actor.Context) // commands, an add first, that wait for the removal to end
}

// comesBack reports whether a server that is being removed comes back.
func (r *managedServer) comesBack() bool {
	return r.removing && (len(r.waitingCommands) > 0 || r.waitingSpec != nil)
}

// configuredSpec is the configured spec, also of a server that comes back with it; nil if it has none.
func (r *managedServer) configuredSpec() *Spec {
	if r.removing {
		return r.waitingSpec
	}
	return r.configured
}

// specInForce is the spec in force; nil if nobody configures the server any more.
func (r *managedServer) specInForce() *Spec {
	if r.runtime != nil {
		return r.runtime
	}
	return r.configured
}

// sameSpec is what must be equal for a server to be left alone by a changed set of specs.
func sameSpec(a, b *Spec) bool {
	return a != nil && b != nil && a.Equal(*b) && a.Scope == b.Scope && a.Source == b.Source && a.Remark == b.Remark
}

func downEvent(r *managedServer, class messages.Class, retryAfter time.Duration, now time.Time) restart.Down {
	d := restart.Down{Kind: r.spec.Kind(), Class: class, RetryAfter: retryAfter}
	if r.isUp {
		d.Connected = now.Sub(r.upSince)
	}
	return d
}
