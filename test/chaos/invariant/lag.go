package invariant

import (
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// lagOf is by how much the recording process itself was late at most, as it measured it. A machine that has more to do than it
// has processors makes everybody late, the manager and the servers too; a bound that takes no account of it would judge the
// machine.
func lagOf(h *history.History) (most time.Duration) {
	for i := range h.Events {
		if e := &h.Events[i]; e.Kind == history.Resources && e.House != nil {
			most = max(most, e.House.Lag)
		}
	}
	return most
}
