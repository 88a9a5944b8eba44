// Package generate makes bad days at random: a seed is a scenario, the same each time, to be run in virtual time by the
// thousand.
//
//	s := generate.Scenario(42, generate.Options{})
//	plan, err := s.Plan(0, scenario.Sim) // with the seed of the scenario, which is the same 42
//
// A day has a few servers of mixed kinds and eras, a few to a dozen faults of all sorts, commands that race with them and
// calls. Errors of a manager live where things meet, so most of what happens is placed near to something else: shortly after
// the start, while a server connects or lists, just before or after the stable period, during the wait after a failure, while
// it is parked, at the same instant on several servers. The manager's times are often shortened, so that parks, probes and
// waits at the gate happen within minutes.
//
// Beside what is drawn piece by piece a day may hold recipes: sequences that make one rare thing likely, such as a park
// that ends with a probe. The scenario's Sometimes says which.
//
// Guaranteed: every seed gives a scenario that can be planned; each fault that the simulation can do, and each word of
// scenario.Occasions, stands in some per cent of the seeds (a test holds it). Not promised: that a seed gives the same day
// in another version of this package. Keep the scenario, not the seed, of what must be kept.
package generate

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// Options bound what is generated. The zero value is what the long runs of the simulation use.
type Options struct {
	// Servers is how many there are at most; 12.
	Servers int
	// Duration is how long things may break; 0: 2 to 20 minutes, by the seed.
	Duration time.Duration
	// Faults is how many entries of faults are drawn at most, beside those of recipes; 12.
	Faults int
	// Only, if not empty, are the names of the only faults that are drawn. There are no recipes then.
	Only []string
}

// Scenario is the bad day of a seed.
func Scenario(seed uint64, o Options) scenario.Scenario {
	o.Servers, o.Faults = cmp.Or(max(o.Servers, 0), 12), cmp.Or(max(o.Faults, 0), 12)
	d := &scenarioBuilder{Rand: scenario.Rand(seed, "generate"), o: o}
	d.length = o.Duration
	if d.length <= 0 {
		d.length = time.Duration(2+d.IntN(10)+d.IntN(10)) * time.Minute
	}
	d.s = scenario.Scenario{
		Name: fmt.Sprintf("seed-%d", seed), Seed: seed, Tiers: []scenario.Tier{scenario.Sim}, Duration: messages.Duration(d.length),
	}
	d.drawManager()
	d.drawServers()
	d.drawRecipes()
	d.drawFaults()
	d.drawCommands()
	d.drawLoad()
	d.drawReads()
	d.drawSlowServer()
	d.makeComparison()
	d.drawAdditions(seed)
	d.drawAdjustments(seed)
	d.crossing(seed)
	d.fitTimeouts()
	slices.Sort(d.s.Sometimes)
	d.s.Sometimes = slices.Compact(d.s.Sometimes)
	d.s.About = d.summaryText()
	return d.s
}

// scenarioBuilder is a scenario while it is made.
type scenarioBuilder struct {
	*rand.Rand
	o      Options
	s      scenario.Scenario
	length time.Duration
	// moments are times at which something happens already, each with the servers that it happens to.
	moments []moment
}

type moment struct {
	at     time.Duration
	server string // a server's name, or empty
}

// summaryText says in a line what the day is like.
func (d *scenarioBuilder) summaryText() string {
	n := 0
	for _, g := range d.s.Servers {
		n += max(g.Count, 1)
	}
	names := []string{}
	for _, f := range d.s.Faults {
		if !slices.Contains(names, f.Fault) {
			names = append(names, f.Fault)
		}
	}
	text := fmt.Sprintf("A random day: %d servers; %s", n, strings.Join(names, ", "))
	if len(d.s.Sometimes) > 0 {
		text += "; made for " + strings.Join(d.s.Sometimes, ", ")
	}
	return text + "."
}

// drawChance is true with a probability.
func (d *scenarioBuilder) drawChance(p float64) bool { return d.Float64() < p }

// drawBetween is a duration from low to below high.
func (d *scenarioBuilder) drawBetween(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(d.Int64N(int64(high-low)))
}

func pick[T any](d *scenarioBuilder, list ...T) T { return list[d.IntN(len(list))] }

// drawManager shortens the times of the manager, most days.
func (d *scenarioBuilder) drawManager() {
	m := &d.s.Manager
	if d.drawChance(0.2) {
		return // as it is used
	}
	ms := func(t time.Duration) messages.Duration { return messages.Duration(t) }
	if d.drawChance(0.8) {
		m.Stable = ms(pick(d, 2*time.Second, 5*time.Second, 5*time.Second, 15*time.Second))
	}
	if d.drawChance(0.8) {
		m.Probe = ms(pick(d, 10*time.Second, 30*time.Second, 30*time.Second, time.Minute))
	}
	if d.drawChance(0.5) {
		m.StdioPark, m.NetworkPark = 2+d.IntN(4), 2+d.IntN(5)
	}
	if d.drawChance(0.6) {
		m.Gate = 1 + d.IntN(3)
	}
	if d.drawChance(0.3) {
		m.Cap = ms(pick(d, 5*time.Second, 20*time.Second))
	}
	if d.drawChance(0.3) {
		m.WithdrawAfter = ms(pick(d, 100*time.Millisecond, time.Second, 20*time.Second))
	}
	if d.drawChance(0.25) {
		m.CallWait = ms(pick(d, 500*time.Millisecond, 5*time.Second))
	}
	m.Audit, m.Ask = d.drawChance(0.15), d.drawChance(0.12)
	if d.drawChance(0.3) {
		m.ProbeEvery = ms(pick(d, 2*time.Second, 5*time.Second))
	}
}
