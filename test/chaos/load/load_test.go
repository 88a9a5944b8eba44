package load_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/load"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

func ExampleNewSchedule() {
	s := load.NewSchedule(scenario.Plan{Seed: 7, Load: []scenario.PlannedLoad{
		{Server: "a", Tool: "read", Rate: 1, End: 3 * time.Second},
		{Server: "b", Tool: "write", Rate: 2, End: 3 * time.Second},
	}})
	for c, ok := s.Next(); ok; c, ok = s.Next() {
		fmt.Println(c.ID, c.At.Round(time.Millisecond), c.Stream.Server, c.Stream.Tool)
	}
	// Output:
	// c1 101ms b write
	// c2 817ms a read
	// c3 828ms a read
	// c4 1.197s a read
	// c5 1.884s a read
	// c6 2.73s b write
	// c7 2.942s b write
}

func ExampleMeasure() {
	h := &history.History{
		Plan: scenario.Plan{
			Servers: []scenario.Server{{Name: "good"}, {Name: "bad"}},
			Faults:  []scenario.PlannedFault{{ID: 1, Fault: "hang-call", Server: "bad", Begin: time.Second, End: 2 * time.Second}},
			Heal:    2 * time.Second,
		},
	}
	call := func(id, server string, at, took time.Duration, outcome messages.Outcome) {
		h.Events = append(h.Events, history.Event{T: at, Kind: history.Call, Server: server, Call: id},
			history.Event{T: at + took, Kind: history.End, Server: server, Call: id, Outcome: outcome})
	}
	call("c1", "good", 1200*time.Millisecond, 2*time.Millisecond, messages.OutcomeResult)
	call("c2", "bad", 1300*time.Millisecond, time.Second, messages.OutcomeUnknown)
	l := load.Measure(h)
	fmt.Println("healthy:", l.Group(load.Healthy, load.While).Summary())
	fmt.Println("faulty: ", l.Group(load.Faulty, load.While).Summary())
	// Output:
	// healthy: 1 calls, 0 failed, p50 2ms p90 2ms p99 2ms p99.9 2ms max 2ms
	// faulty:  1 calls, 1 failed, p50 1s p90 1s p99 1s p99.9 1s max 1s
}

func arrivalTimes(seed uint64, place int, s scenario.PlannedLoad) []time.Duration {
	var out []time.Duration
	a := load.NewArrivals(seed, place, s)
	for at, ok := a.Next(); ok; at, ok = a.Next() {
		out = append(out, at)
	}
	return out
}

func TestArrivalsArePoissonWithinTheirTime(t *testing.T) {
	s := scenario.PlannedLoad{Server: "a", Rate: 20, Begin: time.Minute, End: 21 * time.Minute}
	got := arrivalTimes(1, 0, s)
	want := 20.0 * 20 * 60
	// Six standard deviations of a Poisson count.
	if d := math.Abs(float64(len(got)) - want); d > 6*math.Sqrt(want) {
		t.Errorf("%d arrivals, %v are expected", len(got), want)
	}
	if !slices.IsSorted(got) || got[0] < s.Begin || got[len(got)-1] >= s.End {
		t.Errorf("the arrivals lie between %v and %v", got[0], got[len(got)-1])
	}
	// The gaps of a Poisson stream are exponential: their standard deviation is their mean. Evenly spaced ones have 0.
	var sum, squares float64
	for i := 1; i < len(got); i++ {
		gap := (got[i] - got[i-1]).Seconds()
		sum, squares = sum+gap, squares+gap*gap
	}
	n := float64(len(got) - 1)
	mean := sum / n
	if ratio := math.Sqrt(squares/n-mean*mean) / mean; ratio < 0.9 || ratio > 1.1 {
		t.Errorf("the gaps vary by %v of their mean", ratio)
	}
}

func TestArrivalsDependOnSeedNameAndPlaceOnly(t *testing.T) {
	s := scenario.PlannedLoad{Server: "a", Tool: "read", Rate: 5, End: time.Minute}
	base := arrivalTimes(1, 0, s)
	if !slices.Equal(base, arrivalTimes(1, 0, s)) {
		t.Error("the same seed gives other arrivals")
	}
	other := s
	other.Server = "b"
	for name, got := range map[string][]time.Duration{
		"seed": arrivalTimes(2, 0, s), "place": arrivalTimes(1, 1, s), "server": arrivalTimes(1, 0, other),
	} {
		if slices.Equal(base, got) {
			t.Errorf("another %s gives the same arrivals", name)
		}
	}
	longer := s
	longer.End = time.Hour
	if got := arrivalTimes(1, 0, longer); !slices.Equal(base, got[:len(base)]) {
		t.Error("a longer stream begins with other arrivals")
	}
}

