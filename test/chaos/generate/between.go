package generate

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// The shares of the days on which a list changes while its server is disabled, is listed when its server could rest, or a watch is given up while its
// server is disabled.
const disabledChangeShare, listedRestShare, restGivenUpShare = 0.2, 0.12, 0.15

// drawListsBetween adds lists that change, or are read, while something else is under way with their servers. It has a source of chance of its own.
func (d *scenarioBuilder) drawListsBetween(seed uint64) {
	if len(d.o.Only) > 0 {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate lists between")
	if d.drawChance(disabledChangeShare) {
		d.changeWhileDisabled()
	}
	if d.drawChance(listedRestShare) {
		d.listWhileResting()
	}
	if d.drawChance(restGivenUpShare) {
		d.giveUpWhileDisabled()
	}
}

// giveUpWhileDisabled adds a server whose resource callers watch and watch no more, while it is disabled as well, and that is enabled again.
func (d *scenarioBuilder) giveUpWhileDisabled() {
	g := d.ownServer(messages.Stdio, messages.HTTP, messages.SSE, messages.WebSocket, messages.SDK)
	if g == nil {
		return
	}
	g.Era, g.Offers = messages.EraLegacy, true
	at := d.roundTime(d.drawBetween(10*time.Second, 20*time.Second))
	for range 5 {
		if at > d.length-40*time.Second {
			return
		}
		d.addBurst(g.Name, "", 4, at-3*time.Second, 2*time.Second).Read = "subscribe"
		d.addCommand("disable", g.Name, at)
		d.addBurst(g.Name, "", 2, at+200*time.Millisecond, 1500*time.Millisecond).Read = "subscribe"
		d.addCommand("enable", g.Name, at+3*time.Second)
		at += d.roundTime(d.drawBetween(12*time.Second, 25*time.Second))
	}
}

// changeWhileDisabled adds a server whose list changes while it is disabled and keeps its connection: it is listed before it is connected again, and may
// change once more meanwhile.
func (d *scenarioBuilder) changeWhileDisabled() {
	g := d.ownServer(messages.Stdio, messages.HTTP, messages.SSE, messages.WebSocket, messages.SDK)
	if g == nil {
		return
	}
	g.Tools, g.Pages, g.Latency = 4+d.IntN(6), 1+d.IntN(3), messages.Duration(pick(d, 20*time.Millisecond, 100*time.Millisecond, 400*time.Millisecond))
	change := func(at time.Duration) {
		d.addFault("list-changed", g.Name, at, 0, map[string]string{"what": pick(d, "swap", "add", "describe")})
	}
	at := d.roundTime(d.drawBetween(10*time.Second, 20*time.Second))
	for range 4 {
		if at > d.length-40*time.Second {
			return
		}
		d.addCommand("disable", g.Name, at)
		change(at + d.drawBetween(100*time.Millisecond, 900*time.Millisecond))
		on := at + pick(d, time.Second, 3*time.Second)
		d.addCommand("enable", g.Name, on)
		if d.drawChance(0.6) {
			change(on + d.drawBetween(0, 2*time.Duration(g.Latency)))
		}
		at = on + d.roundTime(d.drawBetween(8*time.Second, 20*time.Second))
	}
}

// listWhileResting adds a lazy server whose list is read when it has not been used for long enough: it rests after that.
func (d *scenarioBuilder) listWhileResting() {
	g := d.ownServer(messages.Stdio, messages.HTTP, messages.WebSocket, messages.SDK)
	if g == nil {
		return
	}
	g.Connect, g.IdleTimeout, g.Latency = messages.Lazy, messages.Duration(pick(d, time.Second, 2*time.Second)), messages.Duration(pick(d, 200*time.Millisecond, 400*time.Millisecond))
	g.Tools, g.Pages = 6, 3
	for at := d.roundTime(d.drawBetween(10*time.Second, 30*time.Second)); at < d.length-50*time.Second; at += d.roundTime(d.drawBetween(30*time.Second, 60*time.Second)) {
		d.addBurst(g.Name, scenario.ReadTool, 2, at, time.Second)
		d.addFault("list-storm", g.Name, at+time.Second, 3*time.Second, map[string]string{"rate": pick(d, "1", "2", "3"), "change": pick(d, "true", "false")})
	}
}
