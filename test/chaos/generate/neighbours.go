package generate

import (
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// neighboursShare is the share of the days with agents on which agents of several principals use the same servers at once.
const neighboursShare = 0.35

// drawNeighbours lets agents of two principals use two servers that ask questions and have resources, several requests at a time: what
// belongs to one request or principal can then be seen to reach another. It has a source of chance of its own.
func (d *scenarioBuilder) drawNeighbours(seed uint64) {
	if len(d.o.Only) > 0 || len(d.s.Agents) == 0 {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate neighbours")
	if !d.drawChance(neighboursShare) || d.length < 2*time.Minute || d.serverCount()+2 > d.o.Servers {
		return
	}
	at := d.roundTime(d.drawBetween(10*time.Second, d.length-50*time.Second))
	for _, era := range []messages.Era{"", messages.EraModern} {
		d.s.Servers = append(d.s.Servers, scenario.Group{
			Name: fmt.Sprintf("n%d", len(d.s.Servers)+1), Kind: pick(d, messages.Stdio, messages.HTTP), Era: era, Offers: true,
			Latency: messages.Duration(pick(d, 50*time.Millisecond, 200*time.Millisecond)),
		})
	}
	for i, era := range []messages.Era{messages.EraLegacy, messages.EraModern, messages.EraLegacy, messages.EraModern} {
		d.s.Agents = append(d.s.Agents, scenario.Agents{
			As: fmt.Sprintf("principal-%d", 1+i%3), Era: era, Over: pick(d, scenario.OverHTTP, scenario.OverHTTP, scenario.OverLines),
			Rate: pick(d, 2.0, 4, 8), From: messages.Duration(at), For: messages.Duration(d.roundTime(d.drawBetween(10*time.Second, 25*time.Second))),
		})
	}
}
