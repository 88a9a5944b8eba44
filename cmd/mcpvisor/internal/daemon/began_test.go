package daemon

import (
	"math"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/daemon/client"
)

// What a bridge says of its agent's wait is taken as it is, within bounds: it may be any number.
func TestWhenAnAgentBeganToWait(t *testing.T) {
	now := time.Now()
	for waited, want := range map[int64]time.Time{
		0: {}, -5: {}, 120: now.Add(-120 * time.Millisecond), math.MaxInt64: now.Add(-time.Hour), math.MinInt64: {},
	} {
		if got := beganWaiting(client.Hello{Waited: waited}, now); !got.Equal(want) {
			t.Errorf("waited %d: %s, not %s", waited, got, want)
		}
	}
}
