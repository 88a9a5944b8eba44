package websocket

import (
	"context"
	"slices"
	"sync"

	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/lifetime"
)

// writeQueue writes messages in the order in which sendMessage was called, and between them the pings and pongs that are due.
//
// One goroutine writes, and lives until the queue is empty. It copies a message when its turn has come: from then on the message
// is written to its end, even if its sender leaves, because half a frame would make the next one unreadable. Until then the
// sender can take it back. The queue needs no bound of its own: every message in it has a sender that waits for it. Of control
// frames at most one ping and one pong are due.
type writeQueue struct {
	lifetime     *lifetime.Lifetime
	writeText    func(body []byte) error
	writeControl func(frame []byte) error
	writesBegun  func() int64 // writes that were begun on the stream until now
	// onBroken is called once, with the lock held, when nothing can be written any more: it must not block.
	onBroken func(error)

	// mu guards everything below, and the fields of each queuedMessage.
	mu           sync.Mutex
	queue        []*queuedMessage
	messageCount int64  // counts messages whose writing has begun
	pong         []byte // payload of the pong that is due, nil for none
	ping         bool   // a ping is due
	busy         bool   // a goroutine writes
	closed       bool   // nothing can be written any more
	// failed is why no message is accepted any more; failAll sets it once.
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

// maxFrameBuffer is the size in bytes up to which the copy of a message is kept for the next one.
const maxFrameBuffer = 1 << 20

// frameBuffers has the copies of messages, of any connection. They start at 64 KiB.
var frameBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 64<<10); return &b }}

// sendMessage queues body and returns when it is written. If ctx ends first it returns how far the message got and a nil error,
// which the caller replaces; err is set if nothing can be sent.
func (o *writeQueue) sendMessage(ctx context.Context, body []byte) (transports.Delivery, error) {
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

// queuePong makes a pong with that payload due; it replaces one that is still waiting.
//
// RFC 6455, 5.5.3: "If an endpoint receives a Ping frame and has not yet sent Pong frame(s) in response to previous
// Ping frame(s), the endpoint MAY elect to send a Pong frame for only the most recently processed Ping frame."
func (o *writeQueue) queuePong(payload []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pong = append([]byte{}, payload...)
	o.startWriter()
}

// queuePing makes a ping due.
func (o *writeQueue) queuePing() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ping = true
	o.startWriter()
}

// currentMessage returns the number of the message that is being written, 0 for none.
func (o *writeQueue) currentMessage() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) > 0 && o.queue[0].writing {
		return o.messageCount
	}
	return 0
}

// startWriter starts the writing goroutine unless there is one. It counts as inside the lifetime. The caller holds mu.
func (o *writeQueue) startWriter() {
	if o.busy || o.closed || !o.lifetime.Enter() {
		return
	}
	o.busy = true
	go o.writeLoop()
}

// writeLoop is the writing goroutine. Control frames go first, because they are short and the peer waits for them.
func (o *writeQueue) writeLoop() {
	defer o.lifetime.LeaveRecovering()
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.closed {
		var err error
		switch frame := o.takeControlFrame(); {
		case frame != nil:
			err = o.runUnlocked(func() error { return o.writeControl(frame) })
		// The front of the queue stays in it while it is written, so that failAll finds it.
		case len(o.queue) > 0:
			err = o.writeMessage(o.queue[0])
		default:
			o.busy = false
			return
		}
		if err != nil && !o.closed {
			// Queued messages wait on for failAll, which knows the reason.
			o.closed = true
			o.onBroken(err)
		}
	}
}

// runUnlocked gives up mu, which the caller holds, while f writes. After a panic of f the caller holds mu as well, and its deferred
// Unlock succeeds: unlocking an unlocked mutex would end the program, since no recover catches that.
func (o *writeQueue) runUnlocked(f func() error) error {
	o.mu.Unlock()
	defer o.mu.Lock()
	return f()
}

// takeControlFrame removes and returns the control frame to be written next, nil for none. The caller holds mu.
func (o *writeQueue) takeControlFrame() (frame []byte) {
	switch {
	case o.pong != nil:
		frame, o.pong = controlFrame(opPong, o.pong), nil
	case o.ping:
		frame, o.ping = controlFrame(opPing, nil), false
	}
	return frame
}

// writeMessage writes the first message. The caller holds mu, which writeMessage gives up during the write.
func (o *writeQueue) writeMessage(m *queuedMessage) error {
	m.writing = true
	o.messageCount++
	buf := frameBuffers.Get().(*[]byte)
	*buf = append((*buf)[:0], m.body...)
	before := o.writesBegun()
	err := o.runUnlocked(func() error {
		err := o.writeText(*buf)
		if cap(*buf) <= maxFrameBuffer {
			*buf = (*buf)[:0] // the next user appends to it
			frameBuffers.Put(buf)
		}
		return err
	})
	if err != nil {
		m.unwritten = o.writesBegun() == before
		return err
	}
	if len(o.queue) > 0 && o.queue[0] == m {
		o.queue[0] = nil
		o.queue = o.queue[1:]
	}
	m.completeDelivery(transports.Written, nil)
	return nil
}

// failAll completes every waiting message with err, and refuses every later one. Only the first call counts.
func (o *writeQueue) failAll(err *transports.Error) {
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
