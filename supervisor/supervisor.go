package supervisor

import (
	"fmt"
	"maps"
	"math"
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
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/budget"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// sharedState is what the facade and the actors both hold. Every part of it is safe for concurrent use.
type sharedState struct {
	cells    sync.Map // server id → *actors.Cell
	catalog  *actors.Catalog
	hub      *actors.Hub
	registry actors.Ref
	// tickets numbers everything that somebody may wait for.
	tickets atomic.Uint64
}

func (s *sharedState) cellOf(name string) *actors.Cell {
	if c, ok := s.cells.Load(name); ok {
		return c.(*actors.Cell)
	}
	return nil
}

// shareOf is what a server may hold; nil for one that is not configured any more, which holds nothing.
func (s *sharedState) shareOf(name string) *budget.Share {
	if c := s.cellOf(name); c != nil {
		return c.Share
	}
	return nil
}

// supervisor is the actor at the root of the tree: it owns the set of servers, the restart timing and the start gate, and
// replaces children whose code has panicked.
type supervisor struct {
	cfg        *Config
	common     *actors.Common
	props      *actor.Props   // see propsOf
	nextServer *actors.Server // which actor props make
	shared     *sharedState
	log        *zap.Logger
	root       *actor.RootContext
	self       *actor.PID

	servers map[string]*managedServer
	byPID   map[string]*managedServer // by the actor's id
	orphans map[string]*managedServer // those that wait for a successor of their actor
	gate    *restart.Gate
	epoch   uint64 // manager-wide: no two lives share one
	spawned uint64 // numbers the names of children: a name is never used twice
	panics  map[string]string

	timer   *time.Timer
	timerAt time.Time
	wall    time.Time // wall and monotonic clock of the last look, to notice sleep
	ticker  *time.Timer

	registryDeaths int
	registryDead   bool
	barrierSeen    uint64 // the newest ticket of a look
	closing        *closeAll
	ending         bool          // the actor itself stops
	stopped        chan struct{} // closed when the actor has ended
}

func newSupervisor(cfg *Config, sh *sharedState, audit *auditor) *supervisor {
	common := &actors.Common{
		Hub: sh.hub, Registry: &sh.registry, Timing: cfg.Timing, Log: cfg.Logger,
		MaxInFlight: cfg.MaxInFlight, MaxQueued: cfg.MaxQueued,
		Session:  session.Config{ClientName: cfg.ClientName, ClientVersion: cfg.ClientVersion},
		Handlers: cfg.requestHandler.handlersFor, AwaitCredentials: cfg.awaitCredentials, Filter: cfg.permissions.filterTools,
		Prepare: cfg.permissions.prepareTools,
	}
	common.Open = func(name string, spec *Spec) (transports.Transport, error) {
		return cfg.openTransport(name, spec, sh.shareOf(name))
	}
	if audit != nil {
		common.PhaseChanged = audit.recordPhase
	}
	if cfg.lists != nil {
		common.Remember = cfg.saveToolList
	}
	return &supervisor{
		common: common,
		cfg:    cfg, shared: sh, log: cfg.Logger, servers: map[string]*managedServer{}, byPID: map[string]*managedServer{},
		orphans: map[string]*managedServer{},
		gate:    restart.NewGate(cfg.Gate), panics: map[string]string{}, stopped: make(chan struct{}),
	}
}

// Receive implements actor.Actor. A panic here would make the actor library restart the supervisor with an empty memory,
// so it is caught: the one message is lost and told, the servers go on.
func (s *supervisor) Receive(ctx actor.Context) {
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("panic in the supervisor; the message that caused it is lost",
				zap.Any("panic", r), zap.String("message", fmt.Sprintf("%T", ctx.Message())), zap.ByteString("stack", debug.Stack()))
		}
	}()
	switch m := ctx.Message().(type) {
	case *actor.Started:
		s.root, s.self = ctx.ActorSystem().Root, ctx.Self()
		s.spawnRegistry(ctx)
		s.replaceConfigured(ctx, configureServers{specs: s.cfg.Servers})
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
	case actors.CPUTimeMeasured:
		if r := s.servers[m.Name]; r != nil && r.liveEpoch == m.Epoch {
			s.gate.Waited(time.Now(), m.Name, m.Ran, m.Waited)
		}
	case actors.AttemptReleased:
		s.handleReleased(ctx, m)
	case addServer:
		s.handleAdd(ctx, m)
	case removeServer:
		s.handleRemove(ctx, m)
	case serverCommand:
		s.handleCommand(ctx, m)
	case setServers:
		s.handleSetServers(ctx, m)
	case configureServers:
		m.reply(s.replaceConfigured(ctx, m))
	case barrier:
		s.barrierSeen = m.ticket
		for _, r := range s.servers {
			if r.pid != nil {
				ctx.Send(r.pid, actors.Barrier{Ticket: m.ticket})
			}
		}
		m.reply()
	case refilterAll:
		for _, r := range s.servers {
			if r.pid != nil {
				ctx.Send(r.pid, actors.RefilterTools{})
			}
		}
	case closeAll:
		s.closeServers(ctx, m)
	case timerDue:
		s.timerAt = time.Time{}
		if s.registryDead && !s.ending {
			s.spawnRegistry(ctx)
		}
		s.spawnDue(ctx)
	case clockDue:
		s.checkClocks(ctx)
	case sleepNoticed:
		s.handleWoken(ctx)
	default:
		return
	}
	s.grantStarts(ctx)
}

