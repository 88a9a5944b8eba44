package shrink

import (
	"cmp"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// Size is the size of a scenario. The plan counts before the text: one entry that breaks twenty servers is larger than three
// that break one each.
type Size struct {
	// Servers, Happenings (faults and commands) and Streams (of calls, and agents) are numbers of the plan.
	Servers, Happenings, Streams int
	// Settings counts the optional values that the scenario gives.
	Settings int
	// Duration is the time in which things may break, Lasting the sum of the durations of faults and load, Calls the number of
	// calls per second.
	Duration, Lasting time.Duration
	Calls             float64
	// Digits is the number of characters of all times, Late the sum of the times at which faults and commands begin.
	Digits int
	Late   time.Duration
}

// Less compares sizes field by field, in their order.
func (a Size) Less(b Size) bool {
	return cmp.Or(
		cmp.Compare(a.Servers, b.Servers), cmp.Compare(a.Happenings, b.Happenings), cmp.Compare(a.Streams, b.Streams),
		cmp.Compare(a.Settings, b.Settings), cmp.Compare(a.Duration, b.Duration), cmp.Compare(a.Lasting, b.Lasting),
		cmp.Compare(a.Calls, b.Calls), cmp.Compare(a.Digits, b.Digits), cmp.Compare(a.Late, b.Late),
	) < 0
}

// sizeOf returns the size of a scenario with the plan p.
func sizeOf(s scenario.Scenario, p scenario.Plan) Size {
	z := Size{
		Servers: len(p.Servers), Happenings: len(p.Faults) + len(p.Commands), Streams: len(p.Load) + len(p.Agents), Duration: p.Heal,
		Settings: settingsOf(s), Digits: digitCount(s.Duration) + digitCount(s.Settle),
	}
	for _, f := range p.Faults {
		z.Lasting += f.End - f.Begin
	}
	for _, l := range p.Load {
		z.Calls += l.Rate
		z.Lasting += min(l.End, p.Heal) - min(l.Begin, p.Heal)
	}
	for _, a := range p.Agents {
		z.Calls += a.Rate
		z.Lasting += a.End - a.Begin
	}
	for _, f := range s.Faults {
		z.Digits += digitCount(f.At) + digitCount(f.For) + digitCount(f.Every) + digitCount(f.Spread)
		z.Late += time.Duration(f.At)
	}
	for _, c := range s.Commands {
		z.Digits += digitCount(c.At) + digitCount(c.Every) + digitCount(c.Spread)
		z.Late += time.Duration(c.At)
	}
	for _, l := range s.Load {
		z.Digits += digitCount(l.From) + digitCount(l.For)
	}
	for _, a := range s.Agents {
		z.Digits += digitCount(a.From) + digitCount(a.For)
	}
	return z
}

// digitCount returns the length of a time as text, 0 for no time.
func digitCount(d messages.Duration) int {
	if d == 0 {
		return 0
	}
	return len(time.Duration(d).String())
}
