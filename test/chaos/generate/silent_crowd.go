package generate

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// silentCrowdShare is the share of days with more silent processes than the start gate bears, if there is room for them.
const silentCrowdShare = 0.3

// silentCrowd is one process more than may be silent behind a gate of one slot, which lets eight begin.
const silentCrowd = 9

// drawSilentCrowd adds nine processes whose starts hang behind a gate of one slot, and another one that is lost again and again
// meanwhile: it can come back only where a silent one gives up its place. It has a source of chance of its own.
func (d *scenarioBuilder) drawSilentCrowd(seed uint64) {
	if len(d.o.Only) > 0 {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate silent crowd")
	n := d.o.Servers - d.serverCount()
	if !d.drawChance(silentCrowdShare) || n <= silentCrowd || d.length < 3*time.Minute {
		return
	}
	d.s.Manager.Gate = 1
	d.s.Servers = append(d.s.Servers, scenario.Group{Name: "silent", Count: silentCrowd}, scenario.Group{Name: "lost", Count: min(n-silentCrowd, 2)})
	at := d.roundTime(d.drawBetween(20*time.Second, 40*time.Second))
	last := d.roundTime(d.drawBetween(50*time.Second, 90*time.Second))
	d.addToGroup("hang-start", "silent", at, last)
	// A process that does not end at once shows whether another one is ended in its place.
	if d.drawChance(0.6) {
		d.addToGroup(pick(d, "ignore-term", "ignore-term", "ignore-eof"), "silent", at, last)
	}
	d.addToGroup("crash", "silent", at+100*time.Millisecond, 0)
	// Each of the nine needs two seconds of the slot before it gives it up.
	for t := at + d.drawBetween(15*time.Second, 25*time.Second); t < at+last; t += d.drawBetween(4*time.Second, 20*time.Second) {
		d.addToGroup("crash", "lost", t, 0)
	}
}

// addToGroup adds a fault to all servers of a group; last is 0 for an instant one.
func (d *scenarioBuilder) addToGroup(fault, group string, at, last time.Duration) {
	d.s.Faults = append(d.s.Faults, scenario.Fault{
		Fault: fault, On: scenario.Selector{group}, At: messages.Duration(at), For: messages.Duration(last),
	})
}
