package generate

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// askedShare is the share of days with agents on which a server asks some of them.
const askedShare = 0.6

// drawAsked adds a server of the legacy era over HTTP, which says about which call it asks, and agents that mostly call its tools. Of four agents in a
// row one can be asked nothing, and one can also send a person to an address. It has a source of chance of its own.
func (d *scenarioBuilder) drawAsked(seed uint64) {
	if len(d.o.Only) > 0 || len(d.s.Agents) == 0 {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate asked agents")
	if !d.drawChance(askedShare) {
		return
	}
	g := d.ownServer(messages.HTTP)
	if g == nil {
		return
	}
	g.Offers, g.Era = true, messages.EraLegacy
	last := d.roundTime(d.drawBetween(6*time.Second, 12*time.Second))
	at := d.roundTime(d.drawBetween(5*time.Second, d.length-last-time.Second))
	for range 4 {
		a := scenario.Agents{
			As: pick(d, "principal-1", "principal-2"), Era: pick(d, messages.EraLegacy, messages.EraLegacy, messages.EraModern),
			Over: pick(d, scenario.OverLines, scenario.OverHTTP), View: g.Name, Rate: pick(d, 1.5, 3), From: messages.Duration(at), For: messages.Duration(last),
		}
		if d.drawChance(0.2) {
			a.View = ""
		}
		d.s.Agents = append(d.s.Agents, a)
	}
}
