package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/agents"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// simulation is one run: the servers, their faults, the users of the manager, and the order in which things happen. Only the
// goroutine of its loop uses it, except for methods that say otherwise.
type simulation struct {
	plan    scenario.Plan
	options Options
	// rec is safe for concurrent use.
	rec *history.Recorder
	// start is the time of the bubble's clock at the beginning; all times of the run count from it.
	start time.Time
	// virtualNow is the time of the run. It stands still while the loop works, and moves only in sleepUntilDue.
	virtualNow time.Duration

	// turns holds the actors' mailboxes, inbox what connections have sent, timeline what is planned: the three sources of
	// steps.
	turns    *turnScheduler
	inbox    inbox
	timeline timeline
	// wakeup holds one token when a goroutine has given the loop something to do.
	wakeup chan struct{}

	servers map[string]*simServer
	// names are the servers' names, sorted; eachServer fills them in.
	names []string
	// nextGlance is the place, among the manager's servers, at which the next glance begins.
	nextGlance     int
	manager        *supervisor.Manager
	watch          managerWatch
	slowWatcher    slowWatcher
	leavingWatcher leavingWatcher
	secrets        secretScanner
	users          managerUsers
	program        embeddingProgram
	principals     principals
	// fleet is the agents of a gateway before the manager; nil without any.
	fleet *agents.Fleet
	// messageActor uses the manager by message; nil if the users use the facade.
	messageActor *messageActor
	pins         pinWatch
	// audit reads the manager's audit log; nil if it keeps none.
	audit    *auditReader
	reads    statusReads
	ownerSet ownerSet
	// permitCount counts the commands that gave other rules.
	permitCount atomic.Int64

	// items are taken from the inbox and not yet handled.
	items []item
	// needsWait is set when a goroutine of the manager may have become runnable since the loop last waited for all of them.
	needsWait bool
	// renewals counts the credentials that have appeared by themselves.
	renewals int
	// stopped ends the loop after the step under way.
	stopped bool
	closing closing
	// hasClosed is set when Close has returned.
	hasClosed bool
	// stopWhen ends the loop when it returns true; nil never does. The loop asks it when every goroutine waits.
	stopWhen func() bool

	guard instantGuard
	pulse *pulse
	// harnessError is an error of the harness itself, which Run returns.
	harnessError error
	collector    collector
	leftTimers   leftTimers
	leftEntries  leftEntries
	bookkeeping  bookkeeping
	// missing are the servers that the catalog remembered at the last glance, and the manager did not have.
	missing map[string]bool
	// consents is nil if the manager asks about no call.
	consents *consents
	// brokenCount counts the glances at which an actor was to be broken, panicCount the panics that came of it.
	brokenCount int
	panicCount  atomic.Int64
}

// newSimulation makes a simulation without servers and manager. It must be called in the bubble, because start is the bubble's
// time.
func newSimulation(plan scenario.Plan, o Options, rec *history.Recorder, beat *pulse) *simulation {
	w := &simulation{
		plan: plan, options: o, rec: rec, servers: map[string]*simServer{}, wakeup: make(chan struct{}, 1), start: time.Now(), pulse: beat,
		turns: newTurnScheduler(plan.Seed),
	}
	w.turns.wake, w.inbox.wake = w.wakeLoop, w.wakeLoop
	w.turns.ended = func(pid *actor.PID, a actor.Actor) {
		w.noteEnd(pid)
		w.leftEntries.noteEnded(a)
	}
	w.bookkeeping.report = w.reportContradiction
	if n := len(plan.Servers); n > bookkeepingMost {
		w.bookkeeping.every = n * bookkeepingPause
	}
	w.turns.handled = w.bookkeeping.noteHandled
	w.turns.received, w.turns.panicked = w.leftEntries.noteReleased, w.noteBroken
	w.watch.world, w.users.world, w.program.world, w.leavingWatcher.world = w, w, w, w
	w.secrets.canaries = make(map[string]bool, len(plan.Servers))
	w.guard.limit = maxStepsAtOnce(len(plan.Servers))
	return w
}

// wakeLoop tells the loop that there may be something to do. Any goroutine may call it; it does not block.
func (w *simulation) wakeLoop() {
	select {
	case w.wakeup <- struct{}{}:
	default:
	}
}

// currentTime returns the time of the run, for the loop.
func (w *simulation) currentTime() time.Duration { return w.virtualNow }

// elapsedTime returns the time of the run, for other goroutines.
func (w *simulation) elapsedTime() time.Duration { return time.Since(w.start) }

// recordEvent records an event at the current time. Only the loop calls it.
func (w *simulation) recordEvent(e history.Event) {
	e.T = w.virtualNow
	w.rec.Add(e)
}

// failHarness ends the run with an error of the harness. Only the first error counts.
func (w *simulation) failHarness(format string, args ...any) {
	if w.harnessError == nil {
		w.harnessError = fmt.Errorf(format, args...)
	}
	w.stopped = true
}

