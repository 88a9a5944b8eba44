package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// Options are for a run.
type Options struct {
	// Machine makes a server; nil is peer.New.
	Machine func(peer.Config) peer.Machine
	// Config may change how the manager is configured, last.
	Config func(*supervisor.Config)
	// Slow, if not nil, is told of a run that takes more than 10 s of real time: what was done, and who waits for what. It is called at
	// most once, by the goroutine that called Run.
	Slow func(text string)
	// Patience is how often this process may be given the processor for 10 ms while nothing goes on in the run, before that counts as a
	// loop without an end; 500, which is 5 s on a machine that does nothing else.
	Patience int
}

// Run runs a plan and returns its history. What the manager does wrong stands in the history; the error is about the plan,
// or about the harness itself. ctx is asked only before the start: a run takes no time that a person would wait for.
//
// A run that does not come to its end (a mutex that is never unlocked, a loop without an end) is given up within seconds: its history
// ends with a Violation named hung, and what goes on in it goes on for as long as the process lives.
func Run(ctx context.Context, plan scenario.Plan, o Options) (*history.History, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if plan.Tier != "" && plan.Tier != scenario.Sim {
		return nil, fmt.Errorf("the plan is for the tier %q, and this is %q: plan the scenario again", plan.Tier, scenario.Sim)
	}
	if o.Machine == nil {
		o.Machine = peer.New
	}
	rec := history.NewRecorder(plan, nil)
	// A bubble begins with nothing, and must end with nothing.
	rec.Add(history.Event{Side: history.Harness, Kind: history.House, House: &history.Housekeeping{}, Text: "baseline"})
	var broken error
	var last time.Duration
	beat := &pulse{}
	dog := watchdog{pulse: beat, slow: o.Slow, patience: cmp.Or(o.Patience, 500), crawl: 60 + len(plan.Servers)/50}
	err := watched(func() {
		w := newWorld(plan, o, rec, beat)
		defer func() { last = w.clock() }()
		broken = w.run()
	}, dog.wait)
	if hung := (*HungError)(nil); errors.As(err, &hung) { // its goroutines may still use what is theirs
		return hung.told(rec), nil
	}
	if broken != nil {
		return nil, broken
	}
	house := &history.Housekeeping{}
	var failed *BubbleError
	if errors.As(err, &failed) {
		where, stuck := failed.insideManager()
		if !failed.Leaked() && !stuck {
			return nil, fmt.Errorf("the simulation ended badly: %w\n%s", failed, strings.Join(failed.Stacks, "\n\n"))
		}
		if stuck {
			for _, e := range rec.History().Events {
				last = max(last, e.T) // its clock stands in a goroutine that is stuck
			}
			rec.Add(history.Event{T: last, Side: history.Harness, Kind: history.Violation, Name: "I9",
				Text: "the manager does not return from what it was asked, and nothing will wake it: a goroutine " + where})
		}
		house.Goroutines = len(failed.Stacks)
		house.Left = waits(dumped(strings.Join(failed.Stacks, "\n\n")))
	}
	rec.Add(history.Event{T: last, Side: history.Harness, Kind: history.House, House: house, Text: "after close"})
	return rec.History(), nil
}

// run is the whole run, inside the bubble.
func (w *world) run() error {
	if err := w.build(); err != nil {
		return err
	}
	started := make(chan error, 1)
	go func() {
		m, err := supervisor.Start(context.Background(), w.config())
		w.manager = m
		started <- err
		w.wake()
	}()
	limit := min(startWithin, w.plan.Heal/2)
	w.line.plan(limit, "", func() {})
	w.serve(func() bool { return len(started) > 0 || w.at >= limit })
	select {
	case err := <-started:
		if err != nil {
			return fmt.Errorf("the manager cannot be started with this plan: %w", err)
		}
	default:
		w.record(history.Event{Side: history.Harness, Kind: history.Violation, Name: "I9",
			Text: fmt.Sprintf("Start has not returned after %s", limit)})
		return w.broken
	}
	w.watch.begin(w.manager)
	w.slow.begin(w)
	w.people.begin()
	w.people.run(func() {
		if err := w.setServers(context.Background(), w.specs()); err != nil {
			w.rec.Add(history.Event{T: w.clock(), Side: history.Owner, Kind: history.Done, Method: "set servers", Text: err.Error()})
		}
	})
	w.loop()
	w.watch.end()
	w.slow.end()
	w.people.dismiss()
	// The actor library's throttle for dead letters sleeps for a nanosecond: a bubble must not end before it.
	time.Sleep(time.Millisecond)
	return w.broken
}

// startWithin is how long the manager may take to start: it waits for no server.
const startWithin = 10 * time.Second

// serve runs the loop until done.
func (w *world) serve(done func() bool) {
	w.until = done
	w.loop()
	w.until = nil
	w.over = false
}

