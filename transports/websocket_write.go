package transports

import (
	"context"
	"slices"
	"sync"
)

// wsOutbox writes messages in the order in which send was called, and between them the control frames that are owed.
//
// One goroutine writes, and lives until nothing waits. A message is copied when its turn has come: from then on it is
// written to its end, whatever becomes of its sender, because half a frame would make the next one unreadable. Until
// then it can be taken back. The queue needs no bound of its own: every message in it has a sender that waits for it.
// Of control frames at most two are owed.
type wsOutbox struct {
	life    *life
	message func(body []byte) error
	control func(frame []byte) error
	tries   func() int64 // writes that were begun on the stream until now
	broken  func(error)  // nothing can be written any more; called once, without the lock

	mu     sync.Mutex
	queue  []*wsOutgoing
	turns  int64  // messages whose turn has come until now
	pong   []byte // the payload of the pong that is owed, nil for none
	ping   bool   // a ping is owed
	busy   bool   // a goroutine writes
	closed bool   // nothing can be written any more
	failed *Error // why nothing is accepted any more; set once
}

// wsOutgoing is one message. Its fields belong to the lock.
type wsOutgoing struct {
	body     []byte
	writing  bool // its turn has come
	untouch  bool // its turn has come and failed before anything of it was written
	delivery Delivery
	err      *Error
	done     chan struct{} // closed when settled
}

// send returns Written, or what became of the message when ctx ended first, with no error, or why nothing can be sent.
func (o *wsOutbox) send(ctx context.Context, body []byte) (Delivery, error) {
	m := &wsOutgoing{body: body, done: make(chan struct{})}
	o.mu.Lock()
	if o.failed != nil {
		defer o.mu.Unlock()
		return NotWritten, o.failed
	}
	o.queue = append(o.queue, m)
	o.wake()
	o.mu.Unlock()
	select {
	case <-m.done:
	case <-ctx.Done():
		o.mu.Lock()
		defer o.mu.Unlock()
		if !m.settled() && m.writing {
			return MaybeWritten, nil
		}
		if !m.settled() {
			o.queue = slices.DeleteFunc(o.queue, func(q *wsOutgoing) bool { return q == m })
			return NotWritten, nil
		}
	}
	if m.err != nil {
		return m.delivery, m.err
	}
	return m.delivery, nil
}

// owePong notes that the server wants a sign of life, with its own payload.
//
// RFC 6455, 5.5.3: "If an endpoint receives a Ping frame and has not yet sent Pong frame(s) in response to previous
// Ping frame(s), the endpoint MAY elect to send a Pong frame for only the most recently processed Ping frame."
func (o *wsOutbox) owePong(payload []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pong = append([]byte{}, payload...)
	o.wake()
}

func (o *wsOutbox) owePing() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ping = true
	o.wake()
}

// turn is the number of the message that is being written, 0 for none.
func (o *wsOutbox) turn() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) > 0 && o.queue[0].writing {
		return o.turns
	}
	return 0
}

// wake makes sure that a goroutine writes. The lock is held.
func (o *wsOutbox) wake() {
	if o.busy || o.closed || !o.life.enter() {
		return
	}
	o.busy = true
	go o.run()
}

// run writes until nothing waits.
func (o *wsOutbox) run() {
	defer o.life.guard()
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.closed {
		var err error
		switch frame := o.owed(); {
		case frame != nil:
			o.mu.Unlock()
			err = o.control(frame)
			o.mu.Lock()
		case len(o.queue) > 0:
			err = o.write(o.queue[0])
		default:
			o.busy = false
			return
		}
		if err != nil && !o.closed {
			o.closed = true // what waits goes on waiting for fail, which knows the reason
			o.broken(err)
		}
	}
}

// owed is the control frame that is to be sent next, nil for none.
func (o *wsOutbox) owed() (frame []byte) {
	switch {
	case o.pong != nil:
		frame, o.pong = controlFrame(opPong, o.pong), nil
	case o.ping:
		frame, o.ping = controlFrame(opPing, nil), false
	}
	return frame
}

// write writes the first message. The lock is held, and given up meanwhile.
func (o *wsOutbox) write(m *wsOutgoing) error {
	m.writing = true
	o.turns++
	buf := heldLines.Get().(*[]byte)
	*buf = append((*buf)[:0], m.body...)
	before := o.tries()
	o.mu.Unlock()
	err := o.message(*buf)
	if cap(*buf) <= heldPiece {
		*buf = (*buf)[:0] // who takes it next appends to it
		heldLines.Put(buf)
	}
	o.mu.Lock()
	if err != nil {
		m.untouch = o.tries() == before
		return err
	}
	if len(o.queue) > 0 && o.queue[0] == m {
		o.queue[0] = nil
		o.queue = o.queue[1:]
	}
	m.settle(Written, nil)
	return nil
}

// fail ends every message that waits, and refuses every further one.
func (o *wsOutbox) fail(err *Error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed != nil {
		return
	}
	o.failed, o.closed = err, true
	for _, m := range o.queue {
		if m.writing && !m.untouch {
			m.settle(MaybeWritten, err)
		} else {
			m.settle(NotWritten, err)
		}
	}
	o.queue = nil
}

func (m *wsOutgoing) settle(d Delivery, err *Error) {
	if !m.settled() {
		m.delivery, m.err = d, err
		close(m.done)
	}
}

func (m *wsOutgoing) settled() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}
