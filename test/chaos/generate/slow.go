package generate

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// slowly is how many days have a server that takes seconds for each answer.
const slowly = 0.3

// slow adds a server whose calls take seconds, and has its owner do something about it while they are under way, and again when none
// is. It comes when faults and commands were drawn, so that hardly anything else happens to that server: under a fault nobody can say
// what ended a call.
func (d *day) slow() {
	if !d.likely(slowly) || len(d.o.Only) > 0 || d.total() >= d.o.Servers || d.length < 2*time.Minute {
		return
	}
	g := d.server(d.kind(), "")
	g.Disabled, g.Tools, g.Pages, g.Tasks, g.Offers = false, 0, 0, "", false
	// Nine seconds for the slowest answer: one of ten would look like a server that does not live.
	g.Latency = messages.Duration(d.round(d.between(800*time.Millisecond, 6*time.Second)))
	g.ConnectTimeout, g.CallTimeout, g.MaxCallTimeout = 0, messages.Duration(pick(d, 0, 30*time.Second)), 0
	d.s.Servers = append(d.s.Servers, g)
	at := d.round(d.between(20*time.Second, d.length-90*time.Second))
	for range 1 + d.IntN(2) {
		last := d.round(d.between(10*time.Second, 25*time.Second))
		l := d.burst(g.Name, pick(d, scenario.ReadTool, scenario.WriteTool, scenario.PutTool), pick(d, 0.5, 1, 3), at, last)
		if d.likely(0.3) {
			l.Cancel = pick(d, 0.1, 0.4)
		}
		if d.likely(0.3) {
			l.Callers = 2 + d.IntN(3)
		}
		d.leave(g.Name, at+d.between(2*time.Second, last))
		at += last
	}
	d.leave(g.Name, at+d.between(12*time.Second, 40*time.Second)) // nobody uses it any more
}

// leave has the owner end a server's connection, or withdraw its tools, and mostly bring it back later.
func (d *day) leave(server string, at time.Duration) {
	do := pick(d, "reconnect", "reconnect", "respec", "respec", "remove", "remove", "disable", "disconnect")
	d.order(do, server, at)
	back := map[string]string{"remove": "add", "disable": "enable", "disconnect": "enable"}[do]
	if back != "" {
		d.order(back, server, at+d.between(6*time.Second, 12*time.Second))
	}
}
