package sim

import (
	"cmp"
	"container/heap"
	"time"
)

// due is something that the world does at a time. Equal times are ordered by the server's name and then by the number, so
// that the order does not depend on who was first to plan it.
type due struct {
	at     time.Duration
	server string
	number uint64
	do     func()
}

// timeline is what the world will do, the next first.
type timeline struct {
	heap    dues
	planned map[string]uint64 // numbers, by server
}

func (l *timeline) plan(at time.Duration, server string, do func()) {
	if l.planned == nil {
		l.planned = map[string]uint64{}
	}
	l.planned[server]++
	heap.Push(&l.heap, due{at, server, l.planned[server], do})
}

// next is when something is due; false if nothing is.
func (l *timeline) next() (time.Duration, bool) {
	if len(l.heap) == 0 {
		return 0, false
	}
	return l.heap[0].at, true
}

// take is the first of what is due at now, nil if nothing is.
func (l *timeline) take(now time.Duration) func() {
	if len(l.heap) == 0 || l.heap[0].at > now {
		return nil
	}
	return heap.Pop(&l.heap).(due).do
}

// dues implements heap.Interface.
type dues []due

func (d dues) Len() int { return len(d) }
func (d dues) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(d[i].at, d[j].at), cmp.Compare(d[i].server, d[j].server),
		cmp.Compare(d[i].number, d[j].number)) < 0
}
func (d dues) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *dues) Push(x any)   { *d = append(*d, x.(due)) }
func (d *dues) Pop() any {
	last := len(*d) - 1
	x := (*d)[last]
	(*d)[last] = due{}
	*d = (*d)[:last]
	return x
}
