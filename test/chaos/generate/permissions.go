package generate

import (
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// permitShare is the share of days that have an owner who gives other rules while calls are made.
const permitShare = 0.2

// drawPermissions has rules deny tools of one server, and later others or none, while those tools are called and what else it has
// is read. The server is there for that alone. It has a source of chance of its own.
func (d *scenarioBuilder) drawPermissions(seed uint64) {
	if len(d.o.Only) > 0 || d.serverCount() >= d.o.Servers || d.length < 90*time.Second {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate permissions")
	if !d.drawChance(permitShare) {
		return
	}
	g := d.drawServer(d.drawKind(), "")
	g.Disabled, g.ConnectTimeout, g.Offers = false, 0, d.drawChance(0.3)
	d.s.Servers = append(d.s.Servers, g)
	at := d.roundTime(d.drawBetween(5*time.Second, d.length/2))
	tool := pick(d, scenario.ReadTool, scenario.PutTool, scenario.WriteTool)
	last := d.roundTime(d.drawBetween(4*time.Second, 10*time.Second))
	d.addBurst(g.Name, tool, 3, at, last)
	if g.Offers {
		d.addBurst(g.Name, "", 1, at, last).Read = pick(d, "resource", "prompts", "subscribe")
	}
	// Three permits: tools are denied, perhaps others, and in the end none, so that the day ends with everything offered.
	for n, refused := range []string{
		pick(d, tool, tool, "read,write", "read,put,write", scenario.WholeServer), pick(d, "", "", scenario.PutTool, scenario.WholeServer), "",
	} {
		d.addPermit(g.Name, at+time.Duration(n+1)*last/4, refused)
	}
	if d.drawChance(0.4) {
		d.addCommand(pick(d, "reconnect", "refresh", "disable"), g.Name, at+last/3)
		d.addCommand("enable", g.Name, at+last)
	}
	if d.drawChance(0.3) {
		d.addFault(pick(d, "crash", "list-changed"), g.Name, at+5*last/8, 0, nil) // in the instant of a permit no check could say what took the tools away
	}
}

// addPermit adds the command.
func (d *scenarioBuilder) addPermit(name string, at time.Duration, refused string) {
	d.addCommand("permit", name, at)
	d.s.Commands[len(d.s.Commands)-1].With = map[string]string{"refuse": refused}
}
