// Package generate makes bad days at random: a seed yields a scenario, the same each time, to be run in virtual time by the
// thousand.
//
//	s := generate.Scenario(42, generate.Options{})
//	plan, err := s.Plan(0, scenario.Sim) // with the seed of the scenario, which is the same 42
//
// A day has a few servers of mixed kinds and eras, a few to a dozen faults of all sorts, commands that race with them and
// calls. Errors of a manager live where events meet, so most events are placed near to another one: shortly after the start,
// while a server connects or lists, just before or after the stable period, during the wait after a failure, while it is
// parked, at the same instant on several servers. The manager's times are often shortened, so that parks, probes and waits at
// the gate happen within minutes.
//
// Beside the single draws a day may hold recipes: sequences that make one rare event likely, such as a park that ends with a
// probe. The scenario's Sometimes names these events.
//
// Guaranteed: every seed gives a scenario that can be planned; each fault that the simulation can do, and each word of
// [scenario.Occasions], stands in some per cent of the seeds (a test holds it). Not promised: that a seed gives the same day in
// another version of this package. Keep the scenario, not the seed, of a day that must be kept.
//
// # How it fits
//
// Package campaign and the search of package planted call [Scenario] with one seed after the other; package sim runs the plan.
//
//	generate.go     the order of the draws, and the manager's times
//	servers.go      the servers; faults.go, triggers.go the faults and the events that they need to have an effect
//	commands.go     the owner's commands, calls and reads
//	moments.go      when: near to what happens already
//	recipes*.go     sequences for rare events, and the other files: parts that came later, each with a source of chance of its own
//
// This package calls package scenario for the language and transports/fault for the kinds of faults and their parameters. It
// keeps no state: the builder of a scenario lives for one call.
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

// Options bound the scenarios. The long runs of the simulation use the zero value.
type Options struct {
	// Servers is the greatest number of servers; 0 means 12, and on a few days a crowd of 18 of one host beside them.
	Servers int
	// Duration is the time in which faults and commands happen; 0 means 2 to 20 minutes, by the seed.
	Duration time.Duration
	// Faults is the greatest number of faults that are drawn, beside those of recipes; 0 means 12.
	Faults int
	// Only, if not empty, names the only faults that are drawn. Such a day has no recipes and no additions.
	Only []string
}

// defaultServers is the greatest number of servers if the options name none.
const defaultServers = 12

// Scenario returns the bad day of a seed. Equal seeds and options give equal scenarios.
func Scenario(seed uint64, o Options) scenario.Scenario {
	o.Servers, o.Faults = cmp.Or(max(o.Servers, 0), defaultServers), cmp.Or(max(o.Faults, 0), 12)
	d := &scenarioBuilder{Rand: scenario.Rand(seed, "generate"), o: o}
	d.length = o.Duration
	if d.length <= 0 {
		d.length = time.Duration(2+d.IntN(10)+d.IntN(10)) * time.Minute
	}
	d.s = scenario.Scenario{
		Name: fmt.Sprintf("seed-%d", seed), Seed: seed, Tiers: []scenario.Tier{scenario.Sim}, Duration: messages.Duration(d.length),
	}
	// The order of the draws is part of what a seed means: a new draw goes to the end, or has a source of its own, so that the
	// seeds keep their days.
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
	d.drawPermissions(seed)
	d.drawHeaderParams(seed)
	d.drawPins(seed)
	d.drawWholeCommands(seed)
	d.drawSilentCrowd(seed)
	d.drawStarved(seed)
	d.drawMeetings(seed)
	d.drawEndings(seed)
	d.drawTaskInput(seed)
	d.drawPrincipals(seed)
	d.drawGateway(seed)
	d.drawNeighbours(seed)
	d.drawSeldom(seed)
	d.drawBrokenActors(seed)
	d.drawHeldTools(seed)
	d.drawViews(seed)
	d.drawLogs(seed)
	d.drawAgentTasks(seed)
	d.drawGivenUp(seed)
	d.drawRepeats(seed)
	d.drawAsked(seed)
	d.drawTroubled(seed)
	d.drawConfigured(seed)
	d.drawEventful(seed)
	d.drawWeb(seed)
	d.drawRenewals(seed)
	d.drawLosses(seed)
	d.drawDrills(seed)
	d.drawPartial(seed)
	d.drawListsBetween(seed)
	d.fitTimeouts()
	d.spreadSteadyCalls()
	// Two recipes may name one occasion.
	slices.Sort(d.s.Sometimes)
	d.s.Sometimes = slices.Compact(d.s.Sometimes)
	d.s.About = d.summaryText()
	return d.s
}

// A scenarioBuilder holds a scenario while its parts are drawn. The order of calls on Rand decides the scenario.
type scenarioBuilder struct {
	*rand.Rand
	o Options
	s scenario.Scenario
	// length is the duration of the day, before its world is healed.
	length time.Duration
	// moments are the times at which an event happens already; later events are placed near them.
	moments []moment
}

// A moment is the time of an event that was drawn.
type moment struct {
	at     time.Duration
	server string // a server's name, or empty for an event of several servers or of the manager
}

// summaryText describes the day in one line.
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

// drawChance returns true with the probability p.
func (d *scenarioBuilder) drawChance(p float64) bool { return d.Float64() < p }

// drawBetween returns a duration from low to below high; low if the range is empty.
func (d *scenarioBuilder) drawBetween(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(d.Int64N(int64(high-low)))
}

// pick returns one of the items, each with the same probability.
func pick[T any](d *scenarioBuilder, list ...T) T { return list[d.IntN(len(list))] }

// drawManager shortens the manager's times on most days. With the defaults a connection is stable only after one minute and a
// parked server is probed after five, so that few of these events would fit into a day.
func (d *scenarioBuilder) drawManager() {
	m := &d.s.Manager
	if d.drawChance(0.2) {
		return // with the defaults, as users run it
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
	m.Audit, m.Ask = d.drawChance(0.35), d.drawChance(0.2)
	if d.drawChance(0.3) {
		m.ProbeEvery = ms(pick(d, 2*time.Second, 5*time.Second))
	}
}
