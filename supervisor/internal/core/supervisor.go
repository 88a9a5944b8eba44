// Package core has the supervisor actor, which owns the set of servers: their specs by source, their restart records, the start gate,
// and one server actor each (package actors). It replaces actors that panicked, and ends everything when the manager closes.
//
//	shared := &core.Shared{Catalog: actors.NewCatalog(naming), Hub: actors.NewHub()}
//	supervisor, stopped := core.New(core.Options{Common: common, …}, shared)
//	// spawn it, send it AddServer, ServerCommand, SetServers …, at last CloseAll
//
// Guarantees: a server has at most one connection, whatever commands come; each command is replied to once, in the supervisor's
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
	"maps"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/actorsystem"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
	"github.com/mcpvisor/mcpvisor/transports/addresses"
	"github.com/mcpvisor/mcpvisor/transports/budget"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// Shared holds the values that the facade and the actors both use. Every field is safe for concurrent use.
type Shared struct {
	// cells has an entry from the moment a server is accepted until its removal has ended; only the supervisor actor writes it.
	cells sync.Map // server id → *actors.Cell
	// Catalog has the newest snapshot, Hub the watchers of events. The registry and the hub publish without a turn of the supervisor.
	Catalog *actors.Catalog
	Hub     *actors.Hub
	// Registry points to the registry actor of the moment: a successor takes its place after a panic.
	Registry actors.Ref
	// tickets numbers the commands and barriers whose end a caller may wait for. A server's View shows the newest ticket that it
	// has answered, so a waiter compares numbers and needs no channel of its own.
	tickets atomic.Uint64
}

// CellOf returns the published state of a server; nil if no server has that name, or its removal has ended.
func (s *Shared) CellOf(name string) *actors.Cell {
	if c, ok := s.cells.Load(name); ok {
		return c.(*actors.Cell)
	}
	return nil
}

// Names returns the ids of all servers, sorted.
func (s *Shared) Names() []string {
	var names []string
	s.cells.Range(func(k, _ any) bool {
		names = append(names, k.(string))
		return true
	})
	slices.Sort(names)
	return names
}

// NextTicket numbers a command or a barrier.
func (s *Shared) NextTicket() uint64 { return s.tickets.Add(1) }

// ShareOf returns the server's share of the memory budget. It is nil for a server that is not configured any more; a nil share
// counts nothing.
func (s *Shared) ShareOf(name string) *budget.Share {
	if c := s.CellOf(name); c != nil {
		return c.Share
	}
	return nil
}

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

	// servers has every server by name, also one whose removal has not ended: its name stays taken until the connection is closed.
	servers map[string]*managedServer
	byPID   map[string]*managedServer // by the id of the server's actor
	orphans map[string]*managedServer // by name: the actor has died, and its successor waits for spawnAt
	// gate bounds how many servers start at once. It is pure: this actor passes in the time and keeps its timer.
	gate    *restart.Gate
	epoch   uint64 // manager-wide: no two attempts and no two actors share a number
	spawned uint64 // numbers the names of children: no name is used a second time
	// panics keeps the reason of a child's panic, by the actor's id, from HandleFailure until Terminated arrives.
	panics map[string]string

	// timer is the one timer for starts and successors; timerAt is zero while it is not armed.
	timer   *time.Timer
	timerAt time.Time
	// wall is the time of the last reading of the clocks, wall and monotonic. ticker reads them again every 10 s: see checkClocks.
	wall   time.Time
	ticker *time.Timer

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
		gate: restart.NewGate(o.Limits), panics: map[string]string{}, stopped: make(chan struct{}),
	}
	if !s.ownRand {
		s.Rand = rand.Float64
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
		s.spawnRegistry(ctx)
		s.replaceConfigured(ctx, ConfigureServers{Specs: s.Configured})
		s.armClock()
	case *actor.Stopping:
		s.ending = true
		s.stopTimers()
	case *actor.Stopped:
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
	case clockDue:
		s.checkClocks(ctx)
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
	s.panics[child.Id] = fmt.Sprint(reason)
	s.log.Error("panic in an actor; it is replaced", zap.String("actor", child.Id), zap.Any("panic", reason),
		zap.String("message", fmt.Sprintf("%T", message)))
	sup.StopChildren(child)
}

