package generate

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// The shares of the days on which a connection outlives what troubles it: pings that find no answer, and lists that are
// refused.
const silencesShare, refusedListsShare = 0.06, 0.08

// drawRepeats lets a server of its own have one trouble several times on a connection that goes on: the manager's count of one such time must not
// weigh on the next. It has a source of chance of its own.
func (d *scenarioBuilder) drawRepeats(seed uint64) {
	if len(d.o.Only) > 0 || d.length < 4*time.Minute {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate repeats")
	if d.drawChance(silencesShare) {
		d.silenceServer()
	}
	if d.drawChance(refusedListsShare) {
		d.refuseLists()
	}
}

// silenceServer lets a remote server be silent for a little longer than the pause between two pings, four times: one ping or two find no answer, and
// three would have to.
func (d *scenarioBuilder) silenceServer() {
	every := 15 * time.Second
	if t := time.Duration(d.s.Manager.ProbeEvery); t > 0 {
		every = t
	}
	g := d.ownServer(messages.HTTP, messages.SSE, messages.WebSocket)
	if g == nil || every > 15*time.Second {
		return
	}
	at := d.roundTime(d.drawBetween(10*time.Second, 30*time.Second))
	for range 4 {
		last := every + d.roundTime(d.drawBetween(time.Second, 4*time.Second))
		if at+last > d.length-30*time.Second {
			return
		}
		d.addFault("black-hole", g.Name, at, last, nil)
		at += last + d.roundTime(d.drawBetween(25*time.Second, 45*time.Second))
	}
}

// refuseLists lets a server announce a change and refuse to list its tools for a while, and change them again when it lists them.
func (d *scenarioBuilder) refuseLists() {
	g := d.ownServer(messages.Stdio, messages.HTTP, messages.SSE, messages.WebSocket, messages.SDK)
	if g == nil {
		return
	}
	at := d.roundTime(d.drawBetween(10*time.Second, 30*time.Second))
	for range 2 {
		last := d.roundTime(d.drawBetween(time.Second, 8*time.Second))
		d.addFault("list-error", g.Name, at, last, map[string]string{"code": pick(d, "32603", "32000", "32602"), "chance": pick(d, "1", "1", "0.5")})
		d.addFault("list-changed", g.Name, at+d.drawBetween(time.Millisecond, last/2), 0, map[string]string{"what": pick(d, "swap", "add", "describe")})
		at += last + d.roundTime(d.drawBetween(15*time.Second, 25*time.Second))
		d.addFault("list-changed", g.Name, at, 0, map[string]string{"what": pick(d, "swap", "add", "describe")})
		at += d.roundTime(d.drawBetween(10*time.Second, 20*time.Second))
	}
}
