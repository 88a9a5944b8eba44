package report

import (
	"maps"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/load"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// facts holds what the forms of a report have in common, computed once from a Run.
type facts struct {
	run Run
	// end is the length of the run, at least 1, so that it can be a divisor.
	end     time.Duration
	bounds  load.Bounds
	load    *load.Latencies
	servers []server
	faults  []fault
	gate    occupancy
	// restarts holds the times of every opening after a server's first, sorted.
	restarts []time.Duration
}

// server is one server of the plan, or one that only events mention.
type server struct {
	scenario.Server
	// events holds indexes in the history, in order of time.
	events   []int
	bands    []band
	openings []opening
	// faults holds indexes in facts.faults.
	faults []int
}

// fault is a planned fault with its effects. On and Off are -1 if they never came.
type fault struct {
	scenario.PlannedFault
	On, Off time.Duration
	Fired   int
}

// factsOf computes the facts of a run.
func factsOf(r Run) *facts {
	h := r.History
	f := &facts{run: r, end: max(runLength(h), 1), bounds: load.WindowsOf(h), load: load.Measure(h)}
	f.faults = faultsOf(h)
	closing := closingOf(h, f.end)
	known := map[string]scenario.Server{}
	for _, s := range h.Plan.Servers {
		known[s.Name] = s
	}
	// A history from another version may have servers that its plan does not list.
	for _, name := range h.Index().Servers() {
		if _, ok := known[name]; !ok {
			known[name] = scenario.Server{Name: name}
		}
	}
	faultsByServer := map[string][]int{}
	for i, x := range f.faults {
		faultsByServer[x.Server] = append(faultsByServer[x.Server], i)
	}
	// Sorted by name, so that two reports of one history are the same.
	for _, name := range slices.Sorted(maps.Keys(known)) {
		events := h.Index().ServerEvents(name)
		s := server{Server: known[name], events: events, bands: bandsOf(h, events, closing), openings: openingsOf(h, name, f.end), faults: faultsByServer[name]}
		for i, o := range s.openings {
			f.gate.addOpening(h.Plan, s.Kind, o)
			if i > 0 {
				f.restarts = append(f.restarts, o.at)
			}
		}
		f.servers = append(f.servers, s)
	}
	for i := range f.gate {
		f.gate[i] = sortChanges(f.gate[i])
	}
	slices.Sort(f.restarts)
	return f
}

// closingOf returns the time at which the manager was closed, or a time after the end if it never was.
func closingOf(h *history.History, end time.Duration) time.Duration {
	for _, i := range h.Index().ServerEvents("") {
		if e := &h.Events[i]; e.Kind == history.Closing {
			return e.T
		}
	}
	return end + 1
}

// faultsOf returns the faults of the plan in its order, followed by those that only events mention.
func faultsOf(h *history.History) []fault {
	var out []fault
	at := map[int]int{}
	for _, p := range h.Plan.Faults {
		at[p.ID] = len(out)
		out = append(out, fault{PlannedFault: p, On: -1, Off: -1})
	}
	for i := range h.Events {
		e := &h.Events[i]
		if e.Kind != history.FaultOn && e.Kind != history.FaultOff && e.Kind != history.Fired {
			continue
		}
		// A fault of a hand-written history may be missing in its plan; it counts from its first event on.
		index, ok := at[e.Fault]
		if !ok {
			index = len(out)
			at[e.Fault] = index
			out = append(out, fault{PlannedFault: scenario.PlannedFault{ID: e.Fault, Fault: e.Name, Server: e.Server, Begin: e.T,
				End: e.T}, On: -1, Off: -1})
		}
		f := &out[index]
		switch e.Kind {
		case history.FaultOn:
			f.On = e.T
		case history.FaultOff:
			f.Off = e.T
		case history.Fired:
			f.Fired++
		default:
		}
	}
	return out
}

// busiestMinute returns the minute with the most of the times, and their number; of equal ones the first.
func busiestMinute(times []time.Duration) (top int, at time.Duration) {
	counts := map[time.Duration]int{}
	for _, t := range times {
		m := t.Truncate(time.Minute)
		// Minutes begin at multiples of a minute since the start: a sliding window would find a higher number, and no reader
		// could look it up.
		if counts[m]++; counts[m] > top || counts[m] == top && m < at {
			top, at = counts[m], m
		}
	}
	return top, at
}

// attemptBins are the columns of the histogram of servers by their openings; Upto is the largest number in a column.
var attemptBins = []struct {
	Label string
	Upto  int
}{{"0", 0}, {"1", 1}, {"2", 2}, {"3–5", 5}, {"6–10", 10}, {"11–20", 20}, {"21–50", 50}, {"51–100", 100}, {"101–300", 300},
	{"more", 1 << 62}}

// attemptCounts returns the number of servers in each of attemptBins.
func (f *facts) attemptCounts() []int {
	out := make([]int, len(attemptBins))
	for _, s := range f.servers {
		i := 0
		for len(s.openings) > attemptBins[i].Upto {
			i++
		}
		out[i]++
	}
	return out
}
