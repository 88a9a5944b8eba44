package report_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/load"
	"github.com/mcpvisor/mcpvisor/test/chaos/report"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// day makes the history of a bad day without running one: so many servers in groups, every fifth of which breaks, with calls.
// It looks like a run and is not one; what a page must bear is its size and its shape.
type day struct {
	h     *history.History
	rnd   *rand.Rand
	epoch uint64
	conns map[string]int
}

func newDay(servers int, lasts time.Duration) *day {
	d := &day{h: &history.History{}, rnd: rand.New(rand.NewPCG(1, 2)), conns: map[string]int{}}
	groups := []struct {
		name string
		kind messages.TransportKind
		era  messages.Era
	}{
		{"files", messages.Stdio, messages.EraLegacy}, {"web", messages.HTTP, messages.EraModern},
		{"feed", messages.SSE, messages.EraLegacy}, {"shell", messages.Stdio, messages.EraModern},
	}
	p := &d.h.Plan
	p.Seed, p.Tier = 42, scenario.Sim
	p.Scenario = scenario.Scenario{
		Name: "a-bad-day", About: "Every fifth server breaks in a way of its own; the others must not notice.",
		Seed: 42, Duration: messages.Duration(lasts * 8 / 10),
		Servers: []scenario.Group{{Name: "files", Count: servers / 4}},
		Faults:  []scenario.Fault{{Fault: "crash-loop", On: scenario.Selector{"files"}, At: messages.Duration(lasts / 10)}},
	}
	p.Limits, p.Policy = restart.DefaultLimits(2), restart.DefaultPolicy()
	p.Heal, p.End = lasts*8/10, lasts
	for i := range servers {
		g := groups[i*len(groups)/servers]
		p.Servers = append(p.Servers, scenario.Server{
			Name: fmt.Sprintf("%s-%03d", g.name, i), Group: g.name, Kind: g.kind, Era: g.era, Tools: 3, Pages: 1,
			Latency: 2 * time.Millisecond, Start: 20 * time.Millisecond,
		})
	}
	breaks := []string{"crash-loop", "hang-call", "unauthorized", "refuse", "latency"}
	for i, s := range p.Servers {
		if i%5 != 3 {
			continue
		}
		begin := lasts/10 + time.Duration(d.rnd.Int64N(int64(lasts/3)))
		p.Faults = append(p.Faults, scenario.PlannedFault{ID: len(p.Faults) + 1, Fault: breaks[i/5%len(breaks)], Server: s.Name,
			Begin: begin, End: min(begin+lasts/4, p.Heal)})
	}
	return d
}

func (d *day) add(e history.Event) { d.h.Events = append(d.h.Events, e) }

func (d *day) phase(server string, at time.Duration, phase messages.Phase, e history.Event) {
	e.T, e.Server, e.Side, e.Kind, e.Phase = at, server, history.Manager, history.Phase, phase
	d.add(e)
}

// connect is one attempt: what the server sees, and what the manager says.
func (d *day) connect(s scenario.Server, at time.Duration, works bool) time.Duration {
	d.conns[s.Name]++
	d.epoch++
	conn := d.conns[s.Name]
	world := func(t time.Duration, kind history.Kind, e history.Event) {
		e.T, e.Server, e.Side, e.Kind, e.Conn = t, s.Name, history.World, kind, conn
		d.add(e)
	}
	d.phase(s.Name, at, messages.Pending, history.Event{Step: messages.Dialing, Epoch: d.epoch})
	world(at, history.Open, history.Event{})
	answered := at + 15*time.Millisecond + time.Duration(d.rnd.Int64N(int64(30*time.Millisecond)))
	if !works {
		world(answered, history.Down, history.Event{Class: messages.ClassExited, Text: "exit status 1"})
		world(answered+time.Millisecond, history.Released, history.Event{})
		return answered + time.Millisecond
	}
	world(at+time.Millisecond, history.Opened, history.Event{})
	world(at+time.Millisecond, history.Received, history.Event{Method: "initialize", ID: "1"})
	world(answered, history.Answered, history.Event{Method: "initialize", ID: "1"})
	world(answered+2*time.Millisecond, history.Listed, history.Event{Rev: 1})
	d.phase(s.Name, answered+3*time.Millisecond, messages.Connected, history.Event{Epoch: d.epoch})
	return answered + 3*time.Millisecond
}

func (d *day) lose(s scenario.Server, at time.Duration, class messages.Class, text string) {
	e := history.Event{T: at, Server: s.Name, Side: history.World, Conn: d.conns[s.Name], Class: class, Text: text}
	e.Kind = history.Down
	d.add(e)
	e.T, e.Kind, e.Class, e.Text = at+time.Millisecond, history.Released, "", ""
	d.add(e)
}

// run lets the day happen and gives the run with verdicts.
func (d *day) run() report.Run {
	p := &d.h.Plan
	for i, s := range p.Servers {
		up := d.connect(s, time.Duration(i/p.Limits.Processes)*25*time.Millisecond, true)
		for _, f := range p.Faults {
			if f.Server == s.Name {
				up = d.breaks(s, f)
			}
		}
		_ = up
	}
	d.add(history.Event{T: p.Heal, Side: history.Harness, Kind: history.Heal})
	d.calls()
	d.add(history.Event{T: p.End, Side: history.Harness, Kind: history.Closing})
	return report.Run{History: d.h, Verdicts: d.verdicts(), Took: 1234 * time.Millisecond,
		Started: time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC), Command: "mcpvisor chaos sim a-bad-day --seed 42"}
}

