package sim

import (
	"reflect"
	"slices"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// endedActor is an actor that has reached its end.
type endedActor struct {
	actor.Actor
	config *supervisor.Config
}

// TestEntriesThatWereLeftAreNoticed has what is still in the maps and lists of the manager's parts when nothing of it runs.
func TestEntriesThatWereLeftAreNoticed(t *testing.T) {
	cfg := &supervisor.Config{
		Servers:      map[string]messages.Spec{"s": {Command: "c"}, "t": {Command: "c"}},
		Interceptors: []supervisor.Interceptor{nil}, // allowed
	}
	for what, c := range map[string]struct {
		owner any
		want  []string
	}{
		"a map": {cfg, []string{"I12: 2 entries were left in supervisor.Config.Servers"}},
		"one entry": {&supervisor.Config{Servers: map[string]messages.Spec{"s": {}}},
			[]string{"I12: One entry was left in supervisor.Config.Servers"}},
		"nothing":                {actors.NewRegistry(actors.RegistryConfig{}), nil},
		"what is not our own":    {&endedActor{config: cfg}, nil},
		"an empty list of a map": {&supervisor.Config{Servers: map[string]messages.Spec{}}, nil},
	} {
		rec := history.NewRecorder(scenario.Plan{}, nil)
		w := newSimulation(scenario.Plan{}, Options{}, rec, &pulse{})
		w.leftEntries.ended = append(w.leftEntries.ended, reflect.ValueOf(c.owner))
		w.checkLeftEntries()
		var got []string
		for _, e := range rec.History().Events {
			got = append(got, e.Name+": "+e.Text)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", what, got)
		}
	}
}
