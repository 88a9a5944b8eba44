package invariant

import (
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// I5: a reader who has seen a snapshot of a generation has seen all of its content. So a snapshot with other content has a
// higher generation, and no snapshot has a lower one than an earlier one.
//
// A generation may rise although no entry differs, because the catalog also holds the refused tools.
var generationCheck = newCheck("I5", "generations of the snapshot",
	"Snapshot generations rise strictly; equal generation, equal content.",
	"No snapshot was published.",
	func(c *checker) {
		last := -1
		for _, i := range c.x.ServerEvents("") {
			e := c.x.Event(i)
			if e.Kind != history.Snapshot {
				continue
			}
			c.judged++
			if last >= 0 {
				before := c.x.Event(last)
				switch {
				case e.Generation < before.Generation:
					c.reportViolation(firstServer(e), i, []int{last}, "Generation %d was published at %s after generation %d: a reader who "+
						"waits for a newer one never sees it.", e.Generation, timeText(e.T), before.Generation)
				// Entries holds only the servers that differ, so an empty one means equal content.
				case e.Generation == before.Generation && len(e.Entries) > 0:
					c.reportViolation(firstServer(e), i, []int{last}, "The content changed at %s (%s) and the generation stayed %d: a reader who "+
						"compares generations keeps the old tools.", timeText(e.T), firstServer(e), e.Generation)
				}
			}
			last = i
		}
	})

// firstServer returns a server in which a snapshot differs from the one before.
func firstServer(e *history.Event) string {
	if len(e.Entries) > 0 {
		return e.Entries[0].Server
	}
	return ""
}
