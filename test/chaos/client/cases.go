package client

import (
	"cmp"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/generate"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/transports/fault"
)

// Ordinary is the name of the case in which nothing breaks.
const Ordinary = "ordinary"

// Case is one short day with one fault of the catalogue, or none.
type Case struct {
	// Name is the fault's, or Ordinary.
	Name string
	Kind messages.TransportKind
	Era  messages.Era
}

// Cases returns the cases for servers of a kind and an era, the ordinary day first: one for each fault that such a server can have
// and a client can meet.
func Cases(kind messages.TransportKind, era messages.Era) []Case {
	all := []Case{{Ordinary, kind, era}}
	for _, name := range generate.ClientFaults(kind, era) {
		all = append(all, Case{name, kind, era})
	}
	return all
}

const (
	// faultAt and faultFor are when the fault of a case begins, and how long it lasts.
	faultAt, faultFor = 5 * time.Second, 15 * time.Second
	// afterBack is the time in which calls must succeed at the end of a day.
	afterBack = 15 * time.Second
)

// Day returns the day of a case.
func (c Case) Day(l Limits) scenario.Scenario {
	s := scenario.Scenario{
		Name: string(c.Era) + "-" + c.Name, About: "One fault, and a client that goes on calling.", Seed: 1, Tiers: []scenario.Tier{scenario.Sim},
		Duration: messages.Duration(faultAt + faultFor + 5*time.Second),
		Servers:  []scenario.Group{{Name: "server", Kind: c.Kind, Era: c.Era, Tools: 4, Pages: 2, Latency: messages.Duration(20 * time.Millisecond)}},
		Settle:   messages.Duration(l.withDefaults().Back + afterBack),
	}
	s.Load = loadOf(s, 1.5, 8*time.Second, l)
	k, ok := fault.Lookup(c.Name)
	if !ok {
		return s
	}
	f := scenario.Fault{Fault: c.Name, At: messages.Duration(faultAt)}
	if !k.Instant.Has(fault.Sim) {
		f.For = messages.Duration(faultFor)
	}
	switch c.Name {
	case "big-result":
		f.With = map[string]string{"size": "64KiB"} // a megabyte costs some clients seconds of a processor
	case "huge-line":
		f.For = messages.Duration(2 * time.Second)
	}
	s.Faults = []scenario.Fault{f}
	// What happens to a start needs one: the server ends meanwhile.
	if slices.Contains(generate.AtStart, c.Name) {
		s.Faults = append(s.Faults, scenario.Fault{Fault: "crash", At: messages.Duration(faultAt + time.Second)})
	}
	return s
}

// loadOf returns the calls of a day: until a while after the last fault, and again when they must succeed. In between a client has
// time to come back, and nothing is learnt from its calls.
func loadOf(s scenario.Scenario, rate float64, timeout time.Duration, l Limits) (all []scenario.Load) {
	for _, span := range [][2]time.Duration{
		{0, time.Duration(s.Duration) + 5*time.Second}, {time.Duration(s.Duration) + l.withDefaults().Back, afterBack},
	} {
		for tool, share := range map[string]float64{scenario.WriteTool: 1, scenario.ReadTool: 0.3} {
			all = append(all, scenario.Load{
				Tool: tool, Rate: rate * share, Timeout: messages.Duration(timeout), From: messages.Duration(span[0]), For: messages.Duration(span[1]),
			})
		}
	}
	slices.SortFunc(all, func(a, b scenario.Load) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(b.Tool, a.Tool)) })
	return all
}

// RandomDay returns the day of a seed for servers of a kind and an era: one server or several, a few faults, calls of which some are
// given up, and restarts of the client.
func RandomDay(seed uint64, kind messages.TransportKind, era messages.Era, l Limits) scenario.Scenario {
	s, calls := generate.Client(seed, kind, era)
	s.Settle = messages.Duration(l.withDefaults().Back + afterBack)
	for i, g := range s.Servers {
		for _, one := range loadOf(s, calls[i].Rate, calls[i].Timeout, l) {
			one.On, one.Cancel = scenario.Selector{g.Name}, calls[i].Cancel
			s.Load = append(s.Load, one)
		}
	}
	return s
}
