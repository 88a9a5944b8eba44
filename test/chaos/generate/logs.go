package generate

import (
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// logsShare is the share of days with agents on which a server writes log messages about its calls.
const logsShare = 0.6

// drawLogs has a server write log messages about its calls, and lets agents more come that call it and want different levels. It has a source
// of chance of its own.
func (d *scenarioBuilder) drawLogs(seed uint64) {
	if len(d.o.Only) > 0 || len(d.s.Agents) == 0 {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate logs")
	if !d.drawChance(logsShare) {
		return
	}
	// Only over HTTP does a message say to which call it belongs.
	g, name := d.enabledServer(func(g scenario.Group) bool { return g.Kind == messages.HTTP })
	if g == nil || d.drawChance(0.2) {
		g, name = d.enabledServer(nil)
	}
	if g == nil || strings.ContainsAny(name, "_.") {
		return
	}
	g.Logs = true
	for range 2 {
		first := d.s.Agents[d.IntN(len(d.s.Agents))]
		d.s.Agents = append(d.s.Agents, scenario.Agents{
			As: first.As, Era: pick(d, messages.EraLegacy, messages.EraModern), Over: pick(d, scenario.OverLines, scenario.OverHTTP), View: name,
			Rate: pick(d, 2.0, 4), From: first.From, For: messages.Duration(d.roundTime(d.drawBetween(8*time.Second, 20*time.Second))),
		})
	}
}
