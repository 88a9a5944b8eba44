package sim

import (
	"cmp"
	"container/heap"
	"time"
)

// plannedAction is something that the world does at a time. Equal times are ordered by the server's name and then by the number, so
// that the order does not depend on who was first to plan it.
type plannedAction struct {
	at     time.Duration
	server string
	number uint64
	do     func()
}

// timeline is what the world will do, the next first.
type timeline struct {
	heap    plannedHeap
	planned map[string]uint64 // numbers, by server
}

func (l *timeline) planAction(at time.Duration, server string, do func()) {
	if l.planned == nil {
		l.planned = map[string]uint64{}
	}
	l.planned[server]++
	heap.Push(&l.heap, plannedAction{at, server, l.planned[server], do})
}

// nextTime is when something is due; false if nothing is.
func (l *timeline) nextTime() (time.Duration, bool) {
	if len(l.heap) == 0 {
		return 0, false
	}
	return l.heap[0].at, true
}

// takeDue is the first of what is due at now, nil if nothing is.
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
func (d *plannedHeap) Pop() any {
	last := len(*d) - 1
	x := (*d)[last]
	(*d)[last] = plannedAction{}
	*d = (*d)[:last]
	return x
}
