package generate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

const (
	// wellGroup is the name of the servers that no fault meets.
	wellGroup = "well"
	// quietTime is the time without faults at the beginning of a day in which callers are compared, and how long the calls go
	// on after the first fault: a 99th percentile needs 200 calls before and as many during the faults.
	quietTime = 40 * time.Second
	// wellServers is the number of servers of such a day that meet no fault, and wellRate the calls per second that each of
	// them gets.
	wellServers = 4
	wellRate    = 2
	// comparedShare is the share of suitable days that are made so: about one in eight of all days.
	comparedShare = 0.25
)

// makeComparison turns a day into one that shows whether healthy servers are served as before while faults meet others. It
// comes after the other draws from the shared source, so that every other day is the same as without it. A day with a sleeping
// machine, a wake command or a change of the set is left alone, because these meet every server.
func (d *scenarioBuilder) makeComparison() {
	if !d.drawChance(comparedShare) || len(d.o.Only) > 0 || d.o.Duration > 0 || len(d.s.Faults) == 0 || d.serverCount()+wellServers > d.o.Servers ||
		d.length+quietTime > 20*time.Minute {
		return
	}
	for _, f := range d.s.Faults {
		// A fault without a selector meets every server.
		if len(f.On) == 0 {
			return
		}
	}
	for _, c := range d.s.Commands {
		if c.Do == "wake" || c.Do == scenario.ConnectAll || c.Do == scenario.DisconnectAll || c.Do == "configure" && len(c.On) > 0 {
			return
		}
	}
	first := d.length
	// The new servers must meet no fault, so each selector is written out before they are added.
	for i := range d.s.Faults {
		f := &d.s.Faults[i]
		f.On = d.selectorByNames(f)
		f.At += messages.Duration(quietTime)
		first = min(first, time.Duration(f.At))
	}
	for i := range d.s.Commands {
		d.s.Commands[i].At += messages.Duration(quietTime)
	}
	// The steady load names no server and stays where it is.
	for i := range d.s.Load {
		if l := &d.s.Load[i]; len(l.On) > 0 {
			l.From += messages.Duration(quietTime)
		}
	}
	d.length += quietTime
	d.s.Duration = messages.Duration(d.length)
	g := scenario.Group{Name: wellGroup, Count: wellServers, Kind: pick(d, messages.Stdio, messages.HTTP, messages.WebSocket)}
	d.s.Servers = append(d.s.Servers, g)
	// The same calls run once in the quiet time and once from the first fault on.
	for _, from := range []time.Duration{0, first} {
		d.s.Load = append(d.s.Load, scenario.Load{
			On: scenario.Selector{g.Name + "-*"}, Tool: scenario.ReadTool, Rate: wellRate, From: messages.Duration(from),
			For: messages.Duration(quietTime),
		})
	}
}

// selectorByNames writes the selector of a fault out as names, so that it selects the same servers when the day has more of
// them. An any:n takes the first n that the fault applies to.
func (d *scenarioBuilder) selectorByNames(f *scenario.Fault) scenario.Selector {
	most := 0
	switch {
	case f.On[0] == "*":
		most = d.serverCount()
	case strings.HasPrefix(f.On[0], "any:"):
		_, _ = fmt.Sscanf(f.On[0], "any:%d", &most)
	default:
		return f.On
	}
	var names scenario.Selector
	k := faultKind(f.Fault)
	for _, g := range d.s.Servers {
		if !k.Applies(g.Kind, g.Era) {
			continue
		}
		if g.Count < 2 {
			names = append(names, g.Name)
		}
		for n := range g.Count {
			if g.Count > 1 {
				names = append(names, fmt.Sprintf("%s-%03d", g.Name, n))
			}
		}
	}
	return slices.Clip(names[:min(most, len(names))])
}
