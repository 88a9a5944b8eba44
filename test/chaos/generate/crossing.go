package generate

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// crossings is the share of days on which two events meet a server while its tools are being listed.
const crossings = 0.35

// crossing adds a server with slow lists. A list is requested, and before it arrives the connection ends, or the owner disables
// and enables the server, and the list changes once more. The interrupted list must leave nothing behind; a change, a refresh
// or a reconnect in the quiet time after it sometimes shows that. It has a source of chance of its own, as drawAdditions has.
func (d *scenarioBuilder) crossing(seed uint64) {
	if len(d.o.Only) > 0 {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate crossing")
	// A crossing needs time before it, to connect, and after it, to show what was left.
	if !d.drawChance(crossings) || d.length < 150*time.Second || d.serverCount() >= d.o.Servers {
		return
	}
	g := d.drawServer(d.drawKind(), "")
	// The server must connect at once and hold, so that the only events are those of the crossing.
	g.Disabled, g.Connect, g.IdleTimeout, g.Tasks, g.Offers, g.ConnectTimeout = false, "", 0, "", false, 0
	g.Tools, g.Pages = 0, 0
	if d.drawChance(0.5) {
		// Two pages double the time in which an event can meet the list.
		g.Tools, g.Pages = 6, 2
	}
	slow := pick(d, 100*time.Millisecond, 300*time.Millisecond, time.Second)
	// The latency is how long each page takes.
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

// cross adds one crossing and sometimes an event that shows its leftovers. It returns the time at which it is over.
func (d *scenarioBuilder) cross(name string, at, slow time.Duration) time.Duration {
	change := func(t time.Duration) {
		d.addFault("list-changed", name, t, 0, map[string]string{"what": pick(d, "swap", "add", "describe")})
	}
	if d.drawChance(0.12) { // the machine wakes up while the supervisor waits for the next attempt
		d.addFault("crash", name, at, 0, map[string]string{"down": "40s"})
		d.addCommand("wake", "", at+pick(d, 8*time.Second, 20*time.Second, 35*time.Second))
		return at + time.Minute
	}
	asked := at
	if d.drawChance(0.6) {
		d.addCommand("refresh", name, at)
	} else { // the session requests the list when the server has sent no change for 50 ms
		change(at)
		asked += 51 * time.Millisecond
	}
	// during lies in the first page of the list.
	during := asked + d.drawBetween(time.Millisecond, slow)
	if d.drawChance(0.5) {
		change(during)
	}
	// within is the time of the interruption, and back the time at which the server is wanted again, often in the same instant.
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
	switch d.IntN(6) { // mostly no event: a pending list must arrive without another one
	case 0:
		change(quiet)
	case 1:
		d.addCommand("refresh", name, quiet)
	case 2:
		d.addCommand("reconnect", name, quiet)
	}
	return quiet + 20*time.Second
}
