package transports

import (
	"context"
	"slices"
	"sync"
)

// wsWriteQueue writes messages in the order in which send was called, and between them the control frames that are owed.
//
// One goroutine writes, and lives until nothing waits. A message is copied when its turn has come: from then on it is
// written to its end, whatever becomes of its sender, because half a frame would make the next one unreadable. Until
// then it can be taken back. The queue needs no bound of its own: every message in it has a sender that waits for it.
// Of control frames at most two are owed.
type wsWriteQueue struct {
	lifetime     *lifetime
	writeText    func(body []byte) error
	writeControl func(frame []byte) error
	writesBegun  func() int64 // writes that were begun on the stream until now
	onBroken     func(error)  // nothing can be written any more; called once, without the lock

	mu           sync.Mutex
	queue        []*wsQueuedMessage
	messageCount int64  // messages whose turn has come until now
	pong         []byte // the payload of the pong that is owed, nil for none
	ping         bool   // a ping is owed
	busy         bool   // a goroutine writes
	closed       bool   // nothing can be written any more
	failed       *Error // why nothing is accepted any more; set once
}

// wsQueuedMessage is one message. Its fields belong to the lock.
type wsQueuedMessage struct {
	body      []byte
	writing   bool // its turn has come
	unwritten bool // its turn has come and failed before anything of it was written
	delivery  Delivery
	err       *Error
	done      chan struct{} // closed when settled
}

// sendMessage returns Written, or what became of the message when ctx ended first, with no error, or why nothing can be sent.
func (o *wsWriteQueue) sendMessage(ctx context.Context, body []byte) (Delivery, error) {
	m := &wsQueuedMessage{body: body, done: make(chan struct{})}
	o.mu.Lock()
	if o.failed != nil {
		defer o.mu.Unlock()
		return NotWritten, o.failed
	}
	o.queue = append(o.queue, m)
	o.startWriter()
	o.mu.Unlock()
	select {
	case <-m.done:
	case <-ctx.Done():
		o.mu.Lock()
		defer o.mu.Unlock()
		if !m.isCompleted() && m.writing {
			return MaybeWritten, nil
		}
		if !m.isCompleted() {
			o.queue = slices.DeleteFunc(o.queue, func(q *wsQueuedMessage) bool { return q == m })
			return NotWritten, nil
		}
	}
	if m.err != nil {
		return m.delivery, m.err
	}
	return m.delivery, nil
}

// queuePong notes that the server wants a sign of life, with its own payload.
//
// RFC 6455, 5.5.3: "If an endpoint receives a Ping frame and has not yet sent Pong frame(s) in response to previous
// Ping frame(s), the endpoint MAY elect to send a Pong frame for only the most recently processed Ping frame."
func (o *wsWriteQueue) queuePong(payload []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pong = append([]byte{}, payload...)
	o.startWriter()
}

func (o *wsWriteQueue) queuePing() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ping = true
	o.startWriter()
}

// currentMessage is the number of the message that is being written, 0 for none.
func (o *wsWriteQueue) currentMessage() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) > 0 && o.queue[0].writing {
		return o.messageCount
	}
	return 0
}

// startWriter makes sure that a goroutine writes. The lock is held.
func (o *wsWriteQueue) startWriter() {
	if o.busy || o.closed || !o.lifetime.enter() {
		return
	}
	o.busy = true
	go o.writeLoop()
}

// writeLoop writes until nothing waits.
func (o *wsWriteQueue) writeLoop() {
	defer o.lifetime.leaveRecovering()
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.closed {
		var err error
		switch frame := o.takeControlFrame(); {
		case frame != nil:
			o.mu.Unlock()
			err = o.writeControl(frame)
			o.mu.Lock()
		case len(o.queue) > 0:
			err = o.writeMessage(o.queue[0])
		default:
			o.busy = false
			return
		}
		if err != nil && !o.closed {
			o.closed = true // what waits goes on waiting for fail, which knows the reason
			o.onBroken(err)
		}
	}
}

// takeControlFrame is the control frame that is to be sent next, nil for none.
func (o *wsWriteQueue) takeControlFrame() (frame []byte) {
	switch {
	case o.pong != nil:
		frame, o.pong = controlFrame(opPong, o.pong), nil
	case o.ping:
		frame, o.ping = controlFrame(opPing, nil), false
	}
	return frame
}

// writeMessage writes the first message. The lock is held, and given up meanwhile.
func (o *wsWriteQueue) writeMessage(m *wsQueuedMessage) error {
	m.writing = true
	o.messageCount++
	buf := lineBuffers.Get().(*[]byte)
	*buf = append((*buf)[:0], m.body...)
	before := o.writesBegun()
	o.mu.Unlock()
	err := o.writeText(*buf)
	if cap(*buf) <= linePieceSize {
		*buf = (*buf)[:0] // who takes it next appends to it
		lineBuffers.Put(buf)
	}
	o.mu.Lock()
	if err != nil {
		m.unwritten = o.writesBegun() == before
		return err
	}
	if len(o.queue) > 0 && o.queue[0] == m {
		o.queue[0] = nil
		o.queue = o.queue[1:]
	}
	m.completeDelivery(Written, nil)
	return nil
}

// failAll ends every message that waits, and refuses every further one.
func (o *wsWriteQueue) failAll(err *Error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed != nil {
		return
	}
	o.failed, o.closed = err, true
	for _, m := range o.queue {
		if m.writing && !m.unwritten {
			m.completeDelivery(MaybeWritten, err)
		} else {
			m.completeDelivery(NotWritten, err)
		}
	}
	o.queue = nil
}

func (m *wsQueuedMessage) completeDelivery(d Delivery, err *Error) {
	if !m.isCompleted() {
		m.delivery, m.err = d, err
		close(m.done)
	}
}

func (m *wsQueuedMessage) isCompleted() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}