// grantStarts starts the servers that the gate lets pass now, ends connections that must make room, and arms the timer for the
// next start. While the manager closes it does nothing.
func (s *supervisor) grantStarts(_ actor.Context) {
	if s.closing != nil {
		return
	}
	now := time.Now()
	// Every grant gets a new epoch: a message that arrives later with another one belongs to an attempt that is over.
	granted, wake := s.gate.Next(now)
	for _, name := range granted {
		r := s.servers[name]
		// The gate counts slots; that a server has at most one connection is checked here against the supervisor's own record.
		// A grant that cannot be used is given back at once.
		if r == nil || r.pid == nil || r.liveEpoch != 0 {
			s.gate.Closed(now, name)
			continue
		}
		s.epoch++
		r.liveEpoch, r.isUp = s.epoch, false
		s.root.Send(r.pid, lifecycle.Granted{Epoch: s.epoch})
	}
	// A process that does not answer may be ended so that another server can start. Its policy notes that it was displaced, so
	// that the next attempt is spared. A liveEpoch of 0 says that the connection has closed already.
	for _, name := range s.gate.Displace(now) {
		if r := s.servers[name]; r != nil && r.pid != nil && r.liveEpoch != 0 {
			r.policy = s.Restart.Displaced(r.policy)
			s.root.Send(r.pid, actors.Displace{Epoch: r.liveEpoch})
		}
	}
	// A successor does not pass the gate; the same timer serves it.
	for _, r := range s.orphans {
		if wake.IsZero() || r.spawnAt.Before(wake) {
			wake = r.spawnAt
		}
	}
	s.wakeAt(wake, now)
}

