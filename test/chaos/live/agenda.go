package live

import (
	"container/heap"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
)

// agenda is what is to be done and when: in the order of time, and of equal times in the order in which it was said. It
// is not safe for concurrent use.
type agenda struct {
	items []planned
	said  int
}

type planned struct {
	at   time.Duration
	said int
	do   peer.Action
}

// add notes what a machine said at a time.
func (a *agenda) add(now time.Duration, actions []peer.Action) {
	for _, do := range actions {
		a.said++
		heap.Push((*agendaHeap)(a), planned{now + peer.After(do), a.said, do})
	}
}

// next takes the first thing that is due; false if nothing is.
func (a *agenda) next(now time.Duration) (peer.Action, bool) {
	if len(a.items) == 0 || a.items[0].at > now {
		return nil, false
	}
	return heap.Pop((*agendaHeap)(a)).(planned).do, true
}

// due is when the first thing is; false if there is none.
func (a *agenda) due() (time.Duration, bool) {
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
	case peer.Deafen:
		return a.Conn
	case peer.Spawn:
		return a.Conn
	case peer.Cut:
		return a.Conn
	}
	return 0
}

// agendaHeap is the order of an agenda, for container/heap.
type agendaHeap agenda

func (h *agendaHeap) Len() int { return len(h.items) }
func (h *agendaHeap) Less(i, j int) bool {
	a, b := h.items[i], h.items[j]
	if a.at != b.at {
		return a.at < b.at
	}
	return a.said < b.said
}
func (h *agendaHeap) Swap(i, j int) { h.items[i], h.items[j] = h.items[j], h.items[i] }
func (h *agendaHeap) Push(x any)    { h.items = append(h.items, x.(planned)) }
func (h *agendaHeap) Pop() any {
	last := h.items[len(h.items)-1]
	h.items = h.items[:len(h.items)-1]
	return last
}
