package agents

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
)

// TestHeldText: a reader sees what a gateway keeps, and no list of what it does not.
func TestHeldText(t *testing.T) {
	for want, h := range map[string]gateway.Held{
		"11 sessions":                                 {Sessions: 11},
		"2 watched resources":                         {Watches: 2},
		"1 tasks, 30 bytes of calls":                  {Tasks: 1, Kept: 30},
		"3 counters that differ from what they count": {Miscounted: 3},
	} {
		if got := heldText(h); got != want {
			t.Errorf("%+v: %q, want %q", h, got, want)
		}
	}
}
