package invariant

import (
	"cmp"
	"container/heap"
	"slices"
)

// A toolRun says when a tool ran, or may have run, and what number it gave the run. The tools of the harness count their runs and answer with the count.
type toolRun struct {
	// from and to are the first and the last place in the order of events at which it can have run. If to is before from, it cannot have run.
	from, to int64
	// value is the count that the run has answered with, 1 for the first; 0 for a run that may not have happened.
	value int
	// event is the event that a violation shows.
	event int
}

// A runMisfit is why no order of runs explains their values. run and other are indexes of runs with values.
type runMisfit struct {
	why        misfitReason
	run, other int
	// value is the missing one.
	value int
}

type misfitReason int

const (
	runsFit misfitReason = iota
	// runImpossible: there is no place where run can have been.
	runImpossible
	// valueTwice: run and other have the same value.
	valueTwice
	// valueMissing: run has a value that is too high, because no run can have had the value before it.
	valueMissing
	// valuesExchanged: run has a higher value than other, and must have been before it.
	valuesExchanged
)

// findRunMisfit looks for an order of the runs. why is runsFit if one explains all values.
//
// In an order the runs with values stand by their values, and the counts that no answer has are those of runs that may have happened. A run with a value has
// its place not before the first place of a lower value, and not after the last place of a higher one. The counts that are missing between two
// values can be those of runs whose places reach between the two; of those that do, the one whose last place comes first is taken first,
// because the others may serve later. If each missing count finds a run, an order exists: two runs that were given in the wrong
// order can change their counts.
func findRunMisfit(runs []toolRun) runMisfit {
	var valued, others []int
	for i := range runs {
		possible := runs[i].from <= runs[i].to
		switch {
		case runs[i].value > 0 && !possible:
			return runMisfit{why: runImpossible, run: i}
		case runs[i].value > 0:
			valued = append(valued, i)
		case possible:
			others = append(others, i)
		}
	}
	slices.SortStableFunc(valued, func(a, b int) int { return cmp.Compare(runs[a].value, runs[b].value) })
	slices.SortStableFunc(others, func(a, b int) int { return cmp.Compare(runs[a].from, runs[b].from) })
	// first is, for each run with a value, the one of it and all higher ones whose last place comes first.
	first := slices.Clone(valued)
	for k := len(valued) - 2; k >= 0; k-- {
		if runs[first[k+1]].to < runs[first[k]].to {
			first[k] = first[k+1]
		}
	}
	free := &runHeap{runs: runs}
	last, value := -1, 0 // the run with a lower value that begins last, and the value that was explained last
	for k, i := range valued {
		if runs[i].value == value {
			return runMisfit{why: valueTwice, run: valued[k-1], other: i}
		}
		for len(others) > 0 && runs[others[0]].from <= runs[first[k]].to {
			heap.Push(free, others[0])
			others = others[1:]
		}
		for value++; value < runs[i].value; value++ {
			for last >= 0 && free.Len() > 0 && runs[free.indexes[0]].to < runs[last].from {
				heap.Pop(free)
			}
			if free.Len() == 0 {
				return runMisfit{why: valueMissing, run: i, value: value}
			}
			heap.Pop(free)
		}
		if last < 0 || runs[i].from > runs[last].from {
			last = i
		}
		if runs[last].from > runs[first[k]].to {
			return runMisfit{why: valuesExchanged, run: first[k], other: last}
		}
	}
	return runMisfit{}
}

// A runHeap has runs that may have happened, the one whose last place comes first at the top.
type runHeap struct {
	runs    []toolRun
	indexes []int
}

func (h *runHeap) Len() int           { return len(h.indexes) }
func (h *runHeap) Less(i, j int) bool { return h.runs[h.indexes[i]].to < h.runs[h.indexes[j]].to }
func (h *runHeap) Swap(i, j int)      { h.indexes[i], h.indexes[j] = h.indexes[j], h.indexes[i] }

// Push adds the index of a run.
func (h *runHeap) Push(x any) { h.indexes = append(h.indexes, x.(int)) } //nolint:forcetypeassert // findRunMisfit gives ints

// Pop takes the last index.
func (h *runHeap) Pop() any {
	last := h.indexes[len(h.indexes)-1]
	h.indexes = h.indexes[:len(h.indexes)-1]
	return last
}
