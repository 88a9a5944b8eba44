package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/sent"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// Options change a run. The zero value works.
type Options struct {
	// Machine makes the servers; nil means sent.NewMachine.
	Machine func(peer.Config) peer.Machine
	// Config changes the manager's configuration after Run has filled it in; nil changes nothing.
	Config func(*supervisor.Config)
	// OnSlow is called at most once, in the goroutine that called Run, when a run has taken more than 10 s of real time. The
	// text says what was done, and which goroutines wait for what. nil reports nothing.
	OnSlow func(text string)
	// StallTicks is the number of ticks of 10 ms, in each of which this process had the processor, that may pass without
	// progress before Run takes the run for an endless loop. 0 means 500, which is 5 s on a machine that does nothing else.
	StallTicks int
	// MaxMemory is the number of bytes by which the heap of the process may grow before Run takes the run for one that takes memory
	// without an end. 0 means 2 GiB, and 2 MiB for each server.
	MaxMemory uint64
}

// Run runs a plan and returns its history, in canonical order. The history holds what the manager does wrong; the error is about the plan or the
// harness itself. Run asks ctx only before the start, because a run takes no time that a person would wait for.
//
// Run gives up a run that does not end (a mutex that is never unlocked, an endless loop, memory that is taken without an end) within seconds:
// its history then ends
// with a Violation named hung, and its goroutines go on for as long as the process lives.
func Run(ctx context.Context, plan scenario.Plan, o Options) (*history.History, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if plan.Tier != "" && plan.Tier != scenario.Sim {
		return nil, fmt.Errorf("the plan is for the tier %q, and this is %q: plan the scenario again", plan.Tier, scenario.Sim)
	}
	if o.Machine == nil {
		o.Machine = sent.NewMachine
	}
	rec := history.NewRecorder(plan, nil)
	// A bubble starts without goroutines and descriptors, so the baseline is zero.
	rec.Add(history.Event{Side: history.Harness, Kind: history.Resources, House: &history.ResourceUsage{}, Text: "baseline"})
	var broken error
	var last time.Duration
	beat := &pulse{}
	dog := watchdog{pulse: beat, onSlow: o.OnSlow, maxStallTicks: cmp.Or(o.StallTicks, 500), maxCrawlSeconds: 60 + len(plan.Servers)/50,
		memory: newMemoryGuard(len(plan.Servers), 0)}
	if o.MaxMemory > 0 {
		dog.memory.allowed = o.MaxMemory
	}
	err := runWatched(func() {
		w := newSimulation(plan, o, rec, beat)
		broken = w.runPlan()
		last = w.elapsedTime()
		if broken == nil {
			w.awaitLeftTimers()
		}
	}, dog.awaitEnd)
	// The hung goroutines may still use the simulation, so only the recorder is touched.
	if hung := (*HungError)(nil); errors.As(err, &hung) {
		return sortHistory(hung.endHistory(rec)), nil
	}
	if broken != nil {
		return nil, broken
	}
	house := &history.ResourceUsage{}
	var failed *BubbleError
	if errors.As(err, &failed) {
		where, stuck := failed.stuckInManager()
		if !failed.Leaked() && !stuck {
			return nil, fmt.Errorf("the simulation ended badly: %w\n%s", failed, strings.Join(failed.Stacks, "\n\n"))
		}
		if stuck {
			for _, e := range rec.History().Events {
				// The simulation's clock belongs to the stuck goroutine; the last event has the latest known time.
				last = max(last, e.T)
			}
			rec.Add(history.Event{T: last, Side: history.Harness, Kind: history.Violation, Name: "I9",
				Text: "the manager does not return from what it was asked, and nothing will wake it: a goroutine " + where})
		}
		house.Goroutines = len(failed.Stacks)
		house.Left = describeWaits(parseDump(strings.Join(failed.Stacks, "\n\n")))
	}
	rec.Add(history.Event{T: last, Side: history.Harness, Kind: history.Resources, House: house, Text: "after close"})
	playDrills(plan, o, last, rec)
	return sortHistory(rec.History()), nil
}

