package generate

import (
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// partialShare is the share of days with a server that offers some of what a server may have beside tools, and not all.
const partialShare = 0.3

// drawPartial adds such a server. What it lacks is read as well as what it has; and it refuses to list its tools at its start, or when it has come
// back, so that it is connected for what else it has. It has a source of chance of its own.
func (d *scenarioBuilder) drawPartial(seed uint64) {
	if len(d.o.Only) > 0 {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate partial")
	if !d.drawChance(partialShare) {
		return
	}
	g := d.ownServer(messages.Stdio, messages.HTTP, messages.HTTP, messages.SSE, messages.WebSocket, messages.SDK)
	if g == nil {
		return
	}
	var lacks []string
	for _, what := range scenario.Offers {
		if d.drawChance(0.35) {
			lacks = append(lacks, what)
		}
	}
	g.Offers, g.Lacks = true, strings.Join(lacks, ",")
	refused := map[string]string{"code": pick(d, "32603", "32601", "32000")}
	if d.drawChance(0.5) {
		d.addFault("list-error", g.Name, 0, d.roundTime(d.drawBetween(3*time.Second, 8*time.Second)), refused)
	}
	for at := d.roundTime(d.drawBetween(12*time.Second, 30*time.Second)); at < d.length-40*time.Second; at += d.roundTime(d.drawBetween(40*time.Second, 90*time.Second)) {
		for _, read := range []string{"resources", "prompts", "templates", "resource", "prompt", "complete", "subscribe"} {
			if d.drawChance(0.7) {
				d.addBurst(g.Name, "", pick(d, 0.5, 1, 2), at+d.drawBetween(0, 2*time.Second), d.roundTime(d.drawBetween(4*time.Second, 15*time.Second))).Read = read
			}
		}
		if d.drawChance(0.3) {
			down := at + d.roundTime(d.drawBetween(20*time.Second, 30*time.Second))
			d.addFault("list-error", g.Name, down, d.roundTime(d.drawBetween(4*time.Second, 8*time.Second)), refused)
			d.addFault("crash", g.Name, down+200*time.Millisecond, 0, nil)
		}
	}
}
