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
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// driver makes the planned calls and gives the planned commands, each in a goroutine of its own. ctx ends when the manager is
// about to be closed.
type driver struct {
	ctx    context.Context
	cancel context.CancelFunc
	// goroutines counts the load, calls, commands and the steps after Heal.
	goroutines sync.WaitGroup

	// mu guards the maps below, which commands write and the settling reads.
	mu           sync.Mutex
	wantedStates map[string]wantedState
	// respecCommands maps a server to the id of the respec command that last changed its spec.
	respecCommands map[string]int
	// adjustments are the fields that adjust commands have set, per server in their order.
	adjustments map[string][]map[string]string
}

// wantedState is the state that the owner last asked of a server.
type wantedState string

const (
	wantConnected wantedState = ""
	wantDisabled  wantedState = "disabled"
	wantRemoved   wantedState = "removed"
)

// stopLoad makes no further calls and lets no planned step begin. The manager's Close ends the calls under way.
func (d *driver) stopLoad() { d.cancel() }

// waitForCalls waits until every call and every command has returned.
func (d *driver) waitForCalls() { d.goroutines.Wait() }

// plannedStep is a fault's begin or end, or a command, at its planned time.
type plannedStep struct {
	at time.Duration
	// rank orders steps of one time: ends of faults (0), begins (1), commands (2).
	rank int
	do   func()
}

// beginInitialFaults begins the faults that the plan starts with, before the manager exists, so that its first connections meet
// them.
func (r *run) beginInitialFaults() {
	for _, f := range r.plan.Faults {
		if f.Begin <= 0 {
			r.beginFault(f)
		}
	}
}

// planSteps returns the plan's steps sorted by time, without the faults of beginInitialFaults.
func (r *run) planSteps() []plannedStep {
	var all []plannedStep
	for _, f := range r.plan.Faults {
		// beginInitialFaults has begun the others.
		if f.Begin > 0 {
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

// runPlan performs the plan's steps up to Heal, by which every fault has ended, and records the healing. Later steps (commands
// to the healed world) go on in the background until the driver stops. runPlan returns at once when ctx ends.
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
	// The steps after Heal run beside awaitSettled.
	r.driver.goroutines.Go(func() {
		for _, m := range steps {
			if !r.sleepUntil(r.driver.ctx, m.at) {
				return
			}
			m.do()
		}
	})
}

// sleepUntil waits for a time of the run. It returns false if ctx ended first.
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

// beginFault begins a fault on its server, or on every server if it names none. The event is recorded before the effects,
// endFault records it after them.
func (r *run) beginFault(f scenario.PlannedFault) {
	r.recordEvent(history.Event{Side: history.Harness, Kind: history.FaultOn, Server: f.Server, Fault: f.ID, Name: f.Fault})
	if f.End > f.Begin {
		r.progress.faults.Add(1)
	}
	r.servers.Begin(f)
}

// endFault ends a fault.
func (r *run) endFault(f scenario.PlannedFault) {
	r.progress.faults.Add(-1)
	r.servers.End(f)
	r.recordEvent(history.Event{Side: history.Harness, Kind: history.FaultOff, Server: f.Server, Fault: f.ID, Name: f.Fault})
}

// healEverything records that every fault has ended. It ends the processes that have left the group of their server: the
// manager cannot reach them, only the harness can.
func (r *run) healEverything() {
	r.servers.EndEscaped()
	r.recordHarness(history.Heal, "")
	r.progress.enterStage("healing")
	r.recordStatuses("at the healing")
}

// runLoad makes each call of the plan at its time, even if earlier calls still run: a slow server must not slow the load down.
func (r *run) runLoad() {
	s := load.NewSchedule(r.plan)
	for c, ok := s.Next(); ok; c, ok = s.Next() {
		if !r.sleepUntil(r.driver.ctx, c.At) {
			return
		}
		r.driver.goroutines.Go(func() { r.runCall(c) })
	}
}

// runCall makes one planned call or read, and records how it ended.
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
	// The context never ends with the run's: the manager's Close must answer every call itself.
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
	// A call without progress asks the server for none, and the fault endless-progress would be untested.
	options := []supervisor.CallOption{supervisor.WithProgress(func(supervisor.Progress) {})}
	if c.Stream.Task {
		options = append(options, supervisor.WithTask(0))
	}
	res, err := r.manager.CallServerTool(ctx, c.Stream.Server, c.Stream.Tool, map[string]any{"call": c.ID, "size": c.Stream.Size}, options...)
	// finish ends the chance to give the call up before its end is recorded, or the record would hold both.
	finish()
	e.Kind = history.End
	e.T = r.elapsedTime()
	// The duration counts from the planned start, because a call that began late has waited as well.
	e.Took = e.T - c.At
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

// outcomeOf returns what an error of a call says: outcome, class and text.
func outcomeOf(err error) (messages.Outcome, messages.Class, string) {
	e := toFacadeError(err)
	return e.Outcome, e.Class, err.Error()
}
