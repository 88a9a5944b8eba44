package invariant

import (
	"fmt"
	"strings"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// These bound what a real process may hold after a run beyond what it held before: the Go runtime and its network poller create
// descriptors and goroutines with the first child or socket and keep them. The simulation may keep nothing.
const (
	keptDescriptors = 4
	keptGoroutines  = 8
	keptHeap        = 64 << 20
)

// I12: after Close nothing is left: no process, descriptor or goroutine beyond those before the manager, no timer that sends to an actor
// which has ended (the simulation sees those), and every connection that a server saw has been released.
var cleanupCheck = newCheck("I12", "a clean house",
	"Processes, file descriptors, goroutines and timers are back at the baseline.",
	"The run did not reach the end of Close, so nothing can be said of what it leaves.",
	func(c *checker) {
		// Virtual time begins with nothing.
		baseline := &history.Event{House: &history.ResourceUsage{}}
		var after *history.Event
		measured := !c.real
		afterAt, closed := -1, -1
		for _, i := range c.x.ServerEvents("") {
			switch e := c.x.Event(i); {
			case e.Kind == history.Resources && e.House != nil && e.Text == "baseline":
				baseline, measured = e, true
			case e.Kind == history.Resources && e.House != nil && e.Text == "after close":
				after, afterAt = e, i
			case e.Kind == history.Closed:
				closed = i
			}
		}
		if measured && after != nil {
			c.judged++
			if over := c.excessText(baseline.House, after.House); over != "" {
				c.reportViolation("", afterAt, nil, "When Close had returned, at %s, there was more than before the run: %s.",
					timeText(after.T), over)
			}
		}
		if closed < 0 {
			return
		}
		for _, server := range c.x.Servers() {
			for _, conn := range c.x.Conns(server) {
				if conn.Open < 0 {
					continue
				}
				c.judged++
				if conn.Released < 0 && conn.Refused < 0 {
					c.reportViolation(server, closed, []int{conn.Open, conn.Down}, "Connection %d, opened at %s, was never released: when Close returned, "+
						"at %s, something of it was still there.", conn.Conn, timeText(c.x.Event(conn.Open).T), timeText(c.x.Event(closed).T))
				}
			}
		}
	})

// excessText describes what there is more of than before, empty if nothing is.
func (c *checker) excessText(before, after *history.ResourceUsage) string {
	descriptors, goroutines := 0, 0
	if c.real {
		descriptors, goroutines = keptDescriptors, keptGoroutines
	}
	var out []string
	addExcess := func(what string, was, count, may int) {
		if count > was+may {
			out = append(out, fmt.Sprintf("%d %s instead of %d", count, what, was))
		}
	}
	addExcess("processes", before.Processes, after.Processes, 0)
	// A system that does not tell descriptors or memory reports 0.
	if before.Descriptors > 0 && after.Descriptors > 0 {
		addExcess("open files", before.Descriptors, after.Descriptors, descriptors)
	}
	addExcess("goroutines", before.Goroutines, after.Goroutines, goroutines)
	if before.Heap > 0 && after.Heap > before.Heap+keptHeap {
		out = append(out, fmt.Sprintf("%d MiB of memory instead of %d", after.Heap>>20, before.Heap>>20))
	}
	for _, leftover := range after.Left {
		out = append(out, strings.TrimSuffix(leftover, "."))
	}
	if len(out) > 3 {
		out = append(out[:3], fmt.Sprintf("and %d more", len(out)-3))
	}
	return strings.Join(out, "; ")
}
