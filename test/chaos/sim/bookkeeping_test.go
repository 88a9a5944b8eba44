package sim

import (
	"slices"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// The actors of these tests have a part at each distance. loopedActor leads to itself as well, as the manager's parts do.
type (
	ownActor struct {
		actor.Actor
		state lifecycle.State
	}
	viewActor struct {
		actor.Actor
		view *actors.View
	}
	loopedActor struct {
		actor.Actor
		self *loopedActor
		view *actors.View
	}
	lockedActor struct {
		actor.Actor
		mu    sync.Mutex
		state lifecycle.State
	}
)

// TestPartsAreAskedAfterEachMessage has actors with parts at each distance, and the reports of those that contradict themselves.
func TestPartsAreAskedAfterEachMessage(t *testing.T) {
	bad := lifecycle.State{Phase: messages.Connected} // nothing wants it
	looped := &loopedActor{view: &actors.View{State: bad}}
	looped.self = looped
	taken := &lockedActor{state: bad}
	taken.mu.Lock()
	defer taken.mu.Unlock()
	for what, c := range map[string]struct {
		actor actor.Actor
		found bool
	}{
		"one behind a lock":              {&lockedActor{state: bad}, true},
		"one that a call is at work on":  {taken, false},
		"its own":                        {&ownActor{state: bad}, true},
		"one behind a pointer":           {&viewActor{view: &actors.View{State: bad}}, true},
		"one of an actor that has loops": {looped, true},
		"one that is right":              {&ownActor{}, false},
		"none":                           {&viewActor{}, false},
		"an actor that is a value":       {struct{ actor.Actor }{}, false},
	} {
		rec := history.NewRecorder(scenario.Plan{}, nil)
		w := newSimulation(scenario.Plan{}, Options{}, rec, &pulse{})
		for range 2 { // the first contradiction is reported, once
			w.turns.handled(c.actor, &handledMessage{actor: "server/s1", message: &actor.Started{}})
		}
		var got, want []string
		for _, e := range rec.History().Events {
			got = append(got, e.Name+": "+e.Text)
		}
		if c.found {
			want = []string{"I29: a lifecycle.State contradicts itself, after the actor server/s1 has handled *actor.Started: " + bad.Check().Error()}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
}

// TestLargeRunsAskSeldom has a run with many servers, whose parts are asked once in so many messages.
func TestLargeRunsAskSeldom(t *testing.T) {
	rec := history.NewRecorder(scenario.Plan{}, nil)
	w := newSimulation(scenario.Plan{Servers: make([]scenario.Server, bookkeepingMost+1)}, Options{}, rec, &pulse{})
	a := &ownActor{state: lifecycle.State{Phase: messages.Connected}}
	for n := range (bookkeepingMost + 1) * bookkeepingPause {
		if len(rec.History().Events) != 0 {
			t.Fatalf("it was asked after the message %d", n)
		}
		w.turns.handled(a, nil)
	}
	if n := len(rec.History().Events); n != 1 {
		t.Errorf("%d contradictions were recorded", n)
	}
	due := 0
	for range 3 * bookkeepingMost {
		if w.bookkeeping.isGlanceDue() {
			due++
		}
	}
	if due != 3 || !(&bookkeeping{}).isGlanceDue() {
		t.Errorf("the catalog was asked at %d of %d glances", due, 3*bookkeepingMost)
	}
}

// TestTheCatalogIsAsked has a catalog without contradictions, which is asked at the glances.
func TestTheCatalogIsAsked(t *testing.T) {
	var b bookkeeping
	b.report = func(_, text string) { t.Error(text) }
	b.askCatalog(catalog.Empty(messages.Naming{}))
}

// TestRemovedServersAreForgotten has glances at what the catalog remembers and the manager has.
func TestRemovedServersAreForgotten(t *testing.T) {
	type glance struct{ remembered, servers []string }
	a, ab := []string{"a"}, []string{"a", "b"}
	for what, c := range map[string]struct {
		glances []glance
		want    int
	}{
		"it is there":                        {[]glance{{ab, ab}, {ab, ab}}, 0},
		"it was removed a moment ago":        {[]glance{{ab, ab}, {ab, a}, {a, a}}, 0},
		"it was removed and is kept":         {[]glance{{ab, ab}, {ab, a}, {ab, a}}, 1},
		"it was removed, and another time":   {[]glance{{ab, a}, {ab, ab}, {ab, a}}, 0},
		"it is kept for longer than a while": {[]glance{{ab, a}, {ab, a}, {ab, a}}, 2},
	} {
		rec := history.NewRecorder(scenario.Plan{}, nil)
		w := newSimulation(scenario.Plan{}, Options{}, rec, &pulse{})
		for _, g := range c.glances {
			w.checkRemembered(g.remembered, g.servers)
		}
		if n := len(rec.History().Events); n != c.want {
			t.Errorf("%s: %d findings, want %d", what, n, c.want)
		}
	}
}
