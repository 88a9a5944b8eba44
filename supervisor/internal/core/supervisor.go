// Package core has the supervisor actor, which owns the set of servers: their specs by source, their restart records, the start gate,
// and one server actor each (package actors). It replaces actors that panicked, and ends everything when the manager closes.
//
//	shared := &core.Shared{Catalog: actors.NewCatalog(naming), Hub: actors.NewHub()}
//	supervisor, stopped := core.New(core.Options{Common: common, …}, shared)
//	// spawn it, send it AddServer, ServerCommand, SetServers …, at last CloseAll
//
// Guarantees: a server, and each instance of one, has at most one connection, whatever commands come; each command is replied to once, in the supervisor's
// turn; a server whose actor panicked gets a successor only when the old connection is closed; a start happens when the restart
// policy and the gate allow it, and at no other time; CloseAll is replied to when no server is left.
//
// Not promised: that a command whose sender has stopped waiting does not take effect.
//
// # How it fits
//
//	facade, entry actor ── commands ──▶ supervisor actor ──▶ one server actor each ──▶ registry actor
//	        │                                 │ restart policy, start gate                   │
//	        └────────── reads ──▶ Shared: cells, catalog, hub ◀──────────────────────────────┘
//
// Package supervisor sends the commands and reads Shared without asking an actor. What the supervisor must know of credentials,
// policies and kept lists, it asks through the functions of Options.
package core

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/actorsystem"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
	"github.com/mcpvisor/mcpvisor/transports/budget"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// supervisor is the actor at the root of the tree. It owns the set of servers, the restart timing and the start gate, and it
// replaces children whose code has panicked. All fields belong to the actor: only Receive and what it calls touch them, so they
// need no lock.
type supervisor struct {
	Options
	// ownRand says that the program gave rand.
	ownRand bool
	// props is shared by the actors of all servers, and nextServer is the actor that it produces next: see propsOf.
	props      *actor.Props
	nextServer *actors.Server
	shared     *Shared
	log        *zap.Logger
	root       *actor.RootContext
	self       *actor.PID
	// address has both for wakeForGate, which runs in another supervisor's turn; nil before the start.
	address atomic.Pointer[actorAddress]

	// servers has every server by name, also one whose removal has not ended: its name stays taken until the connection is closed.
	servers map[string]*managedServer
	byPID   map[string]*managedServer // by the id of the server's actor
	orphans map[string]*managedServer // by name: the actor has died, and its successor waits for spawnAt
	// gate bounds how many servers start at once: this actor passes in the time and keeps its timer. retireGate is called when this
	// actor starts nothing more, leaveGate when everything that it has started is gone; both matter to a shared gate only.
	gate                  startGate
	retireGate, leaveGate func()
	epoch                 uint64 // manager-wide: no two attempts and no two actors share a number
	spawned               uint64 // numbers the names of children: no name is used a second time
	// panics keeps the reason of a child's panic, by the actor's id, from HandleFailure until Terminated arrives.
	panics map[string]string

	// timer is the one timer for starts and successors; timerAt is zero while it is not armed.
	timer   *time.Timer
	timerAt time.Time
	// wall is the time of the last reading of the clocks, wall and monotonic. ticker reads them again every 10 s: see checkClocks.
	wall   time.Time
	ticker *time.Timer

	// instanceTimer rings when the next instance may have been idle for long enough; instancesAt is zero while it is not armed.
	instanceTimer *time.Timer
	instancesAt   time.Time

	// registryDeaths counts the panics of the registry since the start; above 3 its successor waits a second.
	registryDeaths int
	registryDead   bool
	barrierSeen    uint64        // the newest ticket of a barrier that was handled; a new actor starts with it
	closing        *CloseAll     // set by the first Close; from then on commands and grants are refused
	ending         bool          // the supervisor's own actor stops: no successor may be spawned
	stopped        chan struct{} // closed when the actor has ended
}

