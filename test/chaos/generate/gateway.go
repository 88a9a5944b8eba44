package generate

import (
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// gatewayShare is the share of days on which agents come through a gateway.
const gatewayShare = 0.4

// drawGateway lets a few agents of one to three principals come through a gateway for a while, near to what happens already. It has a source
// of chance of its own.
func (d *scenarioBuilder) drawGateway(seed uint64) {
	if len(d.o.Only) > 0 {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate gateway")
	if !d.drawChance(gatewayShare) {
		return
	}
	principals := 1 + d.IntN(3)
	for range 1 + d.IntN(5) {
		last := d.roundTime(d.drawBetween(8*time.Second, 30*time.Second))
		a := scenario.Agents{
			As: fmt.Sprintf("principal-%d", 1+d.IntN(principals)), Era: pick(d, messages.EraLegacy, messages.EraLegacy, messages.EraModern),
			Over: pick(d, scenario.OverLines, scenario.OverHTTP), Rate: pick(d, 0.5, 1, 2, 4), For: messages.Duration(last),
			From: messages.Duration(d.roundTime(d.drawBetween(0, max(d.length-last, time.Second)))),
		}
		if at := d.moments; len(at) > 0 && d.drawChance(0.7) {
			m := at[d.IntN(len(at))]
			a.From = messages.Duration(d.roundTime(max(min(m.at, d.length-last)-d.drawBetween(0, 5*time.Second), 0)))
		}
		if g := d.s.Servers[d.IntN(len(d.s.Servers))]; g.Count < 2 && d.drawChance(0.25) {
			a.View = g.Name
		}
		d.s.Agents = append(d.s.Agents, a)
	}
	// Agents are asked something by servers that have more than tools, and see progress where a server sends some.
	if g, _ := d.enabledServer(nil); g != nil && d.drawChance(0.5) {
		g.Offers = true
	}
	if _, name := d.enabledServer(nil); name != "" && d.drawChance(0.3) {
		a := d.s.Agents[d.IntN(len(d.s.Agents))]
		d.addFault("endless-progress", name, time.Duration(a.From)+2*time.Second, d.roundTime(d.drawBetween(2*time.Second, 6*time.Second)), nil)
	}
	if d.drawChance(0.3) {
		d.s.Agents[0].Count = 2 + d.IntN(3)
	}
}

// givenUpShare is the share of days with agents on which some end a watch while the owner has its server disabled.
const givenUpShare = 0.3

// drawGivenUp adds a server that agents watch. It is disabled before they end that and enabled after, and its connection stands all the while, so
// that it is asked for nothing any more. It has a source of chance of its own.
func (d *scenarioBuilder) drawGivenUp(seed uint64) {
	if len(d.o.Only) > 0 || len(d.s.Agents) == 0 {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate given up")
	if !d.drawChance(givenUpShare) {
		return
	}
	g := d.ownServer(messages.Stdio, messages.WebSocket)
	if g == nil {
		return
	}
	g.Offers, g.Era = true, messages.EraLegacy
	at, last := d.roundTime(d.drawBetween(10*time.Second, d.length-60*time.Second)), 8*time.Second
	for range 2 {
		d.s.Agents = append(d.s.Agents, scenario.Agents{
			As: pick(d, "principal-1", "principal-2"), Era: messages.EraLegacy, Over: pick(d, scenario.OverLines, scenario.OverHTTP), View: g.Name,
			Rate: 0.5, From: messages.Duration(at), For: messages.Duration(last),
		})
	}
	d.addCommand("disable", g.Name, at+last-pick(d, time.Second, 2*time.Second))
	d.addCommand("enable", g.Name, at+last+pick(d, time.Second, 3*time.Second))
}
