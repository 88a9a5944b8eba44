package generate

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// The shares of the days with each of the additions of drawTroubled.
const togetherShare, refusedRefreshShare, unsteadyShare, leftOutShare, permitAtRestShare = 0.12, 0.08, 0.1, 0.08, 0.06

// drawTroubled lets calls and commands meet a server in trouble: calls that were made in one instant, and end in one, and commands of the owner
// while its lists are refused, between two of its failures, while it ends and is to come back, or while it rests. It has a source of chance of its own.
func (d *scenarioBuilder) drawTroubled(seed uint64) {
	if len(d.o.Only) > 0 {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate troubled")
	if d.drawChance(togetherShare) {
		d.callTogether()
	}
	if d.drawChance(refusedRefreshShare) {
		d.refreshRefused()
	}
	if d.drawChance(unsteadyShare) {
		d.adjustUnsteady()
	}
	if d.drawChance(leftOutShare) {
		d.leaveOutReturning()
	}
	if d.drawChance(permitAtRestShare) {
		d.permitAtRest()
	}
}

// callTogether lets calls be made in one instant at a server that answers none of them for a while and has room for few. Those that run and
// those that wait have one deadline, so that a place is given and the wait for it ends in one instant. Later calls need every place.
func (d *scenarioBuilder) callTogether() {
	g := d.ownServer(messages.Stdio, messages.HTTP, messages.SSE, messages.WebSocket, messages.SDK)
	if g == nil {
		return
	}
	g.MaxInFlight, g.CallTimeout = 1+d.IntN(2), messages.Duration(pick(d, 700*time.Millisecond, 2*time.Second))
	if d.drawChance(0.3) {
		g.MaxQueued = 3
	}
	at, tool := d.roundTime(d.drawBetween(10*time.Second, d.length-60*time.Second)), pick(d, scenario.ReadTool, scenario.PutTool, scenario.WriteTool)
	d.addFault("hang-call", g.Name, at, 8*time.Second, map[string]string{"chance": pick(d, "1", "1", "0.5")})
	l := d.addBurst(g.Name, tool, 2, at, 7*time.Second)
	if l.Together = 2 + d.IntN(4); d.drawChance(0.5) {
		l.Callers = 2 + d.IntN(3)
	}
	if d.drawChance(0.3) {
		l.Timeout = messages.Duration(500 * time.Millisecond)
	}
	later := d.addBurst(g.Name, tool, 3, at+10*time.Second, 5*time.Second)
	later.Together = 1 + d.IntN(3)
}

// refreshRefused lets the owner ask for a list that the server refuses, for longer than it takes to try again: each time the answer is due with
// the refusal.
func (d *scenarioBuilder) refreshRefused() {
	g := d.ownServer(messages.Stdio, messages.HTTP, messages.SSE, messages.WebSocket, messages.SDK)
	if g == nil {
		return
	}
	at, last := d.roundTime(d.drawBetween(10*time.Second, d.length-80*time.Second)), d.roundTime(d.drawBetween(4*time.Second, 20*time.Second))
	d.addFault("list-error", g.Name, at, last, map[string]string{"code": pick(d, "32603", "32000", "32602")})
	if d.drawChance(0.3) { // the list is being read, or is to be read, when the owner asks for it
		d.addFault("list-changed", g.Name, at+d.drawBetween(0, last/2), 0, map[string]string{"what": pick(d, "swap", "add", "describe")})
	}
	for range 1 + d.IntN(3) {
		d.addCommand("refresh", g.Name, at+d.drawBetween(0, last))
	}
}

// adjustUnsteady lets a server fail several times in a row, and its owner change, while it is connected in between, what no connection depends
// on: the failures before count all the same.
func (d *scenarioBuilder) adjustUnsteady() {
	g := d.ownServer(messages.Stdio, messages.HTTP, messages.WebSocket)
	if g == nil || d.stablePeriod() < 5*time.Second {
		return
	}
	at := d.roundTime(d.drawBetween(10*time.Second, d.length-90*time.Second))
	// The failures are followed by at most 1, 2 and 4 s of waiting: each is over before the next one, and no connection lasts long.
	for i, after := range []time.Duration{0, 2500 * time.Millisecond, 4500 * time.Millisecond, 7 * time.Second} {
		at += after
		d.addFault("crash", g.Name, at, 0, nil)
		if i > 0 && d.drawChance(0.6) {
			d.addAdjust(g.Name, at-d.drawBetween(10*time.Millisecond, time.Second), pick(d, "callTimeout=2s", "callTimeout=20s", "maxInFlight=3", "deny=put", "deny="))
		}
	}
}

// leaveOutReturning removes a server whose connection a call keeps for a while, adds it again at once, and then gives the manager a whole set
// of servers without it: it does not come back when its removal has ended.
func (d *scenarioBuilder) leaveOutReturning() {
	g := d.ownServer(messages.Stdio, messages.HTTP, messages.WebSocket)
	if g == nil {
		return
	}
	name := g.Name
	at := d.roundTime(d.drawBetween(20*time.Second, d.length-60*time.Second))
	d.addFault("hang-call", name, at-2*time.Second, 4*time.Second, nil)
	d.addBurst(name, pick(d, scenario.ReadTool, scenario.WriteTool), 3, at-2*time.Second, 2*time.Second)
	d.addCommand("remove", name, at)
	at += pick(d, time.Millisecond, 500*time.Millisecond)
	d.addCommand("add", name, at)
	var rest scenario.Selector
	for _, other := range d.s.Servers {
		if other.Name != name {
			rest = append(rest, other.Name)
		}
	}
	d.addCommand("configure", "", at+pick(d, time.Millisecond, time.Second))
	d.s.Commands[len(d.s.Commands)-1].On = rest
	if d.drawChance(0.4) {
		d.addCommand("add", name, at+pick(d, 2*time.Second, 20*time.Second))
	}
}

// permitAtRest lets a lazy server rest after its first calls, and gives other rules for its tools meanwhile: those of its last connection are
// offered, without the ones that are denied.
func (d *scenarioBuilder) permitAtRest() {
	g := d.ownServer(messages.Stdio, messages.HTTP, messages.WebSocket)
	if g == nil {
		return
	}
	g.Connect, g.IdleTimeout = messages.Lazy, messages.Duration(pick(d, 500*time.Millisecond, 2*time.Second))
	at := d.roundTime(d.drawBetween(10*time.Second, d.length-60*time.Second))
	d.addBurst(g.Name, pick(d, scenario.ReadTool, scenario.WriteTool), 1, at, 3*time.Second)
	for _, refused := range []string{pick(d, "read", "write", "read,write"), pick(d, "", "put", scenario.WholeServer), ""} {
		at += d.roundTime(d.drawBetween(8*time.Second, 15*time.Second))
		d.addPermit(g.Name, at, refused)
	}
}
