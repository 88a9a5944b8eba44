package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// faultWindow is the time in which a planned fault had power over a server.
type faultWindow struct {
	// id is the fault's number in the plan.
	from, to time.Duration
	fault    string
	id       int
	// planned is set if the fault stands in the plan, and not only in the history.
	planned bool
}

// faultWindows returns every window over a server, sorted by begin, including faults of the whole machine. A window joins the
// plan's times with those of the fault-on and fault-off events, which are a little later in a real run.
func (c *checker) faultWindows(server string) []faultWindow {
	if c.windows == nil {
		c.windows = map[string][]faultWindow{}
		c.collectWindows()
	}
	if _, known := c.windows[server]; !known {
		return c.machineWindows
	}
	return c.windows[server]
}

// collectWindows computes the windows of all servers.
func (c *checker) collectWindows() {
	byID := map[int]*faultWindow{}
	where := map[int]string{}
	for _, f := range c.plan.Faults {
		byID[f.ID] = &faultWindow{from: f.Begin, to: max(f.End, f.Begin), fault: f.Fault, id: f.ID, planned: true}
		where[f.ID] = f.Server
	}
	for _, i := range c.x.Order() {
		e := c.x.Event(i)
		if e.Kind != history.FaultOn && e.Kind != history.FaultOff {
			continue
		}
		w := byID[e.Fault]
		if w == nil {
			w = &faultWindow{from: e.T, to: e.T, fault: e.Name, id: e.Fault}
			byID[e.Fault], where[e.Fault] = w, e.Server
		}
		w.from, w.to = min(w.from, e.T), max(w.to, e.T)
	}
	for id, w := range byID {
		if where[id] == "" {
			c.machineWindows = append(c.machineWindows, *w)
		} else {
			c.windows[where[id]] = append(c.windows[where[id]], *w)
		}
	}
	byBegin := func(a, b faultWindow) int {
		if a.from != b.from {
			return int(a.from - b.from)
		}
		return a.id - b.id
	}
	for server := range c.windows {
		c.windows[server] = append(c.windows[server], c.machineWindows...)
		slices.SortFunc(c.windows[server], byBegin)
	}
	slices.SortFunc(c.machineWindows, byBegin)
}

// underFault reports whether one of the named faults (any, if none is named) had power over a server at some time between from
// and to, with skew on both sides. An instant fault counts for as long as its first consequences may take.
func (c *checker) underFault(server string, from, to time.Duration, names ...string) bool {
	for _, w := range c.faultWindows(server) {
		if w.from > to+c.skew {
			return false
		}
		if w.to+c.skew >= from && (len(names) == 0 || slices.Contains(names, w.fault)) {
			return true
		}
	}
	return false
}

// slowReadFaults are the faults under which a server may read long after it was written to, because the bytes lie in a pipe or
// a socket buffer.
var slowReadFaults = []string{"stop", "deaf", "half-open", "black-hole", "partition", "slow-drip", "sleep", "throttle", "refuse"}
