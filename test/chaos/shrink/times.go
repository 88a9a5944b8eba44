package shrink

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// shortenTimes ends the day earlier and lets faults and calls last for less.
func (x *search) shortenTimes() {
	x.shortenDay()
	for i := 0; i < len(x.best.Faults) && !x.isOver(); i++ {
		plan, err := x.best.Plan(0, x.o.Tier)
		if err != nil {
			return
		}
		// A fault without a time of its own, or with a longer one, lasts to the end of the day.
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
}

// shortenDay shortens the duration, and what would begin after it is left away.
func (x *search) shortenDay() {
	plan, err := x.best.Plan(0, x.o.Tier)
	if err != nil {
		return
	}
	x.minimizeTime(plan.Heal, time.Second, endAt)
}

// minimizeTime looks for the smallest value between floor and now, by halves. What fails need not fail for all that is larger;
// whatever is kept does fail.
func (x *search) minimizeTime(now, floor time.Duration, set func(*scenario.Scenario, time.Duration)) {
	low, high := floor, now // high fails; low is the smallest that is still to be tried
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
			return // an eighth is near enough: rounder does the rest
		}
	}
}

// roundTimes makes times shorter to write, and earlier.
func (x *search) roundTimes() {
	for i := 0; i < len(durations(&x.best)) && !x.isOver(); i++ {
		for _, to := range []time.Duration{time.Minute, 10 * time.Second, time.Second, 100 * time.Millisecond, time.Millisecond} {
			now := time.Duration(*durations(&x.best)[i])
			down := now.Truncate(to)
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

// moveEarlier moves all that happens towards the start together: their order and distances are often what matters.
func (x *search) moveEarlier() {
	first := time.Duration(-1)
	noteStart := func(at messages.Duration) {
		if d := time.Duration(at); first < 0 || d < first {
			first = d
		}
	}
	for _, f := range x.best.Faults {
		noteStart(f.At)
	}
	for _, c := range x.best.Commands {
		noteStart(c.At)
	}
	for shift := first; shift >= time.Second && !x.isOver(); shift /= 2 {
		shift = shift.Truncate(time.Second)
		s := x.best.Clone()
		for i := range s.Faults {
			s.Faults[i].At -= messages.Duration(shift)
		}
		for i := range s.Commands {
			s.Commands[i].At -= messages.Duration(shift)
		}
		if x.tryScenario(s) {
			return
		}
	}
}
