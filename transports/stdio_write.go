package transports

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
)

// writeQueue writes messages to a child, each followed by a newline, in the order in which Send was called.
//
// A sender that finds the pipe free writes its message by itself, which saves two switches between goroutines. What
// does not fit, and what comes meanwhile, is written by a goroutine that lives until nothing waits any more: it takes
// as many messages at once as fit into one write. As long as there are several to take, no sender writes its own message, and it
// lets those go first who are about to send: of 64 callers that get their answers together the next requests leave
// together. The queue needs no bound of its own: every message in it has a sender that waits for it or for its answer,
// except for the rest of one whose sender has left.
type writeQueue struct {
	pipe     *pipeWriter
	onBroken func() // the pipe takes nothing any more; called once, without the lock

	mu           sync.Mutex
	queue        []*queuedMessage
	busy         bool   // a goroutine writes; only that one changes the front of the queue
	lastWasBatch bool   // the last write of the goroutine was of several messages
	closed       bool   // the pipe takes nothing any more
	failed       *Error // why nothing is accepted any more; set once
	writers      sync.WaitGroup
}

// queuedMessage is one message in the queue. Its fields belong to the lock.
type queuedMessage struct {
	queue       *writeQueue
	body        []byte
	off         int  // bytes that the system has taken, the newline included
	writing     bool // its bytes are part of the write that is going on
	abandoned   bool // its sender has gone away and reads no outcome
	senderWaits bool // its sender wants to know when it is written, and not only when it will not be
	completed   bool
	delivery    Delivery
	err         error
	done        chan struct{} // holds one token when settled, if its sender waits for that
}

var (
	queuedMessages = sync.Pool{New: func() any { return &queuedMessage{done: make(chan struct{}, 1)} }}
	pipeBuffers    = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}
)