// HandleFailure implements actor.SupervisorStrategy. It runs in the supervisor's own turn. A child that panicked is
// never restarted in place: it is stopped, and Terminated brings its successor.
func (s *supervisor) HandleFailure(_ *actor.ActorSystem, sup actor.Supervisor, child *actor.PID,
	_ *actor.RestartStatistics, reason, message any) {
	s.panics[child.Id] = fmt.Sprint(reason)
	s.log.Error("panic in an actor; it is replaced", zap.String("actor", child.Id), zap.Any("panic", reason),
		zap.String("message", fmt.Sprintf("%T", message)))
	sup.StopChildren(child)
}

// grantStarts grants what may start now and arms the one timer for what comes next.
func (s *supervisor) grantStarts(_ actor.Context) {
	if s.closing != nil {
		return
	}
	now := time.Now()
	granted, wake := s.gate.Next(now)
	for _, name := range granted {
		r := s.servers[name]
		if r == nil || r.pid == nil || r.liveEpoch != 0 { // never two connections, whatever the gate believes
			s.gate.Closed(now, name)
			continue
		}
		s.epoch++
		r.liveEpoch, r.isUp = s.epoch, false
		s.root.Send(r.pid, lifecycle.Granted{Epoch: s.epoch})
	}
	for _, name := range s.gate.Displace(now) {
		if r := s.servers[name]; r != nil && r.pid != nil && r.liveEpoch != 0 { // otherwise its end is under way
			r.policy = s.cfg.Restart.Displaced(r.policy)
			s.root.Send(r.pid, actors.Displace{Epoch: r.liveEpoch})
		}
	}
	for _, r := range s.orphans {
		if wake.IsZero() || r.spawnAt.Before(wake) {
			wake = r.spawnAt
		}
	}
	s.wakeAt(wake, now)
}

