package restart

import (
	"errors"
	"fmt"
	"slices"
)

// Stats describes a gate as of the last call of Next: slots that have expired since are still counted.
type Stats struct {
	// Waiting counts requests that were not granted; Due are those of them that wait for nothing but a slot.
	Waiting, Due int
	// Processes, Network and InProcess count the slots in use.
	Processes, Network, InProcess int
	// Width is the number of slots for processes now: less than Limits.Processes while the machine is starved.
	Width int
	// Unanswered counts processes that have neither answered nor closed, with a slot or without. Installing counts apart those
	// that fetch the program they run.
	Unanswered, Installing int
	// Granted counts all grants since the gate was made.
	Granted uint64
}

// Stats returns the counters, in constant time.
func (g *Gate) Stats() Stats {
	return Stats{
		Waiting: len(g.waiting), Due: g.processes.dueRequests + g.network.dueRequests + g.inProcess.dueRequests,
		Processes: g.processes.slotsHeld, Width: g.processes.width.now, Network: g.network.slotsHeld, InProcess: g.inProcess.slotsHeld,
		Unanswered: g.processes.unanswered, Installing: g.processes.installing, Granted: g.granted,
	}
}

// Check verifies G1, G2 and the bookkeeping by counting everything again, and returns every violation. It visits
// every request: it is for tests, the harness and debug builds.
func (g *Gate) Check() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	// Everything below is counted from the grants and the requests themselves, and then compared with the pools' counters.
	type count struct{ held, unanswered, installing int }
	eager := map[*pool]int{}
	displaced := map[*pool]int{}
	counts, lanes := map[*pool]*count{}, map[*originQueue]int{}
	pools := map[string]*pool{"processes": g.processes, "network": g.network, "in process": g.inProcess}
	for _, p := range pools {
		counts[p] = &count{}
	}
	for server, o := range g.open {
		if o.server != server {
			fail("%s stands under %s", o.server, server)
		}
		if o.apart {
			counts[o.pool].installing++
		} else {
			counts[o.pool].unanswered++
		}
		if o.displaced {
			displaced[o.pool]++
			if o.spared || o.holding {
				fail("G10: %s is displaced; spared %v, holding a slot %v", server, o.spared, o.holding)
			}
		}
		listed := slices.Contains(o.pool.silent, o)
		if may := o.pool.maxUnanswered > 0 && !o.holding && !o.spared && !o.displaced; listed != may {
			fail("%s may be displaced: %v, and is listed: %v", server, may, listed)
		}
		if o.holding {
			counts[o.pool].held++
			lanes[o.origin]++
		}
	}
	placed := len(g.future.items)
	for name, p := range pools {
		if p.slotsHeld > p.limit {
			fail("G1: %d slots of %s are held, %d exist", p.slotsHeld, name, p.limit)
		}
		if w := p.width; w.now < min(2, p.limit) || w.now > p.limit || p.maxUnanswered == 0 && w.now != p.limit {
			fail("G11: %s has a width of %d, and a limit of %d", name, w.now, p.limit)
		}
		if p.maxUnanswered > 0 && p.unanswered > p.maxUnanswered {
			fail("G2: %d of %s have not answered, %d may", p.unanswered, name, p.maxUnanswered)
		}
		if p.installing > p.maxUnanswered || p.installing != counts[p].installing {
			fail("G2: %s counts %d that install, it has %d, and %d may", name, p.installing, counts[p].installing, p.maxUnanswered)
		}
		if c := counts[p]; p.slotsHeld != c.held || p.unanswered != c.unanswered {
			fail("%s counts %d held and %d unanswered, it has %d and %d", name, p.slotsHeld, p.unanswered, c.held, c.unanswered)
		}
		due := 0
		for origin, l := range p.byOrigin {
			if p.perOrigin > 0 && origin != "" && l.slotsHeld > p.perOrigin {
				fail("G1: origin %s holds %d slots, %d may be held", origin, l.slotsHeld, p.perOrigin)
			}
			if l.slotsHeld != lanes[l] {
				fail("origin %q of %s counts %d slots, it has %d", origin, name, l.slotsHeld, lanes[l])
			}
			requests := 0
			for c := range l.queues {
				requests += len(l.queues[c].items)
				if ready := l.readyIndex[c] >= 0; ready != (!l.queues[c].isEmpty() && !p.isOriginFull(l)) {
					fail("origin %q of %s is ready for class %v: %v", origin, name, Priority(c), ready)
				}
				for _, w := range l.queues[c].items {
					if w.Displaces {
						eager[p]++
					}
					if g.open[w.Server] != nil {
						fail("G5: %s could be granted and has not ended", w.Server)
					}
				}
			}
			if requests == 0 && l.slotsHeld == 0 {
				fail("origin %q of %s is empty and remembered", origin, name)
			}
			due += requests
		}
		if due != p.dueRequests || eager[p] != p.eager || displaced[p] != p.displaced {
			fail("%s counts %d due, %d that may displace and %d displaced; it has %d, %d and %d", name, p.dueRequests, p.eager, p.displaced,
				due, eager[p], displaced[p])
		}
		for _, o := range p.silent {
			if g.open[o.server] != o {
				fail("%s may be displaced, and has ended", o.server)
			}
		}
		placed += due
	}
	for server, w := range g.waiting {
		if w.heap == nil && g.open[server] == nil {
			fail("%s waits nowhere", server)
		}
		if w.heap == nil {
			placed++
		}
	}
	if placed != len(g.waiting) {
		fail("%d requests wait, %d have a place", len(g.waiting), placed)
	}
	return errors.Join(errs...)
}