// wakeAt arms the timer for a time, unless it is armed for an earlier one. The timer that rings too early costs one message;
// a second timer would need an owner.
func (s *supervisor) wakeAt(at, now time.Time) {
	if at.IsZero() || !s.timerAt.IsZero() && !at.Before(s.timerAt) {
		return
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	// The function runs on a timer's goroutine, so it uses copies and only sends.
	s.timerAt = at
	root, self := s.root, s.self
	s.timer = time.AfterFunc(max(at.Sub(now), 0), func() { root.Send(self, timerDue{}) })
}

// stopTimers stops both timers. A clockDue that is in the mailbox already arms the ticker once more; the actor's own stop stops it
// again.
func (s *supervisor) stopTimers() {
	for _, t := range []*time.Timer{s.timer, s.ticker} {
		if t != nil {
			t.Stop()
		}
	}
}

// handleFromServer handles what a server's actor reports about its attempts: requests to start, answers, failures, the end.
func (s *supervisor) handleFromServer(ctx actor.Context, m actors.FromServer) {
	r := s.servers[m.Name]
	if r == nil || r.pid == nil || r.actorEpoch != m.ActorEpoch {
		return // a message of an actor that has ended
	}
	now := time.Now()
	switch e := m.Effect.(type) {
	case lifecycle.Ask:
		// A command of a person (Fresh) forgets the failures. A successor's first request is Fresh as well, and must keep them:
		// otherwise an actor that panics at once would be started again without any delay.
		if e.Fresh && !r.successor {
			r.policy = s.Restart.Cleared(r.policy)
		}
		r.successor = false
		// The request may have been sent before the grant arrived.
		if m.Attempt < r.liveEpoch {
			// A grant is on its way to the actor and answers this request as well. If the gate queued the request, it would grant it
			// as soon as that attempt ends, before the time that the policy chooses then.
			return
		}
		s.gate.Enqueue(now, s.startRequest(r, priorityOf(e.Urgency, r), now))
	case lifecycle.Unask:
		s.gate.Cancel(r.name)
	case lifecycle.Answer:
		s.gate.Answered(now, r.name)
	case lifecycle.Install:
		s.gate.Installing(now, r.name)
	case lifecycle.Up:
		r.policy = s.Restart.Connected(r.policy)
		r.isUp, r.upSince = true, now
	// An attempt has failed, or a connection has died, and everything that it held is released.
	case lifecycle.Report:
		s.scheduleRetry(r, e, now)
	case lifecycle.Decline:
		s.handleReleased(ctx, actors.AttemptReleased{Name: r.name, Epoch: e.Epoch})
	// The server's actor has nothing left to close; Terminated follows, and then finishRemoval.
	case lifecycle.Gone:
		ctx.Stop(r.pid)
	}
}

// priorityOf translates the urgency that a server's actor states. Without a special one the record decides: a server that was
// healthy before comes before one that never connected.
func priorityOf(u lifecycle.Urgency, r *managedServer) restart.Priority {
	switch {
	case u == lifecycle.Person:
		return restart.Urgent
	case u == lifecycle.Background:
		return restart.Probe
	}
	return r.policy.Priority()
}

// startRequest describes a start to the gate. A start that a person waits for may displace a silent process; a server that was
// itself displaced is spared, so that two servers do not displace each other in turn.
func (s *supervisor) startRequest(r *managedServer, p restart.Priority, notBefore time.Time) restart.Request {
	return restart.Request{
		Server: r.name, Kind: r.spec.Kind(), Origin: addresses.OriginOf(r.spec.URL), Priority: p, NotBefore: notBefore,
		Displaces: p == restart.Urgent || r.policy.Displaces(), Spared: r.policy.Displaced,
	}
}

// scheduleRetry decides what follows a failure, reports it to the server's actor (its status shows the time), and queues the
// start. Both use the same decision, so the status cannot promise another time than the gate keeps.
func (s *supervisor) scheduleRetry(r *managedServer, e lifecycle.Report, now time.Time) {
	// The policy is pure: the new record and the decision follow from the old record, the event, the time and one random draw.
	policy, decision := s.Restart.Down(r.policy, downEvent(r, e.Cause.Class, e.Cause.RetryAfter, now), now, s.Rand)
	r.policy, r.isUp = policy, false
	s.root.Send(r.pid, actors.Scheduled{
		Scheduled: lifecycle.Scheduled{Epoch: e.Epoch, Retry: decision.Retry, At: decision.At},
		Attempts:  policy.Attempts,
	})
	if decision.Retry != messages.RetryNever {
		s.gate.Enqueue(now, s.startRequest(r, policy.Priority(), decision.At))
	}
}

// handleReleased frees the slot and the epoch of an attempt whose resources are all closed. If the server's actor has died
// meanwhile, its successor may be spawned only now: before, two connections could exist at once.
func (s *supervisor) handleReleased(ctx actor.Context, m actors.AttemptReleased) {
	r := s.servers[m.Name]
	if r == nil || r.liveEpoch != m.Epoch {
		return
	}
	now := time.Now()
	r.liveEpoch = 0
	s.gate.Closed(now, r.name)
	if r.pid == nil {
		s.handleOrphan(ctx, r)
	}
}

// handleTerminated follows the end of a child: a removal that is complete, or a panic. The attempt of a dead actor is abandoned;
// its release arrives later as AttemptReleased and continues with handleOrphan.
func (s *supervisor) handleTerminated(ctx actor.Context, who *actor.PID) {
	if pid, _ := s.shared.Registry.PID(); pid != nil && pid.Id == who.Id {
		s.handleRegistryDeath(ctx)
		return
	}
	r := s.byPID[who.Id]
	if r == nil {
		return
	}
	delete(s.byPID, who.Id)
	r.pid = nil
	// The reason of the panic, if HandleFailure has stored one; a server that was stopped in order has none.
	r.reason = s.panics[who.Id]
	delete(s.panics, who.Id)
	// The session goroutines of a dead actor must end, or a successor would be the second connection of the server.
	r.holder.Abandon()
	s.gate.Cancel(r.name)
	if r.liveEpoch != 0 && r.holder.Epoch() != r.liveEpoch {
		// The actor ended with the grant unread in its mailbox: no attempt was made for this epoch, so no release will come.
		r.liveEpoch = 0
		s.gate.Closed(time.Now(), r.name)
	}
	if r.liveEpoch != 0 {
		// Abandon has ended the session and its calls. The actor cannot withdraw its tools any more, so the supervisor marks
		// them lost in its place; the highest Rev makes this newer than every change that the actor had sent.
		s.sendToRegistry(catalog.Change{Kind: catalog.Lose, Server: r.name, Epoch: r.liveEpoch, Rev: math.MaxUint64})
		return // handleReleased continues
	}
	s.handleOrphan(ctx, r)
}

// handleOrphan decides about a server that has neither an actor nor a connection: it finishes a removal, or gives the server a
// successor at the time that the restart policy chooses, and publishes a failed state until then.
func (s *supervisor) handleOrphan(ctx actor.Context, r *managedServer) {
	if r.removing || s.closing != nil {
		s.finishRemoval(ctx, r)
		return
	}
	now := time.Now()
	policy, decision := s.Restart.Down(r.policy, downEvent(r, messages.ClassPanic, 0, now), now, s.Rand)
	r.policy, r.isUp = policy, false
	r.spawnAt = decision.At
	// A class that is not retried has no time; an actor whose code panicked gets a successor all the same.
	if r.spawnAt.IsZero() {
		r.spawnAt = now
	}
	s.orphans[r.name] = r
	// There is no actor to publish a state, so the supervisor does. All tickets count as answered: callers that wait for a
	// command of the dead actor get the panic as its outcome.
	v := *r.cell.View()
	v.State = lifecycle.State{
		Wanted: r.wanted, Phase: messages.Failed, Epoch: v.State.Epoch, Retry: decision.Retry, NextAt: r.spawnAt,
		Cause:  &lifecycle.Cause{Class: messages.ClassPanic, Text: "a defect of mcpvisor ended its actor: " + messages.Line(r.reason, 200)},
		Ticket: s.shared.tickets.Load(), Answered: s.shared.tickets.Load(),
	}
	v.Session, v.Since, v.Attempts, v.Seen = nil, now, policy.Attempts, s.barrierSeen
	r.cell.History.Add(actors.Entry{Time: now, Epoch: v.State.Epoch, Phase: messages.Failed, Text: v.State.Cause.Text})
	if s.Common.PhaseChanged != nil {
		s.Common.PhaseChanged(&v, r.cell.View().State.Phase)
	}
	// Watchers learn of this state with the next event of the server; the cell has it now.
	r.cell.Publish(&v, nil)
}

// spawnDue spawns the successors whose time has come. The names are sorted because each spawn takes an epoch: a program that
// repeats its random draws gets the same epochs again.
func (s *supervisor) spawnDue(ctx actor.Context) {
	now := time.Now()
	for _, name := range slices.Sorted(maps.Keys(s.orphans)) {
		if r := s.orphans[name]; !r.spawnAt.After(now) {
			delete(s.orphans, name)
			r.successor = true
			s.spawnServer(ctx, r)
		}
	}
}

// spawnServer starts the actor of a server. A child's name is never used twice, because the actor library loses track of a name
// that comes back while its last bearer is still stopping.
//
// The actor's first ticket is the newest of all. Callers that wait for a command to this name, sent to an actor that has died or
// to an earlier server, therefore wait for this actor's first attempt.
func (s *supervisor) spawnServer(ctx actor.Context, r *managedServer) {
	ticket := s.shared.tickets.Load()
	r.blocked = s.blockingCause(r)
	init := lifecycle.Init{Enabled: r.wanted, Lazy: r.spec.Connect == messages.Lazy, Blocked: r.blocked, Ticket: ticket}
	// A lazy server whose tools are known from an earlier run offers them without a connection; a call wakes it.
	// A list of an earlier run counts only under the same spec and the same account: LoadToolList knows.
	var known *session.ToolList
	if init.Lazy {
		known = s.LoadToolList(r.name, r.spec)
		init.Cached = known != nil
	}
	// The list counts against the memory budget from now on, also while the server rests.
	r.cell.Share.Keep(0, known.Size())
	s.spawned++
	// The actor's messages before its first connection must be newer than its predecessor's last one.
	s.epoch++
	r.actorEpoch = s.epoch
	server := actors.NewServer(actors.ServerConfig{
		Name: r.name, Spec: r.spec, Init: init, Epoch: s.epoch, Seen: s.barrierSeen, Cell: r.cell, Holder: r.holder, Known: known,
		Rand: s.sessionRand(), Common: s.Common,
	})
	pid, err := ctx.SpawnNamed(s.propsOf(r.name, server), fmt.Sprintf("server-%d", s.spawned))
	// SpawnNamed fails only for a taken name, and this one was never used.
	if err != nil {
		panic(err)
	}
	r.pid = pid
	s.byPID[pid.Id] = r
}

// propsOf returns the props of a server's actor. The library makes an actor once, within SpawnNamed, because a child that
// panicked is never restarted in place. So all servers share one set, unless ActorOptions gives options by name.
func (s *supervisor) propsOf(name string, server *actors.Server) *actor.Props {
	if s.ActorOptions != nil {
		return actorsystem.PropsOf(s.ActorOptions, "server/"+name, func() actor.Actor { return server })
	}
	s.nextServer = server
	if s.props == nil {
		s.props = actorsystem.PropsOf(s.ActorOptions, "", func() actor.Actor { return s.nextServer })
	}
	return s.props
}

// blockingCause returns why a spec cannot be tried at all; nil if it can. The server then stands as failed and is not retried.
func (s *supervisor) blockingCause(r *managedServer) *lifecycle.Cause {
	switch {
	case r.spec.Invalid != "":
		return &lifecycle.Cause{Class: messages.ClassConfig, Text: r.spec.Invalid}
	case r.spec.Hold != "":
		return &lifecycle.Cause{Class: messages.ClassDenied, Text: r.spec.Hold}
	}
	return s.unusableCause(r.name, *r.spec)
}

// unusableCause returns why a spec is not started, from whichever source it comes: it cannot work, or a policy refuses it.
func (s *supervisor) unusableCause(name string, spec messages.Spec) *lifecycle.Cause {
	if text := s.Specs.SpecProblem(name, spec); text != "" {
		return &lifecycle.Cause{Class: messages.ClassConfig, Text: text}
	}
	if rule := s.Specs.RefusingRule(spec); rule != "" {
		return &lifecycle.Cause{Class: messages.ClassDenied, Text: rule}
	}
	return nil
}

// sendToRegistry sends to the registry of the moment. A message to one that has just died is lost; its successor is sent
// everything again by spawnRegistry.
func (s *supervisor) sendToRegistry(m any) {
	pid, _ := s.shared.Registry.PID()
	s.root.Send(pid, m)
}

// spawnRegistry starts the registry, or the successor of one that panicked.
func (s *supervisor) spawnRegistry(ctx actor.Context) {
	s.spawned++
	s.registryDead = false
	// The catalog itself outlives the actor, so readers never see it empty.
	cfg := actors.RegistryConfig{Catalog: s.shared.Catalog, Hub: s.shared.Hub, WithdrawAfter: s.WithdrawAfter}
	pid, err := ctx.SpawnNamed(actorsystem.PropsOf(s.ActorOptions, "registry", func() actor.Actor { return actors.NewRegistry(cfg) }),
		fmt.Sprintf("registry-%d", s.spawned))
	if err != nil {
		panic(err)
	}
	s.shared.Registry.Set(pid)
	if s.registryDeaths == 0 {
		return
	}
	// The successor continues the published snapshot. The changes in its predecessor's mailbox are lost, so every server
	// announces its tools again, and servers that are gone are forgotten again.
	for _, r := range s.servers {
		if r.pid != nil {
			ctx.Send(r.pid, lifecycle.Announce{})
		}
	}
	for _, name := range s.shared.Catalog.Snapshot().Remembered() {
		if s.servers[name] == nil {
			ctx.Send(pid, catalog.Change{Kind: catalog.Forget, Server: name})
		}
	}
	// The Sync that Close waits for may have been in the lost mailbox.
	s.finishClose(ctx)
}

// handleRegistryDeath replaces the registry: at once for the first three times, afterwards after a second each.
func (s *supervisor) handleRegistryDeath(ctx actor.Context) {
	if s.ending {
		return
	}
	s.registryDeaths++
	if s.registryDeaths <= 3 {
		s.spawnRegistry(ctx)
		return
	}
	// A registry that panics on some change would otherwise be respawned in a busy loop.
	s.registryDead = true
	s.wakeAt(time.Now().Add(time.Second), time.Now())
}

// finishRemoval drops a server whose connection is closed, and then runs the commands that waited for its name. The name is
// free from here on.
func (s *supervisor) finishRemoval(ctx actor.Context, r *managedServer) {
	delete(s.servers, r.name)
	// Nothing of the server may survive under its name: a server that is added again starts afresh.
	s.Credentials.DropCredential(r.name)
	s.gate.Cancel(r.name)
	s.shared.cells.Delete(r.name)
	r.cell.Share.Close()
	// Callers that still wait for this server see Removing and return, also if its actor died before it could publish that.
	v := *r.cell.View()
	v.State = lifecycle.State{Removing: true, Phase: messages.Disabled, Epoch: v.State.Epoch}
	v.Session = nil
	r.cell.Publish(&v, nil)
	s.sendToRegistry(catalog.Change{Kind: catalog.Forget, Server: r.name})
	s.shared.Hub.Publish(messages.Event{Kind: messages.EventRemoved, Server: r.name})
	if r.waitingSpec != nil {
		s.configureOne(ctx, r.name, r.waitingSpec)
	}
	for _, add := range r.waitingCommands {
		add(ctx)
	}
	s.finishClose(ctx)
}

// checkClocks notices that the machine has slept: the wall clock ran on while the monotonic one stood still, by more than 5 s.
// Waiting servers are then tried again soon, spread over a few seconds, and remote connections are probed.
func (s *supervisor) checkClocks(ctx actor.Context) {
	now := time.Now()
	// Round(0) drops the monotonic reading, so the first difference is by the wall clock and the second by the monotonic one.
	slept := now.Round(0).Sub(s.wall.Round(0)) - now.Sub(s.wall)
	if !s.wall.IsZero() && slept > 5*time.Second {
		s.log.Info("the machine has slept", zap.Duration("for", slept))
		s.handleWoken(ctx)
	}
	s.armClock()
}

// handleWoken brings forward the starts that wait for a time. No start moves to a later time, and a server that sent a
// Retry-After keeps it.
func (s *supervisor) handleWoken(ctx actor.Context) {
	now := time.Now()
	for _, name := range slices.Sorted(maps.Keys(s.servers)) {
		r := s.servers[name]
		if r.pid == nil {
			continue
		}
		ctx.Send(r.pid, actors.ProbeNow{})
		st := r.cell.View().State
		// A server that waits for nothing, or whose own Retry-After has not passed, is left alone.
		if !st.StartRequested || st.NextAt.IsZero() || st.Cause != nil && st.Cause.RetryAfter > 0 {
			continue
		}
		if at := s.Restart.Woken(now, s.Rand); at.Before(st.NextAt) {
			s.gate.Enqueue(now, s.startRequest(r, restart.Healthy, at))
		}
	}
}

// armClock notes both clocks and reads them again in 10 s: that is how late a sleep is noticed at most.
func (s *supervisor) armClock() {
	s.wall = time.Now()
	root, self := s.root, s.self
	s.ticker = time.AfterFunc(10*time.Second, func() { root.Send(self, clockDue{}) })
}