// Options holds the configuration that the supervisor actor works with.
type Options struct {
	// Configured are the servers of the start.
	Configured map[string]messages.Spec
	// Common is given to every server actor; it is not changed after the first one was spawned. What is not configured (the audit
	// log, the lists kept on disk) leaves its hook nil, so that the actors do no work for it.
	Common *actors.Common
	// Restart says when failed servers are tried again, Limits how many servers may start at once.
	Restart restart.Policy
	Limits  restart.Limits
	// SharedGate, if not nil, is the gate in the place of one of Limits.
	SharedGate *restart.SharedGate
	// WithdrawAfter is the time for which the tools of a lost connection stay in the catalog.
	WithdrawAfter time.Duration
	// Rand draws the jitter; nil uses the runtime's generator.
	Rand func() float64
	// ActorOptions gives further options of an actor by its name; nil for none.
	ActorOptions func(actorName string) []actor.PropsOption

	// Specs decides which specs may be tried, Credentials knows the secrets of servers, Budget counts their memory.
	Specs       SpecChecker
	Credentials SecretKeeper
	Budget      *budget.Budget
	// LoadToolList returns the tools that a lazy server had in an earlier run, nil if they are not known. It is called in the
	// supervisor's turn.
	LoadToolList func(name string, spec *messages.Spec) *session.ToolList
	// Removed, if not nil, is called in the supervisor's turn when a server is gone, for what is remembered under its name elsewhere.
	Removed func(server string)
}

// SpecChecker decides whether a spec may be tried, whatever its source.
type SpecChecker interface {
	// SpecProblem returns why a spec cannot work, and RefusingRule the policy that refuses it; empty if it can be tried.
	SpecProblem(name string, spec messages.Spec) string
	RefusingRule(spec messages.Spec) string
	// SetManaged replaces the policies of the organisation.
	SetManaged(policies []config.Policy)
}

// SecretKeeper has the credentials of servers.
type SecretKeeper interface {
	// SecretsOf returns the secret values that a server's requests carried.
	SecretsOf(server string) []string
	// DropCredential forgets the credential of a server that is gone.
	DropCredential(server string)
}

// startGate is the gate of this supervisor alone, or this supervisor as an owner of a shared one.
type startGate interface {
	Enqueue(now time.Time, r restart.Request)
	Cancel(server string)
	Answered(now time.Time, server string)
	Closed(now time.Time, server string)
	Installing(now time.Time, server string)
	Waited(now time.Time, server string, ran, waited time.Duration)
	Next(now time.Time) (granted []string, wake time.Time)
	Displace(now time.Time) (servers []string)
}

// actorAddress is where messages to the supervisor's actor go.
type actorAddress struct {
	root *actor.RootContext
	self *actor.PID
}

// wakeForGate makes the actor look at a shared gate, because another one has changed it.
func (s *supervisor) wakeForGate() {
	if a := s.address.Load(); a != nil {
		a.root.Send(a.self, gateChanged{})
	}
}

// New makes the supervisor's actor. stopped is closed when it has ended.
func New(o Options, sh *Shared) (supervisor actor.Actor, stopped <-chan struct{}) {
	s := newSupervisor(o, sh)
	return s, s.stopped
}

// newSupervisor makes the supervisor without an actor system, in which it is still alone: tests fill it before it runs.
func newSupervisor(o Options, sh *Shared) *supervisor {
	s := &supervisor{
		Options: o, ownRand: o.Rand != nil, shared: sh, log: o.Common.Log,
		servers: map[string]*managedServer{}, byPID: map[string]*managedServer{}, orphans: map[string]*managedServer{},
		retireGate: func() {}, leaveGate: func() {}, panics: map[string]string{}, stopped: make(chan struct{}),
	}
	if o.SharedGate == nil {
		s.gate = restart.NewGate(o.Limits)
	} else {
		owner := o.SharedGate.Join(s.wakeForGate)
		s.gate, s.retireGate, s.leaveGate = owner, owner.Retire, owner.Leave
	}
	s.Rand = rand.Float64
	if s.ownRand {
		s.Rand = checkedRand(o.Rand)
	}
	return s
}

