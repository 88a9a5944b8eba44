package invariant

import (
	"strings"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// I10: the harness gives every manager secrets that no other place holds, makes servers reveal them and characters that act on
// a terminal, and looks for both in everything that the manager shows. A Log event is recorded only if it holds one.
var canaryCheck = newCheck("I10", "secrets and control characters",
	"No canary secret and no control character in any output.",
	"No server was made to say a secret or a control character (leak-canary, control-characters).",
	func(c *checker) {
		for _, f := range c.plan.Faults {
			if f.Fault == "leak-canary" || f.Fault == "control-characters" {
				c.judged++
			}
		}
		for _, i := range c.x.Order() {
			e := c.x.Event(i)
			if e.Kind != history.Canary && e.Kind != history.Log {
				continue
			}
			c.judged++
			// The text itself may hold the secret, so the reason names only its place.
			where := "an output"
			if e.Kind == history.Log {
				where = "the log"
			} else if place, _, ok := strings.Cut(e.Text, ":"); ok && len(place) < 80 {
				where = place
			}
			c.reportViolation(e.Server, i, nil, "A secret or a control character came out in %s at %s.", where, timeText(e.T))
		}
	})
