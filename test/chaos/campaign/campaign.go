package campaign

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
)

// Seeds yields count tasks like t, with the seeds from first on.
func Seeds(t Task, first uint64, count int) iter.Seq[Task] {
	return func(yield func(Task) bool) {
		for i := range count {
			t.Seed = first + uint64(i)
			if !yield(t) {
				return
			}
		}
	}
}

// Tally holds what one check found over all runs.
type Tally struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// Held, Violated and Inconclusive count runs; Looked counts the cases that the check judged in all of them.
	Held         int `json:"held"`
	Violated     int `json:"violated"`
	Inconclusive int `json:"inconclusive"`
	Looked       int `json:"looked"`
}

// Answer returns the answer for all runs together: one violation counts, and a check that held in one run has been tried.
func (t Tally) Answer() invariant.Answer {
	switch {
	case t.Violated > 0:
		return invariant.Violated
	case t.Held > 0:
		return invariant.Holds
	}
	return invariant.Inconclusive
}

// Summary holds the results of a campaign.
type Summary struct {
	Runs   int     `json:"runs"`
	Checks []Tally `json:"checks"`
	// Failed holds the results with a violation, Errors those of tasks that could not be run, both in the order of the seeds.
	Failed []Result `json:"failed,omitempty"`
	Errors []Result `json:"errors,omitempty"`
	Events int      `json:"events"`
	// Virtual is the virtual time of all runs together, Took the real time of the campaign.
	Virtual time.Duration `json:"virtual"`
	Took    time.Duration `json:"took"`
}

// Answer returns Violated if any check or run is violated, Inconclusive if some check never judged a case, and Holds otherwise.
func (s *Summary) Answer() invariant.Answer {
	answer := invariant.Inconclusive
	for _, t := range s.Checks {
		switch t.Answer() {
		case invariant.Violated:
			return invariant.Violated
		case invariant.Inconclusive:
			return s.violatedOr(invariant.Inconclusive)
		case invariant.Holds:
			answer = invariant.Holds
		}
	}
	return s.violatedOr(answer)
}

// violatedOr returns a, unless a run has failed: the worker's crash belongs to no check.
func (s *Summary) violatedOr(a invariant.Answer) invariant.Answer {
	if len(s.Failed) > 0 {
		return invariant.Violated
	}
	return a
}

// Run gives every task to the pool and returns when all of them have a result, or ctx has ended. each, if not nil, gets every
// result in the order in which they come, one call at a time. Results that come after the end of ctx are dropped, because they
// say nothing.
func Run(ctx context.Context, pool *Pool, tasks iter.Seq[Task], each func(Result)) Summary {
	began := time.Now()
	var mu sync.Mutex
	var wg sync.WaitGroup
	s := summaryBuilder{}
	// The channel has no buffer, so that no more tasks are drawn than workers are free.
	queue := make(chan Task)
	for range pool.Size() {
		wg.Go(func() {
			for t := range queue {
				r := pool.Do(ctx, t)
				mu.Lock()
				if ctx.Err() == nil {
					s.addResult(r)
					if each != nil {
						each(r)
					}
				}
				mu.Unlock()
			}
		})
	}
	for t := range tasks {
		if ctx.Err() != nil {
			break
		}
		queue <- t
	}
	close(queue)
	wg.Wait()
	return s.finishSummary(time.Since(began))
}
