package generate

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// headersShare is the share of days that have a server whose tools want their arguments in headers.
const headersShare = 0.15

// drawHeaderParams has such a server be called while its list changes, so that calls by an older list meet a newer one. It has a
// source of chance of its own.
func (d *scenarioBuilder) drawHeaderParams(seed uint64) {
	if len(d.o.Only) > 0 || d.serverCount() >= d.o.Servers || d.length < 90*time.Second {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate header params")
	if !d.drawChance(headersShare) {
		return
	}
	kind, era := messages.HTTP, messages.EraModern
	// Headers exist only over HTTP in the modern era; one day in ten shows that they are harmless elsewhere.
	if d.drawChance(0.1) { // where they do not count
		kind, era = d.drawKind(), ""
	}
	g := d.drawServer(kind, era)
	g.Headers, g.Disabled, g.ConnectTimeout = true, false, 0
	d.s.Servers = append(d.s.Servers, g)
	at := d.roundTime(d.drawBetween(5*time.Second, d.length/2))
	last := d.roundTime(d.drawBetween(8*time.Second, 25*time.Second))
	// The calls last longer than the changes, so that some of them are made by a list that is outdated already.
	l := d.addBurst(g.Name, pick(d, scenario.ReadTool, scenario.WriteTool), float64(2+d.IntN(4)), at, last)
	l.Callers = 1 + d.IntN(3)
	for range 1 + d.IntN(4) {
		when := at + d.drawBetween(0, last/2)
		if d.drawChance(0.3) {
			d.addFault("quiet-change", g.Name, when, pick(d, time.Second, 5*time.Second), nil)
			continue
		}
		d.addFault("list-changed", g.Name, when, 0, map[string]string{"what": pick(d, "swap", "add", "describe")})
	}
	if d.drawChance(0.3) {
		d.addFault("crash", g.Name, at+last/2, 0, nil)
	}
}
