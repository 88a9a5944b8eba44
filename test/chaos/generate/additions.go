package generate

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// drawAdditions draws what was added to the language later, from a source of its own: what a seed gave before stays as it was.
func (d *scenarioBuilder) drawAdditions(seed uint64) {
	if len(d.o.Only) > 0 {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate further")
	m := &d.s.Manager
	m.Messages = d.drawChance(0.15)
	if d.drawChance(0.12) {
		d.drawOfferReads()
	}
}

// drawOfferReads has several callers read what a server has beside tools, while it changes, and one of them subscribe.
func (d *scenarioBuilder) drawOfferReads() bool {
	g, name := d.enabledServer(nil)
	if g == nil {
		return false
	}
	g.Offers = true
	at := d.drawBetween(2*time.Second, d.length/2)
	last := d.roundTime(d.drawBetween(4*time.Second, 12*time.Second))
	read := func(what string, rate float64) {
		d.s.Load = append(d.s.Load, scenario.Load{On: scenario.Selector{name}, Read: what, Rate: rate, From: messages.Duration(at), For: messages.Duration(last)})
	}
	read("subscribe", 0.5)
	read(pick(d, "resource", "prompt"), float64(1+d.IntN(3)))
	read(pick(d, "resources", "prompts", "templates"), 1)
	read(pick(d, scenario.Reads...), 1)
	return true
}
