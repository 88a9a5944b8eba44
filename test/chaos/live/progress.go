package live

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Progress describes how far a run has come.
type Progress struct {
	// At is the time since the start of the run, Heal and End are the plan's.
	At, Heal, End time.Duration
	// Stage is "breaking", "healing", "closing" and "cleaning" in turn.
	Stage string
	// Servers is the number of the plan's servers; the others count them by phase. A server without an event yet counts as
	// pending.
	Servers, Connected, Pending, Failed, NeedsAuth, Disabled int
	// Calls have begun; of these Answered ended with a result, and Lost in any other way.
	Calls, Answered, Lost int64
	// Faults counts the faults that last now, without instant ones.
	Faults int
}

// progressCounts holds the numbers that make up a Progress; calls, commands and events update it from many goroutines.
type progressCounts struct {
	// mu guards phases; the other fields are atomic, because every call changes them.
	mu     sync.Mutex
	phases map[string]messages.Phase

	calls, answered, lost, faults atomic.Int64
	stage                         atomic.Pointer[string]
}

// setPhase notes the phase of a server; an empty phase means that it was removed.
func (t *progressCounts) setPhase(server string, p messages.Phase) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phases == nil {
		t.phases = map[string]messages.Phase{}
	}
	t.phases[server] = p
}

func (t *progressCounts) enterStage(stage string) { t.stage.Store(&stage) }

// currentProgress makes a Progress of the current counts.
func (r *run) currentProgress() Progress {
	p := Progress{
		At: r.elapsedTime(), Heal: r.plan.Heal, End: r.plan.End, Servers: len(r.plan.Servers),
		Calls: r.progress.calls.Load(), Answered: r.progress.answered.Load(), Lost: r.progress.lost.Load(),
		Faults: int(r.progress.faults.Load()),
	}
	if s := r.progress.stage.Load(); s != nil {
		p.Stage = *s
	}
	r.progress.mu.Lock()
	defer r.progress.mu.Unlock()
	for _, phase := range r.progress.phases {
		switch phase {
		case messages.Connected:
			p.Connected++
		case messages.Failed:
			p.Failed++
		case messages.NeedsAuth:
			p.NeedsAuth++
		case messages.Disabled:
			p.Disabled++
		case messages.Pending:
			p.Pending++
		}
	}
	// Servers without an event, and removed ones, count as pending too.
	p.Pending = p.Servers - p.Connected - p.Failed - p.NeedsAuth - p.Disabled
	return p
}

// reportEvery is the time between two calls of Options.Progress.
const reportEvery = 200 * time.Millisecond

// reportProgress calls Options.Progress until the caller calls stop, and once more then. stop returns after the last call.
func (r *run) reportProgress() (stop func()) {
	if r.options.Progress == nil {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		// Progress is the caller's code: if it panics, only the progress display ends, and the run goes on.
		defer func() { _ = recover() }()
		t := time.NewTicker(reportEvery)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				r.options.Progress(r.currentProgress())
			case <-done:
				r.options.Progress(r.currentProgress())
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}
