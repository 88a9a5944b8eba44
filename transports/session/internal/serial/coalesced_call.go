package serial

import "sync/atomic"

// A CoalescedCall turns several events into one call of a function, as long as the call has not begun. The last event
// is never lost: an event during the call leads to another call.
type CoalescedCall struct{ scheduled atomic.Bool }

// Schedule puts one call of f into the queue, unless one is queued already or f is nil. It is mandatory, so it is never
// dropped; scheduled bounds it to one item.
func (n *CoalescedCall) Schedule(queue *Queue, f func()) {
	if f == nil || !n.scheduled.CompareAndSwap(false, true) {
		return
	}
	queue.Put(0, true, func() {
		// First the flag, then the call: a change during the call is another call.
		n.scheduled.Store(false)
		f()
	})
}
