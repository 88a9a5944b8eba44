package live

import (
	"container/heap"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
)

// actionQueue is what is to be done and when: in the order of time, and of equal times in the order in which it was said. It
// is not safe for concurrent use.
type actionQueue struct {
	items     []scheduledAction
	lastOrder int
}

type scheduledAction struct {
	at    time.Duration
	order int
	do    peer.Action
}

// addActions notes what a machine said at a time.
func (a *actionQueue) addActions(now time.Duration, actions []peer.Action) {
	for _, do := range actions {
		a.lastOrder++
		heap.Push((*actionHeap)(a), scheduledAction{now + peer.After(do), a.lastOrder, do})
	}
}

// popDue takes the first thing that is due; false if nothing is.
func (a *actionQueue) popDue(now time.Duration) (peer.Action, bool) {
	if len(a.items) == 0 || a.items[0].at > now {
		return nil, false
	}
	return heap.Pop((*actionHeap)(a)).(scheduledAction).do, true
}

// nextDueTime is when the first thing is; false if there is none.
func (a *actionQueue) nextDueTime() (time.Duration, bool) {
	if len(a.items) == 0 {
		return 0, false
	}
	return a.items[0].at, true
}

// connOf is the connection that an action is about, 0 for none.
func connOf(a peer.Action) int {
	switch a := a.(type) {
	case peer.Send:
		return a.Conn
	case peer.Raw:
		return a.Conn
	case peer.Status:
		return a.Conn
	case peer.Accept:
		return a.Conn
	case peer.Reject:
		return a.Conn
	case peer.Exit:
		return a.Conn
	case peer.Stop:
		return a.Conn
	case peer.PauseReading:
		return a.Conn
	case peer.Spawn:
		return a.Conn
	case peer.Cut:
		return a.Conn
	}
	return 0
}

// actionHeap is the order of an agenda, for container/heap.
type actionHeap actionQueue

func (h *actionHeap) Len() int { return len(h.items) }
func (h *actionHeap) Less(i, j int) bool {
	a, b := h.items[i], h.items[j]
	if a.at != b.at {
		return a.at < b.at
	}
	return a.order < b.order
}
func (h *actionHeap) Swap(i, j int) { h.items[i], h.items[j] = h.items[j], h.items[i] }
func (h *actionHeap) Push(x any)    { h.items = append(h.items, x.(scheduledAction)) }
func (h *actionHeap) Pop() any {
	last := h.items[len(h.items)-1]
	h.items = h.items[:len(h.items)-1]
	return last
}
