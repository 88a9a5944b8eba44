package generate

import (
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// The shares of the days with each of the additions of drawMeetings.
const (
	returnShare, toggleShare, waiterShare, refusedShare, lossShare, metaShare, emptyShare, starterShare = 0.25, 0.12, 0.12, 0.1, 0.08, 0.06, 0.06, 0.08
)

// drawMeetings lets the owner's commands and the refusals of a server meet calls that are under way, or that wait. It has a
// source of chance of its own, as drawAdditions has.
func (d *scenarioBuilder) drawMeetings(seed uint64) {
	if len(d.o.Only) > 0 {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate meetings")
	if d.drawChance(returnShare) {
		d.returnServer()
	}
	if d.drawChance(toggleShare) {
		d.toggleResting()
	}
	if d.drawChance(waiterShare) {
		d.disturbWaiters()
	}
	if d.drawChance(refusedShare) {
		d.refuseBesideCalls()
	}
	if d.drawChance(lossShare) {
		d.loseAnswers()
	}
	if d.drawChance(metaShare) {
		d.changeMeta()
	}
	if d.drawChance(emptyShare) {
		d.denyAllTools()
	}
	if d.drawChance(starterShare) {
		d.addSlowStarter()
	}
}

// returnServer takes a server away and asks for it again, several times within the 5 s in which its calls may go on: commands
// then meet a server that is ending and comes back, and the last one counts.
func (d *scenarioBuilder) returnServer() {
	g, name := d.enabledServer(func(g scenario.Group) bool { return g.Name != wellGroup && g.Tasks == "" })
	if g == nil {
		return
	}
	at := d.roundTime(d.drawBetween(10*time.Second, d.length-60*time.Second))
	if d.drawChance(0.7) { // calls that get no answer keep the connection for the whole time
		d.addFault("hang-call", name, at-2*time.Second, 4*time.Second, nil)
	}
	d.addBurst(name, pick(d, scenario.ReadTool, scenario.WriteTool), 2, at-2*time.Second, 3*time.Second)
	// soon draws a time within the 5 s.
	soon := func() time.Duration {
		return at + pick(d, 0, time.Millisecond, 20*time.Millisecond, 500*time.Millisecond, time.Second)
	}
	if d.drawChance(0.6) { // the third command is for the server that comes back
		d.addCommand("remove", name, at)
		at = soon()
		d.addCommand("add", name, at)
		at = soon()
		d.addCommand(pick(d, "remove", "disable", "disconnect", "enable", "reconnect", "respec"), name, at)
	} else {
		d.addCommand(pick(d, "disable", "disconnect", "respec", "reconnect"), name, at)
	}
	for range d.IntN(3) {
		at = soon()
		// Words that stand twice are drawn twice as often.
		d.addCommand(pick(d, "add", "add", "add", "remove", "disable", "enable", "respec", "reconnect"), name, at)
	}
	if d.drawChance(0.6) {
		d.addCommand("add", name, at+20*time.Second)
	}
}

// toggleResting disables and enables a lazy server that rests: no caller has used it, so it rests on.
func (d *scenarioBuilder) toggleResting() {
	g, name := d.enabledServer(func(g scenario.Group) bool { return g.Name != wellGroup })
	if g == nil {
		return
	}
	g.Connect, g.IdleTimeout = messages.Lazy, messages.Duration(pick(d, 500*time.Millisecond, 2*time.Second))
	at := d.roundTime(d.drawBetween(5*time.Second, d.length-60*time.Second))
	d.addBurst(name, pick(d, scenario.ReadTool, scenario.WriteTool), 1, at, 3*time.Second)
	at += 15 * time.Second
	d.addCommand(pick(d, "disable", "disable", "disconnect"), name, at)
	at += pick(d, nearDistances...)
	d.addCommand("enable", name, at)
	if d.drawChance(0.4) {
		d.addBurst(name, scenario.ReadTool, 1, at+15*time.Second, 2*time.Second)
	}
}

// disturbWaiters fills a server's places with calls that get no answer, so that further ones wait for their turn, and then lets
// its owner take the connection away, or somebody subscribe to a resource beside them.
func (d *scenarioBuilder) disturbWaiters() {
	g, name := d.enabledServer(func(g scenario.Group) bool { return g.Name != wellGroup && g.Tasks == "" && g.Connect != messages.Lazy })
	if g == nil {
		return
	}
	g.MaxInFlight, g.MaxQueued, g.CallTimeout, g.MaxCallTimeout = 1+d.IntN(2), 0, 0, 0
	at := d.roundTime(d.drawBetween(10*time.Second, d.length-60*time.Second))
	d.addFault("hang-call", name, at, 45*time.Second, nil)
	l := d.addBurst(name, pick(d, scenario.ReadTool, scenario.PutTool, scenario.WriteTool), 2, at, 4*time.Second)
	l.Callers = 1 + d.IntN(3)
	if d.drawChance(0.5) {
		g.Offers = true
		d.addBurst(name, "", 1, at+2*time.Second, 3*time.Second).Read = "subscribe"
	}
	at += pick(d, 3*time.Second, 5*time.Second, 7*time.Second)
	do := pick(d, "disable", "disable", "disable", "disable", "disconnect", "remove", "reconnect", "respec", "crash")
	if do == "crash" {
		d.addFault("crash", name, at, 0, map[string]string{"down": "40s"})
		return
	}
	d.addCommand(do, name, at)
	if undo := map[string]string{"disable": "enable", "disconnect": "enable", "remove": "add"}[do]; undo != "" {
		d.addCommand(undo, name, at+pick(d, 20*time.Second, 40*time.Second))
	}
}

// refuseBesideCalls lets a server refuse its credentials while calls are under way that it has accepted before: they may go on.
func (d *scenarioBuilder) refuseBesideCalls() {
	k := faultKind("unauthorized")
	name := d.serverForFault(k, func(g scenario.Group) bool {
		return connectsByItself(g) && g.Kind == messages.HTTP && g.Name != wellGroup && g.Tasks == ""
	})
	if name == "" || d.length < 90*time.Second {
		return
	}
	g := d.groupOf(name)
	g.CallTimeout, g.MaxCallTimeout, g.MaxInFlight, g.MaxQueued = 0, 0, 0, 0
	at := d.roundTime(d.drawBetween(10*time.Second, d.length-60*time.Second))
	d.addFault("hang-call", name, at-2*time.Second, 4*time.Second, nil)
	d.addBurst(name, pick(d, scenario.ReadTool, scenario.WriteTool), 3, at-2*time.Second, 4*time.Second)
	d.addFault(k.Name, name, at, 10*time.Second, nil)
	d.addCommand("reconnect", name, at+20*time.Second)
}

// loseAnswers lets the answers to some calls of a trusted server break off, each with the stream that carries it alone: the
// connection serves on, and such a call may be made again over it.
func (d *scenarioBuilder) loseAnswers() {
	k := faultKind("truncate")
	name := d.serverForFault(k, func(g scenario.Group) bool {
		return connectsByItself(g) && g.Kind == messages.HTTP && g.Name != wellGroup && g.Tasks == ""
	})
	if name == "" || d.length < 90*time.Second {
		return
	}
	g := d.groupOf(name)
	g.Trusted, g.CallTimeout, g.MaxCallTimeout = true, 0, 0
	at := d.roundTime(d.drawBetween(10*time.Second, d.length-60*time.Second))
	d.addFault(k.Name, name, at, 8*time.Second, map[string]string{"chance": "0.4"})
	d.addBurst(name, pick(d, scenario.ReadTool, scenario.PutTool), 2, at, 8*time.Second)
}

// changeMeta lets a server change, twice, what a tool says of itself beside its description and its schemas.
func (d *scenarioBuilder) changeMeta() {
	_, name := d.enabledServer(func(g scenario.Group) bool { return g.Name != wellGroup })
	if name == "" {
		return
	}
	at := d.roundTime(d.drawBetween(10*time.Second, d.length-60*time.Second))
	for range 2 {
		d.addFault("list-changed", name, at, 0, map[string]string{"what": "meta"})
		at += 5 * time.Second
	}
}

// denyAllTools denies every tool of a server and connects it anew: the catalog shows nothing of it before and after, and it is
// connected all the same.
func (d *scenarioBuilder) denyAllTools() {
	g, name := d.enabledServer(func(g scenario.Group) bool { return g.Name != wellGroup && g.Tools == 0 && g.Connect != messages.Lazy })
	if g == nil {
		return
	}
	at := d.roundTime(d.drawBetween(10*time.Second, d.length-60*time.Second))
	d.addAdjust(name, at, "deny="+strings.Join([]string{scenario.ReadTool, scenario.PutTool, scenario.WriteTool}, ","))
	d.addCommand("reconnect", name, at+5*time.Second)
	d.addAdjust(name, at+20*time.Second, "deny=")
}

// addSlowStarter adds a server without a connectTimeout of its own that takes longer to start than the manager waits at first, and
// later hangs in its start: the manager waits longer each time, and begins anew after a success.
func (d *scenarioBuilder) addSlowStarter() {
	if d.serverCount() >= d.o.Servers || d.length < 5*time.Minute {
		return
	}
	g := d.drawServer(d.drawKind(), "")
	g.Disabled, g.Connect, g.IdleTimeout, g.ConnectTimeout, g.NoConnectTimeout = false, "", 0, 0, true
	g.Tools, g.Pages, g.Latency, g.MaxInFlight, g.MaxQueued = 0, 0, 0, 0, 0
	if g.Start = 0; d.drawChance(0.6) {
		g.Start = messages.Duration(pick(d, 32*time.Second, 40*time.Second))
	}
	d.s.Servers = append(d.s.Servers, g)
	at := d.roundTime(d.drawBetween(2*time.Minute, d.length-2*time.Minute))
	d.addFault("hang-start", g.Name, at, pick(d, 50*time.Second, 100*time.Second), nil)
	d.addFault("crash", g.Name, at+time.Millisecond, 0, nil)
}
