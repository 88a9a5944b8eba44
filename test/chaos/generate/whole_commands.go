package generate

import (
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// wholeShare is the share of days that have an owner who connects or disconnects all servers at once.
const wholeShare = 0.2

// drawWholeCommands has the owner command all servers at once, near to other events. It has a source of chance of its own.
func (d *scenarioBuilder) drawWholeCommands(seed uint64) {
	if len(d.o.Only) > 0 {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate whole commands")
	if !d.drawChance(wholeShare) || d.groupOf(wellGroup+"-000") != nil {
		return
	}
	at := d.drawTime("")
	if d.drawChance(0.75) {
		d.addCommand(scenario.DisconnectAll, "", at)
		at += pick(d, nearDistances...)
	}
	d.addCommand(scenario.ConnectAll, "", at)
	if d.drawChance(0.5) {
		d.addCommand(pick(d, scenario.ConnectAll, scenario.ConnectAll, scenario.DisconnectAll), "", at+d.drawBetween(time.Millisecond, time.Minute))
	}
	// A server that cannot be connected is tried now, and the answer says so of that one alone.
	if server := d.serverForFault(faultKind("crash-loop"), connectsByItself); server != "" && d.drawChance(0.6) && d.length > time.Minute {
		from := d.roundTime(d.drawBetween(5*time.Second, d.length-40*time.Second))
		d.addFault("crash-loop", server, from, 30*time.Second, nil)
		d.addFault("crash", server, from+time.Millisecond, 0, nil)
		for range 1 + d.IntN(3) {
			d.addCommand(scenario.ConnectAll, "", from+d.drawBetween(time.Second, 30*time.Second))
		}
	}
	// Mostly the owner wants all servers again before the day ends, so that the healed world has servers to be judged.
	if d.drawChance(0.7) {
		d.addCommand(scenario.ConnectAll, "", d.roundTime(d.length-d.drawBetween(0, 20*time.Second)))
	}
}