// breaks is one fault of one server, until it has come back.
func (d *day) breaks(s scenario.Server, f scenario.PlannedFault) time.Duration {
	harness := func(t time.Duration, kind history.Kind) {
		d.add(history.Event{T: t, Server: s.Name, Side: history.Harness, Kind: kind, Fault: f.ID, Name: f.Fault})
	}
	harness(f.Begin, history.FaultOn)
	harness(f.Begin+time.Millisecond, history.Fired)
	harness(f.End, history.FaultOff)
	switch f.Fault {
	case "hang-call", "latency":
		return f.End
	case "unauthorized":
		d.lose(s, f.Begin, messages.ClassUnauthorized, "401")
		d.phase(s.Name, f.Begin+time.Millisecond, messages.NeedsAuth, history.Event{Class: messages.ClassUnauthorized})
		d.phase(s.Name, f.End+time.Second, messages.Pending, history.Event{Step: messages.Queued})
		return d.connect(s, f.End+2*time.Second, true)
	}
	d.lose(s, f.Begin, messages.ClassExited, "signal: killed")
	at, wait := f.Begin+time.Millisecond, 500*time.Millisecond
	for n := 1; ; n++ {
		e := history.Event{Class: messages.ClassExited, Retry: messages.RetryAt, Next: at + wait, Attempts: n, Text: "it exited with status 1"}
		if n >= 6 {
			e.Retry, wait = messages.RetryParked, time.Duration(float64(5*time.Minute)*(0.9+0.2*d.rnd.Float64()))
		}
		d.phase(s.Name, at, messages.Failed, e)
		if at += wait; at >= f.End {
			return d.connect(s, at, true)
		}
		wait = min(2*wait, time.Minute)
		at = d.connect(s, at, false)
	}
}

// calls is load on all servers; what is called while its server is away is not sent.
func (d *day) calls() {
	p := &d.h.Plan
	calls := 400.0 // to each server
	if len(p.Servers) > 100 {
		calls = 90 // with what the server sees of it, still more events than the page holds
	}
	rate := calls / p.End.Seconds()
	for i, s := range p.Servers {
		p.Load = append(p.Load, scenario.PlannedLoad{Server: s.Name, Tool: []string{"read", "write"}[i%2], Rate: rate, End: p.End})
	}
	broken := map[string]scenario.PlannedFault{}
	for _, f := range p.Faults {
		broken[f.Server] = f
	}
	schedule := load.NewSchedule(*p)
	for c, ok := schedule.Next(); ok; c, ok = schedule.Next() {
		e := history.Event{T: c.At, Server: c.Stream.Server, Side: history.Caller, Kind: history.Call, Call: c.ID, Tool: c.Stream.Tool}
		d.add(e)
		took := time.Millisecond + time.Duration(d.rnd.ExpFloat64()*float64(2*time.Millisecond))
		e.Kind, e.Outcome = history.End, messages.OutcomeResult
		f, bad := broken[c.Stream.Server]
		switch {
		case !bad || c.At < f.Begin || c.At >= f.End:
		case f.Fault == "latency":
			took += time.Duration(d.rnd.ExpFloat64() * float64(800*time.Millisecond))
		case f.Fault == "hang-call":
			took, e.Outcome, e.Class, e.Text = 10*time.Second, messages.OutcomeUnknown, messages.ClassTimeout, "no answer within 10s"
		default:
			took, e.Outcome, e.Class, e.Text = 20*time.Microsecond, messages.OutcomeNotSent, messages.ClassNetwork, "it is not connected"
		}
		e.T, e.Took = c.At+took, took
		d.add(e)
	}
}

func (d *day) verdicts() []invariant.Verdict {
	titles := []string{
		"live tools belong to connected servers", "one outcome per call", "no call reaches another epoch",
		"nothing is written after the outcome", "generations rise", "one process per server, the gate holds",
		"attempts keep the policy's distance", "only documented edges", "bounded memory, lines and pages",
		"no secret comes out", "healed servers come back in time", "the house is clean", "parked probes resume",
		"the snapshot is the truth", "healthy servers do not notice",
	}
	var out []invariant.Verdict
	for i, title := range titles {
		v := invariant.Verdict{ID: fmt.Sprintf("I%d", i+1), Title: title, Answer: invariant.Holds, Looked: 1000 + 37*i}
		switch v.ID {
		case "I7":
			for n, e := range d.h.Events {
				if e.Kind == history.Open && e.Conn == 3 {
					v.Answer, v.Server, v.At, v.Evidence = invariant.Violated, e.Server, e.T, []int{n - 1, n}
					v.Why = "Attempt 3 began 0.1 s after attempt 2 had ended. The policy allows it between 0.2 s and 2 s " +
						"after the second failure of a stdio server."
					break
				}
			}
		case "I12":
			v.Answer, v.Looked, v.Why = invariant.Inconclusive, 0, "The house was not counted before the run."
		}
		out = append(out, v)
	}
	return append(out, invariant.Verdict{ID: "sometimes park", Title: "a server was parked", Answer: invariant.Holds, Looked: 12},
		invariant.Verdict{ID: "sometimes retry-after", Title: "a server asked for a later time", Answer: invariant.Inconclusive,
			Why: "No server answered with Retry-After."})
}
