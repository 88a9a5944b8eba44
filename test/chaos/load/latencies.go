package load

import (
	"maps"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// Window is a part of a run.
type Window string

const (
	// Before is before the first fault.
	Before Window = "before"
	// While is from the first fault to the healing.
	While Window = "while"
	// After is from the healing on.
	After Window = "after"
)

// Windows are all, in order of time.
var Windows = []Window{Before, While, After}

// Health says if the plan breaks a server.
type Health string

const (
	Healthy Health = "healthy"
	Faulty  Health = "faulty"
)

// Healths are both.
var Healths = []Health{Healthy, Faulty}

// Latencies are the calls of a run, or of several.
type Latencies struct {
	servers map[perServer]*Cell
	groups  map[perGroup]*Cell
	health  map[string]Health
}

type perServer struct {
	server string
	window Window
}

type perGroup struct {
	health Health
	window Window
}

// New makes an empty one.
func New() *Latencies {
	return &Latencies{servers: map[perServer]*Cell{}, groups: map[perGroup]*Cell{}, health: map[string]Health{}}
}

// Measure takes the calls of a history.
func Measure(h *history.History) *Latencies {
	l := New()
	l.health = HealthIn(h.Plan)
	when := WindowsOf(h)
	type id struct{ server, call string }
	started := map[id]time.Duration{}
	for _, e := range h.Events {
		key := id{e.Server, e.Call}
		switch e.Kind {
		case history.Call:
			started[key] = e.T
		case history.End:
			at, ok := started[key]
			if !ok { // an end without a beginning, or a second one, is not a matter of time
				continue
			}
			delete(started, key)
			for _, c := range l.cellsOf(e.Server, when.WindowAt(at)) {
				c.Record(e.T-at, e.Outcome)
			}
		default:
		}
	}
	for key, at := range started {
		for _, c := range l.cellsOf(key.server, when.WindowAt(at)) {
			c.Open()
		}
	}
	return l
}

// cellsOf are those that a call of this server counts in.
func (l *Latencies) cellsOf(server string, w Window) [2]*Cell {
	health := l.health[server]
	if health == "" {
		health = Healthy
		l.health[server] = health
	}
	return [2]*Cell{
		cellFor(l.servers, perServer{server, w}, digitsOfServer), cellFor(l.groups, perGroup{health, w}, digitsOfGroup),
	}
}

// cellFor returns the cell of a key, and makes it at the first call of that key.
func cellFor[K comparable](m map[K]*Cell, key K, digits int) *Cell {
	c := m[key]
	if c == nil {
		c = newCell(digits)
		m[key] = c
	}
	return c
}

// Merge adds the calls of another run.
func (l *Latencies) Merge(other *Latencies) {
	for key, c := range other.servers {
		cellFor(l.servers, key, digitsOfServer).Merge(c)
	}
	for key, c := range other.groups {
		cellFor(l.groups, key, digitsOfGroup).Merge(c)
	}
	for server, health := range other.health {
		if l.health[server] != Faulty {
			l.health[server] = health
		}
	}
}

// Group returns the calls of the healthy or the faulty servers in a window; nil if there was no call.
func (l *Latencies) Group(h Health, w Window) *Cell { return l.groups[perGroup{h, w}] }

// Server returns the calls of one server in a window; nil if there was no call.
func (l *Latencies) Server(name string, w Window) *Cell { return l.servers[perServer{name, w}] }

// ServerTotal returns the calls of one server over all windows; nil if there was no call.
func (l *Latencies) ServerTotal(name string) *Cell {
	var whole *Cell
	for _, w := range Windows {
		if c := l.Server(name, w); c != nil {
			if whole == nil {
				whole = newCell(digitsOfServer)
			}
			whole.Merge(c)
		}
	}
	return whole
}

// Servers are the names of those that were called, sorted.
func (l *Latencies) Servers() []string {
	names := map[string]bool{}
	for key := range l.servers {
		names[key.server] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// HealthOf says if a server counts as faulty.
func (l *Latencies) HealthOf(server string) Health { return l.health[server] }

// disturbingCommands are the commands after which a server may rightly not answer.
var disturbingCommands = map[string]bool{
	"disable": true, "disconnect": true, "remove": true, "reconnect": true, "respec": true, "add": true, "adjust": true, "permit": true,
}

// HealthIn says of every server of a plan if it counts as faulty.
func HealthIn(p scenario.Plan) map[string]Health {
	out := map[string]Health{}
	all := slices.ContainsFunc(p.Faults, func(f scenario.PlannedFault) bool { return f.Server == "" })
	for _, s := range p.Servers {
		out[s.Name] = Healthy
		if all {
			out[s.Name] = Faulty
		}
	}
	for _, f := range p.Faults {
		if f.Server != "" {
			out[f.Server] = Faulty
		}
	}
	for _, o := range p.Commands {
		for _, s := range p.Servers {
			if o.Only != nil && !slices.Contains(o.Only, s.Name) {
				out[s.Name] = Faulty
			}
		}
		if o.Server != "" && disturbingCommands[o.Do] {
			out[o.Server] = Faulty
		}
	}
	return out
}

// Bounds are the times at which one window ends and the next begins.
type Bounds struct{ Broken, Healed time.Duration }

// WindowsOf finds the windows of a run: from its events, and from its plan where it was cut short.
func WindowsOf(h *history.History) Bounds {
	b := Bounds{Broken: -1, Healed: -1}
	for _, e := range h.Events {
		switch {
		case e.Kind == history.FaultOn && (b.Broken < 0 || e.T < b.Broken):
			b.Broken = e.T
		case e.Kind == history.Heal && (b.Healed < 0 || e.T < b.Healed):
			b.Healed = e.T
		}
	}
	if b.Healed < 0 {
		b.Healed = h.Plan.Heal
	}
	if b.Broken < 0 {
		b.Broken = b.Healed
		for _, f := range h.Plan.Faults {
			b.Broken = min(b.Broken, f.Begin)
		}
	}
	return b
}

// WindowAt is the window of a time.
func (b Bounds) WindowAt(at time.Duration) Window {
	switch {
	case at >= b.Healed:
		return After
	case at >= b.Broken:
		return While
	}
	return Before
}
