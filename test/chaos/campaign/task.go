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

// Task describes one run.
type Task struct {
	Seed uint64 `json:"seed"`
	// Scenario is the scenario to run; nil means the random one of the seed, with at most Servers servers and this Duration (0:
	// package generate chooses).
	Scenario *scenario.Scenario `json:"scenario,omitempty"`
	Servers  int                `json:"servers,omitempty"`
	Duration time.Duration      `json:"duration,omitempty"`
	// Only is the ID of the one check that judges the run; empty: all of them do.
	Only string `json:"only,omitempty"`
	// History is the file to which the history is written; empty keeps none.
	History string `json:"history,omitempty"`
}

// EffectiveScenario returns the scenario of the task.
func (t Task) EffectiveScenario() scenario.Scenario {
	if t.Scenario != nil {
		return *t.Scenario
	}
	return generate.Scenario(t.Seed, generate.Options{Servers: t.Servers, Duration: t.Duration})
}

// Result is the outcome of a task.
type Result struct {
	Seed     uint64              `json:"seed"`
	Verdicts []invariant.Verdict `json:"verdicts,omitempty"`
	Events   int                 `json:"events,omitempty"`
	// Virtual is the virtual duration of the run, Took the real duration of the task, verdicts included.
	Virtual time.Duration `json:"virtual,omitempty"`
	Took    time.Duration `json:"took,omitempty"`
	// Error says why there was no run: the plan is unusable, or the harness failed. Empty if there was one.
	Error string `json:"error,omitempty"`
	// Stack is the end of the standard error of a worker that died.
	Stack string `json:"stack,omitempty"`
	// Beside says of a run that hangs that it was not the run itself: its day was not made to the end, or its history not judged.
	Beside bool `json:"beside,omitempty"`
	// Slow is set in a report that precedes the result: the run takes long, and the text says what it does.
	Slow string `json:"slow,omitempty"`
}

// Crash is the ID of the verdict on a run whose process died.
const Crash = "crash"

// Violated returns the violation that says most about the cause (invariant.CompareLeads), false if there is none. A hang, or a crash, is
// told before all others.
func (r Result) Violated() (first invariant.Verdict, found bool) {
	for _, v := range r.Verdicts {
		if v.Answer != invariant.Violated {
			continue
		}
		if v.ID == Crash {
			return v, true
		}
		if !found || invariant.CompareLeads(v, first) < 0 {
			first, found = v, true
		}
	}
	return first, found
}

// Violates reports whether the verdict with the ID is violated.
func (r Result) Violates(id string) bool {
	for _, v := range r.Verdicts {
		if v.ID == id && v.Answer == invariant.Violated {
			return true
		}
	}
	return false
}

// Hangs reports whether the run did not end.
func (r Result) Hangs() bool { return r.Violates(invariant.Hung) }

// Do runs a task in this process. slow is called once if the run takes more than 10 s of real time; nil reports nothing. The
// goroutines of a run that hangs stay in this process, so that the caller should end it.
func Do(ctx context.Context, t Task, slow func(string)) Result {
	began := time.Now()
	r := Result{Seed: t.Seed}
	var plan scenario.Plan
	var err error
	if hung := sim.RunBounded("The scenario is made", 0, slow, func(func(string)) { plan, err = t.EffectiveScenario().Plan(t.Seed, scenario.Sim) }); hung != nil {
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
	// The history is written before it is judged, so that it is there also if a judge does not come to its end.
	if t.History != "" {
		if err := writeHistory(t.History, h); err != nil {
			r.Error = "the history cannot be written: " + messages.Line(err.Error(), 300)
			return r
		}
	}
	var verdicts []invariant.Verdict
	if hung := sim.RunBounded("The history is judged", len(h.Events), slow, func(step func(string)) { verdicts = t.judge(h, step) }); hung != nil {
		return r.hangResult(hung)
	}
	r.Verdicts = verdicts
	r.Took = time.Since(began)
	return r
}

// judge judges the run of the task.
func (t Task) judge(h *history.History, step func(string)) []invariant.Verdict {
	if t.Only != "" {
		return invariant.JudgeOnly(h, t.Only, step)
	}
	return invariant.JudgeInSteps(h, step)
}

// hangResult is the result of a task whose goroutine goes on in this process and will not end.
func (r Result) hangResult(err error) Result {
	r.Beside = true
	r.Verdicts = []invariant.Verdict{{ID: invariant.Hung, Title: "the run comes to its end", Answer: invariant.Violated,
		Why: messages.Line(err.Error(), 500), Looked: 1}}
	return r
}

// writeHistory writes a history to a file. An error of closing counts, because the last bytes may be written then.
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

// maxWorkerHeap is the number of bytes of heap above which a worker exits after its task: goroutines that a run has left behind
// keep their memory.
const maxWorkerHeap = 1 << 30

func isHeapFull() bool {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc > maxWorkerHeap
}