func (s *supervisor) wakeAt(at, now time.Time) {
	if at.IsZero() || !s.timerAt.IsZero() && !at.Before(s.timerAt) {
		return
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.timerAt = at
	root, self := s.root, s.self
	s.timer = time.AfterFunc(max(at.Sub(now), 0), func() { root.Send(self, timerDue{}) })
}

func (s *supervisor) stopTimers() {
	for _, t := range []*time.Timer{s.timer, s.ticker} {
		if t != nil {
			t.Stop()
		}
	}
}

// handleFromServer handles what a server's actor says about starting.
func (s *supervisor) handleFromServer(ctx actor.Context, m actors.FromServer) {
	r := s.servers[m.Name]
	if r == nil || r.pid == nil || r.actorEpoch != m.ActorEpoch {
		return // the last words of an actor that has ended
	}
	now := time.Now()
	switch e := m.Effect.(type) {
	case lifecycle.Ask:
		if e.Fresh && !r.successor {
			r.policy = s.cfg.Restart.Cleared(r.policy)
		}
		r.successor = false
		if m.Attempt < r.liveEpoch {
			// A grant is on its way to it, which answers this request as well. Left with the gate it would be granted as soon
			// as that attempt ends, before the time that the policy chooses then.
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
		r.policy = s.cfg.Restart.Connected(r.policy)
		r.isUp, r.upSince = true, now
	case lifecycle.Report:
		s.scheduleRetry(r, e, now)
	case lifecycle.Decline:
		s.handleReleased(ctx, actors.AttemptReleased{Name: r.name, Epoch: e.Epoch})
	case lifecycle.Gone:
		ctx.Stop(r.pid)
	}
}

func priorityOf(u lifecycle.Urgency, r *managedServer) restart.Priority {
	switch {
	case u == lifecycle.Person:
		return restart.Urgent
	case u == lifecycle.Background:
		return restart.Probe
	}
	return r.policy.Priority()
}

func (s *supervisor) startRequest(r *managedServer, p restart.Priority, notBefore time.Time) restart.Request {
	return restart.Request{
		Server: r.name, Kind: r.spec.Kind(), Origin: originOf(r.spec), Priority: p, NotBefore: notBefore,
		Displaces: p == restart.Urgent || r.policy.Displaces(), Spared: r.policy.Displaced,
	}
}

// scheduleRetry decides what follows a failure, tells the server, and queues the start.
func (s *supervisor) scheduleRetry(r *managedServer, e lifecycle.Report, now time.Time) {
	policy, decision := s.cfg.Restart.Down(r.policy, downEvent(r, e.Cause.Class, e.Cause.RetryAfter, now), now, s.cfg.Rand)
	r.policy, r.isUp = policy, false
	s.root.Send(r.pid, actors.Scheduled{
		Scheduled: lifecycle.Scheduled{Epoch: e.Epoch, Retry: decision.Retry, At: decision.At},
		Attempts:  policy.Attempts,
	})
	if decision.Retry != messages.RetryNever {
		s.gate.Enqueue(now, s.startRequest(r, policy.Priority(), decision.At))
	}
}

// handleReleased frees what an epoch occupied. A server whose actor has died gets its successor only now.
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

// handleTerminated follows the end of a child: a removal that is complete, or a panic.
func (s *supervisor) handleTerminated(ctx actor.Context, who *actor.PID) {
	if pid, _ := s.shared.registry.PID(); pid != nil && pid.Id == who.Id {
		s.handleRegistryDeath(ctx)
		return
	}
	r := s.byPID[who.Id]
	if r == nil {
		return
	}
	delete(s.byPID, who.Id)
	r.pid = nil
	r.reason = s.panics[who.Id]
	delete(s.panics, who.Id)
	r.holder.Abandon()
	s.gate.Cancel(r.name)
	if r.liveEpoch != 0 && r.holder.Epoch() != r.liveEpoch {
		// It ended with the grant still in its mailbox: nobody will release what nobody opened.
		r.liveEpoch = 0
		s.gate.Closed(time.Now(), r.name)
	}
	if r.liveEpoch != 0 {
		// Its calls have ended with its session; its tools must not be seen as live.
		s.sendToRegistry(catalog.Change{Kind: catalog.Lose, Server: r.name, Epoch: r.liveEpoch, Rev: math.MaxUint64})
		return // Released goes on from here
	}
	s.handleOrphan(ctx, r)
}

// handleOrphan decides about a record that has neither an actor nor a connection.
func (s *supervisor) handleOrphan(ctx actor.Context, r *managedServer) {
	if r.removing || s.closing != nil {
		s.finishRemoval(ctx, r)
		return
	}
	now := time.Now()
	policy, decision := s.cfg.Restart.Down(r.policy, downEvent(r, messages.ClassPanic, 0, now), now, s.cfg.Rand)
	r.policy, r.isUp = policy, false
	r.spawnAt = decision.At
	if r.spawnAt.IsZero() {
		r.spawnAt = now
	}
	s.orphans[r.name] = r
	v := *r.cell.View()
	v.State = lifecycle.State{
		Wanted: r.wanted, Phase: messages.Failed, Epoch: v.State.Epoch, Retry: decision.Retry, NextAt: r.spawnAt,
		Cause:  &lifecycle.Cause{Class: messages.ClassPanic, Text: "a defect of mcpvisor ended its actor: " + messages.Line(r.reason, 200)},
		Ticket: s.shared.tickets.Load(), Answered: s.shared.tickets.Load(),
	}
	v.Session, v.Since, v.Attempts, v.Seen = nil, now, policy.Attempts, s.barrierSeen
	r.cell.History.Add(actors.Entry{Time: now, Epoch: v.State.Epoch, Phase: messages.Failed, Text: v.State.Cause.Text})
	if s.common.PhaseChanged != nil {
		s.common.PhaseChanged(&v, r.cell.View().State.Phase)
	}
	r.cell.Publish(&v, nil)
}

func (s *supervisor) spawnDue(ctx actor.Context) {
	now := time.Now()
	for _, name := range slices.Sorted(maps.Keys(s.orphans)) { // each gets an epoch: the same ones every time
		if r := s.orphans[name]; !r.spawnAt.After(now) {
			delete(s.orphans, name)
			r.successor = true
			s.spawnServer(ctx, r)
		}
	}
}

// spawnServer starts the actor of a record. Children get names that were never used before: the actor library loses track of
// a name that comes back while its last bearer is still stopping.
//
// Its first ticket is the newest of all: whoever waits for anything that was asked of this name before, of an actor that
// has died or of an earlier server, waits for this actor's first attempt.
func (s *supervisor) spawnServer(ctx actor.Context, r *managedServer) {
	ticket := s.shared.tickets.Load()
	r.blocked = s.blockingCause(r)
	init := lifecycle.Init{Enabled: r.wanted, Lazy: r.spec.Connect == messages.Lazy, Blocked: r.blocked, Ticket: ticket}
	var known *session.ToolList
	if init.Lazy {
		known = s.cfg.loadToolList(r.name, r.spec)
		init.Cached = known != nil
	}
	r.cell.Share.Keep(0, known.Size())
	s.spawned++
	s.epoch++ // whatever it says before its first connection is newer than its predecessor's last word
	r.actorEpoch = s.epoch
	server := actors.NewServer(actors.ServerConfig{
		Name: r.name, Spec: r.spec, Init: init, Epoch: s.epoch, Seen: s.barrierSeen, Cell: r.cell, Holder: r.holder, Known: known,
		Rand: s.cfg.sessionRand(), Common: s.common,
	})
	pid, err := ctx.SpawnNamed(s.propsOf(r.name, server), fmt.Sprintf("server-%d", s.spawned))
	if err != nil { // only a name that is taken, and this one is not
		panic(err)
	}
	r.pid = pid
	s.byPID[pid.Id] = r
}

// propsOf are those of a server's actor. The library makes an actor once, within SpawnNamed: a child that panicked is never
// restarted in place. So all servers can share one set, unless the owner of the manager adds to them by name.
func (s *supervisor) propsOf(name string, server *actors.Server) *actor.Props {
	if s.cfg.ActorOptions != nil {
		return s.cfg.actorProps("server/"+name, func() actor.Actor { return server })
	}
	s.nextServer = server
	if s.props == nil {
		s.props = s.cfg.actorProps("", func() actor.Actor { return s.nextServer })
	}
	return s.props
}

// blockingCause is why a spec cannot be tried at all.
func (s *supervisor) blockingCause(r *managedServer) *lifecycle.Cause {
	switch {
	case r.spec.Invalid != "":
		return &lifecycle.Cause{Class: messages.ClassConfig, Text: r.spec.Invalid}
	case r.spec.Hold != "":
		return &lifecycle.Cause{Class: messages.ClassDenied, Text: r.spec.Hold}
	}
	return s.unusableCause(r.name, *r.spec)
}

// unusableCause is why a spec is not started, wherever it is from.
func (s *supervisor) unusableCause(name string, spec Spec) *lifecycle.Cause {
	if text := s.cfg.specProblem(name, spec); text != "" {
		return &lifecycle.Cause{Class: messages.ClassConfig, Text: text}
	}
	if rule := s.cfg.refusingRule(spec); rule != "" {
		return &lifecycle.Cause{Class: messages.ClassDenied, Text: rule}
	}
	return nil
}

func (s *supervisor) sendToRegistry(m any) {
	pid, _ := s.shared.registry.PID()
	s.root.Send(pid, m)
}

func (s *supervisor) spawnRegistry(ctx actor.Context) {
	s.spawned++
	s.registryDead = false
	cfg := actors.RegistryConfig{Catalog: s.shared.catalog, Hub: s.shared.hub, WithdrawAfter: s.cfg.WithdrawAfter}
	pid, err := ctx.SpawnNamed(s.cfg.actorProps("registry", func() actor.Actor { return actors.NewRegistry(cfg) }),
		fmt.Sprintf("registry-%d", s.spawned))
	if err != nil {
		panic(err)
	}
	s.shared.registry.Set(pid)
	if s.registryDeaths == 0 {
		return
	}
	// The successor continues the published snapshot. What was in the mailbox of the one before is said again.
	for _, r := range s.servers {
		if r.pid != nil {
			ctx.Send(r.pid, lifecycle.Announce{})
		}
	}
	for _, name := range s.shared.catalog.Snapshot().Remembered() {
		if s.servers[name] == nil {
			ctx.Send(pid, catalog.Change{Kind: catalog.Forget, Server: name})
		}
	}
	s.finishClose(ctx) // what it waited for may have been lost
}

func (s *supervisor) handleRegistryDeath(ctx actor.Context) {
	if s.ending {
		return
	}
	s.registryDeaths++
	if s.registryDeaths <= 3 {
		s.spawnRegistry(ctx)
		return
	}
	// A registry that dies again and again must not occupy the machine.
	s.registryDead = true
	s.wakeAt(time.Now().Add(time.Second), time.Now())
}

// finishRemoval ends a record for ever, or begins its next life.
func (s *supervisor) finishRemoval(ctx actor.Context, r *managedServer) {
	delete(s.servers, r.name)
	s.cfg.credentials.dropCredential(r.name)
	s.gate.Cancel(r.name)
	s.shared.cells.Delete(r.name)
	r.cell.Share.Close()
	// Whoever still waits for this server learns that it is no more, also if its actor died before it could say so.
	v := *r.cell.View()
	v.State = lifecycle.State{Removing: true, Phase: messages.Disabled, Epoch: v.State.Epoch}
	v.Session = nil
	r.cell.Publish(&v, nil)
	s.sendToRegistry(catalog.Change{Kind: catalog.Forget, Server: r.name})
	s.shared.hub.Publish(messages.Event{Kind: messages.EventRemoved, Server: r.name})
	if r.waitingSpec != nil {
		s.configureOne(ctx, r.name, r.waitingSpec)
	}
	for _, add := range r.waitingCommands {
		add(ctx)
	}
	s.finishClose(ctx)
}

// checkClocks notices that the machine has slept: the wall clock ran on while the monotonic one stood still. Waiting servers
// are then tried again soon, spread over a few seconds, and remote connections are asked for a sign of life.
func (s *supervisor) checkClocks(ctx actor.Context) {
	now := time.Now()
	slept := now.Round(0).Sub(s.wall.Round(0)) - now.Sub(s.wall)
	if !s.wall.IsZero() && slept > 5*time.Second {
		s.log.Info("the machine has slept", zap.Duration("for", slept))
		s.handleWoken(ctx)
	}
	s.armClock()
}

// handleWoken brings forward what waits. Nobody is made to wait longer than before, and who was told by its server when to come
// back does not come sooner.
func (s *supervisor) handleWoken(ctx actor.Context) {
	now := time.Now()
	for _, name := range slices.Sorted(maps.Keys(s.servers)) {
		r := s.servers[name]
		if r.pid == nil {
			continue
		}
		ctx.Send(r.pid, actors.ProbeNow{})
		st := r.cell.View().State
		if !st.StartRequested || st.NextAt.IsZero() || st.Cause != nil && st.Cause.RetryAfter > 0 {
			continue
		}
		if at := s.cfg.Restart.Woken(now, s.cfg.Rand); at.Before(st.NextAt) {
			s.gate.Enqueue(now, s.startRequest(r, restart.Healthy, at))
		}
	}
}

func (s *supervisor) armClock() {
	s.wall = time.Now()
	root, self := s.root, s.self
	s.ticker = time.AfterFunc(10*time.Second, func() { root.Send(self, clockDue{}) })
}
