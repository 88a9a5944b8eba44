package generate

import (
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// The shares of the days with each of the additions of drawSeldom.
const (
	crowdShare, relistShare, calmShare, againShare, watchedRestShare, answeredShare, vainShare, unreadShare, turnsShare, leakShare = 0.02, 0.12, 0.1, 0.12, 0.1, 0.1, 0.06, 0.06, 0.05, 0.05
)

// crowdOfOneHost is how many servers of one group a crowd has: more than the start gate lets dial one host at a time, which is 16.
const crowdOfOneHost = 18

// drawSeldom adds what the other draws seldom bring about by chance. It has a source of chance of its own, as drawAdditions has.
func (d *scenarioBuilder) drawSeldom(seed uint64) {
	if len(d.o.Only) > 0 {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate seldom")
	if d.drawChance(relistShare) {
		d.refreshWhileListed()
	}
	if d.drawChance(calmShare) {
		d.cutAfterCalm()
	}
	if d.drawChance(againShare) {
		d.watchOverConnections()
	}
	if d.drawChance(crowdShare) {
		d.crowdOneHost()
	}
	if d.drawChance(watchedRestShare) {
		d.watchAtRest()
	}
	if d.drawChance(answeredShare) {
		d.loseAnswered()
	}
	if d.drawChance(vainShare) {
		d.announceInVain()
	}
	if d.drawChance(unreadShare) {
		d.callUnread()
	}
	if d.drawChance(turnsShare) {
		d.shareTurns()
	}
	if d.drawChance(leakShare) {
		d.leakAtStart()
	}
}

// leakAtStart has a server repeat its secrets in the error with which it refuses to start: the reason of the failure is shown, kept and logged.
func (d *scenarioBuilder) leakAtStart() {
	k := faultKind("leak-canary")
	name := d.serverForFault(k, func(g scenario.Group) bool {
		return !g.Disabled && g.Name != wellGroup && g.Count < 2 && g.Connect != messages.Lazy
	})
	if name == "" {
		return
	}
	at := d.roundTime(d.drawBetween(10*time.Second, d.length-40*time.Second))
	d.addFault(k.Name, name, at, d.roundTime(d.drawBetween(2*time.Second, 10*time.Second)), map[string]string{"handshakes": "true"})
	d.addCommand("reconnect", name, at+100*time.Millisecond)
}

// shareTurns adds a server that works on one call at a time, and lets several sessions of one principal call it faster than it answers, and one of
// another: the principals take turns, however many sessions each has.
func (d *scenarioBuilder) shareTurns() {
	g := d.ownServer(messages.Stdio, messages.WebSocket, messages.HTTP)
	if g == nil {
		return
	}
	g.MaxInFlight, g.Latency = 1, messages.Duration(pick(d, 200*time.Millisecond, 400*time.Millisecond))
	at := messages.Duration(d.roundTime(d.drawBetween(10*time.Second, d.length-60*time.Second)))
	for i, sessions := range []int{3, 1} {
		d.s.Agents = append(d.s.Agents, scenario.Agents{
			As: fmt.Sprintf("principal-%d", i+1), Count: sessions, Era: pick(d, messages.EraLegacy, messages.EraLegacy, messages.EraModern), Over: scenario.OverHTTP,
			View: g.Name, Rate: 4, From: at, For: messages.Duration(12 * time.Second),
		})
	}
}

// announceInVain lets a server say again and again that its list has changed, seldom enough to be listed each time, and nothing has.
func (d *scenarioBuilder) announceInVain() {
	g, name := d.enabledServer(func(g scenario.Group) bool { return g.Name != wellGroup && g.Count < 2 && g.Connect != messages.Lazy })
	if g == nil {
		return
	}
	at := d.roundTime(d.drawBetween(10*time.Second, d.length-30*time.Second))
	d.addFault("list-storm", name, at, 3*time.Second, map[string]string{"rate": pick(d, "3", "5", "8"), "change": "false"})
}

// callUnread adds a server that stops to read while it is called: the calls behind a long one wait for room in its buffer, and were not
// sent when their time is over.
func (d *scenarioBuilder) callUnread() {
	g := d.ownServer(messages.Stdio, messages.Stdio, messages.WebSocket)
	if g == nil {
		return
	}
	g.CallTimeout = messages.Duration(pick(d, 2*time.Second, 5*time.Second))
	at := d.roundTime(d.drawBetween(10*time.Second, d.length-60*time.Second))
	d.addFault("deaf", g.Name, at, 15*time.Second, nil)
	d.addBurst(g.Name, pick(d, scenario.ReadTool, scenario.PutTool), 4, at-time.Second, 16*time.Second).Callers = 3
}

// refreshWhileListed asks for a server's list while it is listed already, page by page, and has just changed without a word: the list
// under way may have pages of before.
func (d *scenarioBuilder) refreshWhileListed() {
	g, name := d.enabledServer(func(g scenario.Group) bool { return g.Name != wellGroup && g.Count < 2 && g.Connect != messages.Lazy })
	if g == nil {
		return
	}
	g.Offers, g.Tools, g.Pages, g.Latency = false, 6+d.IntN(10), 3, messages.Duration(400*time.Millisecond)
	at := d.roundTime(d.drawBetween(10*time.Second, d.length-60*time.Second))
	for range 3 {
		d.addCommand("refresh", name, at)
		change := at + pick(d, 500*time.Millisecond, 700*time.Millisecond, 900*time.Millisecond)
		d.addFault("quiet-change", name, change, 12*time.Second, nil)
		d.addCommand("refresh", name, change+pick(d, time.Millisecond, 20*time.Millisecond, 100*time.Millisecond))
		if at += 20 * time.Second; at > d.length-30*time.Second {
			return
		}
	}
}

// cutAfterCalm cuts the stream of a server several times, so that the pauses between its openings grow, leaves it in peace for longer than
// a minute, and cuts it once more: the first pause applies again.
func (d *scenarioBuilder) cutAfterCalm() {
	k := faultKind("cut-stream")
	name := d.serverForFault(k, func(g scenario.Group) bool {
		return g.Kind == messages.HTTP && g.Era == messages.EraModern && !g.Disabled && g.Name != wellGroup && g.Count < 2 && g.Connect != messages.Lazy
	})
	if name == "" || d.length < 4*time.Minute {
		return
	}
	d.groupOf(name).Offers = false
	at := d.roundTime(d.drawBetween(10*time.Second, d.length-3*time.Minute))
	d.addFault(k.Name, name, at, 20*time.Second, map[string]string{"every": "200ms"})
	d.addFault(k.Name, name, at+20*time.Second+d.roundTime(d.drawBetween(95*time.Second, 110*time.Second)), 400*time.Millisecond, map[string]string{"every": "100ms"})
}

// watchOverConnections lets a caller subscribe to resources of a server, one of which is there on every second connection only, and
// connects the server anew several times.
func (d *scenarioBuilder) watchOverConnections() {
	g, name := d.enabledServer(func(g scenario.Group) bool { return g.Name != wellGroup && g.Count < 2 && g.Connect != messages.Lazy })
	if g == nil {
		return
	}
	g.Offers = true
	at := d.roundTime(d.drawBetween(10*time.Second, d.length-60*time.Second))
	d.addBurst(name, "", 1, at, 6*time.Second).Read = "subscribe"
	for range 4 {
		at += pick(d, 8*time.Second, 12*time.Second, 20*time.Second)
		if at > d.length-20*time.Second {
			return
		}
		if d.drawChance(0.5) {
			d.addCommand("reconnect", name, at)
		} else {
			d.addFault("crash", name, at, 0, nil)
		}
	}
}

// watchAtRest adds a lazy server of which a caller watches a resource and uses nothing else for longer than its idle timeout, or reads what it offers while
// it rests.
func (d *scenarioBuilder) watchAtRest() {
	g := d.ownServer(messages.Stdio, messages.HTTP, messages.SSE, messages.WebSocket, messages.SDK)
	if g == nil {
		return
	}
	g.Offers, g.Connect, g.IdleTimeout = true, messages.Lazy, messages.Duration(pick(d, time.Second, 3*time.Second, 8*time.Second))
	for at := d.roundTime(d.drawBetween(5*time.Second, 30*time.Second)); at < d.length-40*time.Second; at += d.roundTime(d.drawBetween(20*time.Second, 60*time.Second)) {
		if d.drawChance(0.4) {
			d.addBurst(g.Name, "", 1, at, 2*time.Second).Read = pick(d, "prompt", "complete")
			continue
		}
		d.addBurst(g.Name, scenario.ReadTool, 1, at, time.Second)
		d.addBurst(g.Name, "", pick(d, 1.0, 2), at+d.drawBetween(0, time.Second), d.drawBetween(500*time.Millisecond, 4*time.Second)).Read = "subscribe"
	}
}

// loseAnswered adds a server that asks about some of its calls, takes its time over them after the answer, and loses its connection meanwhile. Its tools may
// run twice, so that nothing but the answer keeps such a call from being sent again.
func (d *scenarioBuilder) loseAnswered() {
	g := d.ownServer(messages.Stdio, messages.HTTP, messages.HTTP, messages.SSE, messages.WebSocket)
	if g == nil {
		return
	}
	g.Era, g.Offers, g.Trusted, g.Latency = messages.EraLegacy, true, true, messages.Duration(pick(d, 300*time.Millisecond, 900*time.Millisecond))
	if g.Kind == messages.HTTP && d.drawChance(0.5) {
		g.Web = scenario.WebPlain
	}
	at := d.roundTime(d.drawBetween(10*time.Second, d.length-60*time.Second))
	d.addBurst(g.Name, pick(d, scenario.ReadTool, scenario.PutTool), pick(d, 2.0, 4), at, 24*time.Second)
	for range 5 {
		at += pick(d, 3*time.Second, 4*time.Second, 5*time.Second) + d.drawBetween(0, time.Second)
		loss := pick(d, "reset", "crash")
		if g.Kind == messages.Stdio {
			loss = "crash" // a pipe is not reset
		}
		d.addFault(loss, g.Name, at, 0, nil)
	}
}

// crowdOneHost adds a group of servers of one host, more than may dial it at a time. It does so only for Options that leave the number of
// servers to this package, and on few days, because each of its servers costs as much of a run's time as any other.
func (d *scenarioBuilder) crowdOneHost() {
	if d.o.Servers != defaultServers {
		return
	}
	g := scenario.Group{Name: "crowd", Kind: messages.HTTP, Count: crowdOfOneHost, OneHost: true}
	if d.drawChance(0.4) {
		g.Start = messages.Duration(pick(d, 200*time.Millisecond, time.Second))
	}
	d.s.Servers = append(d.s.Servers, g)
	if d.drawChance(0.5) {
		d.addToGroup("reset", "crowd", d.roundTime(d.drawBetween(10*time.Second, d.length-30*time.Second)), 0)
	}
}
