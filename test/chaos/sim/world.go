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

// world is everything that is not the manager: the servers, their faults, the callers, the owner, and the order in which
// things happen. Its loop is the only goroutine that uses it, apart from what is said to be for others.
type world struct {
	plan    scenario.Plan
	options Options
	rec     *history.Recorder // safe for concurrent use
	start   time.Time
	at      time.Duration // now: time stands still while the loop runs

	turns *turns
	inbox inbox
	line  timeline
	ring  chan struct{} // wakes the loop

	hosts   map[string]*host
	names   []string // of the hosts, sorted
	manager *supervisor.Manager
	watch   watch
	slow    slowWatch
	secrets secrets
	people  people
	program *program // nil where the facade is used

	items []item
	// moved says that a goroutine of the manager may run since the loop last waited for all of them.
	moved bool
	over  bool
	until func() bool // asked when nothing moves; nil: never

	guard  guard
	pulse  *pulse
	broken error // of the harness itself
	gc     collector
}

func newWorld(plan scenario.Plan, o Options, rec *history.Recorder, beat *pulse) *world {
	w := &world{
		plan: plan, options: o, rec: rec, hosts: map[string]*host{}, ring: make(chan struct{}, 1), start: time.Now(), pulse: beat,
		turns: &turns{rng: rand.New(rand.NewPCG(plan.Seed, seedOf("turns")))},
	}
	w.turns.wake, w.inbox.wake = w.wake, w.wake
	w.watch.world, w.people.world = w, w
	w.secrets.canaries = make(map[string]bool, len(plan.Servers))
	w.guard.limit = mostAtOnce(len(plan.Servers))
	return w
}

// wake is for any goroutine: there may be something to do.
func (w *world) wake() {
	select {
	case w.ring <- struct{}{}:
	default:
	}
}

// now is the time since the start of the run.
func (w *world) now() time.Duration { return w.at }

// clock is now for other goroutines.
func (w *world) clock() time.Duration { return time.Since(w.start) }

// record takes down something that happens now.
func (w *world) record(e history.Event) {
	e.T = w.at
	w.rec.Add(e)
}

// fail ends the run because of the harness.
func (w *world) fail(format string, args ...any) {
	if w.broken == nil {
		w.broken = fmt.Errorf(format, args...)
	}
	w.over = true
}

// loop runs until over. Whatever it does, it does one thing at a time, when every goroutine of the manager waits.
func (w *world) loop() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	w.moved = true
	for !w.over {
		w.pulse.steps.Add(1)
		if w.moved {
			w.moved = false
			synctest.Wait()
			w.watch.look()
		}
		if !w.guard.step(w) || w.until != nil && w.until() {
			return
		}
		w.items = w.inbox.take(w.items)
		switch {
		case w.do():
		case w.turn():
		default:
			if do := w.line.take(w.at); do != nil {
				do()
				continue
			}
			w.gc.collect()
			w.sleep(timer)
		}
	}
}

// do handles the first thing that was handed to a server.
func (w *world) do() bool {
	if len(w.items) == 0 {
		return false
	}
	it := w.items[0]
	w.items = slices.Delete(w.items, 0, 1)
	w.guard.note(it.host.server.Name, func() string { return "the server " + it.host.server.Name + " was given something" })
	it.host.handle(it)
	return true
}

// turn lets one actor handle one message.
func (w *world) turn() bool {
	m := w.turns.next()
	if m == nil {
		return false
	}
	w.pulse.turn.Store(m)
	synctest.Wait()
	w.guard.note(serverOf(m.name), func() string { return fmt.Sprintf("the actor %s handled %s", m.name, m.latest) })
	if h := m.inside.Load(); h != nil && !h.told {
		h.told = true
		w.record(history.Event{Side: history.Harness, Kind: history.Violation, Name: "I9", Server: serverOf(h.actor),
			Text: fmt.Sprintf("the actor %s blocks while it handles %s, and its mailbox waits%s", h.actor, h, blocked())})
	}
	w.watch.look()
	return true
}

// blocked says where an actor blocks, if only one does.
func blocked() string {
	var found []string
	for _, g := range within(bubbleOf(stack(false))) {
		inner := slices.IndexFunc(g.frames, func(f frame) bool { return f.own })
		if receive := slices.IndexFunc(g.frames, isReceive); inner >= 0 && receive > inner {
			found = append(found, g.told())
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

// sleep waits until something is due, or somebody rings.
func (w *world) sleep(timer *time.Timer) {
	select {
	case <-w.ring: // what it was about may be done already
		w.moved = true
		return
	default:
	}
	next, planned := w.line.next()
	if planned {
		timer.Reset(max(next-w.at, 0))
		select {
		case <-timer.C:
		case <-w.ring:
		}
	} else {
		<-w.ring
	}
	if now := w.clock(); now != w.at {
		w.at = now
		w.pulse.at.Store(int64(now))
		w.guard.moved()
	}
	w.moved = true
}

// serverOf is the server that an actor belongs to, empty for the others.
func serverOf(actor string) string {
	const prefix = "server/"
	if len(actor) > len(prefix) && actor[:len(prefix)] == prefix {
		return actor[len(prefix):]
	}
	return ""
}

// idle reports that nothing is left to do now.
func (w *world) idle() bool {
	w.items = w.inbox.take(w.items)
	return len(w.items) == 0 && w.turns.idle()
}

// each calls f for every host, in the order of the names.
func (w *world) each(f func(*host)) {
	if w.names == nil {
		w.names = slices.Sorted(maps.Keys(w.hosts))
	}
	for _, name := range w.names {
		f(w.hosts[name])
	}
}
