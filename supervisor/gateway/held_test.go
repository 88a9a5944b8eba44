package gateway

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/transports/budget"
)

// TestMiscounted counts the counters that differ from what they count: those of levels, of places for suspended calls and for watches, of tasks and of the
// bytes of windows.
func TestMiscounted(t *testing.T) {
	for name, c := range map[string]struct {
		change func(g *Gateway, v *view)
		want   int
	}{
		"nothing":                          {func(*Gateway, *view) {}, 0},
		"the level of a session that left": {func(_ *Gateway, v *view) { v.wanted[2]++ }, 1},
		"the place of a call that ended":   {func(g *Gateway, _ *view) { g.suspended.count = map[string]int{"anna": 1} }, 1},
		"the place of a watch that ended": {func(g *Gateway, _ *view) {
			g.watches.taken = map[watchKey]*takenPlaces{{server: "a"}: {all: 1, byHolder: map[any]int{"anna": 1}}}
		}, 1},
		"the place of a watch, and of one that is being ended": {func(g *Gateway, _ *view) {
			g.watches.placeFor(watchKey{server: "a", uri: "x"}, "anna").holders["anna"]++
			g.watches.placeFor(watchKey{server: "a", uri: "y"}, "anna")
			g.watches.taken[watchKey{server: "a"}].byHolder["anna"]++
		}, 0},
		"a task that is known to nobody": {func(g *Gateway, _ *view) { g.tasks.count++ }, 1},
		"the bytes of an answer that was read": {func(g *Gateway, _ *view) {
			g.agentsOf("anna").windows.byServer = map[string]*window{"a": {expected: 7}, "b": {requests: 1, expected: 7}}
		}, 1},
		"the level of a session, and twice": {func(_ *Gateway, v *view) { v.addLeveled(3); v.addLeveled(3) }, 0},
	} {
		v := &view{sessions: map[*session]struct{}{}}
		g := &Gateway{views: map[viewKey]*view{{}: v}, kept: budget.New(0)}
		c.change(g, v)
		if got := g.Held().Miscounted; got != c.want {
			t.Errorf("%s: %d are miscounted, want %d", name, got, c.want)
		}
	}
}

// addLeveled adds a session that has set a level.
func (v *view) addLeveled(rank int) {
	st := &session{}
	v.sessions[st] = struct{}{}
	v.setLevel(st, rank)
}
