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

// shared is what the facade and the actors both hold. Every part of it is safe for concurrent use.
type shared struct {
	cells    sync.Map // server id → *actors.Cell
	catalog  *actors.Catalog
	hub      *actors.Hub
	registry actors.Ref
	// tickets numbers everything that somebody may wait for.
	tickets atomic.Uint64
}

func (s *shared) cell(name string) *actors.Cell {
	if c, ok := s.cells.Load(name); ok {
		return c.(*actors.Cell)
	}
	return nil
}

// share is what a server may hold; nil for one that is not configured any more, which holds nothing.
func (s *shared) share(name string) *budget.Share {
	if c := s.cell(name); c != nil {
		return c.Share
	}
	return nil
}

// supervisor is the actor at the root of the tree: it owns the set of servers, the restart timing and the start gate, and
// replaces children whose code has panicked.
type supervisor struct {
	cfg    *Config
	common *actors.Common
	props  *actor.Props   // see propsOf
	next   *actors.Server // which actor props make
	shared *shared
	log    *zap.Logger
	root   *actor.RootContext
	self   *actor.PID

	records map[string]*record
	byPID   map[string]*record // by the actor's id
	orphans map[string]*record // those that wait for a successor of their actor
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
	looked         uint64 // the newest ticket of a look
	closing        *closeAll
	ending         bool          // the actor itself stops
	stopped        chan struct{} // closed when the actor has ended
}