// sortHistory returns a history with its events in canonical order, in which it is written and read: a verdict names its evidence by
// the places of the events, and whoever reads the file must find them there.
func sortHistory(h *history.History) *history.History {
	return &history.History{Plan: h.Plan, Events: h.Canonical()}
}

// runPlan is the whole run inside the bubble: it starts the manager, plans the users' work, and runs the loop until the manager
// has closed.
func (w *simulation) runPlan() error {
	defer w.turns.goroutines.dismiss()
	if err := w.buildServers(); err != nil {
		return err
	}
	if err := w.principals.makeServers(w); err != nil {
		return err
	}
	started := make(chan error, 1)
	go func() {
		m, err := w.program.start(w.managerConfig())
		w.manager = m
		started <- err
		w.wakeLoop()
		// The loop runs while Start waits for its actors, because they handle messages only in turns.
	}()
	limit := min(startTimeout, w.plan.Heal/2)
	w.timeline.planAction(limit, "", func() {})
	w.loopUntil(func() bool { return len(started) > 0 || w.virtualNow >= limit })
	select {
	case err := <-started:
		if err != nil {
			return fmt.Errorf("the manager cannot be started with this plan: %w", err)
		}
	default:
		w.recordEvent(history.Event{Side: history.Harness, Kind: history.Violation, Name: "I9",
			Text: fmt.Sprintf("Start has not returned after %s", limit)})
		return w.harnessError
	}
	w.watch.startWatching(w.manager)
	w.watchTimers()
	w.slowWatcher.startReading(w)
	w.users.scheduleWork()
	w.principals.startManager()
	if err := w.startAgents(); err != nil {
		return err
	}
	specs := w.wantedSpecs()
	check := w.ownerSet.replaceAll(specs)
	w.users.runAsUser(func() {
		if err := w.setServers(context.Background(), specs, check); err != nil {
			w.rec.Add(history.Event{T: w.elapsedTime(), Side: history.Owner, Kind: history.Done, Method: "set servers", Text: err.Error()})
		}
	})
	w.runLoop()
	w.checkClosing()
	w.principals.checkClosed()
	w.checkAudit()
	w.watch.finishWatching()
	w.slowWatcher.checkLastEvent()
	w.users.cancel()
	w.users.goroutines.dismiss()
	// protoactor's throttle for dead letters sleeps for a nanosecond, and a bubble must not end before its goroutines.
	time.Sleep(time.Millisecond)
	if w.hasClosed {
		w.checkLeftEntries()
	}
	return w.harnessError
}

// startTimeout bounds the manager's Start in virtual time: it waits for no server.
const startTimeout = 10 * time.Second

// loopUntil runs the loop until done returns true; the loop asks whenever every goroutine waits.
func (w *simulation) loopUntil(done func() bool) {
	w.stopWhen = done
	w.runLoop()
	w.stopWhen = nil
	w.stopped = false
}

// buildServers makes the servers and plans the faults, the healing, the end and the statuses. It returns an error for a fault
// on a server that the plan lacks.
func (w *simulation) buildServers() error {
	for _, s := range w.plan.Servers {
		canary := canaryOf(w.plan.Seed, s.Name)
		// An in-process server (SDK) gets no secret, so its canary is no leak.
		w.secrets.canaries[canary] = s.Kind != messages.SDK
		m := w.options.Machine(peer.Config{Server: s, Seed: seedOf(fmt.Sprint(w.plan.Seed), "peer", s.Name), Canaries: []string{canary},
			Client: w.declaredCapabilities()})
		w.servers[s.Name] = newSimServer(w, s, m, canary)
	}
	for _, f := range w.plan.Faults {
		if f.Server != "" && w.servers[f.Server] == nil {
			return fmt.Errorf("the plan has a fault on server %q, which it does not have", f.Server)
		}
		w.timeline.planAction(f.Begin, f.Server, func() { w.switchFault(f, true) })
		if f.End > f.Begin {
			w.timeline.planAction(min(f.End, w.plan.Heal), f.Server, func() { w.switchFault(f, false) })
		}
		if h := w.servers[f.Server]; h != nil {
			h.planRenewal(f)
		}
	}
	w.timeline.planAction(w.plan.Heal, "", w.recordHeal)
	w.planLastCalls()
	w.timeline.planAction(w.plan.End, "", w.closeManager)
	w.timeline.planAction(glanceEvery, "", w.glance)
	return nil
}

