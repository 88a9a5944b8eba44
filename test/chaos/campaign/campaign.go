package campaign

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
)

// Seeds are count tasks like t, with the seeds from first on.
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

// Tally is what one check found over all runs.
type Tally struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// Held, Violated and Inconclusive count runs, Looked the cases that were judged in all of them.
	Held         int `json:"held"`
	Violated     int `json:"violated"`
	Inconclusive int `json:"inconclusive"`
	Looked       int `json:"looked"`
}

// Answer is that of all runs together: what happened in one of them has happened.
func (t Tally) Answer() invariant.Answer {
	switch {
	case t.Violated > 0:
		return invariant.Violated
	case t.Held > 0:
		return invariant.Holds
	}
	return invariant.Inconclusive
}

// Summary is what came of a campaign.
type Summary struct {
	Runs   int     `json:"runs"`
	Checks []Tally `json:"checks"`
	// Failed are the runs that violate something, Errors those that there was no run of, both in the order of the seeds.
	Failed []Result `json:"failed,omitempty"`
	Errors []Result `json:"errors,omitempty"`
	Events int      `json:"events"`
	// Virtual is the time of all runs together by their own clocks, Took how long the campaign really took.
	Virtual time.Duration `json:"virtual"`
	Took    time.Duration `json:"took"`
}

// Answer is that of the campaign.
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

func (s *Summary) violatedOr(a invariant.Answer) invariant.Answer {
	if len(s.Failed) > 0 {
		return invariant.Violated
	}
	return a
}

// Run gives every task to the pool and returns when all of them have a result, or ctx has ended. each, if not nil, is called
// with every result, one at a time, in the order in which they come.
func Run(ctx context.Context, pool *Pool, tasks iter.Seq[Task], each func(Result)) Summary {
	began := time.Now()
	var mu sync.Mutex
	var wg sync.WaitGroup
	s := summaryBuilder{}
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
