package campaign

import (
	"cmp"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
)

// summaryBuilder adds results up. Run's lock guards it.
type summaryBuilder struct {
	sum Summary
	// order maps each check to its largest index among the verdicts, so that a summary keeps their order.
	order   map[string]int
	byCheck map[string]*Tally
}

// addResult adds one result.
func (s *summaryBuilder) addResult(r Result) {
	if s.byCheck == nil {
		s.byCheck, s.order = map[string]*Tally{}, map[string]int{}
	}
	if r.Error != "" {
		s.sum.Errors = append(s.sum.Errors, r)
		return
	}
	s.sum.Runs++
	s.sum.Events += r.Events
	s.sum.Virtual += r.Virtual
	for i, v := range r.Verdicts {
		t := s.byCheck[v.ID]
		if t == nil {
			t = &Tally{ID: v.ID, Title: v.Title}
			s.byCheck[v.ID] = t
		}
		s.order[v.ID] = max(s.order[v.ID], i)
		t.Looked += v.Looked
		switch v.Answer {
		case invariant.Holds:
			t.Held++
		case invariant.Violated:
			t.Violated++
		case invariant.Inconclusive:
			t.Inconclusive++
		}
	}
	if _, failed := r.Violated(); failed {
		s.sum.Failed = append(s.sum.Failed, r)
	}
}

// finishSummary sorts the parts and returns the summary.
func (s *summaryBuilder) finishSummary(took time.Duration) Summary {
	s.sum.Took = took
	for _, t := range s.byCheck {
		s.sum.Checks = append(s.sum.Checks, *t)
	}
	slices.SortFunc(s.sum.Checks, func(a, b Tally) int {
		return cmp.Or(cmp.Compare(s.order[a.ID], s.order[b.ID]), cmp.Compare(a.ID, b.ID))
	})
	bySeed := func(a, b Result) int { return cmp.Compare(a.Seed, b.Seed) }
	slices.SortFunc(s.sum.Failed, bySeed)
	slices.SortFunc(s.sum.Errors, bySeed)
	return s.sum
}
