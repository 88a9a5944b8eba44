package shrink

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// shortenTimes shortens the run, and then each fault, each load and each agent.
func (x *search) shortenTimes() {
	x.shortenDay()
	for i := 0; i < len(x.best.Faults) && !x.isOver(); i++ {
		plan, err := x.best.Plan(0, x.o.Tier)
		if err != nil {
			return
		}
		// A fault without a duration, or with a longer one, lasts to the end of the run.
		f := x.best.Faults[i]
		now := plan.Heal - time.Duration(f.At)
		if f.For > 0 {
			now = min(now, time.Duration(f.For))
		}
		x.minimizeTime(now, time.Millisecond, func(s *scenario.Scenario, d time.Duration) {
			s.Faults[i].For = messages.Duration(d)
		})
	}
	for i := 0; i < len(x.best.Load) && !x.isOver(); i++ {
		x.minimizeTime(time.Duration(x.best.Load[i].For), time.Second, func(s *scenario.Scenario, d time.Duration) {
			s.Load[i].For = messages.Duration(d)
		})
	}
	for i := 0; i < len(x.best.Agents) && !x.isOver(); i++ {
		x.minimizeTime(time.Duration(x.best.Agents[i].For), time.Second, func(s *scenario.Scenario, d time.Duration) {
			s.Agents[i].For = messages.Duration(d)
		})
	}
}

// shortenDay shortens the run, and removes what would begin after its end.
func (x *search) shortenDay() {
	plan, err := x.best.Plan(0, x.o.Tier)
	if err != nil {
		return
	}
	x.minimizeTime(plan.Heal, time.Second, endAt)
}

// minimizeTime looks for the smallest failing value between floor and now, by halves. A scenario may fail at one value and not
// at a larger one, so that the result need not be the smallest; but it does fail.
func (x *search) minimizeTime(now, floor time.Duration, set func(*scenario.Scenario, time.Duration)) {
	// The value high is known to fail, and low is the smallest still to be tried.
	low, high := floor, now
	for first := true; low < high && !x.isOver(); first = false {
		d := low + (high-low)/2
		if first {
			d = low
		}
		s := x.best.Clone()
		set(&s, d)
		if x.tryScenario(s) {
			high = d
			continue
		}
		if low = d + 1; high-low < max(high/8, floor) {
			// An eighth is near enough, because roundTimes follows.
			return
		}
	}
}

// roundTimes makes times shorter to write, and earlier.
func (x *search) roundTimes() {
	for i := 0; i < len(durations(&x.best)) && !x.isOver(); i++ {
		for _, to := range []time.Duration{time.Minute, 10 * time.Second, time.Second, 100 * time.Millisecond, time.Millisecond} {
			now := time.Duration(*durations(&x.best)[i])
			down := now.Truncate(to)
			// The time is as round as that already, and rounder values were tried.
			if down == now {
				break // it is as round as that, and what is rounder was tried
			}
			s := x.best.Clone()
			*durations(&s)[i] = messages.Duration(down)
			if x.tryScenario(s) {
				break
			}
			s = x.best.Clone()
			*durations(&s)[i] = messages.Duration(down + to)
			if x.tryScenario(s) {
				break
			}
		}
	}
	x.moveEarlier()
}

// moveEarlier moves all that does not begin with the run towards its start, together with the end, because a failure often depends
// on the order and the distances of what happens. What is left before the first is time in which servers connect.
func (x *search) moveEarlier() {
	first := time.Duration(-1)
	for _, at := range beginTimes(&x.best) {
		if d := time.Duration(*at); d > 0 && (first < 0 || d < first) {
			first = d
		}
	}
	for _, left := range []time.Duration{0, time.Second, 5 * time.Second, 30 * time.Second, first / 2} {
		shift := (first - left).Truncate(time.Second)
		if shift < time.Second {
			continue
		}
		moved := x.tryChange(func(s *scenario.Scenario) {
			for _, at := range beginTimes(s) {
				*at = max(*at-messages.Duration(shift), 0)
			}
			s.Duration = max(s.Duration-messages.Duration(shift), messages.Duration(time.Second))
		})
		if moved {
			return
		}
	}
}

// beginTimes returns the times at which faults, commands, load and agents begin.
func beginTimes(s *scenario.Scenario) []*messages.Duration {
	var out []*messages.Duration
	for i := range s.Faults {
		out = append(out, &s.Faults[i].At)
	}
	for i := range s.Commands {
		out = append(out, &s.Commands[i].At)
	}
	for i := range s.Load {
		out = append(out, &s.Load[i].From)
	}
	for i := range s.Agents {
		out = append(out, &s.Agents[i].From)
		for k := range s.Agents[i].Within {
			out = append(out, &s.Agents[i].Within[k].At)
		}
	}
	return out
}