// Receive implements actor.Actor. A panic here would make the actor library restart the supervisor with an empty memory, and the
// servers would be lost with their processes running. So the panic is caught: the one message is lost and logged, and the
// servers continue.
//
// Every message ends with grantStarts, because nearly each of them may free a slot of the gate or queue a request.
func (s *supervisor) Receive(ctx actor.Context) {
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("panic in the supervisor; the message that caused it is lost",
				zap.Any("panic", r), zap.String("message", fmt.Sprintf("%T", ctx.Message())), zap.ByteString("stack", debug.Stack()))
		}
	}()
	switch m := ctx.Message().(type) {
	// The registry comes first: servers announce their tools to it as soon as they connect.
	case *actor.Started:
		s.root, s.self = ctx.ActorSystem().Root, ctx.Self()
		s.address.Store(&actorAddress{s.root, s.self})
		s.spawnRegistry(ctx)
		s.replaceConfigured(ctx, ConfigureServers{Specs: s.Configured})
		s.armClock()
	case *actor.Stopping:
		s.ending = true
		s.stopTimers()
	case *actor.Stopped:
		s.leaveGate()
		close(s.stopped)
		return
	case *actor.Terminated:
		s.handleTerminated(ctx, m.Who)
	case actors.FromServer:
		s.handleFromServer(ctx, m)
	// How long starting processes wait for a processor narrows or widens the gate.
	case actors.CPUTimeMeasured:
		// A late measurement of an earlier attempt must not be charged to the one that runs now.
		if r := s.servers[m.Name]; r != nil && r.liveEpoch == m.Epoch {
			s.gate.Waited(time.Now(), m.Name, m.Ran, m.Waited)
		}
	case actors.AttemptReleased:
		s.handleReleased(ctx, m)
	case AddServer:
		s.handleAdd(ctx, m)
	case RemoveServer:
		s.handleRemove(ctx, m)
	case ServerCommand:
		s.handleCommand(ctx, m)
	case SetServers:
		s.handleSetServers(ctx, m)
	case ConfigureServers:
		m.Reply(s.replaceConfigured(ctx, m))
	// The supervisor has handled everything before the barrier when it gets here. Each server's actor gets the ticket behind
	// the messages that it was sent before, and shows it in View.Seen when it has handled those.
	case Barrier:
		s.barrierSeen = s.shared.NextTicket()
		for _, r := range s.servers {
			if r.pid != nil {
				ctx.Send(r.pid, actors.Barrier{Ticket: s.barrierSeen})
			}
		}
		m.Reply(s.barrierSeen)
	case RefilterAll:
		for _, r := range s.servers {
			if r.pid != nil {
				ctx.Send(r.pid, actors.RefilterTools{})
			}
		}
	case CloseAll:
		s.closeServers(ctx, m)
	// timerAt is cleared before anything is decided, so that wakeAt may arm the timer again.
	case timerDue:
		s.timerAt = time.Time{}
		if s.registryDead && !s.ending {
			s.spawnRegistry(ctx)
		}
		s.spawnDue(ctx)
	case gateChanged: // grantStarts, which follows every message, looks at it
	case clockDue:
		s.checkClocks(ctx)
	case StartInstance:
		s.handleStartInstance(ctx, m)
	case instancesDue:
		s.endIdleInstances(ctx)
	case SleepNoticed:
		s.handleWoken(ctx)
	default:
		return
	}
	s.grantStarts(ctx)
}

// HandleFailure implements actor.SupervisorStrategy. It runs in the supervisor's own turn. A child that panicked is never
// restarted in place, because its state may be broken in any way: it is stopped, and handleTerminated brings its successor,
// which begins with what the supervisor keeps.
func (s *supervisor) HandleFailure(_ *actor.ActorSystem, sup actor.Supervisor, child *actor.PID,
	_ *actor.RestartStatistics, reason, message any) {
	what, fix := "a defect of mcpvisor", ""
	if own, ok := reason.(actorsystem.ProgramPanic); ok {
		what, fix, reason = "a middleware of the program (Config.ActorOptions)", "; mend it, or give this server's actor none", own.Reason
	}
	text := what + " ended its actor: " + messages.Line(fmt.Sprint(reason), 200) + fix
	s.panics[child.Id] = text
	s.log.Error("panic in an actor; it is replaced", zap.String("actor", child.Id), zap.Any("panic", reason),
		zap.String("message", fmt.Sprintf("%T", message)))
	sup.StopChildren(child)
}
