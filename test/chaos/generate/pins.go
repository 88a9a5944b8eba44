package generate

import (
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// pinsShare is the share of days that have a manager that remembers the definitions of tools.
const pinsShare = 0.25

// drawPins has tools change after they were shown, and the owner approve some of the changes. It has a source of chance of its own.
func (d *scenarioBuilder) drawPins(seed uint64) {
	if len(d.o.Only) > 0 {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate pins")
	if !d.drawChance(pinsShare) {
		return
	}
	d.s.Manager.Pins = true
	// A definition must have been seen before it changes, and a server needs some seconds to connect and list.
	at := d.roundTime(d.drawBetween(5*time.Second, d.length/2))
	for range 1 + d.IntN(3) {
		server := d.pickServer(connectsByItself)
		if server == "" {
			return
		}
		if d.drawChance(0.5) {
			d.addFault("rug-pull", server, at, 0, map[string]string{"tool": pick(d, scenario.ReadTool, scenario.WriteTool)})
		} else {
			d.addFault("list-changed", server, at, 0, map[string]string{"what": "describe"})
		}
		if d.drawChance(0.7) {
			d.addCommand("approve", server, at+pick(d, 0, 10*time.Millisecond, 5*time.Second, 30*time.Second))
		}
		at = min(at+d.roundTime(d.drawBetween(time.Millisecond, 40*time.Second)), d.length)
	}
}