// switchFault begins or ends a fault on its server, or on all servers in the order of their names.
func (w *simulation) switchFault(f scenario.PlannedFault, begin bool) {
	kind := history.FaultOff
	if begin {
		kind = history.FaultOn
	}
	w.recordEvent(history.Event{Side: history.Harness, Kind: kind, Server: f.Server, Fault: f.ID, Name: f.Fault})
	do := func(h *simServer) {
		if begin {
			h.performActions(h.machine.Begin(w.virtualNow, f))
		} else {
			h.performActions(h.machine.End(w.virtualNow, f))
		}
	}
	if f.Server != "" {
		do(w.servers[f.Server])
		return
	}
	w.eachServer(do)
}

// recordHeal records that every fault has ended, and the statuses at that time.
func (w *simulation) recordHeal() {
	w.recordEvent(history.Event{Side: history.Harness, Kind: history.Heal})
	w.recordStatuses("heal")
	if w.messageActor != nil {
		w.users.runAsUser(w.messageActor.compareLists)
	}
}

// recordStatuses records the status of every server, and checks statuses and histories for secrets.
func (w *simulation) recordStatuses(when string) {
	for _, st := range w.manager.Status() {
		w.status(&st, when)
		w.secrets.checkWholeStatus(w, &st)
		entries, err := w.manager.History(st.Name)
		if err != nil {
			// The server was removed after Status returned.
			continue
		}
		for _, e := range entries {
			w.secrets.checkText(w, st.Name, "the server's history", e.Text)
		}
	}
}

// status records one status. Any goroutine may call it.
func (w *simulation) status(st *messages.Status, when string) {
	e := history.Event{T: w.elapsedTime(), Side: history.Harness, Kind: history.Status, Server: st.Name}
	fillFromStatus(&e, st, w.start)
	e.Text = when
	w.rec.Add(e)
}

// glance records every status and plans the next glance, until the end of the plan.
func (w *simulation) glance() {
	w.lookAround()
	if w.bookkeeping.isGlanceDue() {
		w.bookkeeping.askCatalog(w.manager.Tools())
		w.checkRemembered(w.manager.Tools().Remembered(), w.manager.Servers())
	}
	w.leavingWatcher.lookAround()
	w.program.lookAround()
	if next := w.virtualNow + glanceEvery; next < w.plan.End {
		w.timeline.planAction(next, "", w.glance)
	}
}

// lookAround records the status of every server, or of the next glanceSome servers if there are many, and judges it. Each status is
// built once for all of that, because building it is the dearest part of a glance.
func (w *simulation) lookAround() {
	var statuses []messages.Status
	all := w.manager.Servers()
	// With more servers than that the comparison of all of them would cost more than the rest of the run.
	if len(all) <= glanceMost {
		statuses = w.manager.Status()
		w.compareReads(statuses)
	} else {
		for i := range glanceSome {
			if st, err := w.manager.ServerStatus(all[(w.nextGlance+i)%len(all)]); err == nil {
				statuses = append(statuses, st)
			}
		}
		w.nextGlance = (w.nextGlance + glanceSome) % len(all)
	}
	for i := range statuses {
		w.status(&statuses[i], "now and then")
		w.checkReason(&statuses[i])
		w.checkPins(&statuses[i])
	}
}

// glanceEvery is the time between two glances. It is no multiple of the manager's own intervals, so that the glances meet many
// of its states.
const glanceEvery = 17*time.Second + 137*time.Millisecond

// glanceMost is the most servers of which a glance records all; of more it records glanceSome, and the next ones the next time.
// Otherwise the statuses of a thousand servers would be nearly all that a run of a day records, and most of its processor time.
const (
	glanceMost = 100
	glanceSome = 20
)

