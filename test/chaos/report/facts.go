package report

import (
	"maps"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/load"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// facts are what the forms of a report are drawn from. They are made once.
type facts struct {
	run     Run
	end     time.Duration
	bounds  load.Bounds
	load    *load.Latencies
	servers []server
	faults  []fault
	gate    occupancy
	// restarts are the times of every opening after a server's first.
	restarts []time.Duration
}

// server is one of the plan, or one that only events know.
type server struct {
	scenario.Server
	events   []int
	bands    []band
	openings []opening
	faults   []int // places in facts.faults
}

// fault is a planned one with what became of it. On and Off are -1 if they never came.
type fault struct {
	scenario.PlannedFault
	On, Off time.Duration
	Fired   int
}

func factsOf(r Run) *facts {
	h := r.History
	f := &facts{run: r, end: max(runLength(h), 1), bounds: load.WindowsOf(h), load: load.Measure(h)}
	f.faults = faultsOf(h)
	closing := closingOf(h, f.end)
	known := map[string]scenario.Server{}
	for _, s := range h.Plan.Servers {
		known[s.Name] = s
	}
	for _, name := range h.Index().Servers() {
		if _, ok := known[name]; !ok {
			known[name] = scenario.Server{Name: name}
		}
	}
	faultsByServer := map[string][]int{}
	for i, x := range f.faults {
		faultsByServer[x.Server] = append(faultsByServer[x.Server], i)
	}
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

// closingOf is when the manager was closed, or after the end if it never was.
func closingOf(h *history.History, end time.Duration) time.Duration {
	for _, i := range h.Index().ServerEvents("") {
		if e := &h.Events[i]; e.Kind == history.Closing {
			return e.T
		}
	}
	return end + 1
}

// faultsOf are the faults of the plan in its order, and those that only events know behind them.
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

// busiestMinute counts times by the minute, and gives the minute with the most.
func busiestMinute(times []time.Duration) (top int, at time.Duration) {
	counts := map[time.Duration]int{}
	for _, t := range times {
		m := t.Truncate(time.Minute)
		if counts[m]++; counts[m] > top || counts[m] == top && m < at {
			top, at = counts[m], m
		}
	}
	return top, at
}

// attempts counts servers by how many openings they had: none, 1, 2, 3–5, 6–10, 11–20, 21–50, 51–100, more.
var attemptBins = []struct {
	Label string
	Upto  int
}{{"0", 0}, {"1", 1}, {"2", 2}, {"3–5", 5}, {"6–10", 10}, {"11–20", 20}, {"21–50", 50}, {"51–100", 100}, {"101–300", 300},
	{"more", 1 << 62}}

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