// Send implements Conn.Send for one stream.
func (o *writeQueue) Send(ctx context.Context, body []byte) (Delivery, error) {
	if ctx.Err() != nil {
		return NotWritten, contextError(ctx, "sending the message")
	}
	m, delivery, err := o.putMessage(body, true)
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
func (o *writeQueue) Post(body []byte) (PendingPost, Delivery, error) {
	if m, delivery, err := o.putMessage(body, false); m == nil {
		return nil, delivery, err
	} else {
		return m, delivery, nil
	}
}

// putMessage queues a message, and writes it if the pipe is free. m is nil if it is settled.
func (o *writeQueue) putMessage(body []byte, waits bool) (m *queuedMessage, d Delivery, err error) {
	if len(body) == 0 || bytes.IndexByte(body, '\n') >= 0 {
		return nil, NotWritten, &Error{Class: messages.ClassInvalid, Text: "the message is empty or holds a newline"}
	}
	m = queuedMessages.Get().(*queuedMessage)
	m.queue, m.body, m.senderWaits = o, body, waits

	o.mu.Lock()
	if o.failed != nil {
		err := o.failed
		o.mu.Unlock()
		m.returnToPool()
		return nil, NotWritten, err
	}
	o.queue = append(o.queue, m)
	if !o.busy && !o.closed {
		o.busy = true
		if nonblocking && !o.lastWasBatch {
			o.writeBatch(o.pipe.tryWrite)
		}
		if o.busy = len(o.queue) > 0 && !o.closed; o.busy {
			o.writers.Add(1)
			go o.writeLoop()
		}
	}
	settled := m.completed
	o.mu.Unlock()
	if !settled {
		return m, MaybeWritten, nil
	}
	d, err = m.Leave()
	return nil, d, err
}

// Failed implements Posting.
func (m *queuedMessage) Failed() <-chan struct{} { return m.done }

// Leave implements Posting. What is settled is used again.
func (m *queuedMessage) Leave() (Delivery, error) {
	m.queue.mu.Lock()
	if !m.completed {
		defer m.queue.mu.Unlock()
		return m.queue.withdrawMessage(m), nil
	}
	delivery, err := m.delivery, m.err
	m.queue.mu.Unlock()
	if err == nil {
		m.returnToPool()
	} // else a write that is going on may still know it
	return delivery, err
}

// withdrawMessage takes a message back whose sender does not wait any more. If its first byte is on its way, the rest must
// follow, or the next message would be unreadable.
func (o *writeQueue) withdrawMessage(m *queuedMessage) Delivery {
	m.abandoned = true
	if !m.writing && m.off == 0 {
		o.queue = slices.DeleteFunc(o.queue, func(q *queuedMessage) bool { return q == m })
		return NotWritten
	}
	m.body = bytes.Clone(m.body) // the sender's memory is its own again
	return MaybeWritten
}

// writeLoop writes until nothing waits, or the pipe is closed.
func (o *writeQueue) writeLoop() {
	defer o.writers.Done()
	defer func() {
		if v := recover(); v != nil {
			o.failAll(panicError(v))
			go o.onBroken()
		}
	}()
	done := false
	o.pipe.writeLoop(func(write func([]byte) (int, error)) bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		for len(o.queue) > 0 && !o.closed {
			o.mu.Unlock()
			runtime.Gosched() // behind the goroutines that are ready to send
			o.mu.Lock()
			o.lastWasBatch = len(o.queue) > 1
			if !o.writeBatch(write) {
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
		o.markBroken()
	}
}

// writeBatch makes one write of the front of the queue and reports whether another one may be tried at once. The lock is
// held, and given up during the write.
func (o *writeQueue) writeBatch(write func([]byte) (int, error)) (more bool) {
	buf := pipeBuffers.Get().(*[]byte)
	defer pipeBuffers.Put(buf)
	size, count := o.fillBuffer(*buf)
	if size == 0 {
		return true // everybody has left
	}
	batch := o.queue[:count]
	o.mu.Unlock()
	n, err := write((*buf)[:size])
	o.mu.Lock()
	o.accountWritten(batch, n)
	if err != nil {
		o.markBroken()
	}
	return n > 0 && err == nil
}

// fillBuffer copies as much of the queue as fits into buf.
func (o *writeQueue) fillBuffer(buf []byte) (size, count int) {
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

// accountWritten notes that the system has taken n bytes of the batch, which is the front of the queue.
func (o *writeQueue) accountWritten(batch []*queuedMessage, n int) {
	keep := o.queue[:0]
	for _, m := range batch {
		took := min(n, len(m.body)+1-m.off)
		m.off, n = m.off+took, n-took
		m.writing = false
		switch {
		case m.off > len(m.body):
			m.completeDelivery(Written, nil)
		case m.off == 0 && m.abandoned: // it need not be written, and must not be: its sender has an outcome
		default:
			keep = append(keep, m)
		}
	}
	keep = append(keep, o.queue[len(batch):]...)
	clear(o.queue[len(keep):])
	o.queue = keep
}

// markBroken is called when the pipe takes nothing any more. What waits goes on waiting for fail, which knows the reason.
func (o *writeQueue) markBroken() {
	if !o.closed {
		o.closed = true
		go o.onBroken()
	}
}

// failAll ends every message that waits, and refuses every further one.
func (o *writeQueue) failAll(err *Error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed != nil {
		return
	}
	o.failed, o.closed = err, true
	for _, m := range o.queue {
		if m.off > 0 || m.writing {
			m.completeDelivery(MaybeWritten, err)
		} else {
			m.completeDelivery(NotWritten, err)
		}
	}
	if !o.busy {
		clear(o.queue)
		o.queue = nil
	}
}

func (m *queuedMessage) completeDelivery(d Delivery, err error) {
	if m.completed || m.abandoned {
		return
	}
	m.completed, m.delivery, m.err = true, d, err
	if m.senderWaits || err != nil {
		m.done <- struct{}{}
	}
}

// returnToPool makes a settled message ready for another Send.
func (m *queuedMessage) returnToPool() {
	select {
	case <-m.done:
	default:
	}
	*m = queuedMessage{done: m.done}
	queuedMessages.Put(m)
}
