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
	// quietTime is how long nothing breaks at the beginning of a day in which callers are compared, and how long the calls go on when it
	// does: a 99th percentile needs 200 calls before and as many during the faults.
	quietTime = 40 * time.Second
	// wellServers is how many servers such a day has that nothing happens to, and wellRate how many calls a second each of them is given.
	wellServers = 4
	wellRate    = 2
	// comparedShare is how many days are made so, of those that can be: one in eight of all, about.
	comparedShare = 0.25
)

// makeComparison makes a day in which it can be said whether servers that are well are served as before while others are not. It comes
// last, so that every other day is what it is without it. A machine that sleeps, and a network that is told to be back, are
// everybody's matter: on such a day nobody is well.
func (d *scenarioBuilder) makeComparison() {
	if !d.drawChance(comparedShare) || len(d.o.Only) > 0 || d.o.Duration > 0 || len(d.s.Faults) == 0 || d.serverCount()+wellServers > d.o.Servers ||
		d.length+quietTime > 20*time.Minute {
		return
	}
	for _, f := range d.s.Faults {
		if len(f.On) == 0 {
			return
		}
	}
	for _, c := range d.s.Commands {
		if c.Do == "wake" || c.Do == "configure" && len(c.On) > 0 {
			return
		}
	}
	first := d.length
	for i := range d.s.Faults {
		f := &d.s.Faults[i]
		f.On = d.selectorByNames(f)
		f.At += messages.Duration(quietTime)
		first = min(first, time.Duration(f.At))
	}
	for i := range d.s.Commands {
		d.s.Commands[i].At += messages.Duration(quietTime)
	}
	for i := range d.s.Load {
		if l := &d.s.Load[i]; len(l.On) > 0 {
			l.From += messages.Duration(quietTime)
		}
	}
	d.length += quietTime
	d.s.Duration = messages.Duration(d.length)
	g := scenario.Group{Name: "well", Count: wellServers, Kind: pick(d, messages.Stdio, messages.HTTP, messages.WebSocket)}
	d.s.Servers = append(d.s.Servers, g)
	for _, from := range []time.Duration{0, first} {
		d.s.Load = append(d.s.Load, scenario.Load{
			On: scenario.Selector{g.Name + "-*"}, Tool: scenario.ReadTool, Rate: wellRate, From: messages.Duration(from),
			For: messages.Duration(quietTime),
		})
	}
}

// selectorByNames is a selector by names, so that it stays the same when there are more servers.
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
