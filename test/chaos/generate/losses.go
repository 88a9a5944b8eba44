package generate

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// The shares of the days with each of the additions of drawLosses.
const lostNewsShare, refusedPollsShare = 0.15, 0.15

// drawLosses lets single messages be lost beside calls, on a connection that stands: news of a server while no stream is open for them, and requests
// about a task. It has a source of chance of its own, as drawAdditions has.
func (d *scenarioBuilder) drawLosses(seed uint64) {
	if len(d.o.Only) > 0 {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate losses")
	if d.drawChance(lostNewsShare) {
		d.loseNews()
	}
	if d.drawChance(refusedPollsShare) {
		d.refusePolls()
	}
}

// loseNews cuts the streams of a server, and lets its lists change soon after each time, when no stream may be open that would tell of it. After the
// last change nothing happens to it: only the stream that is opened again tells its client to look.
func (d *scenarioBuilder) loseNews() {
	g := d.ownServer(messages.HTTP)
	if g == nil {
		return
	}
	if d.drawChance(0.5) {
		g.Era = messages.EraModern
	} else if g.Era = ""; d.drawChance(0.6) {
		g.Web = pick(d, scenario.WebPlain, scenario.WebPlain, scenario.WebNumbered)
	}
	// A stream that lasts is one whose end is noticed; one that is cut at once is not opened again at once.
	every := pick(d, 2*time.Second, 4*time.Second, 12*time.Second)
	at := d.roundTime(d.drawBetween(10*time.Second, d.length-80*time.Second))
	times := 1 + d.IntN(3)
	d.addFault("cut-stream", g.Name, at, time.Duration(times)*every+every/2, map[string]string{"every": every.String()})
	for range times {
		at += every
		d.addFault("list-changed", g.Name, at+pick(d, 5*time.Millisecond, 50*time.Millisecond, 300*time.Millisecond), 0,
			map[string]string{"what": pick(d, "swap", "add", "describe")})
	}
}

// refusePolls lets a server refuse many of the requests about tasks that run, but seldom several in a row.
func (d *scenarioBuilder) refusePolls() {
	g := d.ownServer(messages.HTTP)
	if g == nil {
		return
	}
	g.Tasks, g.Latency = pick(d, scenario.TasksOptional, scenario.TasksRequired), messages.Duration(10*time.Millisecond)
	at := d.roundTime(d.drawBetween(10*time.Second, d.length-60*time.Second))
	// Calls that begin later would be refused as well, and have the manager look whether the server is there at all.
	d.addBurst(g.Name, pick(d, scenario.ReadTool, scenario.WriteTool), 5, at, 1200*time.Millisecond).Task = true
	d.addFault("server-error", g.Name, at+1500*time.Millisecond, 15*time.Second, map[string]string{"status": pick(d, "500", "502", "503"), "chance": pick(d, "0.6", "0.7")})
}
