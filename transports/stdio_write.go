package transports

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
)

// outbox writes messages to a child, each followed by a newline, in the order in which Send was called.
//
// A sender that finds the pipe free writes its message by itself, which saves two switches between goroutines. What
// does not fit, and what comes meanwhile, is written by a goroutine that lives until nothing waits any more: it takes
// as many messages at once as fit into one write. As long as there are several to take, no sender writes its own message, and it
// lets those go first who are about to send: of 64 callers that get their answers together the next requests leave
// together. The queue needs no bound of its own: every message in it has a sender that waits for it or for its answer,
// except for the rest of one whose sender has left.
type outbox struct {
	pipe   *outlet
	broken func() // the pipe takes nothing any more; called once, without the lock

	mu      sync.Mutex
	queue   []*outgoing
	busy    bool   // a goroutine writes; only that one changes the front of the queue
	crowd   bool   // the last write of the goroutine was of several messages
	closed  bool   // the pipe takes nothing any more
	failed  *Error // why nothing is accepted any more; set once
	writers sync.WaitGroup
}

// outgoing is one message in the queue. Its fields belong to the lock.
type outgoing struct {
	box      *outbox
	body     []byte
	off      int  // bytes that the system has taken, the newline included
	writing  bool // its bytes are part of the write that is going on
	left     bool // its sender has gone away and reads no outcome
	waits    bool // its sender wants to know when it is written, and not only when it will not be
	settled  bool
	delivery Delivery
	err      error
	done     chan struct{} // holds one token when settled, if its sender waits for that
}

var (
	outgoings   = sync.Pool{New: func() any { return &outgoing{done: make(chan struct{}, 1)} }}
	pipeBuffers = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}
)

// Send implements Conn.Send for one stream.
func (o *outbox) Send(ctx context.Context, body []byte) (Delivery, error) {
	if ctx.Err() != nil {
		return NotWritten, contextError(ctx, "sending the message")
	}
	m, delivery, err := o.put(body, true)
	if m == nil {
		return delivery, err
	}
	select {
	case <-m.done:
		return m.Leave()
	case <-ctx.Done():
		delivery, err = m.Leave()
		if delivery != Written && err == nil {
			err = contextError(ctx, "sending the message")
		}
		return delivery, err
	}
}

// Post implements Poster.Post for one stream.
func (o *outbox) Post(body []byte) (Posting, Delivery, error) {
	if m, delivery, err := o.put(body, false); m == nil {
		return nil, delivery, err
	} else {
		return m, delivery, nil
	}
}

// put queues a message, and writes it if the pipe is free. m is nil if it is settled.
func (o *outbox) put(body []byte, waits bool) (m *outgoing, d Delivery, err error) {
	if len(body) == 0 || bytes.IndexByte(body, '\n') >= 0 {
		return nil, NotWritten, &Error{Class: messages.ClassInvalid, Text: "the message is empty or holds a newline"}
	}
	m = outgoings.Get().(*outgoing)
	m.box, m.body, m.waits = o, body, waits

	o.mu.Lock()
	if o.failed != nil {
		err := o.failed
		o.mu.Unlock()
		m.recycle()
		return nil, NotWritten, err
	}
	o.queue = append(o.queue, m)
	if !o.busy && !o.closed {
		o.busy = true
		if nonblocking && !o.crowd {
			o.write(o.pipe.try)
		}
		if o.busy = len(o.queue) > 0 && !o.closed; o.busy {
			o.writers.Add(1)
			go o.run()
		}
	}
	settled := m.settled
	o.mu.Unlock()
	if !settled {
		return m, MaybeWritten, nil
	}
	d, err = m.Leave()
	return nil, d, err
}

// Failed implements Posting.
func (m *outgoing) Failed() <-chan struct{} { return m.done }

// Leave implements Posting. What is settled is used again.
func (m *outgoing) Leave() (Delivery, error) {
	m.box.mu.Lock()
	if !m.settled {
		defer m.box.mu.Unlock()
		return m.box.leave(m), nil
	}
	delivery, err := m.delivery, m.err
	m.box.mu.Unlock()
	if err == nil {
		m.recycle()
	} // else a write that is going on may still know it
	return delivery, err
}