func TestStreamsWithoutCalls(t *testing.T) {
	for _, s := range []scenario.PlannedLoad{
		{Rate: 0, End: time.Hour}, {Rate: -1, End: time.Hour}, {Rate: math.NaN(), End: time.Hour},
		{Rate: 1e-12, End: time.Hour}, {Rate: 5, Begin: time.Hour, End: time.Minute},
	} {
		if got := arrivalTimes(1, 0, s); len(got) > 0 {
			t.Errorf("%+v has %d arrivals", s, len(got))
		}
	}
}

func TestAScheduleIsAllStreamsInOrder(t *testing.T) {
	p := scenario.Plan{Seed: 3}
	for i, name := range []string{"a", "b", "c", "a"} {
		p.Load = append(p.Load, scenario.PlannedLoad{Server: name, Rate: float64(i + 1), End: time.Minute})
	}
	got := make([][]time.Duration, len(p.Load))
	var before time.Duration
	seen := map[string]bool{}
	s := load.NewSchedule(p)
	for c, ok := s.Next(); ok; c, ok = s.Next() {
		if c.At < before || seen[c.ID] {
			t.Fatalf("call %s at %v comes after %v", c.ID, c.At, before)
		}
		before, seen[c.ID] = c.At, true
		got[c.StreamIndex] = append(got[c.StreamIndex], c.At)
	}
	for i, stream := range p.Load {
		if want := arrivalTimes(p.Seed, i, stream); !slices.Equal(got[i], want) {
			t.Errorf("stream %d has %d calls in the schedule, %d of its own", i, len(got[i]), len(want))
		}
	}
	if _, ok := s.Next(); ok {
		t.Error("an ended schedule goes on")
	}
}

// addCall adds one call to a history.
func addCall(h *history.History, server, id string, at, took time.Duration, outcome messages.Outcome) {
	h.Events = append(h.Events, history.Event{T: at, Kind: history.Call, Server: server, Call: id})
	if took >= 0 {
		h.Events = append(h.Events, history.Event{T: at + took, Kind: history.End, Server: server, Call: id, Outcome: outcome})
	}
}

func brokenHistory() *history.History {
	return &history.History{Plan: scenario.Plan{
		Servers: []scenario.Server{{Name: "bad"}, {Name: "gone"}, {Name: "good"}},
		Faults:  []scenario.PlannedFault{{ID: 1, Fault: "crash", Server: "bad", Begin: 10 * time.Second}},
		Commands: []scenario.PlannedCommand{{ID: 1, Do: "disable", Server: "gone", At: 5 * time.Second},
			{ID: 2, Do: "refresh", Server: "good", At: 5 * time.Second}},
		Heal: 20 * time.Second,
	}}
}

func TestACallCountsFromItsPlannedStart(t *testing.T) {
	// A hang of 10 s at a rate of ten calls per second. Whoever sends only after the answer has one bad call; here the
	// hundred that were planned meanwhile count, the last of them with 100 ms.
	h := brokenHistory()
	for i := range 100 {
		at := 10*time.Second + time.Duration(i)*100*time.Millisecond
		addCall(h, "good", fmt.Sprint("c", i), at, 20*time.Second-at, messages.OutcomeResult)
	}
	got := load.Measure(h).Group(load.Healthy, load.While).Summary()
	if got.Calls != 100 || got.Max != 10*time.Second || got.P50 < 4900*time.Millisecond || got.P50 > 5100*time.Millisecond {
		t.Errorf("a hang of 10 s gives %v", got)
	}
}

func TestAClosedLoopIsCorrected(t *testing.T) {
	closed := load.NewCell()
	closed.RecordClosed(10*time.Second, 100*time.Millisecond, messages.OutcomeResult)
	got := closed.Summary()
	if got.Calls != 1 || got.Recorded != 100 || got.P50 < 4900*time.Millisecond || got.P50 > 5100*time.Millisecond {
		t.Errorf("one call of 10 s, corrected for one every 100 ms, gives %v of %d values", got, got.Recorded)
	}
	plain := load.NewCell()
	plain.RecordClosed(10*time.Second, 0, messages.OutcomeResult)
	if got := plain.Summary(); got.Recorded != 1 {
		t.Errorf("without an interval there are %d values", got.Recorded)
	}
}

