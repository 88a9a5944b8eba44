package generate

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// drawAdditions draws what the scenario language gained later: messages as a front, and reads of offers. It has a source of
// chance of its own, because one more draw from the shared source would change every later draw and with it the day of each
// seed.
func (d *scenarioBuilder) drawAdditions(seed uint64) {
	if len(d.o.Only) > 0 {
		return
	}
	before := d.Rand
	// The builder's helpers draw from d.Rand, so the source is exchanged for the time of this function.
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate further")
	m := &d.s.Manager
	m.Messages = d.drawChance(0.15)
	if d.drawChance(0.3) {
		d.drawOfferReads()
	}
}

// drawOfferReads lets several callers read a server's resources and prompts while they change, and one of them subscribe. It
// returns false if no server is there all day.
func (d *scenarioBuilder) drawOfferReads() bool {
	g, name := d.enabledServer(nil)
	if g == nil {
		return false
	}
	g.Offers = true
	at := d.drawBetween(2*time.Second, d.length/2)
	last := d.roundTime(d.drawBetween(4*time.Second, 12*time.Second))
	// read adds one load; all loads share their time, so that reads meet updates and the subscription.
	read := func(what string, rate float64) {
		d.s.Load = append(d.s.Load, scenario.Load{On: scenario.Selector{name}, Read: what, Rate: rate, From: messages.Duration(at), For: messages.Duration(last)})
	}
	read("subscribe", 0.5)
	read(pick(d, "resource", "prompt"), float64(1+d.IntN(3)))
	read(pick(d, "resources", "prompts", "templates"), 1)
	read(pick(d, scenario.Reads...), 1)
	return true
}
