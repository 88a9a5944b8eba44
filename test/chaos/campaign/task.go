package campaign

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/generate"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/sim"
)

// Task is one run.
type Task struct {
	Seed uint64 `json:"seed"`
	// Scenario is what is run; nil is the random one of the seed, with at most so many Servers and this Duration (0: what
	// package generate chooses).
	Scenario *scenario.Scenario `json:"scenario,omitempty"`
	Servers  int                `json:"servers,omitempty"`
	Duration time.Duration      `json:"duration,omitempty"`
	// History is a file that the history is written to; empty: it is thrown away.
	History string `json:"history,omitempty"`
}

// EffectiveScenario is the scenario of the task.
func (t Task) EffectiveScenario() scenario.Scenario {
	if t.Scenario != nil {
		return *t.Scenario
	}
	return generate.Scenario(t.Seed, generate.Options{Servers: t.Servers, Duration: t.Duration})
}

// Result is what came of a task.
type Result struct {
	Seed     uint64              `json:"seed"`
	Verdicts []invariant.Verdict `json:"verdicts,omitempty"`
	Events   int                 `json:"events,omitempty"`
	// Virtual is how long the run was by its own clock, Took how long it really took, the judges included.
	Virtual time.Duration `json:"virtual,omitempty"`
	Took    time.Duration `json:"took,omitempty"`
	// Error says that there was no run: the plan cannot be used, or the harness itself failed.
	Error string `json:"error,omitempty"`
	// Stack is what the process of the run said last, if it died.
	Stack string `json:"stack,omitempty"`
	// Slow is no result: the run takes long, and this is what it does. Its result follows.
	Slow string `json:"slow,omitempty"`
}

// Crash is the ID of the verdict on a run whose process has died, or does not come back.
const Crash = "crash"

// Violated is the first verdict that is violated; false if none is.
func (r Result) Violated() (invariant.Verdict, bool) {
	for _, v := range r.Verdicts {
		if v.Answer == invariant.Violated {
			return v, true
		}
	}
	return invariant.Verdict{}, false
}

// Violates reports whether the verdict of that ID is violated.
func (r Result) Violates(id string) bool {
	for _, v := range r.Verdicts {
		if v.ID == id && v.Answer == invariant.Violated {
			return true
		}
	}
	return false
}

// Hangs reports whether the run did not come to its end: it stood still, or did not end in time.
func (r Result) Hangs() bool { return r.Violates(invariant.Hung) }

// Do runs a task in this process. slow, if not nil, is told once of a run that takes more than 10 s of real time. What is left of a run
// that hangs stays in this process.
func Do(ctx context.Context, t Task, slow func(string)) Result {
	began := time.Now()
	r := Result{Seed: t.Seed}
	var plan scenario.Plan
	var err error
	if hung := sim.RunBounded("The scenario is made", slow, func() { plan, err = t.EffectiveScenario().Plan(t.Seed, scenario.Sim) }); hung != nil {
		return r.hangResult(hung)
	}
	if err != nil {
		r.Error = messages.Line(err.Error(), 500)
		return r
	}
	r.Seed = plan.Seed
	h, err := sim.Run(ctx, plan, sim.Options{OnSlow: slow})
	if err != nil {
		r.Error = messages.Printable(err.Error())
		return r
	}
	r.Events, r.Virtual = len(h.Events), plan.End
	var verdicts []invariant.Verdict
	if hung := sim.RunBounded("The history is judged", slow, func() { verdicts = invariant.Judge(h) }); hung != nil {
		return r.hangResult(hung)
	}
	r.Verdicts = verdicts
	if t.History != "" {
		if err := writeHistory(t.History, h); err != nil {
			r.Error = "the history cannot be written: " + messages.Line(err.Error(), 300)
		}
	}
	r.Took = time.Since(began)
	return r
}

// hangResult is the result of a task that goes on in this process and will not end.
func (r Result) hangResult(err error) Result {
	r.Verdicts = []invariant.Verdict{{ID: invariant.Hung, Title: "the run comes to its end", Answer: invariant.Violated,
		Why: messages.Line(err.Error(), 500), Looked: 1}}
	return r
}

func writeHistory(file string, h *history.History) (err error) {
	f, err := os.Create(filepath.Clean(file))
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	b := bufio.NewWriterSize(f, 1<<20)
	if err := h.Write(b); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return b.Flush()
}

// maxWorkerHeap is how many bytes of heap a worker may keep before it ends after its task: goroutines that a run has left behind
// stay in its process.
const maxWorkerHeap = 1 << 30

func isHeapFull() bool {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc > maxWorkerHeap
}