// recordStatus records the status of one server, if the manager still lists it. Any goroutine may call it.
func (w *simulation) recordStatus(server, when string) {
	if st, err := w.manager.ServerStatus(server); err == nil {
		w.status(&st, when)
	}
}

// closeManager closes the manager, and ends the loop when Close and every user have returned, or after closeTimeout.
func (w *simulation) closeManager() {
	w.recordStatuses("end")
	w.recordEvent(history.Event{Side: history.Harness, Kind: history.Closing})
	closed := make(chan struct{})
	w.users.runAsUser(w.principals.closeManager)
	w.users.runAsUser(func() {
		w.closeAgents()
		err := w.endManager()
		e := history.Event{T: w.elapsedTime(), Side: history.Harness, Kind: history.Closed}
		if err != nil {
			e.Text = err.Error()
		}
		w.rec.Add(e)
		w.program.useClosed()
		close(closed)
	})
	limit := w.virtualNow + closeTimeout
	w.timeline.planAction(limit, "", func() {})
	w.stopWhen = func() bool {
		select {
		case <-closed:
			w.users.cancel()
			w.hasClosed = true
			return w.users.busy.Load() == 0 && w.isIdle() || w.virtualNow >= limit
		default:
			if w.virtualNow >= limit {
				w.reportUnclosed()
				return true
			}
			return false
		}
	}
}

// reportUnclosed records that Close, or the end of the agents before it, has not returned, and what it waits for.
func (w *simulation) reportUnclosed() {
	text := fmt.Sprintf("what ends the agents and the manager has not returned within %s", closeTimeout)
	for _, g := range goroutinesIn(bubbleOf(dumpStacks(false))) {
		if slices.ContainsFunc(g.frames, func(f frame) bool { return strings.Contains(f.function, "(*simulation).closeManager.func") }) && !g.isRunning() {
			text += ": it " + g.describeState()
		}
	}
	w.recordEvent(history.Event{Side: history.Harness, Kind: history.Violation, Name: "I12", Text: text})
}

// managerConfig returns the manager's configuration: the plan's settings, the transport in memory, turns for actors, and
// randomness from the seed.
func (w *simulation) managerConfig() supervisor.Config {
	p := &w.plan
	cfg := supervisor.Config{
		Logger: w.secrets.newLogger(w), AuthStore: auth.NewMemory(), ActorOptions: w.turns.actorOptions,
		Restart: p.Policy, Gate: p.Limits, SharedLimits: w.principals.limits, WithdrawAfter: p.WithdrawAfter, CallWait: p.CallWait,
		Timing: actors.Timing{Quiet: p.Quiet, MaxWait: p.MaxWait, ProbeEvery: p.ProbeEvery, ProbeTimeout: p.ProbeTimeout,
			ProbeStrikes: p.ProbeStrikes},
		Rand: rand.New(rand.NewPCG(p.Seed, seedOf("restart"))).Float64,
		Transport: func(name string, spec messages.Spec) (transports.Transport, error) {
			h := w.servers[name]
			if h == nil {
				return nil, fmt.Errorf("there is no server %q in the plan", name)
			}
			t := newTransport(h.server.Kind, h.serverLabel(), spec, h)
			if t.Emulated == messages.HTTP || t.Emulated == messages.SSE {
				t.token = &h.token
				t.token.personal = h.server.Personal
			}
			t.web, t.url, t.random = h.server.Web, spec.URL, h.webRandom.drawNumber
			return t, nil
		},
	}
	w.configureAnswers(&cfg)
	w.configureAudit(&cfg)
	w.configureRenewals(&cfg)
	if len(p.Agents) > 0 && !p.Scenario.Manager.Messages {
		gateway.PassQuestions(&cfg)
	}
	w.program.configure(&cfg)
	if err := w.configurePins(&cfg); err != nil {
		w.failHarness("the memory of definitions: %v", err)
	}
	if w.options.Config != nil {
		w.options.Config(&cfg)
	}
	return cfg
}
