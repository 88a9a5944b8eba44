package generate

import (
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// viewsShare is the share of days with agents on which some of them are held to a view.
const viewsShare = 0.6

// drawViews lets one or two agents more come, which a view holds: it hides tools of a server, or all of it, and in the midst of what they do
// it is replaced. It has a source of chance of its own.
func (d *scenarioBuilder) drawViews(seed uint64) {
	if len(d.o.Only) > 0 || len(d.s.Agents) == 0 {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate views")
	if !d.drawChance(viewsShare) {
		return
	}
	g, name := d.enabledServer(nil)
	if g == nil || strings.ContainsAny(name, "_.") {
		return
	}
	g.Offers = g.Offers || d.drawChance(0.7)
	for range 1 + d.IntN(2) {
		first := d.s.Agents[d.IntN(len(d.s.Agents))]
		a := scenario.Agents{
			As: first.As, Era: pick(d, messages.EraLegacy, messages.EraModern), Over: pick(d, scenario.OverLines, scenario.OverHTTP),
			Rate: pick(d, 2.0, 4), From: first.From, For: messages.Duration(d.roundTime(d.drawBetween(12*time.Second, 30*time.Second))),
			Through: pick(d, scenario.ThroughToken, scenario.ThroughPath),
		}
		steps := 1 + d.IntN(3)
		if a.Through == scenario.ThroughToken && d.drawChance(0.25) {
			a.View, steps = name, 1
		}
		for n := range steps {
			v := d.drawView(name)
			if n > 0 {
				v.At = a.From + messages.Duration(d.roundTime(time.Duration(a.For)*time.Duration(n)/time.Duration(steps)))
			}
			a.Within = append(a.Within, v)
		}
		d.s.Agents = append(d.s.Agents, a)
		// Every second read changes what there is, which those hear of who watch it.
		if g.Offers && d.drawChance(0.8) {
			d.addBurst(name, "", 1, time.Duration(a.From), time.Duration(a.For)).Read = "resource"
		}
	}
}

// drawView returns a view that concerns a server.
func (d *scenarioBuilder) drawView(name string) (v scenario.View) {
	tool := pick(d, scenario.ReadTool, scenario.PutTool, scenario.WriteTool)
	switch d.IntN(7) {
	case 0: // everything
	case 1:
		v.Deny = []string{name + ":" + tool}
	case 2:
		v.Deny = []string{name + ":" + scenario.WholeServer}
	case 3:
		v.Only = []string{name + ":" + tool}
	case 4:
		v.Only = []string{name + ":" + scenario.WholeServer}
	case 5:
		v.Servers = []string{name}
	default:
		for _, g := range d.s.Servers {
			if g.Name != name && g.Count < 2 {
				v.Servers = append(v.Servers, g.Name)
			}
		}
		if len(v.Servers) == 0 {
			v.Deny = []string{name + ":" + scenario.WholeServer}
		}
	}
	return v
}