func TestWindowsAndHealth(t *testing.T) {
	h := brokenHistory()
	for i, at := range []time.Duration{9 * time.Second, 10 * time.Second, 19 * time.Second, 20 * time.Second, time.Minute} {
		for _, server := range []string{"bad", "gone", "good"} {
			addCall(h, server, fmt.Sprint(server, i), at, time.Millisecond, messages.OutcomeResult)
		}
	}
	l := load.Measure(h)
	for _, c := range []struct {
		health load.Health
		window load.Window
		calls  int
	}{
		{load.Healthy, load.Before, 1}, {load.Healthy, load.While, 2}, {load.Healthy, load.After, 2},
		{load.Faulty, load.Before, 2}, {load.Faulty, load.While, 4}, {load.Faulty, load.After, 4},
	} {
		if got := l.Group(c.health, c.window).Summary().Calls; got != c.calls {
			t.Errorf("%s %s: %d calls, not %d", c.health, c.window, got, c.calls)
		}
	}
	if got := l.Server("good", load.While).Summary().Calls; got != 2 {
		t.Errorf("good has %d calls while it breaks", got)
	}
	if got := l.ServerTotal("good").Summary().Calls; got != 5 || l.ServerTotal("nobody") != nil {
		t.Errorf("good has %d calls in all", got)
	}
	if got := l.Servers(); !slices.Equal(got, []string{"bad", "gone", "good"}) {
		t.Errorf("the servers are %v", got)
	}
	if l.HealthOf("gone") != load.Faulty || l.HealthOf("good") != load.Healthy {
		t.Error("a server that was disabled is faulty, one that was refreshed is not")
	}
	// What really happened counts more than what was planned.
	h.Events = append([]history.Event{{T: 19 * time.Second, Kind: history.FaultOn, Server: "bad"}},
		append(h.Events, history.Event{T: 50 * time.Second, Kind: history.Heal})...)
	if got := load.Measure(h).Group(load.Healthy, load.While).Summary().Calls; got != 2 {
		t.Errorf("%d calls between 19 and 50 s, 2 were made", got)
	}
	h.Plan.Faults = append(h.Plan.Faults, scenario.PlannedFault{Fault: "partition"})
	if load.Measure(h).Group(load.Healthy, load.While) != nil {
		t.Error("a fault of the machine leaves a server healthy")
	}
}

func TestOutcomes(t *testing.T) {
	h := brokenHistory()
	addCall(h, "good", "c1", 0, 5*time.Millisecond, messages.OutcomeResult)
	addCall(h, "good", "c2", 0, 5*time.Millisecond, messages.OutcomeToolError)
	addCall(h, "good", "c3", 0, 0, messages.OutcomeNotSent)
	addCall(h, "good", "c4", 0, 7*time.Millisecond, messages.OutcomeUnknown)
	addCall(h, "good", "c5", 0, -1, "")
	h.Events = append(h.Events, // neither a second end nor one of a call without a beginning is a latency
		history.Event{T: time.Hour, Kind: history.End, Server: "good", Call: "c1", Outcome: messages.OutcomeResult},
		history.Event{T: time.Hour, Kind: history.End, Server: "good", Call: "c9", Outcome: messages.OutcomeResult})
	got := load.Measure(h).Group(load.Healthy, load.Before).Summary()
	if got.Calls != 5 || got.Recorded != 3 || got.Open != 1 || got.Failed() != 3 || got.Max != 7*time.Millisecond {
		t.Errorf("the calls are %+v", got)
	}
	if got.P50 != 5*time.Millisecond && (got.P50 < 4900*time.Microsecond || got.P50 > 5100*time.Microsecond) {
		t.Errorf("p50 is %v: a call that was not sent is no fast call", got.P50)
	}
}

func TestMerge(t *testing.T) {
	one, two := brokenHistory(), brokenHistory()
	addCall(one, "good", "c1", 0, time.Millisecond, messages.OutcomeResult)
	addCall(two, "good", "c1", 0, 48*time.Hour, messages.OutcomeUnknown)
	two.Plan.Faults = append(two.Plan.Faults, scenario.PlannedFault{Fault: "crash", Server: "good", Begin: time.Second})
	addCall(two, "new", "c2", 0, time.Second, messages.OutcomeResult)
	l := load.New()
	l.Merge(load.Measure(one))
	l.Merge(load.Measure(two))
	got := l.Server("good", load.Before).Summary()
	if got.Calls != 2 || got.Max != 24*time.Hour || got.Outcomes[messages.OutcomeUnknown] != 1 {
		t.Errorf("together they are %+v", got)
	}
	if l.HealthOf("good") != load.Faulty || l.HealthOf("new") != load.Healthy {
		t.Error("a server that one run broke is faulty")
	}
	if n := l.Group(load.Healthy, load.Before).Summary().Calls + l.Group(load.Faulty, load.Before).Summary().Calls; n != 3 {
		t.Errorf("%d calls in the groups", n)
	}
	if got := (*load.Cell)(nil).Summary(); got.Calls != 0 || got.Outcomes != nil {
		t.Errorf("no cell has %+v", got)
	}
}

// Calls that are made together begin in one instant, and there are as many of them as the rate says.
func TestCallsTogetherBeginInOneInstant(t *testing.T) {
	stream := scenario.PlannedLoad{Server: "s1", Tool: scenario.ReadTool, Rate: 5, Together: 4, End: 1000 * time.Second}
	a, at := load.NewArrivals(1, 0, stream), map[time.Duration]int{}
	calls := 0
	for t, ok := a.Next(); ok; t, ok = a.Next() {
		at[t]++
		calls++
	}
	for when, n := range at {
		if n != 4 {
			t.Errorf("%d calls begin at %s, want 4", n, when)
		}
	}
	if calls < 4500 || calls > 5500 {
		t.Errorf("%d calls in 1000 s, want about 5000", calls)
	}
}
