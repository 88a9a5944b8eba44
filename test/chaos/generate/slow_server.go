package generate

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// slowShare is the share of days with a server that takes seconds for each answer.
const slowShare = 0.3

// drawSlowServer adds a server whose calls take seconds, and lets its owner end its connection while calls are in flight, and
// again when none is. It comes after the draws of faults and commands, so that hardly any other event meets that server: under
// a fault the checks cannot tell what ended a call.
func (d *scenarioBuilder) drawSlowServer() {
	if !d.drawChance(slowShare) || len(d.o.Only) > 0 || d.serverCount() >= d.o.Servers || d.length < 2*time.Minute {
		return
	}
	g := d.drawServer(d.drawKind(), "")
	g.Disabled, g.Tools, g.Pages, g.Tasks, g.Offers = false, 0, 0, "", false
	// The slowest answer takes nine seconds: one of ten would look like a server that does not live.
	g.Latency = messages.Duration(d.roundTime(d.drawBetween(800*time.Millisecond, 6*time.Second)))
	g.ConnectTimeout, g.CallTimeout, g.MaxCallTimeout = 0, messages.Duration(pick(d, 0, 30*time.Second)), 0
	d.s.Servers = append(d.s.Servers, g)
	at := d.roundTime(d.drawBetween(20*time.Second, d.length-90*time.Second))
	for range 1 + d.IntN(2) {
		last := d.roundTime(d.drawBetween(10*time.Second, 25*time.Second))
		l := d.addBurst(g.Name, pick(d, scenario.ReadTool, scenario.WriteTool, scenario.PutTool), pick(d, 0.5, 1, 3), at, last)
		if d.drawChance(0.3) {
			l.Cancel = pick(d, 0.1, 0.4)
		}
		if d.drawChance(0.3) {
			l.Callers = 2 + d.IntN(3)
		}
		d.addLeave(g.Name, at+d.drawBetween(2*time.Second, last))
		at += last
	}
	d.addLeave(g.Name, at+d.drawBetween(12*time.Second, 40*time.Second)) // no call is in flight any more
}

// addLeave lets the owner end a server's connection, or take its tools away, and mostly bring it back later.
func (d *scenarioBuilder) addLeave(server string, at time.Duration) {
	do := pick(d, "reconnect", "reconnect", "respec", "respec", "remove", "remove", "disable", "disconnect")
	d.addCommand(do, server, at)
	back := map[string]string{"remove": "add", "disable": "enable", "disconnect": "enable"}[do]
	if back != "" {
		d.addCommand(back, server, at+d.drawBetween(6*time.Second, 12*time.Second))
	}
}