// leave takes a message back whose sender does not wait any more. If its first byte is on its way, the rest must
// follow, or the next message would be unreadable.
func (o *outbox) leave(m *outgoing) Delivery {
	m.left = true
	if !m.writing && m.off == 0 {
		o.queue = slices.DeleteFunc(o.queue, func(q *outgoing) bool { return q == m })
		return NotWritten
	}
	m.body = bytes.Clone(m.body) // the sender's memory is its own again
	return MaybeWritten
}

// run writes until nothing waits, or the pipe is closed.
func (o *outbox) run() {
	defer o.writers.Done()
	defer func() {
		if v := recover(); v != nil {
			o.fail(panicError(v))
			go o.broken()
		}
	}()
	done := false
	o.pipe.loop(func(write func([]byte) (int, error)) bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		for len(o.queue) > 0 && !o.closed {
			o.mu.Unlock()
			runtime.Gosched() // behind the goroutines that are ready to send
			o.mu.Lock()
			o.crowd = len(o.queue) > 1
			if !o.write(write) {
				return false
			}
		}
		o.busy, done = false, true // from here on busy belongs to another sender
		return true
	})
	if !done { // the file was closed while we waited
		o.mu.Lock()
		defer o.mu.Unlock()
		o.busy = false
		o.stop()
	}
}

// write makes one write of the front of the queue and reports whether another one may be tried at once. The lock is
// held, and given up during the write.
func (o *outbox) write(write func([]byte) (int, error)) (more bool) {
	buf := pipeBuffers.Get().(*[]byte)
	defer pipeBuffers.Put(buf)
	size, count := o.gather(*buf)
	if size == 0 {
		return true // everybody has left
	}
	batch := o.queue[:count]
	o.mu.Unlock()
	n, err := write((*buf)[:size])
	o.mu.Lock()
	o.account(batch, n)
	if err != nil {
		o.stop()
	}
	return n > 0 && err == nil
}

// gather copies as much of the queue as fits into buf.
func (o *outbox) gather(buf []byte) (size, count int) {
	for _, m := range o.queue {
		if size == len(buf) || !nonblocking && count > 0 {
			break // a write that may wait must not put more than one message in doubt
		}
		m.writing = true
		count++
		if m.off < len(m.body) {
			n := copy(buf[size:], m.body[m.off:])
			if size += n; m.off+n < len(m.body) {
				break
			}
		}
		if size < len(buf) {
			buf[size] = '\n'
			size++
		}
	}
	return size, count
}

// account notes that the system has taken n bytes of the batch, which is the front of the queue.
func (o *outbox) account(batch []*outgoing, n int) {
	keep := o.queue[:0]
	for _, m := range batch {
		took := min(n, len(m.body)+1-m.off)
		m.off, n = m.off+took, n-took
		m.writing = false
		switch {
		case m.off > len(m.body):
			m.settle(Written, nil)
		case m.off == 0 && m.left: // it need not be written, and must not be: its sender has an outcome
		default:
			keep = append(keep, m)
		}
	}
	keep = append(keep, o.queue[len(batch):]...)
	clear(o.queue[len(keep):])
	o.queue = keep
}

// stop is called when the pipe takes nothing any more. What waits goes on waiting for fail, which knows the reason.
func (o *outbox) stop() {
	if !o.closed {
		o.closed = true
		go o.broken()
	}
}

// fail ends every message that waits, and refuses every further one.
func (o *outbox) fail(err *Error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed != nil {
		return
	}
	o.failed, o.closed = err, true
	for _, m := range o.queue {
		if m.off > 0 || m.writing {
			m.settle(MaybeWritten, err)
		} else {
			m.settle(NotWritten, err)
		}
	}
	if !o.busy {
		clear(o.queue)
		o.queue = nil
	}
}

func (m *outgoing) settle(d Delivery, err error) {
	if m.settled || m.left {
		return
	}
	m.settled, m.delivery, m.err = true, d, err
	if m.waits || err != nil {
		m.done <- struct{}{}
	}
}

// recycle makes a settled message ready for another Send.
func (m *outgoing) recycle() {
	select {
	case <-m.done:
	default:
	}
	*m = outgoing{done: m.done}
	outgoings.Put(m)
}
