package generate

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// crossings is how many days have two things happen to a server while its tools are being listed.
const crossings = 0.35

// crossing has a server that takes its time for a list: one is asked for, and before it has come the connection ends, or the owner disables the
// server and enables it, and the list changes once more. What was under way must leave nothing behind: hence something follows when all is
// quiet again, a change, a refresh or a reconnect. It has a source of chance of its own, as further has.
func (d *scenarioBuilder) crossing(seed uint64) {
	if len(d.o.Only) > 0 {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate crossing")
	if !d.drawChance(crossings) || d.length < 150*time.Second || d.serverCount() >= d.o.Servers {
		return
	}
	g := d.drawServer(d.drawKind(), "")
	g.Disabled, g.Connect, g.IdleTimeout, g.Tasks, g.Offers, g.ConnectTimeout = false, "", 0, "", false, 0
	g.Tools, g.Pages = 0, 0
	if d.drawChance(0.5) {
		g.Tools, g.Pages = 6, 2
	}
	slow := pick(d, 100*time.Millisecond, 300*time.Millisecond, time.Second)
	g.Latency = messages.Duration(slow)
	d.s.Servers = append(d.s.Servers, g)
	at := d.roundTime(d.drawBetween(20*time.Second, d.length-100*time.Second))
	for range 1 + d.IntN(2) {
		at = d.cross(g.Name, at, slow)
		if at > d.length-30*time.Second {
			return
		}
	}
}

// cross is one crossing, and what shows that nothing is left of it. It returns when that is over.
func (d *scenarioBuilder) cross(name string, at, slow time.Duration) time.Duration {
	change := func(t time.Duration) {
		d.addFault("list-changed", name, t, 0, map[string]string{"what": pick(d, "swap", "add", "describe")})
	}
	if d.drawChance(0.12) { // the machine wakes up while it is waited for its next attempt
		d.addFault("crash", name, at, 0, map[string]string{"down": "40s"})
		d.addCommand("wake", "", at+pick(d, 8*time.Second, 20*time.Second, 35*time.Second))
		return at + time.Minute
	}
	asked := at
	if d.drawChance(0.6) {
		d.addCommand("refresh", name, at)
	} else { // it is listed when the server has been quiet for 50 ms
		change(at)
		asked += 51 * time.Millisecond
	}
	during := asked + d.drawBetween(time.Millisecond, slow)
	if d.drawChance(0.5) {
		change(during)
	}
	within := during + pick(d, 0, time.Millisecond, slow/4)
	back := within + pick(d, 0, 0, time.Millisecond, slow/4, slow)
	switch pick(d, "crash", "crash", "crash", "disable", "disable", "disconnect", "reconnect", "respec") {
	case "crash":
		d.addFault("crash", name, within, 0, nil)
		if d.drawChance(0.3) {
			d.addCommand(pick(d, "disable", "reconnect", "refresh"), name, back)
			d.addCommand("enable", name, back+pick(d, 0, slow))
		}
	case "disable":
		d.addCommand("disable", name, within)
		if d.drawChance(0.6) {
			change(within + pick(d, 0, (back-within)/2))
		}
		d.addCommand("enable", name, back)
		if d.drawChance(0.2) {
			d.addFault("crash", name, back, 0, nil)
		}
	case "disconnect":
		d.addCommand("disconnect", name, within)
		d.addCommand("enable", name, back)
	case "reconnect":
		d.addCommand("reconnect", name, within)
	case "respec":
		d.addCommand("respec", name, within)
	}
	quiet := back + pick(d, 3*time.Second, 15*time.Second)
	switch d.IntN(6) { // mostly nothing: what waits for a list must not need another one
	case 0:
		change(quiet)
	case 1:
		d.addCommand("refresh", name, quiet)
	case 2:
		d.addCommand("reconnect", name, quiet)
	}
	return quiet + 20*time.Second
}
