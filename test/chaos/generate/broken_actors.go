package generate

import "github.com/mcpvisor/mcpvisor/test/chaos/scenario"

// brokenActorsShare is the share of days in which actors of the manager panic. It is small, because few invariants judge such a day.
const brokenActorsShare = 0.05

// drawBrokenActors decides whether actors of the manager panic. It has a source of chance of its own.
func (d *scenarioBuilder) drawBrokenActors(seed uint64) {
	if len(d.o.Only) > 0 {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate broken actors")
	d.s.Manager.BrokenActors = d.drawChance(brokenActorsShare)
}
