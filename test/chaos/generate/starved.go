package generate

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// starvedShare is the share of days on which processes wait for a processor, if there is room for enough servers.
const starvedShare = 0.1

// leastStarved is the least number of servers that start together: fewer would seldom wait for the start gate.
const leastStarved = 6

// drawStarved adds two groups of processes that start together, again and again, behind a gate that is too small for them. Those
// of one group mostly wait for a processor, those of the other mostly run. It has a source of chance of its own.
func (d *scenarioBuilder) drawStarved(seed uint64) {
	if len(d.o.Only) > 0 {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate starved")
	n := d.o.Servers - d.serverCount()
	if !d.drawChance(starvedShare) || n < leastStarved || d.length < 2*time.Minute {
		return
	}
	// Some have to wait. A gate that is narrowed from eight slots has four, and can be narrowed again.
	d.s.Manager.Gate = max(pick(d, n/2, n-3, n-2, n-1), 2)
	for i, count := range []int{n - n/3, n / 3} {
		g := scenario.Group{Name: []string{"waiting", "running"}[i], Count: count}
		if d.drawChance(0.3) {
			g.Era = messages.EraModern
		}
		d.s.Servers = append(d.s.Servers, g)
	}
	at := d.roundTime(d.drawBetween(5*time.Second, 20*time.Second))
	for at < d.length-40*time.Second {
		last := d.roundTime(d.drawBetween(10*time.Second, 30*time.Second))
		d.starveGroup("waiting", at, last, pick(d, "2s", "5s", "12s", "30s"), pick(d, "0.88", "0.9", "0.9", "0.95", "0.99"))
		d.starveGroup("running", at, last, pick(d, "500ms", "1200ms", "1500ms", "3s", "8s"), pick(d, "0", "0.3", "0.5", "0.7"))
		for range 1 + d.IntN(3) {
			t := at + d.drawBetween(time.Millisecond, last)
			d.restartTogether("waiting", t)
			d.restartTogether("running", pick(d, t, t+d.drawBetween(time.Millisecond, 6*time.Second)))
		}
		// From the end of the fault on they start as fast as ever.
		at += last
		d.restartTogether(pick(d, "waiting", "running"), at+d.drawBetween(0, 10*time.Second))
		if d.drawChance(0.4) {
			return
		}
		at = d.roundTime(at + d.drawBetween(10*time.Second, 60*time.Second))
	}
}

// starveGroup lets the processes of a group wait for a processor for a share of the time that they take to start.
func (d *scenarioBuilder) starveGroup(group string, at, last time.Duration, longer, waits string) {
	d.s.Faults = append(d.s.Faults, scenario.Fault{
		Fault: "starved", With: map[string]string{"by": longer, "waits": waits}, On: scenario.Selector{group},
		At: messages.Duration(at), For: messages.Duration(last),
	})
}

// restartTogether ends all processes of a group, in one instant or within seconds, by themselves or by a command.
func (d *scenarioBuilder) restartTogether(group string, at time.Duration) {
	spread := messages.Duration(pick(d, 0, 0, 300*time.Millisecond, 2*time.Second, 8*time.Second))
	at = min(at, d.length-10*time.Second)
	if d.drawChance(0.5) {
		d.s.Commands = append(d.s.Commands, scenario.Command{Do: "reconnect", On: scenario.Selector{group}, At: messages.Duration(at), Spread: spread})
		return
	}
	d.s.Faults = append(d.s.Faults, scenario.Fault{Fault: "crash", On: scenario.Selector{group}, At: messages.Duration(at), Spread: spread})
}
