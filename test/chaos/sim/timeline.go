package sim

import (
	"cmp"
	"container/heap"
	"time"
)

// plannedAction is something that the loop does at a time of the run. Equal times are ordered by the server's name and then by
// number, so that the order does not depend on which of two servers planned first.
type plannedAction struct {
	// number counts the actions that were planned for the server.
	at     time.Duration
	server string
	number uint64
	do     func()
}

// timeline holds what the loop will do, sorted. Only the loop uses it.
type timeline struct {
	heap plannedHeap
	// planned counts the actions of each server, for their numbers.
	planned map[string]uint64
}

// planAction plans a function for a time of the run. An empty server stands for the run itself and comes before all servers.
func (l *timeline) planAction(at time.Duration, server string, do func()) {
	if l.planned == nil {
		l.planned = map[string]uint64{}
	}
	l.planned[server]++
	heap.Push(&l.heap, plannedAction{at, server, l.planned[server], do})
}

// nextTime returns the time of the first action, false if there is none.
func (l *timeline) nextTime() (time.Duration, bool) {
	if len(l.heap) == 0 {
		return 0, false
	}
	return l.heap[0].at, true
}

// takeDue removes and returns the first action that is due, nil if there is none.
func (l *timeline) takeDue(now time.Duration) func() {
	if len(l.heap) == 0 || l.heap[0].at > now {
		return nil
	}
	return heap.Pop(&l.heap).(plannedAction).do
}

// plannedHeap implements heap.Interface.
type plannedHeap []plannedAction

func (d plannedHeap) Len() int { return len(d) }
func (d plannedHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(d[i].at, d[j].at), cmp.Compare(d[i].server, d[j].server),
		cmp.Compare(d[i].number, d[j].number)) < 0
}
func (d plannedHeap) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *plannedHeap) Push(x any)   { *d = append(*d, x.(plannedAction)) }

// Pop clears the slot that it leaves, so that a performed action and all that it refers to can be collected.
func (d *plannedHeap) Pop() any {
	last := len(*d) - 1
	x := (*d)[last]
	(*d)[last] = plannedAction{}
	*d = (*d)[:last]
	return x
}