func newSupervisor(cfg *Config, sh *shared, audit *auditor) *supervisor {
	common := &actors.Common{
		Hub: sh.hub, Registry: &sh.registry, Timing: cfg.Timing, Log: cfg.Logger,
		MaxInFlight: cfg.MaxInFlight, MaxQueued: cfg.MaxQueued,
		Session:  session.Config{ClientName: cfg.ClientName, ClientVersion: cfg.ClientVersion},
		Handlers: cfg.desk.handlers, Await: cfg.awaitCredentials, Screen: cfg.permissions.screen,
		Prepare: cfg.permissions.prepare,
	}
	common.Open = func(name string, spec *Spec) (transports.Transport, error) {
		return cfg.open(name, spec, sh.share(name))
	}
	if audit != nil {
		common.Moved = audit.moved
	}
	if cfg.lists != nil {
		common.Remember = cfg.remember
	}
	return &supervisor{
		common: common,
		cfg:    cfg, shared: sh, log: cfg.Logger, records: map[string]*record{}, byPID: map[string]*record{},
		orphans: map[string]*record{},
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
		s.configure(ctx, configure{specs: s.cfg.Servers})
		s.armClock()
	case *actor.Stopping:
		s.ending = true
		s.stopTimers()
	case *actor.Stopped:
		close(s.stopped)
		return
	case *actor.Terminated:
		s.terminated(ctx, m.Who)
	case actors.FromServer:
		s.fromServer(ctx, m)
	case actors.Waited:
		if r := s.records[m.Name]; r != nil && r.live == m.Epoch {
			s.gate.Waited(time.Now(), m.Name, m.Ran, m.Waited)
		}
	case actors.Released:
		s.released(ctx, m)
	case addServer:
		s.add(ctx, m)
	case removeServer:
		s.remove(ctx, m)
	case wish:
		s.wish(ctx, m)
	case setServers:
		s.setServers(ctx, m)
	case configure:
		m.reply(s.configure(ctx, m))
	case look:
		s.looked = m.ticket
		for _, r := range s.records {
			if r.pid != nil {
				ctx.Send(r.pid, actors.Look{Ticket: m.ticket})
			}
		}
		m.reply()
	case rescreen:
		for _, r := range s.records {
			if r.pid != nil {
				ctx.Send(r.pid, actors.Rescreen{})
			}
		}
	case closeAll:
		s.close(ctx, m)
	case tick:
		s.timerAt = time.Time{}
		if s.registryDead && !s.ending {
			s.spawnRegistry(ctx)
		}
		s.spawnDue(ctx)
	case clock:
		s.clock(ctx)
	case slept:
		s.woken(ctx)
	default:
		return
	}
	s.pump(ctx)
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

// pump grants what may start now and arms the one timer for what comes next.
func (s *supervisor) pump(_ actor.Context) {
	if s.closing != nil {
		return
	}
	now := time.Now()
	granted, wake := s.gate.Next(now)
	for _, name := range granted {
		r := s.records[name]
		if r == nil || r.pid == nil || r.live != 0 { // never two connections, whatever the gate believes
			s.gate.Closed(now, name)
			continue
		}
		s.epoch++
		r.live, r.up = s.epoch, false
		s.root.Send(r.pid, lifecycle.Granted{Epoch: s.epoch})
	}
	for _, name := range s.gate.Displace(now) {
		if r := s.records[name]; r != nil && r.pid != nil && r.live != 0 { // otherwise its end is under way
			r.policy = s.cfg.Restart.Displaced(r.policy)
			s.root.Send(r.pid, actors.Displace{Epoch: r.live})
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
	s.timer = time.AfterFunc(max(at.Sub(now), 0), func() { root.Send(self, tick{}) })
}

func (s *supervisor) stopTimers() {
	for _, t := range []*time.Timer{s.timer, s.ticker} {
		if t != nil {
			t.Stop()
		}
	}
}

// fromServer handles what a server's actor says about starting.
func (s *supervisor) fromServer(ctx actor.Context, m actors.FromServer) {
	r := s.records[m.Name]
	if r == nil || r.pid == nil || r.life != m.Life {
		return // the last words of an actor that has ended
	}
	now := time.Now()
	switch e := m.Effect.(type) {
	case lifecycle.Ask:
		if e.Fresh && !r.successor {
			r.policy = s.cfg.Restart.Cleared(r.policy)
		}
		r.successor = false
		if m.Attempt < r.live {
			// A grant is on its way to it, which answers this request as well. Left with the gate it would be granted as soon
			// as that attempt ends, before the time that the policy chooses then.
			return
		}
		s.gate.Ask(now, s.request(r, priority(e.Urgency, r), now))
	case lifecycle.Unask:
		s.gate.Cancel(r.name)
	case lifecycle.Answer:
		s.gate.Answered(now, r.name)
	case lifecycle.Install:
		s.gate.Installing(now, r.name)
	case lifecycle.Up:
		r.policy = s.cfg.Restart.Connected(r.policy)
		r.up, r.upSince = true, now
	case lifecycle.Report:
		s.report(r, e, now)
	case lifecycle.Decline:
		s.released(ctx, actors.Released{Name: r.name, Epoch: e.Epoch})
	case lifecycle.Gone:
		ctx.Stop(r.pid)
	}
}

func priority(u lifecycle.Urgency, r *record) restart.Priority {
	switch {
	case u == lifecycle.Person:
		return restart.Asked
	case u == lifecycle.Background:
		return restart.Probe
	}
	return r.policy.Priority()
}

func (s *supervisor) request(r *record, p restart.Priority, notBefore time.Time) restart.Request {
	return restart.Request{
		Server: r.name, Kind: r.spec.Kind(), Origin: origin(r.spec), Priority: p, NotBefore: notBefore,
		Displaces: p == restart.Asked || r.policy.Displaces(), Spared: r.policy.Displaced,
	}
}

// report decides what follows a failure, tells the server, and queues the start.
func (s *supervisor) report(r *record, e lifecycle.Report, now time.Time) {
	policy, decision := s.cfg.Restart.Down(r.policy, down(r, e.Cause.Class, e.Cause.RetryAfter, now), now, s.cfg.Rand)
	r.policy, r.up = policy, false
	s.root.Send(r.pid, actors.Scheduled{
		Scheduled: lifecycle.Scheduled{Epoch: e.Epoch, Retry: decision.Retry, At: decision.At},
		Attempts:  policy.Attempts,
	})
	if decision.Retry != messages.RetryNever {
		s.gate.Ask(now, s.request(r, policy.Priority(), decision.At))
	}
}

// released frees what an epoch occupied. A server whose actor has died gets its successor only now.
func (s *supervisor) released(ctx actor.Context, m actors.Released) {
	r := s.records[m.Name]
	if r == nil || r.live != m.Epoch {
		return
	}
	now := time.Now()
	r.live = 0
	s.gate.Closed(now, r.name)
	if r.pid == nil {
		s.orphaned(ctx, r)
	}
}

// terminated follows the end of a child: a removal that is complete, or a panic.
func (s *supervisor) terminated(ctx actor.Context, who *actor.PID) {
	if pid, _ := s.shared.registry.PID(); pid != nil && pid.Id == who.Id {
		s.registryDied(ctx)
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
	if r.live != 0 && r.holder.Epoch() != r.live {
		// It ended with the grant still in its mailbox: nobody will release what nobody opened.
		r.live = 0
		s.gate.Closed(time.Now(), r.name)
	}
	if r.live != 0 {
		// Its calls have ended with its session; its tools must not be seen as live.
		s.tellRegistry(catalog.Change{Kind: catalog.Lose, Server: r.name, Epoch: r.live, Rev: math.MaxUint64})
		return // Released goes on from here
	}
	s.orphaned(ctx, r)
}

// orphaned decides about a record that has neither an actor nor a connection.
func (s *supervisor) orphaned(ctx actor.Context, r *record) {
	if r.removing || s.closing != nil {
		s.removed(ctx, r)
		return
	}
	now := time.Now()
	policy, decision := s.cfg.Restart.Down(r.policy, down(r, messages.ClassPanic, 0, now), now, s.cfg.Rand)
	r.policy, r.up = policy, false
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
	v.Session, v.Since, v.Attempts, v.Seen = nil, now, policy.Attempts, s.looked
	r.cell.History.Add(actors.Entry{Time: now, Epoch: v.State.Epoch, Phase: messages.Failed, Text: v.State.Cause.Text})
	if s.common.Moved != nil {
		s.common.Moved(&v, r.cell.View().State.Phase)
	}
	r.cell.Publish(&v, nil)
}

func (s *supervisor) spawnDue(ctx actor.Context) {
	now := time.Now()
	for _, name := range slices.Sorted(maps.Keys(s.orphans)) { // each gets an epoch: the same ones every time
		if r := s.orphans[name]; !r.spawnAt.After(now) {
			delete(s.orphans, name)
			r.successor = true
			s.spawn(ctx, r)
		}
	}
}

// spawn starts the actor of a record. Children get names that were never used before: the actor library loses track of
// a name that comes back while its last bearer is still stopping.
//
// Its first ticket is the newest of all: whoever waits for anything that was asked of this name before, of an actor that
// has died or of an earlier server, waits for this actor's first attempt.
func (s *supervisor) spawn(ctx actor.Context, r *record) {
	ticket := s.shared.tickets.Load()
	r.blocked = s.blocked(r)
	init := lifecycle.Init{Enabled: r.wanted, Lazy: r.spec.Connect == messages.Lazy, Blocked: r.blocked, Ticket: ticket}
	var known *session.ToolList
	if init.Lazy {
		known = s.cfg.recall(r.name, r.spec)
		init.Cached = known != nil
	}
	r.cell.Share.Keep(0, known.Size())
	s.spawned++
	s.epoch++ // whatever it says before its first connection is newer than its predecessor's last word
	r.life = s.epoch
	server := actors.NewServer(actors.ServerConfig{
		Name: r.name, Spec: r.spec, Init: init, Epoch: s.epoch, Seen: s.looked, Cell: r.cell, Holder: r.holder, Known: known,
		Rand: s.cfg.chance(), Common: s.common,
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
		return s.cfg.props("server/"+name, func() actor.Actor { return server })
	}
	s.next = server
	if s.props == nil {
		s.props = s.cfg.props("", func() actor.Actor { return s.next })
	}
	return s.props
}

// blocked is why a spec cannot be tried at all.
func (s *supervisor) blocked(r *record) *lifecycle.Cause {
	switch {
	case r.spec.Invalid != "":
		return &lifecycle.Cause{Class: messages.ClassConfig, Text: r.spec.Invalid}
	case r.spec.Hold != "":
		return &lifecycle.Cause{Class: messages.ClassDenied, Text: r.spec.Hold}
	}
	return s.unusable(r.name, *r.spec)
}

// unusable is why a spec is not started, wherever it is from.
func (s *supervisor) unusable(name string, spec Spec) *lifecycle.Cause {
	if text := s.cfg.check(name, spec); text != "" {
		return &lifecycle.Cause{Class: messages.ClassConfig, Text: text}
	}
	if rule := s.cfg.refusal(spec); rule != "" {
		return &lifecycle.Cause{Class: messages.ClassDenied, Text: rule}
	}
	return nil
}

func (s *supervisor) tellRegistry(m any) {
	pid, _ := s.shared.registry.PID()
	s.root.Send(pid, m)
}

func (s *supervisor) spawnRegistry(ctx actor.Context) {
	s.spawned++
	s.registryDead = false
	cfg := actors.RegistryConfig{Catalog: s.shared.catalog, Hub: s.shared.hub, WithdrawAfter: s.cfg.WithdrawAfter}
	pid, err := ctx.SpawnNamed(s.cfg.props("registry", func() actor.Actor { return actors.NewRegistry(cfg) }),
		fmt.Sprintf("registry-%d", s.spawned))
	if err != nil {
		panic(err)
	}
	s.shared.registry.Set(pid)
	if s.registryDeaths == 0 {
		return
	}
	// The successor continues the published snapshot. What was in the mailbox of the one before is said again.
	for _, r := range s.records {
		if r.pid != nil {
			ctx.Send(r.pid, lifecycle.Announce{})
		}
	}
	for _, name := range s.shared.catalog.Snapshot().Remembered() {
		if s.records[name] == nil {
			ctx.Send(pid, catalog.Change{Kind: catalog.Forget, Server: name})
		}
	}
	s.closed(ctx) // what it waited for may have been lost
}

func (s *supervisor) registryDied(ctx actor.Context) {
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

// removed ends a record for ever, or begins its next life.
func (s *supervisor) removed(ctx actor.Context, r *record) {
	delete(s.records, r.name)
	s.cfg.credentials.forget(r.name)
	s.gate.Cancel(r.name)
	s.shared.cells.Delete(r.name)
	r.cell.Share.Close()
	// Whoever still waits for this server learns that it is no more, also if its actor died before it could say so.
	v := *r.cell.View()
	v.State = lifecycle.State{Removing: true, Phase: messages.Disabled, Epoch: v.State.Epoch}
	v.Session = nil
	r.cell.Publish(&v, nil)
	s.tellRegistry(catalog.Change{Kind: catalog.Forget, Server: r.name})
	s.shared.hub.Publish(messages.Event{Kind: messages.EventRemoved, Server: r.name})
	if r.waiting != nil {
		s.configureOne(ctx, r.name, r.waiting)
	}
	for _, add := range r.again {
		add(ctx)
	}
	s.closed(ctx)
}

// clock notices that the machine has slept: the wall clock ran on while the monotonic one stood still. Waiting servers
// are then tried again soon, spread over a few seconds, and remote connections are asked for a sign of life.
func (s *supervisor) clock(ctx actor.Context) {
	now := time.Now()
	slept := now.Round(0).Sub(s.wall.Round(0)) - now.Sub(s.wall)
	if !s.wall.IsZero() && slept > 5*time.Second {
		s.log.Info("the machine has slept", zap.Duration("for", slept))
		s.woken(ctx)
	}
	s.armClock()
}

// woken brings forward what waits. Nobody is made to wait longer than before, and who was told by its server when to come
// back does not come sooner.
func (s *supervisor) woken(ctx actor.Context) {
	now := time.Now()
	for _, name := range slices.Sorted(maps.Keys(s.records)) {
		r := s.records[name]
		if r.pid == nil {
			continue
		}
		ctx.Send(r.pid, actors.ProbeNow{})
		st := r.cell.View().State
		if !st.Asked || st.NextAt.IsZero() || st.Cause != nil && st.Cause.RetryAfter > 0 {
			continue
		}
		if at := s.cfg.Restart.Woken(now, s.cfg.Rand); at.Before(st.NextAt) {
			s.gate.Ask(now, s.request(r, restart.Healthy, at))
		}
	}
}

func (s *supervisor) armClock() {
	s.wall = time.Now()
	root, self := s.root, s.self
	s.ticker = time.AfterFunc(10*time.Second, func() { root.Send(self, clock{}) })
}
