package generate

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// The shares of the days with each of the additions of drawEndings.
const (
	taskShare, pageShare, restShare, removedShare, queueShare, olderShare = 0.12, 0.08, 0.08, 0.08, 0.06, 0.06
)

// drawEndings lets something end while the manager still counts on it: a task whose caller or connection goes, a tool of a list
// that is otherwise as before, the rest of a lazy server, a server that was just added, a connection for which calls wait. It has a
// source of chance of its own, as drawAdditions has.
func (d *scenarioBuilder) drawEndings(seed uint64) {
	if len(d.o.Only) > 0 {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate endings")
	if d.drawChance(taskShare) {
		d.endTasks()
	}
	if d.drawChance(pageShare) {
		d.removeListedTools()
	}
	if d.drawChance(restShare) {
		d.endRest()
	}
	if d.drawChance(removedShare) {
		d.removeReturning()
	}
	if d.drawChance(queueShare) {
		d.endBesideWaiters()
	}
	if d.drawChance(olderShare) {
		d.endAfterToggle()
	}
}

// ownServer adds a server of a kind that nothing else of the day meets; nil if there is no room for one more, or for its story.
func (d *scenarioBuilder) ownServer(kinds ...messages.TransportKind) *scenario.Group {
	if d.serverCount() >= d.o.Servers || d.length < 2*time.Minute {
		return nil
	}
	g := d.drawServer(pick(d, kinds...), "")
	// These settings would end its connection by themselves, or keep its calls from being judged.
	g.Disabled, g.Connect, g.IdleTimeout, g.Tasks, g.Offers, g.ConnectTimeout = false, "", 0, "", false, 0
	g.Tools, g.Pages, g.MaxInFlight, g.MaxQueued, g.CallTimeout, g.MaxCallTimeout = 0, 0, 0, 0, 0, 0
	d.s.Servers = append(d.s.Servers, g)
	return &d.s.Servers[len(d.s.Servers)-1]
}

// endTasks lets callers leave tasks that run, or the connection of the tasks end, or tasks run for longer than a call without a
// word may.
func (d *scenarioBuilder) endTasks() {
	g := d.ownServer(messages.Stdio, messages.Stdio, messages.HTTP, messages.WebSocket)
	if g == nil {
		return
	}
	g.Tasks = pick(d, scenario.TasksOptional, scenario.TasksRequired, scenario.TasksRequired)
	at := d.roundTime(d.drawBetween(20*time.Second, d.length-60*time.Second))
	for range 1 + d.IntN(2) {
		l := d.addBurst(g.Name, pick(d, scenario.ReadTool, scenario.PutTool, scenario.WriteTool), pick(d, 0.8, 2), at, 5*time.Second)
		l.Task = true
		switch pick(d, "leave", "leave", "end", "end", "long") {
		case "leave":
			if l.Cancel = 0.6; d.drawChance(0.5) {
				l.Cancel, l.Timeout = 0, messages.Duration(pick(d, time.Second, 2*time.Second))
			}
		case "end":
			d.addCommand(pick(d, "disconnect", "disconnect", "reconnect", "disable"), g.Name, at+d.drawBetween(2*time.Second, 5*time.Second))
			d.addCommand("enable", g.Name, at+12*time.Second)
		case "long":
			g.CallTimeout = messages.Duration(pick(d, time.Second, 2*time.Second))
		}
		at += 20 * time.Second
	}
}

// removeListedTools lets a list lose a tool that was added before, and nothing else: each page is as it was, or shorter.
func (d *scenarioBuilder) removeListedTools() {
	g := d.ownServer(d.drawKind())
	if g == nil {
		return
	}
	if d.drawChance(0.6) {
		g.Tools, g.Pages = 4+d.IntN(8), 1+d.IntN(3)
	}
	at := d.roundTime(d.drawBetween(10*time.Second, d.length-60*time.Second))
	for _, what := range []string{"add", pick(d, "remove", "add"), "remove"} {
		d.addFault("list-changed", g.Name, at, 0, map[string]string{"what": what})
		at += pick(d, 2*time.Second, 8*time.Second)
	}
	if d.drawChance(0.4) {
		d.addFault("cursor-loop", g.Name, at, 5*time.Second, map[string]string{"what": "same"})
		d.addCommand("refresh", g.Name, at+time.Second)
	}
}

// endRest makes a server lazy, lets it rest, and makes it eager again: it is connected then, and comes back after it was lost.
func (d *scenarioBuilder) endRest() {
	g := d.ownServer(messages.Stdio, messages.HTTP, messages.WebSocket)
	if g == nil {
		return
	}
	at := d.roundTime(d.drawBetween(10*time.Second, d.length-70*time.Second))
	d.addAdjust(g.Name, at, "connect=lazy", "idleTimeout="+pick(d, "500ms", "2s"))
	at += pick(d, 100*time.Millisecond, 10*time.Second, 10*time.Second)
	d.addAdjust(g.Name, at, "connect=eager")
	if d.drawChance(0.6) {
		d.addFault("crash", g.Name, at+10*time.Second, 0, nil)
	}
}

// removeReturning removes a server that comes back after a removal, while a call keeps the connection of its earlier life.
func (d *scenarioBuilder) removeReturning() {
	g := d.ownServer(messages.Stdio, messages.HTTP)
	if g == nil {
		return
	}
	at := d.roundTime(d.drawBetween(20*time.Second, d.length-60*time.Second))
	d.addFault("hang-call", g.Name, at-2*time.Second, 4*time.Second, nil)
	d.addBurst(g.Name, pick(d, scenario.ReadTool, scenario.WriteTool), 3, at-2*time.Second, 2*time.Second)
	d.addCommand("remove", g.Name, at)
	d.addCommand("add", g.Name, at+pick(d, time.Millisecond, 500*time.Millisecond))
	d.addCommand(pick(d, "remove", "remove", "disable"), g.Name, at+pick(d, time.Second, 2*time.Second))
	if d.drawChance(0.5) {
		d.addCommand("add", g.Name, at+20*time.Second)
	}
}

// endBesideWaiters lets the connection of a server end by itself, or be ended, while calls wait for their turn at it.
func (d *scenarioBuilder) endBesideWaiters() {
	g := d.ownServer(messages.Stdio, messages.WebSocket)
	if g == nil {
		return
	}
	g.MaxInFlight, g.Latency = 1, messages.Duration(2*time.Second)
	at := d.roundTime(d.drawBetween(10*time.Second, d.length-100*time.Second))
	l := d.addBurst(g.Name, pick(d, scenario.ReadTool, scenario.WriteTool), 2, at, 4*time.Second)
	l.Callers = 1 + d.IntN(3)
	end := at + d.drawBetween(2*time.Second, 4*time.Second)
	if d.drawChance(0.4) {
		d.addFault("crash", g.Name, end, 0, map[string]string{"down": pick(d, "1s", "40s")})
		return
	}
	// A call that gets no answer keeps its place for a minute: who waits behind it is not to wait as long.
	if d.drawChance(0.7) {
		d.addFault("hang-call", g.Name, at, 10*time.Second, nil)
	}
	d.addCommand(pick(d, "disable", "disable", "disconnect"), g.Name, end)
	d.addCommand("enable", g.Name, end+90*time.Second)
}

// endAfterToggle disables and enables a server while calls are under way, and ends its connection a moment later: the calls from before have
// their time to end as well.
func (d *scenarioBuilder) endAfterToggle() {
	g := d.ownServer(messages.Stdio, messages.HTTP, messages.WebSocket)
	if g == nil {
		return
	}
	g.Latency = messages.Duration(2 * time.Second)
	at := d.roundTime(d.drawBetween(20*time.Second, d.length-60*time.Second))
	d.addBurst(g.Name, pick(d, scenario.ReadTool, scenario.WriteTool), 3, at, time.Second)
	at += pick(d, 1100*time.Millisecond, 1300*time.Millisecond)
	d.addCommand("disable", g.Name, at)
	at += pick(d, time.Millisecond, 50*time.Millisecond)
	d.addCommand("enable", g.Name, at)
	do := pick(d, "reconnect", "reconnect", "respec", "remove")
	d.addCommand(do, g.Name, at+pick(d, time.Millisecond, 100*time.Millisecond))
	if do == "remove" {
		d.addCommand("add", g.Name, at+15*time.Second)
	}
}