// runLoop runs the loop until stopped or stopWhen ends it. It does one thing at a time, and only while every goroutine of the
// manager waits, so that the order does not depend on Go's scheduler.
func (w *simulation) runLoop() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	w.needsWait = true
	for !w.stopped {
		w.pulse.steps.Add(1)
		if w.needsWait {
			w.needsWait = false
			// Wait returns when every other goroutine of the bubble is blocked; the events that they caused come first.
			synctest.Wait()
			w.watch.recordNew()
		}
		if !w.guard.countStep(w) || w.stopWhen != nil && w.stopWhen() {
			return
		}
		w.items = w.inbox.takeItems(w.items)
		switch {
		// What has begun comes before items, items before turns and turns before the plan: what has happened is handled before something new begins.
		case w.users.startNext():
		case w.handleNextItem():
		case w.runTurn():
		default:
			if do := w.timeline.takeDue(w.virtualNow); do != nil {
				do()
				continue
			}
			w.collector.collectGarbage()
			w.sleepUntilDue(timer)
		}
	}
}

// handleNextItem hands the first item of the inbox to its server, and returns false if there is none.
func (w *simulation) handleNextItem() bool {
	if len(w.items) == 0 {
		return false
	}
	it := w.items[0]
	w.items = slices.Delete(w.items, 0, 1)
	w.guard.countAction(it.host.server.Name, func() string { return "the server " + it.host.server.Name + " was given something" })
	it.host.handleItem(it)
	return true
}

// runTurn lets one actor handle one message, and returns false if none waits. If the actor is then still at it although every
// goroutine waits, it blocks in its Receive, which the manager promises not to do.
func (w *simulation) runTurn() bool {
	m := w.turns.giveTurn()
	if m == nil {
		return false
	}
	w.pulse.turn.Store(m)
	synctest.Wait()
	w.guard.countAction(serverOf(m.name), func() string { return fmt.Sprintf("the actor %s handled %s", m.name, m.lastHandled) })
	// Reported once per message, because every later turn would find it again.
	if h := m.current.Load(); h != nil && !h.reported {
		h.reported = true
		w.recordEvent(history.Event{Side: history.Harness, Kind: history.Violation, Name: "I9", Server: serverOf(h.actor),
			Text: fmt.Sprintf("the actor %s blocks while it handles %s, and its mailbox waits%s", h.actor, h, describeBlocked())})
	}
	w.watch.recordNew()
	return true
}

// describeBlocked says where an actor blocks, if all actors of which the stacks show that they do block at the same place.
func describeBlocked() string {
	var found []string
	for _, g := range goroutinesIn(bubbleOf(dumpStacks(false))) {
		inner := slices.IndexFunc(g.frames, func(f frame) bool { return f.inModule })
		if receive := slices.IndexFunc(g.frames, isReceive); inner >= 0 && receive > inner {
			found = append(found, g.describeState())
		}
	}
	slices.Sort(found)
	if found = slices.Compact(found); len(found) != 1 {
		return ""
	}
	return ": it " + found[0]
}

// isReceive reports whether a frame is the middleware in front of every message of an actor.
func isReceive(f frame) bool {
	return strings.HasPrefix(f.function, "test/chaos/sim.(*mailbox).receive")
}

// sleepUntilDue sleeps until the next planned time, or until a goroutine wakes the loop. In a bubble the sleep takes no real
// time: the clock jumps when every goroutine waits.
func (w *simulation) sleepUntilDue(timer *time.Timer) {
	select {
	// A token may be left from something that the loop has handled already; then one more Wait costs little.
	case <-w.wakeup:
		w.needsWait = true
		return
	default:
	}
	next, planned := w.timeline.nextTime()
	if planned {
		timer.Reset(max(next-w.virtualNow, 0))
		select {
		case <-timer.C:
		case <-w.wakeup:
		}
	} else {
		<-w.wakeup
	}
	// A token without a passing of time is common: a goroutine has handed something over in the same instant.
	if now := w.elapsedTime(); now != w.virtualNow {
		w.virtualNow = now
		w.turns.beginInstant(now)
		w.pulse.at.Store(int64(now))
		// The number of steps per instant counts anew, because the time went on.
		w.guard.resetSteps()
	}
	w.needsWait = true
}

// serverOf returns the server of an actor named server/NAME, empty for other actors.
func serverOf(actor string) string {
	const prefix = "server/"
	if len(actor) > len(prefix) && actor[:len(prefix)] == prefix {
		return actor[len(prefix):]
	}
	return ""
}

// isIdle reports whether neither the inbox nor an actor has anything to do.
func (w *simulation) isIdle() bool {
	w.items = w.inbox.takeItems(w.items)
	return len(w.items) == 0 && w.turns.isIdle()
}

// eachServer calls f for every server, in the order of their names, because a map has none.
func (w *simulation) eachServer(f func(*simServer)) {
	if w.names == nil {
		w.names = slices.Sorted(maps.Keys(w.servers))
	}
	for _, name := range w.names {
		f(w.servers[name])
	}
}
