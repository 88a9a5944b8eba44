package generate

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// heldShare is the share of the days with a memory of definitions on which a server's changed tools are held back.
const heldShare = 0.6

// drawHeldTools has the tools of a server held back whose definitions change, has them called meanwhile, and has its connection end while
// some wait for an approval. It has a source of chance of its own.
func (d *scenarioBuilder) drawHeldTools(seed uint64) {
	if len(d.o.Only) > 0 || !d.s.Manager.Pins {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate held tools")
	if !d.drawChance(heldShare) {
		return
	}
	for _, f := range d.s.Faults {
		if f.Fault != "rug-pull" && f.With["what"] != "describe" || len(f.On) != 1 {
			continue
		}
		g := d.groupOf(f.On[0])
		if g == nil || g.Count > 1 || g.Name == wellGroup {
			continue
		}
		g.Pin = messages.PinHold
		at := time.Duration(f.At)
		d.addBurst(g.Name, pick(d, scenario.ReadTool, scenario.WriteTool), 2, at, d.roundTime(d.drawBetween(2*time.Second, 8*time.Second)))
		// A tool that waits has to wait over connections, too.
		if d.drawChance(0.5) {
			d.addFault(pick(d, "crash", "list-changed"), g.Name, min(at+d.roundTime(d.drawBetween(time.Second, 20*time.Second)), d.length), 0, nil)
		}
		if d.drawChance(0.6) {
			d.addCommand("approve", g.Name, min(at+d.roundTime(d.drawBetween(5*time.Second, 40*time.Second)), d.length))
		}
		return
	}
}
