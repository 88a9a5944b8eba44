package shrink

import (
	"cmp"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// Size is how large a scenario is. What is planned counts before how it is written: one entry that breaks twenty servers is
// larger than three that break one each.
type Size struct {
	// Servers, Happenings (faults and commands) and Streams of calls are those of the plan.
	Servers, Happenings, Streams int
	// Settings are the values that are said and need not be.
	Settings int
	// Duration is how long things may break; Lasting what faults and calls last in all; Calls how many there are in a second.
	Duration, Lasting time.Duration
	Calls             float64
	// Digits is how many characters the times take, Late the sum of the times at which something begins.
	Digits int
	Late   time.Duration
}

// Less orders sizes: the fields count in their order.
func (a Size) Less(b Size) bool {
	return cmp.Or(
		cmp.Compare(a.Servers, b.Servers), cmp.Compare(a.Happenings, b.Happenings), cmp.Compare(a.Streams, b.Streams),
		cmp.Compare(a.Settings, b.Settings), cmp.Compare(a.Duration, b.Duration), cmp.Compare(a.Lasting, b.Lasting),
		cmp.Compare(a.Calls, b.Calls), cmp.Compare(a.Digits, b.Digits), cmp.Compare(a.Late, b.Late),
	) < 0
}

func sizeOf(s scenario.Scenario, p scenario.Plan) Size {
	z := Size{
		Servers: len(p.Servers), Happenings: len(p.Faults) + len(p.Commands), Streams: len(p.Load), Duration: p.Heal,
		Settings: settingsOf(s), Digits: digitCount(s.Duration) + digitCount(s.Settle),
	}
	for _, f := range p.Faults {
		z.Lasting += f.End - f.Begin
	}
	for _, l := range p.Load {
		z.Calls += l.Rate
		z.Lasting += min(l.End, p.Heal) - min(l.Begin, p.Heal)
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
	return z
}

func digitCount(d messages.Duration) int {
	if d == 0 {
		return 0
	}
	return len(time.Duration(d).String())
}
