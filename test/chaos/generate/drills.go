package generate

import "github.com/mcpvisor/mcpvisor/test/chaos/scenario"

// fewestDrills and mostDrills bound how many drills are played after a day.
const fewestDrills, mostDrills = 8, 12

// drawDrills has each day followed by some drills. It has a source of chance of its own.
func (d *scenarioBuilder) drawDrills(seed uint64) {
	if len(d.o.Only) == 0 {
		d.s.Manager.Drills = fewestDrills + scenario.Rand(seed, "generate drills").IntN(mostDrills-fewestDrills+1)
	}
}
