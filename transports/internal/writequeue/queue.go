// Package writequeue writes the messages of several senders one after the other where a write may wait: a WebSocket, a stream of
// lines. It says of each message how far it got.
//
//	q := &writequeue.Queue{Lifetime: l, Write: write, OnBroken: onBroken}
//	delivery, err := q.Send(ctx, body)
//	q.FailAll(l.EndError())   // when the connection has ended
//
// # How it fits
//
// A connection of package websocket or stream owns one Queue; its writing goroutine counts as inside the connection's lifetime. Package
// stdio has a queue of its own (stdio/internal/pipe), because a pipe can be written without waiting.
//
// # Guarantees
//
//   - Messages are written whole and in the order of Send. If the caller of Send leaves, its message is taken back while its turn has
//     not come; afterwards it is written to its end, because half a message would spoil the next one.
//   - The Delivery is Written only when Write has returned nil, and NotWritten only if Write did not begin or says so.
//   - A body belongs to its caller again when Send has returned.
//   - A Write that panics ends the connection, and neither the program nor the wait of a sender.
//
// # Not promised
//
// That a Write which waits for ever ends: the connection closes the stream below it.
package writequeue

import (
	"context"
	"slices"
	"sync"

	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/lifetime"
)

// Queue writes messages in the order in which Send was called, and before each of them what is urgent.
//
// One goroutine writes, and lives until the queue is empty. It copies a message when its turn has come: from then on the message
// is written to its end, even if its sender leaves, because half a message would make the next one unreadable. Until then the
// sender can take it back. The queue needs no bound of its own: every message in it has a sender that waits for it.
type Queue struct {
	Lifetime *lifetime.Lifetime
	// Write writes one message. begun is false if it is sure that no byte of the message has left; it is asked only after an error.
	Write func(body []byte) (begun bool, err error)
	// Urgent returns the write that goes before every message, or nil: the control frames of a WebSocket. It is called with the
	// lock held and must not block. nil means that there is never one.
	Urgent func() (write func() error)
	// OnBroken is called once, with the lock held, when nothing can be written any more: it must not block.
	OnBroken func(error)

	// mu guards everything below, and the fields of each queuedMessage.
	mu           sync.Mutex
	queue        []*queuedMessage
	messageCount int64 // counts messages whose writing has begun
	busy         bool  // a goroutine writes
	closed       bool  // nothing can be written any more
	// failed is why no message is accepted any more; FailAll sets it once.
	failed *transports.Error
}

// queuedMessage is one message in the queue.
type queuedMessage struct {
	body []byte
	// writing is true once its turn has come; unwritten is true if that write failed before any byte was written.
	writing   bool
	unwritten bool
	delivery  transports.Delivery
	err       *transports.Error
	done      chan struct{} // closed when the outcome is set
}

// maxBuffer is the size in bytes up to which the copy of a message is kept for the next one.
const maxBuffer = 1 << 20

// messageBuffers has the copies of messages, of any connection. They start at 64 KiB.
var messageBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 64<<10); return &b }}

// Send queues body and returns when it is written. If ctx ends first it returns how far the message got and a nil error,
// which the caller replaces; err is set if nothing can be sent.
func (o *Queue) Send(ctx context.Context, body []byte) (transports.Delivery, error) {
	m := &queuedMessage{body: body, done: make(chan struct{})}
	o.mu.Lock()
	if o.failed != nil {
		defer o.mu.Unlock()
		return transports.NotWritten, o.failed
	}
	o.queue = append(o.queue, m)
	o.startWriter()
	o.mu.Unlock()
	// If both have happened, the message's outcome counts: isCompleted is asked under the lock.
	select {
	case <-m.done:
	case <-ctx.Done():
		o.mu.Lock()
		defer o.mu.Unlock()
		if !m.isCompleted() && m.writing {
			return transports.MaybeWritten, nil
		}
		if !m.isCompleted() {
			o.queue = slices.DeleteFunc(o.queue, func(q *queuedMessage) bool { return q == m })
			return transports.NotWritten, nil
		}
	}
	if m.err != nil {
		return m.delivery, m.err
	}
	return m.delivery, nil
}

// Wake has what Urgent returns written soon.
func (o *Queue) Wake() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.startWriter()
}

// CurrentMessage returns the number of the message that is being written, 0 for none.
func (o *Queue) CurrentMessage() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) > 0 && o.queue[0].writing {
		return o.messageCount
	}
	return 0
}

// startWriter starts the writing goroutine unless there is one. It counts as inside the lifetime. The caller holds mu.
func (o *Queue) startWriter() {
	if o.busy || o.closed || !o.Lifetime.Enter() {
		return
	}
	o.busy = true
	go o.writeLoop()
}

// writeLoop is the writing goroutine.
func (o *Queue) writeLoop() {
	defer o.Lifetime.LeaveRecovering()
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.closed {
		var err error
		switch write := o.takeUrgent(); {
		case write != nil:
			err = o.runUnlocked(write)
		// The front of the queue stays in it while it is written, so that FailAll finds it.
		case len(o.queue) > 0:
			err = o.writeMessage(o.queue[0])
		default:
			o.busy = false
			return
		}
		if err != nil && !o.closed {
			// Queued messages wait on for FailAll, which knows the reason.
			o.closed = true
			o.OnBroken(err)
		}
	}
}

// runUnlocked gives up mu, which the caller holds, while f writes. After a panic of f the caller holds mu as well, and its deferred
// Unlock succeeds: unlocking an unlocked mutex would end the program, since no recover catches that.
func (o *Queue) runUnlocked(f func() error) error {
	o.mu.Unlock()
	defer o.mu.Lock()
	return f()
}

// takeUrgent returns the urgent write that is due, or nil. The caller holds mu.
func (o *Queue) takeUrgent() (write func() error) {
	if o.Urgent == nil {
		return nil
	}
	return o.Urgent()
}

// writeMessage writes the first message. The caller holds mu, which writeMessage gives up during the write.
func (o *Queue) writeMessage(m *queuedMessage) error {
	m.writing = true
	o.messageCount++
	buf := messageBuffers.Get().(*[]byte)
	*buf = append((*buf)[:0], m.body...)
	var begun bool
	err := o.runUnlocked(func() (err error) {
		begun, err = o.Write(*buf)
		if cap(*buf) <= maxBuffer {
			*buf = (*buf)[:0] // the next user appends to it
			messageBuffers.Put(buf)
		}
		return err
	})
	if err != nil {
		m.unwritten = !begun
		return err
	}
	if len(o.queue) > 0 && o.queue[0] == m {
		o.queue[0] = nil
		o.queue = o.queue[1:]
	}
	m.completeDelivery(transports.Written, nil)
	return nil
}

// FailAll completes every waiting message with err, and refuses every later one. Only the first call counts.
func (o *Queue) FailAll(err *transports.Error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed != nil {
		return
	}
	o.failed, o.closed = err, true
	for _, m := range o.queue {
		if m.writing && !m.unwritten {
			m.completeDelivery(transports.MaybeWritten, err)
		} else {
			m.completeDelivery(transports.NotWritten, err)
		}
	}
	o.queue = nil
}

// completeDelivery sets the outcome once and wakes the sender. The caller holds mu.
func (m *queuedMessage) completeDelivery(d transports.Delivery, err *transports.Error) {
	if !m.isCompleted() {
		m.delivery, m.err = d, err
		close(m.done)
	}
}

// isCompleted reports whether the outcome is set.
func (m *queuedMessage) isCompleted() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}