// build makes the servers, and plans everything that is known.
func (w *world) build() error {
	for _, s := range w.plan.Servers {
		canary := canaryOf(w.plan.Seed, s.Name)
		// A server of the same program is given no secret, so that nobody can know what it must not say.
		w.secrets.canaries[canary] = s.Kind != messages.SDK
		m := w.options.Machine(peer.Config{Server: s, Seed: seedOf(fmt.Sprint(w.plan.Seed), "peer", s.Name), Canaries: []string{canary}})
		w.hosts[s.Name] = newHost(w, s, m, canary)
	}
	for _, f := range w.plan.Faults {
		if f.Server != "" && w.hosts[f.Server] == nil {
			return fmt.Errorf("the plan has a fault on server %q, which it does not have", f.Server)
		}
		w.line.plan(f.Begin, f.Server, func() { w.fault(f, true) })
		if f.End > f.Begin {
			w.line.plan(min(f.End, w.plan.Heal), f.Server, func() { w.fault(f, false) })
		}
	}
	w.line.plan(w.plan.Heal, "", w.heal)
	w.line.plan(w.plan.End, "", w.close)
	w.line.plan(glanceEvery, "", w.glance)
	return nil
}

// fault begins or ends one. Those of the machine are of every server.
func (w *world) fault(f scenario.Planned, begin bool) {
	kind := history.FaultOff
	if begin {
		kind = history.FaultOn
	}
	w.record(history.Event{Side: history.Harness, Kind: kind, Server: f.Server, Fault: f.ID, Name: f.Fault})
	do := func(h *host) {
		if begin {
			h.perform(h.machine.Begin(w.at, f))
		} else {
			h.perform(h.machine.End(w.at, f))
		}
	}
	if f.Server != "" {
		do(w.hosts[f.Server])
		return
	}
	w.each(do)
}

// heal is when every fault has ended.
func (w *world) heal() {
	w.record(history.Event{Side: history.Harness, Kind: history.Heal})
	w.statuses("heal")
	if w.program != nil {
		w.people.run(w.program.compare)
	}
}

// statuses takes down what the status says of every server.
func (w *world) statuses(when string) {
	for _, st := range w.manager.Status() {
		w.status(&st, when)
		w.secrets.whole(w, &st)
		entries, err := w.manager.History(st.Name)
		if err != nil {
			continue // it was removed meanwhile
		}
		for _, e := range entries {
			w.secrets.text(w, st.Name, "the server's history", e.Text)
		}
	}
}

// status takes down what one status says. It is for any goroutine.
func (w *world) status(st *messages.Status, when string) {
	e := history.Event{T: w.clock(), Side: history.Harness, Kind: history.Status, Server: st.Name}
	fill(&e, st, w.start)
	e.Text = when
	w.rec.Add(e)
}

// glance takes down every status, now and then.
func (w *world) glance() {
	w.lookAround()
	if next := w.at + glanceEvery; next < w.plan.End {
		w.line.plan(next, "", w.glance)
	}
}

// lookAround takes down every status.
func (w *world) lookAround() {
	all := w.manager.Status()
	for i := range all {
		w.status(&all[i], "now and then")
	}
}

// glanceEvery is the time between two looks at every status. It is no multiple of what else happens by the clock.
const glanceEvery = 17*time.Second + 137*time.Millisecond

// look takes down what the status says of a server, if it stands there. It is for any goroutine.
func (w *world) look(server, when string) {
	for _, st := range w.manager.Status() {
		if st.Name == server {
			w.status(&st, when)
		}
	}
}

// close ends the manager, and the run when everybody has come back.
func (w *world) close() {
	w.statuses("end")
	w.record(history.Event{Side: history.Harness, Kind: history.Closing})
	closed := make(chan struct{})
	w.people.run(func() {
		err := w.manager.Close(context.Background())
		e := history.Event{T: w.clock(), Side: history.Harness, Kind: history.Closed}
		if err != nil {
			e.Text = err.Error()
		}
		w.rec.Add(e)
		close(closed)
	})
	limit := w.at + closeWithin
	w.line.plan(limit, "", func() {})
	w.until = func() bool {
		select {
		case <-closed:
			w.people.leave()
			return w.people.left() == 0 && w.idle() || w.at >= limit
		default:
			return w.at >= limit
		}
	}
}

// config is how the manager is configured.
func (w *world) config() supervisor.Config {
	p := &w.plan
	cfg := supervisor.Config{
		Logger: w.secrets.logger(w), AuthStore: auth.NewMemory(), ActorOptions: w.turns.options,
		Restart: p.Policy, Gate: p.Limits, WithdrawAfter: p.WithdrawAfter, CallWait: p.CallWait,
		Timing: actors.Timing{Quiet: p.Quiet, MaxWait: p.MaxWait, ProbeEvery: p.ProbeEvery, ProbeTimeout: p.ProbeTimeout,
			ProbeStrikes: p.ProbeStrikes},
		Rand: rand.New(rand.NewPCG(p.Seed, seedOf("restart"))).Float64,
		Transport: func(name string, spec messages.Spec) (transports.Transport, error) {
			h := w.hosts[name]
			if h == nil {
				return nil, fmt.Errorf("there is no server %q in the plan", name)
			}
			t := newTransport(h.server.Kind, h.label(), spec, h)
			if t.Server == messages.HTTP || t.Server == messages.SSE {
				t.token = &h.token
			}
			return t, nil
		},
	}
	w.answering(&cfg)
	if w.options.Config != nil {
		w.options.Config(&cfg)
	}
	return cfg
}
