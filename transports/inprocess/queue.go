package inprocess

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcpvisor/mcpvisor/transports"
)

// maxQueuedBytes bounds the bytes of messages that wait for the server. Senders block beyond that.
const maxQueuedBytes = 4 << 20

// messageQueue holds messages in the order in which they were put. It accepts a message when there is room for it behind those
// accepted before, or when the server reads it; until then its sender can withdraw it. So a message of any size passes, and it is
// always known whether the server has seen a withdrawn one. The zero value is empty.
type messageQueue struct {
	// allHandled is true when the server has handled every message: it has found the queue empty, and no message came since.
	allHandled atomic.Bool

	// mu guards everything below.
	mu       sync.Mutex
	items    []*queueItem
	accepted int                      // how many of items, from the front, are accepted
	bytes    int                      // bytes of the accepted ones, at most maxQueuedBytes
	more     chan struct{}            // closed when a message is put; nil while no reader waits
	receive  func(transports.Message) // gets the messages in place of takeMessage; nil if takeMessage is used
	claimed  bool                     // a goroutine gives them to receive
}

// queueItem is one message in the queue.
type queueItem struct {
	msg      transports.Message
	accepted chan struct{} // nil if it was accepted at once
}

// putMessage appends a copy of a message. It returns nil if the message is accepted, otherwise the item whose accepted the sender waits
// for.
func (q *messageQueue) putMessage(m transports.Message) *queueItem {
	m.Body = append(make([]byte, 0, len(m.Body)), m.Body...)
	item := &queueItem{msg: m}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = append(q.items, item)
	// From here on requests queue behind this message.
	q.allHandled.Store(false)
	// A reader waits.
	if q.more != nil {
		close(q.more)
		q.more = nil
	}
	if q.accepted == len(q.items)-1 && q.bytes+len(m.Body) <= maxQueuedBytes {
		q.accepted++
		q.bytes += len(m.Body)
		return nil
	}
	item.accepted = make(chan struct{})
	return item
}

// takeMessage removes the first message, or returns a channel that is closed when there may be one. Both are empty if a
// Receive function gets the messages. Asking again is the sign that the reader has handled the message before.
func (q *messageQueue) takeMessage() (m transports.Message, more <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.receive != nil:
		return m, nil
	case len(q.items) > 0:
		return q.pop(), nil
	}
	q.markHandled()
	if q.more == nil {
		q.more = make(chan struct{})
	}
	return m, q.more
}

// setReceiver makes receive get every message from now on.
func (q *messageQueue) setReceiver(receive func(transports.Message)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.receive = receive
	if len(q.items) == 0 {
		q.markHandled()
	}
}

// claimReceiver makes the caller the one goroutine that calls nextClaimed until the queue is empty, and returns the function to
// give the messages to. It returns nil if the queue is empty, there is no such function, or another goroutine has the claim.
func (q *messageQueue) claimReceiver() func(transports.Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.receive == nil || q.claimed || len(q.items) == 0 {
		return nil
	}
	q.claimed = true
	return q.receive
}

// nextClaimed removes the first message. When it returns one without a body, the claim has ended.
func (q *messageQueue) nextClaimed() (m transports.Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		q.markHandled()
		q.claimed = false
		return m
	}
	return q.pop()
}

// markHandled notes that the server has handled every message. The caller holds mu, here and below.
func (q *messageQueue) markHandled() {
	q.items = nil // an idle connection keeps no memory of busier times
	q.allHandled.Store(true)
}

// pop removes the first message, which must be there. A message that had no room yet is accepted by that.
func (q *messageQueue) pop() transports.Message {
	first := q.items[0]
	q.items[0] = nil
	q.items = q.items[1:]
	if q.accepted > 0 {
		q.accepted--
		q.bytes -= len(first.msg.Body)
	} else {
		close(first.accepted)
	}
	q.admitWaiting()
	return first.msg
}

// admitWaiting accepts messages from the front for as long as there is room, and so wakes their senders.
func (q *messageQueue) admitWaiting() {
	for q.accepted < len(q.items) && q.bytes+len(q.items[q.accepted].msg.Body) <= maxQueuedBytes {
		next := q.items[q.accepted]
		q.accepted++
		q.bytes += len(next.msg.Body)
		close(next.accepted)
	}
}

// withdrawItem removes an item that is not accepted yet. It reports false if the item was accepted in the meantime.
func (q *messageQueue) withdrawItem(item *queueItem) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := q.accepted; i < len(q.items); i++ {
		if q.items[i] == item {
			q.items = slices.Delete(q.items, i, i+1)
			q.admitWaiting() // it may have blocked smaller ones
			return true
		}
	}
	return false
}
