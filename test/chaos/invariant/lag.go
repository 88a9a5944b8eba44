package invariant

import (
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// lagOf returns the greatest delay of the recording process itself, as it measured it. A machine with more work than processors
// delays the manager, the servers and the harness alike, so the bounds of a real run grow with it and do not judge the machine.
func lagOf(h *history.History) (most time.Duration) {
	for i := range h.Events {
		if e := &h.Events[i]; e.Kind == history.Resources && e.House != nil {
			most = max(most, e.House.Lag)
		}
	}
	return most
}
