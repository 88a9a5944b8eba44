package performer

import (
	"container/heap"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
)

// actionQueue holds the actions that are still to be performed, sorted by time and then by the order in which the machine
// returned them. The server's lock guards it.
type actionQueue struct {
	items     []scheduledAction
	lastOrder int
}

// scheduledAction is an action with its time of the run.
type scheduledAction struct {
	// order is the number of the action in the queue: of two actions at one time the earlier one comes first.
	at    time.Duration
	order int
	do    peer.Action
}

// addActions queues the actions that a machine returned at the time now.
func (a *actionQueue) addActions(now time.Duration, actions []peer.Action) {
	for _, do := range actions {
		a.lastOrder++
		heap.Push((*actionHeap)(a), scheduledAction{now + peer.After(do), a.lastOrder, do})
	}
}

// popDue removes and returns the first action that is due, false if there is none.
func (a *actionQueue) popDue(now time.Duration) (peer.Action, bool) {
	if len(a.items) == 0 || a.items[0].at > now {
		return nil, false
	}
	return heap.Pop((*actionHeap)(a)).(scheduledAction).do, true
}

// nextDueTime returns the time of the first action, false if the queue is empty.
func (a *actionQueue) nextDueTime() (time.Duration, bool) {
	if len(a.items) == 0 {
		return 0, false
	}
	return a.items[0].at, true
}

// connOf returns the connection that an action belongs to, 0 for none.
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

// actionHeap implements heap.Interface on the items of an actionQueue.
type actionHeap actionQueue

func (h *actionHeap) Len() int { return len(h.items) }

// Less orders by time, and actions of one time in the order in which they were given.
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
