package generate

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// agentTasksShare is the share of days with agents on which a server has tasks, and agents more come to it.
const agentTasksShare = 0.5

// drawAgentTasks adds a server whose calls become tasks, and agents of two principals that call it while its owner restarts it, or takes it away, or it
// dies. It has a source of chance of its own.
func (d *scenarioBuilder) drawAgentTasks(seed uint64) {
	if len(d.o.Only) > 0 || len(d.s.Agents) == 0 {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate agent tasks")
	if !d.drawChance(agentTasksShare) {
		return
	}
	g := d.ownServer(messages.Stdio, messages.HTTP, messages.HTTP, messages.WebSocket)
	if g == nil {
		return
	}
	g.Tasks, g.Offers = pick(d, scenario.TasksOptional, scenario.TasksOptional, scenario.TasksRequired), d.drawChance(0.5)
	at := d.roundTime(d.drawBetween(10*time.Second, d.length-40*time.Second))
	for i := range 3 {
		d.s.Agents = append(d.s.Agents, scenario.Agents{
			As: pick(d, "principal-1", "principal-2"), Era: pick(d, messages.EraLegacy, messages.EraModern), Over: pick(d, scenario.OverLines, scenario.OverHTTP), View: g.Name,
			Rate: pick(d, 1.0, 2), From: messages.Duration(at + time.Duration(i)*time.Second), For: messages.Duration(d.roundTime(d.drawBetween(8*time.Second, 20*time.Second))),
		})
	}
	later := at + d.drawBetween(4*time.Second, 10*time.Second)
	switch pick(d, "", "reconnect", "disconnect", "replace", "crash") {
	case "reconnect":
		d.addCommand("reconnect", g.Name, later)
	case "disconnect":
		d.addCommand("disconnect", g.Name, later)
		d.addCommand("enable", g.Name, later+3*time.Second)
	case "replace":
		d.addCommand("remove", g.Name, later)
		d.addCommand("add", g.Name, later+3*time.Second)
	case "crash":
		d.addFault("crash", g.Name, later, 0, nil)
	}
}
