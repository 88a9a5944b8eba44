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
	ctx    context.Context
	cancel context.CancelFunc
	living sync.WaitGroup

	mu     sync.Mutex
	wishes map[string]wish
	// respecs says by which command the spec of a server was changed last.
	respecs map[string]int
	// adjusted is what was said of each spec since, in order.
	adjusted map[string][]map[string]string
}

// wish is what was asked of a server last.
type wish string

const (
	wanted   wish = ""
	unwanted wish = "disabled"
	removed  wish = "removed"
)

// stop ends the load and lets no command begin any more. Calls that are under way end with the manager.
func (d *driver) stop() { d.cancel() }

// wait returns when every call and command has ended.
func (d *driver) wait() { d.living.Wait() }

// moment is something that the plan wants at a time.
type moment struct {
	at   time.Duration
	rank int // of moments at one time: what ends, what begins, what is asked
	do   func()
}

// beginFirst begins what is broken from the start: the manager must not be faster.
func (r *run) beginFirst() {
	for _, f := range r.plan.Faults {
		if f.Begin <= 0 {
			r.begin(f)
		}
	}
}

// timeline is the plan's faults and commands in order of time, without what is broken from the start.
func (r *run) timeline() []moment {
	var all []moment
	for _, f := range r.plan.Faults {
		if f.Begin > 0 { // else it began before the manager did
			all = append(all, moment{f.Begin, 1, func() { r.begin(f) }})
		}
		if f.End > f.Begin {
			all = append(all, moment{f.End, 0, func() { r.end(f) }})
		}
	}
	for _, c := range r.plan.Commands {
		all = append(all, moment{c.At, 2, func() { r.command(c) }})
	}
	slices.SortStableFunc(all, func(a, b moment) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return a.rank - b.rank
	})
	return all
}

// drive does what the plan says until Heal, and heals. It returns at once when ctx ends.
func (r *run) drive(ctx context.Context) {
	r.tally.enter("breaking")
	r.driver.living.Go(r.load)
	late := r.timeline()
	for len(late) > 0 && late[0].at <= r.plan.Heal && r.sleepUntil(ctx, late[0].at) {
		late[0].do()
		late = late[1:]
	}
	r.sleepUntil(ctx, r.plan.Heal)
	r.healEverything()
	if len(late) == 0 {
		return
	}
	r.driver.living.Go(func() { // what is planned for the healed world
		for _, m := range late {
			if !r.sleepUntil(r.driver.ctx, m.at) {
				return
			}
			m.do()
		}
	})
}

// sleepUntil waits for a time of the run; false if ctx ended first.
func (r *run) sleepUntil(ctx context.Context, at time.Duration) bool {
	t := time.NewTimer(at - r.now())
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// begin and end switch a fault. One of the machine concerns every server.
func (r *run) begin(f scenario.Planned) {
	r.record(history.Event{Side: history.Harness, Kind: history.FaultOn, Server: f.Server, Fault: f.ID, Name: f.Fault})
	if f.End > f.Begin {
		r.tally.faults.Add(1)
	}
	for _, s := range r.concerned(f) {
		s.tell(func(now time.Duration) []peer.Action { return s.machine.Begin(now, f) })
		s.obstruct(f, true)
	}
}

func (r *run) end(f scenario.Planned) {
	r.tally.faults.Add(-1)
	for _, s := range r.concerned(f) {
		s.obstruct(f, false)
		s.tell(func(now time.Duration) []peer.Action { return s.machine.End(now, f) })
	}
	r.record(history.Event{Side: history.Harness, Kind: history.FaultOff, Server: f.Server, Fault: f.ID, Name: f.Fault})
}

// concerned are the servers that a fault is about, in the order of the plan.
func (r *run) concerned(f scenario.Planned) (all []*seat) {
	for _, srv := range r.plan.Servers {
		if f.Server == "" || f.Server == srv.Name {
			all = append(all, r.seats[srv.Name])
		}
	}
	return all
}

// healEverything notes that every fault has ended. Processes that left the group of their server are sent home: they are
// nobody's to end but the harness'.
func (r *run) healEverything() {
	r.lobby.dismiss()
	r.harness(history.Heal, "")
	r.tally.enter("healing")
	r.statuses("at the healing")
}

// load makes the calls of the plan, each at its time, whatever became of those before.
func (r *run) load() {
	s := load.NewSchedule(r.plan)
	for c, ok := s.Next(); ok; c, ok = s.Next() {
		if !r.sleepUntil(r.driver.ctx, c.At) {
			return
		}
		r.driver.living.Go(func() { r.call(c) })
	}
}

// call makes one call and records how it ended.
func (r *run) call(c load.Call) {
	if c.Stream.Read != "" {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if _, err := load.Read(ctx, r.manager, c); err != nil {
			r.secrets.text(c.Stream.Server, "the error of a read", err.Error())
		}
		return
	}
	deadline := time.Duration(0)
	ctx, over := r.leaves(c)
	defer over()
	if by := c.Caller(); by != "" {
		ctx = supervisor.WithCaller(ctx, by)
	}
	began := r.now()
	if c.Stream.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Stream.Timeout)
		defer cancel()
		deadline = began + c.Stream.Timeout
	}
	e := history.Event{Side: history.Caller, Server: c.Stream.Server, Call: c.ID, Tool: c.Stream.Tool}
	start := e
	start.Kind, start.Size, start.Deadline, start.By = history.Call, c.Stream.Size, deadline, c.Caller()
	r.record(start)
	r.tally.calls.Add(1)
	wishes := []supervisor.CallOption{supervisor.WithProgress(func(supervisor.Progress) {})} // so that the server may tell of it
	if c.Stream.Task {
		wishes = append(wishes, supervisor.WithTask(0))
	}
	res, err := r.manager.CallServerTool(ctx, c.Stream.Server, c.Stream.Tool, map[string]any{"call": c.ID, "size": c.Stream.Size}, wishes...)
	over()
	e.Kind = history.End
	e.T = r.now()
	e.Took = e.T - c.At // from the planned start: a call that began late has waited as well
	if err != nil {
		e.Outcome, e.Class, e.Text = outcomeOf(err)
		r.secrets.text(e.Server, "the error of a call", e.Text)
		r.tally.lost.Add(1)
	} else {
		e.Outcome = res.Outcome()
		e.Conn, e.Value = resultOf(res.Text())
		r.tally.answered.Add(1)
	}
	r.record(e)
}

// outcomeOf is what an error of a call says.
func outcomeOf(err error) (messages.Outcome, messages.Class, string) {
	e := asError(err)
	return e.Outcome, e.Class, err.Error()
}
