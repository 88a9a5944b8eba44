package live

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Progress is how far a run is.
type Progress struct {
	// At is how long the run has lasted, Heal and End are the plan's.
	At, Heal, End time.Duration
	// Stage is "breaking", "healing" or "closing".
	Stage string
	// Servers by phase; those that nobody has heard of count as pending.
	Servers, Connected, Pending, Failed, NeedsAuth, Disabled int
	// Calls began, Answered ended with a result, Lost ended in any other way.
	Calls, Answered, Lost int64
	// Faults are in effect now.
	Faults int
}

// progressCounts counts what a progress line tells.
type progressCounts struct {
	mu     sync.Mutex
	phases map[string]messages.Phase

	calls, answered, lost, faults atomic.Int64
	stage                         atomic.Pointer[string]
}

func (t *progressCounts) setPhase(server string, p messages.Phase) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phases == nil {
		t.phases = map[string]messages.Phase{}
	}
	t.phases[server] = p
}

func (t *progressCounts) enterStage(stage string) { t.stage.Store(&stage) }

// currentProgress counts.
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
	p.Pending = p.Servers - p.Connected - p.Failed - p.NeedsAuth - p.Disabled
	return p
}

// reportEvery is the time between two words of progress.
const reportEvery = 200 * time.Millisecond

// reportProgress tells Options.Progress until stop is called, and once more then.
func (r *run) reportProgress() (stop func()) {
	if r.options.Progress == nil {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer func() { _ = recover() }() // somebody else's code: the run is worth more than its progress line
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
