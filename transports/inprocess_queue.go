package transports

import (
	"slices"
	"sync"
	"sync/atomic"
)

// maxQueuedBytes is how many bytes may wait to be read.
const maxQueuedBytes = 4 << 20

// inProcessQueue holds messages in the order in which they were put. A message is accepted when there is room for it
// behind those accepted before, or when it is read; until then it can be withdrawn. So a message of any size passes,
// and it is always known whether a withdrawn one was seen. The zero value is empty.
type inProcessQueue struct {
	// allHandled says that the reader has handled everything that was put: it has found nothing more, and nothing came since.
	allHandled atomic.Bool

	mu       sync.Mutex
	items    []*inProcessItem
	accepted int           // how many of items, from the front, are accepted
	bytes    int           // of the accepted ones
	more     chan struct{} // closed when something is put; nil while no reader waits
	receive  func([]byte)  // is given what comes, in the place of take; nil if take is used
	claimed  bool          // a goroutine gives it
}

type inProcessItem struct {
	msg      []byte
	accepted chan struct{} // nil if it was accepted at once
}

// putMessage appends a copy of msg. It returns nil if the message is accepted, otherwise the item to wait for.
func (q *inProcessQueue) putMessage(msg []byte) *inProcessItem {
	item := &inProcessItem{msg: append(make([]byte, 0, len(msg)), msg...)}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = append(q.items, item)
	q.allHandled.Store(false)
	if q.more != nil {
		close(q.more)
		q.more = nil
	}
	if q.accepted == len(q.items)-1 && q.bytes+len(msg) <= maxQueuedBytes {
		q.accepted++
		q.bytes += len(msg)
		return nil
	}
	item.accepted = make(chan struct{})
	return item
}

// takeMessage removes the first message, or returns a channel that is closed when there may be one; nil if it is not for take.
func (q *inProcessQueue) takeMessage() (msg []byte, more <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.receive != nil:
		return nil, nil
	case len(q.items) > 0:
		return q.pop(), nil
	}
	q.markHandled()
	if q.more == nil {
		q.more = make(chan struct{})
	}
	return nil, q.more
}

// setReceiver has receive given what comes, from now on.
func (q *inProcessQueue) setReceiver(receive func([]byte)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.receive = receive
	if len(q.items) == 0 {
		q.markHandled()
	}
}

// claimReceiver makes the caller the one who takes next until there is nothing more, and returns whom to give it to; nil if there is
// nothing, nobody to give it to, or somebody else who does.
func (q *inProcessQueue) claimReceiver() func([]byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.receive == nil || q.claimed || len(q.items) == 0 {
		return nil
	}
	q.claimed = true
	return q.receive
}

// nextClaimed removes the first message. With nil, the claim ends.
func (q *inProcessQueue) nextClaimed() []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		q.markHandled()
		q.claimed = false
		return nil
	}
	return q.pop()
}

// markHandled is when everything was handled. The caller holds mu, here and below.
func (q *inProcessQueue) markHandled() {
	q.items = nil // an idle connection keeps no memory of busier times
	q.allHandled.Store(true)
}

// pop removes the first message, which must be there.
func (q *inProcessQueue) pop() []byte {
	first := q.items[0]
	q.items[0] = nil
	q.items = q.items[1:]
	if q.accepted > 0 {
		q.accepted--
		q.bytes -= len(first.msg)
	} else {
		close(first.accepted)
	}
	q.admitWaiting()
	return first.msg
}

// admitWaiting accepts what there is room for.
func (q *inProcessQueue) admitWaiting() {
	for q.accepted < len(q.items) && q.bytes+len(q.items[q.accepted].msg) <= maxQueuedBytes {
		next := q.items[q.accepted]
		q.accepted++
		q.bytes += len(next.msg)
		close(next.accepted)
	}
}

// withdrawItem removes an item that is not accepted yet. It reports false if it is too late.
func (q *inProcessQueue) withdrawItem(item *inProcessItem) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := q.accepted; i < len(q.items); i++ {
		if q.items[i] == item {
			q.items = slices.Delete(q.items, i, i+1)
			q.admitWaiting() // it may have been in the way of smaller ones
			return true
		}
	}
	return false
}
