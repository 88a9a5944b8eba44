package sim

import (
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// A watcher is told of each server whose tools have changed, or of several at once, so that one that follows a single server misses no change.
func TestChangedToolsAreTold(t *testing.T) {
	for _, tt := range []struct {
		name     string
		news     map[string]bool
		changed  []history.Entries
		violated bool
	}{
		{"nothing has changed", map[string]bool{"mail": true}, nil, false},
		{"its own event", map[string]bool{"mail": true}, []history.Entries{{Server: "mail"}}, false},
		{"an event of several", map[string]bool{"": true}, []history.Entries{{Server: "mail"}, {Server: "notes"}}, false},
		{"the event of another", map[string]bool{"notes": true}, []history.Entries{{Server: "mail"}, {Server: "notes"}}, true},
		{"no event", map[string]bool{}, []history.Entries{{Server: "mail"}}, true},
	} {
		rec := history.NewRecorder(scenario.Plan{}, nil)
		w := &managerWatch{world: &simulation{rec: rec, start: time.Now()}, toolsNews: tt.news}
		w.checkTold(tt.changed)
		if n := rec.Len(); (n > 0) != tt.violated {
			t.Errorf("%s: %d violations", tt.name, n)
		}
	}
}
