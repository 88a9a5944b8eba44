package core

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
)

// managedServer is the supervisor's record of one server. It survives the death of the server's actor, and belongs to the
// supervisor's actor alone.
type managedServer struct {
	name string
	// configured and runtime are the specs by source, nil if the source has none; the runtime one wins. spec is the one in force.
	configured, runtime *messages.Spec
	spec                *messages.Spec
	// owner and principal are set for an instance: the server that it is one of, and for whom; its spec is derived from that server's.
	// instances are those of a server, by principal, until each removal has ended.
	owner     *managedServer
	principal string
	instances map[string]*managedServer
	// wanted says whether the server should be connected: the spec decides, until a command enables or disables the server.
	wanted bool

	pid        *actor.PID // nil while the server has no actor
	actorEpoch uint64     // distinguishes this actor's messages from those of its predecessors
	// cell publishes the server's state, holder keeps its attempt: both outlive the actor.
	cell   *actors.Cell
	holder *actors.Holder

	// blocked says why the spec in force is not tried, as the server's actor was sent it; nil if the spec is tried.
	blocked *lifecycle.Cause

	// policy counts the failures and knows when the server was healthy last.
	policy restart.Record
	// liveEpoch is the epoch that was granted and has not been released; 0 says that there is no connection and no attempt.
	liveEpoch uint64
	upSince   time.Time
	isUp      bool
	// For a successor after a panic: when it may be spawned, and that its first Ask must not forget the failures.
	spawnAt   time.Time
	successor bool
	reason    string // of the panic, for the status

	// removing is set from the command until the connection is closed; the server is no longer reachable by name meanwhile.
	removing bool
	// waitingSpec is the configured spec with which the server begins again when the removal has ended; nil if there is none.
	waitingSpec     *messages.Spec
	waitingCommands []waitingCommand // run when the removal has ended, an add first
}

// A waitingCommand came for a server that is being removed.
type waitingCommand struct {
	run func(actor.Context)
	// refuse answers a command whose server does not come back after all. It is nil for an add, which brings the server back itself.
	refuse func()
}

// withdrawConfigured takes the configured spec away, also one with which the server would come back. The commands that wait for that server are
// refused: the next server of its name, which an add makes, is another one. The caller removes a server that has no spec left.
func (r *managedServer) withdrawConfigured() {
	cameBack := r.waitingSpec != nil
	r.configured, r.waitingSpec = nil, nil
	if !cameBack {
		return
	}
	n := slices.IndexFunc(r.waitingCommands, func(w waitingCommand) bool { return w.refuse == nil })
	if n < 0 {
		n = len(r.waitingCommands)
	}
	refused := r.waitingCommands[:n]
	r.waitingCommands = r.waitingCommands[n:]
	for _, w := range refused {
		w.refuse()
	}
}

// comesBack reports whether a server that is being removed comes back.
func (r *managedServer) comesBack() bool {
	return r.removing && (len(r.waitingCommands) > 0 || r.waitingSpec != nil)
}

// configuredSpec returns the configured spec, also that of a server that comes back with it after its removal; nil if it has none.
func (r *managedServer) configuredSpec() *messages.Spec {
	if r.removing {
		return r.waitingSpec
	}
	return r.configured
}

// specInForce returns the spec that counts: the runtime one, else the configured one; nil if no source has the server any more.
func (r *managedServer) specInForce() *messages.Spec {
	if r.owner != nil {
		return instanceSpec(r.owner.spec, r.owner.name, r.principal)
	}
	if r.runtime != nil {
		return r.runtime
	}
	return r.configured
}

// sameSpec reports whether a changed set of specs leaves a server alone. Scope, source and remark count too, because the status
// shows them.
func sameSpec(a, b *messages.Spec) bool {
	return a != nil && b != nil && a.Equal(*b) && a.Scope == b.Scope && a.Source == b.Source && a.Remark == b.Remark
}

// downEvent describes a failure to the restart policy. How long the connection was up decides whether the delay begins anew.
func downEvent(r *managedServer, class messages.Class, retryAfter time.Duration, now time.Time) restart.Down {
	d := restart.Down{Kind: r.spec.Kind(), Class: class, RetryAfter: retryAfter}
	if r.isUp {
		d.Connected = now.Sub(r.upSince)
	}
	return d
}
