package core

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"runtime/debug"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/actorsystem"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// This file has how the actor of a server begins, how a panicked one gets a successor, and how a removed one is forgotten.

// handleTerminated follows the end of a child: a removal that is complete, or a panic. The attempt of a dead actor is abandoned;
// its release arrives later as AttemptReleased and continues with handleOrphan.
func (s *supervisor) handleTerminated(ctx actor.Context, who *actor.PID) {
	// The reason of the panic, if HandleFailure has stored one; an actor that was stopped in order has none.
	reason := s.panics[who.Id]
	delete(s.panics, who.Id)
	if pid, _ := s.shared.Registry.PID(); pid != nil && pid.Id == who.Id {
		s.handleRegistryDeath(ctx)
		return
	}
	r := s.byPID[who.Id]
	if r == nil {
		return
	}
	delete(s.byPID, who.Id)
	r.pid, r.reason = nil, reason
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
		Cause:  &lifecycle.Cause{Class: messages.ClassPanic, Text: cmp.Or(r.reason, "its actor ended")},
		Ticket: s.shared.tickets.Load(), Answered: s.shared.tickets.Load(),
	}
	v.Session, v.Since, v.Attempts, v.Seen = nil, now, policy.Attempts, s.barrierSeen
	r.cell.History.Add(actors.Entry{Time: now, Epoch: v.State.Epoch, Phase: messages.Failed, Text: v.State.Cause.Text})
	if s.Common.PhaseChanged != nil {
		s.Common.PhaseChanged(&v, r.cell.View().State.Phase)
	}
	// A parked server's next event may be minutes away, and until then watchers would take it for what it was.
	r.cell.Publish(&v, func() {
		if s.shared.Hub.Watched() {
			st := v.Status()
			s.shared.Hub.Publish(messages.Event{Kind: messages.EventPhase, Server: r.name, Status: &st})
		}
	})
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
	pid := s.spawnNamed(ctx, r.name, server)
	r.pid = pid
	s.byPID[pid.Id] = r
}

// spawnNamed spawns the actor of a server. An option of the program that panics when it is used (Config.ActorOptions: OnInit, a mailbox, a
// spawner) would cost every server that comes after this one: the actor is made without its options then.
func (s *supervisor) spawnNamed(ctx actor.Context, name string, server *actors.Server) (pid *actor.PID) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		s.log.Error("an option of Config.ActorOptions panicked: the actor is made without its options", zap.String("actor", "server/"+name),
			zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
		s.spawned++
		pid = mustSpawn(ctx, actorsystem.PropsOf(nil, "", func() actor.Actor { return server }), s.spawned)
	}()
	return mustSpawn(ctx, s.propsOf(name, server), s.spawned)
}

// mustSpawn spawns the actor of a server by its number. That fails only for a name that is taken, and this one was never used.
func mustSpawn(ctx actor.Context, props *actor.Props, number uint64) *actor.PID {
	pid, err := ctx.SpawnNamed(props, fmt.Sprintf("server-%d", number))
	if err != nil {
		panic(err)
	}
	return pid
}

// propsOf returns the props of a server's actor. The library makes an actor once, within SpawnNamed, because a child that
// panicked is never restarted in place. So all servers share one set, unless ActorOptions gives options by name.
func (s *supervisor) propsOf(name string, server *actors.Server) *actor.Props {
	if s.ActorOptions != nil {
		return actorsystem.ServerPropsOf(s.ActorOptions, "server/"+name, func() actor.Actor { return server })
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

// finishRemoval drops a server whose connection is closed, and then runs the commands that waited for its name. The name is
// free from here on.
func (s *supervisor) finishRemoval(ctx actor.Context, r *managedServer) {
	delete(s.servers, r.name)
	// Nothing of the server may survive under its name: a server that is added again starts afresh.
	s.Credentials.DropCredential(r.name)
	if s.Removed != nil {
		s.Removed(r.name)
	}
	s.gate.Cancel(r.name)
	if r.owner != nil {
		s.shared.instances.Delete(r.name)
		r.owner.cell.Instances.Drop(r.cell)
		delete(r.owner.instances, r.principal)
	} else {
		s.shared.cells.Delete(r.name)
	}
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
	for _, w := range r.waitingCommands {
		w.run(ctx)
	}
	s.finishClose(ctx)
}
