package live

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/load"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// driver is what goes on while a run lasts: calls and commands, each in a goroutine of its own.
type driver struct {
	ctx        context.Context
	cancel     context.CancelFunc
	goroutines sync.WaitGroup

	mu           sync.Mutex
	wantedStates map[string]wantedState
	// respecCommands says by which command the spec of a server was changed last.
	respecCommands map[string]int
	// adjustments is what was said of each spec since, in order.
	adjustments map[string][]map[string]string
}

// wantedState is what was asked of a server last.
type wantedState string

const (
	wantConnected wantedState = ""
	wantDisabled  wantedState = "disabled"
	wantRemoved   wantedState = "removed"
)

// stopLoad ends the load and lets no command begin any more. Calls that are under way end with the manager.
func (d *driver) stopLoad() { d.cancel() }

// waitForCalls returns when every call and command has ended.
func (d *driver) waitForCalls() { d.goroutines.Wait() }

// plannedStep is something that the plan wants at a time.
type plannedStep struct {
	at   time.Duration
	rank int // of moments at one time: what ends, what begins, what is asked
	do   func()
}

// beginInitialFaults begins what is broken from the start: the manager must not be faster.
func (r *run) beginInitialFaults() {
	for _, f := range r.plan.Faults {
		if f.Begin <= 0 {
			r.beginFault(f)
		}
	}
}

// planSteps is the plan's faults and commands in order of time, without what is broken from the start.
func (r *run) planSteps() []plannedStep {
	var all []plannedStep
	for _, f := range r.plan.Faults {
		if f.Begin > 0 { // else it began before the manager did
			all = append(all, plannedStep{f.Begin, 1, func() { r.beginFault(f) }})
		}
		if f.End > f.Begin {
			all = append(all, plannedStep{f.End, 0, func() { r.endFault(f) }})
		}
	}
	for _, c := range r.plan.Commands {
		all = append(all, plannedStep{c.At, 2, func() { r.runCommand(c) }})
	}
	slices.SortStableFunc(all, func(a, b plannedStep) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return a.rank - b.rank
	})
	return all
}

// runPlan does what the plan says until Heal, and heals. It returns at once when ctx ends.
func (r *run) runPlan(ctx context.Context) {
	r.progress.enterStage("breaking")
	r.driver.goroutines.Go(r.runLoad)
	steps := r.planSteps()
	for len(steps) > 0 && steps[0].at <= r.plan.Heal && r.sleepUntil(ctx, steps[0].at) {
		steps[0].do()
		steps = steps[1:]
	}
	r.sleepUntil(ctx, r.plan.Heal)
	r.healEverything()
	if len(steps) == 0 {
		return
	}
	r.driver.goroutines.Go(func() { // what is planned for the healed world
		for _, m := range steps {
			if !r.sleepUntil(r.driver.ctx, m.at) {
				return
			}
			m.do()
		}
	})
}

// sleepUntil waits for a time of the run; false if ctx ended first.
func (r *run) sleepUntil(ctx context.Context, at time.Duration) bool {
	t := time.NewTimer(at - r.elapsedTime())
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// beginFault and end switch a fault. One of the machine concerns every server.
func (r *run) beginFault(f scenario.PlannedFault) {
	r.recordEvent(history.Event{Side: history.Harness, Kind: history.FaultOn, Server: f.Server, Fault: f.ID, Name: f.Fault})
	if f.End > f.Begin {
		r.progress.faults.Add(1)
	}
	for _, s := range r.concernedServers(f) {
		s.askMachine(func(now time.Duration) []peer.Action { return s.machine.Begin(now, f) })
		s.setObstacle(f, true)
	}
}

func (r *run) endFault(f scenario.PlannedFault) {
	r.progress.faults.Add(-1)
	for _, s := range r.concernedServers(f) {
		s.setObstacle(f, false)
		s.askMachine(func(now time.Duration) []peer.Action { return s.machine.End(now, f) })
	}
	r.recordEvent(history.Event{Side: history.Harness, Kind: history.FaultOff, Server: f.Server, Fault: f.ID, Name: f.Fault})
}

// concernedServers are the servers that a fault is about, in the order of the plan.
func (r *run) concernedServers(f scenario.PlannedFault) (all []*chaosServer) {
	for _, srv := range r.plan.Servers {
		if f.Server == "" || f.Server == srv.Name {
			all = append(all, r.servers[srv.Name])
		}
	}
	return all
}

// healEverything notes that every fault has ended. Processes that left the group of their server are sent home: they are
// nobody's to end but the harness'.
func (r *run) healEverything() {
	r.children.endEscaped()
	r.recordHarness(history.Heal, "")
	r.progress.enterStage("healing")
	r.recordStatuses("at the healing")
}

// runLoad makes the calls of the plan, each at its time, whatever became of those before.
func (r *run) runLoad() {
	s := load.NewSchedule(r.plan)
	for c, ok := s.Next(); ok; c, ok = s.Next() {
		if !r.sleepUntil(r.driver.ctx, c.At) {
			return
		}
		r.driver.goroutines.Go(func() { r.runCall(c) })
	}
}

// runCall makes one call and records how it ended.
func (r *run) runCall(c load.Call) {
	if c.Stream.Read != "" {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if _, err := load.Read(ctx, r.manager, c); err != nil {
			r.secrets.checkText(c.Stream.Server, "the error of a read", err.Error())
		}
		return
	}
	deadline := time.Duration(0)
	ctx, finish := r.callContext(c)
	defer finish()
	if caller := c.Caller(); caller != "" {
		ctx = supervisor.WithCaller(ctx, caller)
	}
	began := r.elapsedTime()
	if c.Stream.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Stream.Timeout)
		defer cancel()
		deadline = began + c.Stream.Timeout
	}
	e := history.Event{Side: history.Caller, Server: c.Stream.Server, Call: c.ID, Tool: c.Stream.Tool}
	start := e
	start.Kind, start.Size, start.Deadline, start.By = history.Call, c.Stream.Size, deadline, c.Caller()
	r.recordEvent(start)
	r.progress.calls.Add(1)
	options := []supervisor.CallOption{supervisor.WithProgress(func(supervisor.Progress) {})} // so that the server may tell of it
	if c.Stream.Task {
		options = append(options, supervisor.WithTask(0))
	}
	res, err := r.manager.CallServerTool(ctx, c.Stream.Server, c.Stream.Tool, map[string]any{"call": c.ID, "size": c.Stream.Size}, options...)
	finish()
	e.Kind = history.End
	e.T = r.elapsedTime()
	e.Took = e.T - c.At // from the planned start: a call that began late has waited as well
	if err != nil {
		e.Outcome, e.Class, e.Text = outcomeOf(err)
		r.secrets.checkText(e.Server, "the error of a call", e.Text)
		r.progress.lost.Add(1)
	} else {
		e.Outcome = res.Outcome()
		e.Conn, e.Value = resultOf(res.Text())
		r.progress.answered.Add(1)
	}
	r.recordEvent(e)
}

// outcomeOf is what an error of a call says.
func outcomeOf(err error) (messages.Outcome, messages.Class, string) {
	e := toFacadeError(err)
	return e.Outcome, e.Class, err.Error()
}
