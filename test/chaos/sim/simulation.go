package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// simulation is everything that is not the manager: the servers, their faults, the callers, the owner, and the order in which
// things happen. Its loop is the only goroutine that uses it, apart from what is said to be for others.
type simulation struct {
	plan       scenario.Plan
	options    Options
	rec        *history.Recorder // safe for concurrent use
	start      time.Time
	virtualNow time.Duration // now: time stands still while the loop runs

	turns    *turnScheduler
	inbox    inbox
	timeline timeline
	wakeup   chan struct{} // wakes the loop

	servers      map[string]*simServer
	names        []string // of the hosts, sorted
	manager      *supervisor.Manager
	watch        managerWatch
	slowWatcher  slowWatcher
	secrets      secretScanner
	users        managerUsers
	messageActor *messageActor // nil where the facade is used

	items []item
	// needsWait says that a goroutine of the manager may run since the loop last waited for all of them.
	needsWait bool
	stopped   bool
	stopWhen  func() bool // asked when nothing moves; nil: never

	guard        instantGuard
	pulse        *pulse
	harnessError error // of the harness itself
	collector    collector
}

func newSimulation(plan scenario.Plan, o Options, rec *history.Recorder, beat *pulse) *simulation {
	w := &simulation{
		plan: plan, options: o, rec: rec, servers: map[string]*simServer{}, wakeup: make(chan struct{}, 1), start: time.Now(), pulse: beat,
		turns: &turnScheduler{rng: rand.New(rand.NewPCG(plan.Seed, seedOf("turns")))},
	}
	w.turns.wake, w.inbox.wake = w.wakeLoop, w.wakeLoop
	w.watch.world, w.users.world = w, w
	w.secrets.canaries = make(map[string]bool, len(plan.Servers))
	w.guard.limit = maxStepsAtOnce(len(plan.Servers))
	return w
}

// wakeLoop is for any goroutine: there may be something to do.
func (w *simulation) wakeLoop() {
	select {
	case w.wakeup <- struct{}{}:
	default:
	}
}

// currentTime is the time since the start of the run.
func (w *simulation) currentTime() time.Duration { return w.virtualNow }

// elapsedTime is now for other goroutines.
func (w *simulation) elapsedTime() time.Duration { return time.Since(w.start) }

// recordEvent takes down something that happens now.
func (w *simulation) recordEvent(e history.Event) {
	e.T = w.virtualNow
	w.rec.Add(e)
}

// failHarness ends the run because of the harness.
func (w *simulation) failHarness(format string, args ...any) {
	if w.harnessError == nil {
		w.harnessError = fmt.Errorf(format, args...)
	}
	w.stopped = true
}

// runLoop runs until over. Whatever it does, it does one thing at a time, when every goroutine of the manager waits.
func (w *simulation) runLoop() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	w.needsWait = true
	for !w.stopped {
		w.pulse.steps.Add(1)
		if w.needsWait {
			w.needsWait = false
			synctest.Wait()
			w.watch.recordNew()
		}
		if !w.guard.countStep(w) || w.stopWhen != nil && w.stopWhen() {
			return
		}
		w.items = w.inbox.takeItems(w.items)
		switch {
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

// handleNextItem handles the first thing that was handed to a server.
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

// runTurn lets one actor handle one message.
func (w *simulation) runTurn() bool {
	m := w.turns.giveTurn()
	if m == nil {
		return false
	}
	w.pulse.turn.Store(m)
	synctest.Wait()
	w.guard.countAction(serverOf(m.name), func() string { return fmt.Sprintf("the actor %s handled %s", m.name, m.lastHandled) })
	if h := m.current.Load(); h != nil && !h.reported {
		h.reported = true
		w.recordEvent(history.Event{Side: history.Harness, Kind: history.Violation, Name: "I9", Server: serverOf(h.actor),
			Text: fmt.Sprintf("the actor %s blocks while it handles %s, and its mailbox waits%s", h.actor, h, describeBlocked())})
	}
	w.watch.recordNew()
	return true
}

// describeBlocked says where an actor blocks, if only one does.
func describeBlocked() string {
	var found []string
	for _, g := range goroutinesIn(bubbleOf(dumpStacks(false))) {
		inner := slices.IndexFunc(g.frames, func(f frame) bool { return f.inModule })
		if receive := slices.IndexFunc(g.frames, isReceive); inner >= 0 && receive > inner {
			found = append(found, g.describeState())
		}
	}
	if len(found) != 1 {
		return ""
	}
	return ": it " + found[0]
}

// isReceive reports whether a frame is what stands in front of every message of an actor.
func isReceive(f frame) bool {
	return strings.HasPrefix(f.function, "test/chaos/sim.(*mailbox).receive")
}

// sleepUntilDue waits until something is due, or somebody rings.
func (w *simulation) sleepUntilDue(timer *time.Timer) {
	select {
	case <-w.wakeup: // what it was about may be done already
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
	if now := w.elapsedTime(); now != w.virtualNow {
		w.virtualNow = now
		w.pulse.at.Store(int64(now))
		w.guard.resetSteps()
	}
	w.needsWait = true
}

// serverOf is the server that an actor belongs to, empty for the others.
func serverOf(actor string) string {
	const prefix = "server/"
	if len(actor) > len(prefix) && actor[:len(prefix)] == prefix {
		return actor[len(prefix):]
	}
	return ""
}

// isIdle reports that nothing is left to do now.
func (w *simulation) isIdle() bool {
	w.items = w.inbox.takeItems(w.items)
	return len(w.items) == 0 && w.turns.isIdle()
}

// eachServer calls f for every host, in the order of the names.
func (w *simulation) eachServer(f func(*simServer)) {
	if w.names == nil {
		w.names = slices.Sorted(maps.Keys(w.servers))
	}
	for _, name := range w.names {
		f(w.servers[name])
	}
}
