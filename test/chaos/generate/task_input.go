package generate

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// taskInputShare is the share of the days with a server whose tasks ask for input.
const taskInputShare = 0.08

// drawTaskInput adds a server whose calls run as tasks and ask for input in the middle, and callers who let them, leave them, or lose
// the connection meanwhile. It has a source of chance of its own, as drawAdditions has.
func (d *scenarioBuilder) drawTaskInput(seed uint64) {
	if len(d.o.Only) > 0 {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate task input")
	if !d.drawChance(taskInputShare) {
		return
	}
	g := d.ownServer(messages.Stdio, messages.HTTP, messages.HTTP, messages.WebSocket)
	if g == nil {
		return
	}
	g.Tasks, g.Offers = pick(d, scenario.TasksOptional, scenario.TasksRequired), true
	at := d.roundTime(d.drawBetween(10*time.Second, d.length-60*time.Second))
	for range 1 + d.IntN(2) {
		l := d.addBurst(g.Name, pick(d, scenario.ReadTool, scenario.WriteTool), pick(d, 0.8, 2), at, 8*time.Second)
		if l.Task = true; d.drawChance(0.2) {
			l.Cancel = 0.4
		}
		if d.drawChance(0.3) {
			d.addCommand(pick(d, "disconnect", "reconnect"), g.Name, at+d.drawBetween(2*time.Second, 8*time.Second))
			d.addCommand("enable", g.Name, at+12*time.Second)
		}
		at += 20 * time.Second
	}
}
