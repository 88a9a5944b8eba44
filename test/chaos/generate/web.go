package generate

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// The shares of the days on which servers over http are reached with the manager's own HTTP client, and of those with a server whose streams
// break while they carry answers, and of those with one that refuses the credentials of one of its callers.
const webShare, brokenStreamsShare, personalShare = 0.5, 0.1, 0.08

// drawWeb lets the manager reach servers over http with its own HTTP client, and breaks streams with answers, which are resumed where they are
// numbered. It has a source of chance of its own, as drawAdditions has.
func (d *scenarioBuilder) drawWeb(seed uint64) {
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate web")
	if len(d.o.Only) == 0 && d.drawChance(brokenStreamsShare) {
		d.breakStreams()
	}
	if len(d.o.Only) == 0 && d.drawChance(personalShare) {
		d.refuseOneCaller()
	}
	if !d.drawChance(webShare) {
		return
	}
	for i := range d.s.Servers {
		if g := &d.s.Servers[i]; g.Kind == messages.HTTP && g.Web == "" && d.drawChance(0.7) {
			g.Web = pick(d, scenario.WebPlain, scenario.WebNumbered)
		}
	}
}

// breakStreams adds a server that takes its time over calls, and cuts its streams meanwhile: in the middle of calls, and of answers.
func (d *scenarioBuilder) breakStreams() {
	g := d.ownServer(messages.HTTP)
	if g == nil {
		return
	}
	g.Era, g.Web, g.Tasks = "", pick(d, scenario.WebPlain, scenario.WebNumbered, scenario.WebNumbered, scenario.WebNumbered), ""
	g.Latency, g.Offers = messages.Duration(pick(d, 100*time.Millisecond, 400*time.Millisecond, time.Second)), d.drawChance(0.5)
	g.CallTimeout, g.MaxCallTimeout = messages.Duration(10*time.Second), 0
	at := d.roundTime(d.drawBetween(10*time.Second, d.length-60*time.Second))
	d.addFault("cut-stream", g.Name, at, 15*time.Second, map[string]string{"every": pick(d, "300ms", "1100ms", "4s")})
	if d.drawChance(0.6) {
		d.addFault("truncate", g.Name, at+5*time.Second, 8*time.Second, map[string]string{"chance": "0.4"})
	}
	if d.drawChance(0.25) {
		d.addFault(pick(d, "reset", "lose-session", "stale-session-400", "server-error", "unauthorized"), g.Name, at+d.drawBetween(2*time.Second, 14*time.Second), time.Second, nil)
	}
	for range 2 {
		l := d.addBurst(g.Name, pick(d, scenario.ReadTool, scenario.WriteTool, scenario.PutTool), pick(d, 1.0, 3), at, 18*time.Second)
		if d.drawChance(0.25) {
			l.Cancel = 0.3
		}
	}
}

// refuseOneCaller adds a server to which several callers come, each with credentials of its own, of which it refuses those of one. The others, and the
// connection itself, are not concerned.
func (d *scenarioBuilder) refuseOneCaller() {
	g := d.ownServer(messages.HTTP)
	if g == nil {
		return
	}
	g.Web, g.Personal = pick(d, scenario.WebPlain, scenario.WebNumbered), true
	for range 2 {
		l := d.addBurst(g.Name, pick(d, scenario.ReadTool, scenario.WriteTool, scenario.PutTool), pick(d, 1.0, 3), d.drawBetween(5*time.Second, d.length-40*time.Second), 15*time.Second)
		l.Callers = 2 + d.IntN(3)
	}
}

// renewShare is the share of the days with servers whose credentials are renewed by themselves.
const renewShare = 0.12

// drawRenewals adds a server that refuses its credentials for a while, once or a few times, and whose owner does nothing about it: others appear by
// themselves. It has a source of chance of its own, as drawAdditions has.
func (d *scenarioBuilder) drawRenewals(seed uint64) {
	if len(d.o.Only) > 0 {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate renewals")
	if !d.drawChance(renewShare) {
		return
	}
	g := d.ownServer(messages.HTTP, messages.HTTP, messages.SSE)
	if g == nil {
		return
	}
	if g.Renews = true; g.Kind == messages.HTTP && d.drawChance(0.5) {
		g.Web = pick(d, scenario.WebPlain, scenario.WebNumbered)
	}
	at := d.roundTime(d.drawBetween(5*time.Second, d.length-60*time.Second))
	for range 1 + d.IntN(3) {
		last := d.roundTime(d.drawBetween(2*time.Second, 12*time.Second))
		d.addFault("unauthorized", g.Name, at, last, nil)
		if d.drawChance(0.7) {
			d.addFault("reset", g.Name, at+time.Millisecond, 0, nil)
		}
		d.addBurst(g.Name, pick(d, scenario.ReadTool, scenario.WriteTool), pick(d, 1.0, 3), at-2*time.Second, last+10*time.Second)
		if at += last + d.drawBetween(10*time.Second, 30*time.Second); at > d.length-30*time.Second {
			return
		}
	}
}
