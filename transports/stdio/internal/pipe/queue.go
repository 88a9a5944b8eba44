// Package pipe reads and writes the pipes of a child: a [Queue] writes messages in order and says how far each of them got, a
// [Reader] reads to the end, or to what is in the pipe at a moment. Where the system allows it, no goroutine waits in a write.
//
//	q := &pipe.Queue{Writer: w, OnBroken: onBroken}
//	delivery, err := q.Send(ctx, body)             // waits until the system has taken it
//	post, delivery, err := q.Post(body)            // does not wait; post.Failed tells of a failure later
//
// # How it fits
//
// Package stdio owns one Queue and one Reader for each child. The Reader's goroutine feeds a lines.Splitter; a Queue has a
// goroutine only while something does not fit into the pipe. Both end when the connection closes the files.
//
// # Guarantees
//
//   - Messages are written whole and in the order of Send. If the caller of Send leaves, its message is taken back while no byte of
//     it is written; afterwards the rest follows, because half a message would spoil the next one.
//   - The Delivery is Written only when the system has taken the last byte, and NotWritten only if it has taken none.
//   - A body belongs to its caller again when Send or Leave has returned.
//
// # Not promised
//
// Written means that the pipe has the bytes. Whether the child reads them, only its answer shows.
package pipe

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/errs"
)

// Queue writes messages to a child, each followed by a newline, in the order in which Send was called.
//
// A sender that finds the pipe free writes its message by itself, which saves two switches between goroutines. What does not fit,
// and what comes meanwhile, is written by a goroutine that lives until the queue is empty: it takes as many messages at once as
// fit into one write. While its writes have several messages each, no sender writes its own message, and the goroutine lets those
// go first who are about to send: of 64 callers that get their answers together the next requests leave together.
//
// The queue needs no bound of its own: every message in it has a sender that waits for it or for its answer, except for the rest
// of one whose sender has left.
type Queue struct {
	Writer *Writer
	// OnBroken is called once, without the lock, when the pipe takes nothing any more.
	OnBroken func()

	// mu guards everything below, and the fields of each queuedMessage.
	mu    sync.Mutex
	queue []*queuedMessage
	// busy is true while a goroutine writes; only that goroutine changes the front of the queue.
	busy bool
	// lastWasBatch is true if the last write of the goroutine had several messages: more are likely to come together.
	lastWasBatch bool
	// closed is set when the pipe takes nothing any more. failed is why nothing is accepted, and is set once, by FailAll: a
	// broken pipe alone does not say how the child ended.
	closed  bool
	failed  *transports.Error
	writers sync.WaitGroup
}

// queuedMessage is one message in the queue. The queue's lock guards its fields.
type queuedMessage struct {
	queue *Queue
	body  []byte
	// off counts the bytes that the system has taken, the newline included.
	off int
	// writing is true while its bytes are a part of the write in progress.
	writing bool
	// abandoned is true if its sender has called Leave and reads no outcome.
	abandoned bool
	// senderWaits is true if its sender wants to know when it is written, and not only when it will not be.
	senderWaits bool
	completed   bool
	delivery    transports.Delivery
	err         error
	// done gets one token when the message is completed, if its sender waits for that, or if it failed.
	done chan struct{}
}

// A message and its channel are used again: a call through a pipe then allocates neither.
var (
	queuedMessages = sync.Pool{New: func() any { return &queuedMessage{done: make(chan struct{}, 1)} }}
	pipeBuffers    = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}
)

// AwaitWriters waits until the goroutines that write have ended, which is soon after the pipe was closed.
func (o *Queue) AwaitWriters() { o.writers.Wait() }

// Send queues body and waits until it is written, or until ctx ends.
func (o *Queue) Send(ctx context.Context, body []byte) (transports.Delivery, error) {
	if ctx.Err() != nil {
		return transports.NotWritten, errs.ContextError(ctx, "sending the message")
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
		if delivery != transports.Written && err == nil {
			err = errs.ContextError(ctx, "sending the message")
		}
		return delivery, err
	}
}

// Post queues body. It returns nil and the outcome if the message is completed already.
func (o *Queue) Post(body []byte) (transports.PendingPost, transports.Delivery, error) {
	if m, delivery, err := o.putMessage(body, false); m == nil {
		return nil, delivery, err
	} else {
		return m, delivery, nil
	}
}

// putMessage queues a message, and writes it if the pipe is free. m is nil if the message is completed; d and err are its
// outcome.
func (o *Queue) putMessage(body []byte, waits bool) (m *queuedMessage, d transports.Delivery, err error) {
	// A newline in the body would end the line early, and the child would see two broken messages.
	if len(body) == 0 || bytes.IndexByte(body, '\n') >= 0 {
		return nil, transports.NotWritten, &transports.Error{Class: messages.ClassInvalid, Text: "the message is empty or holds a newline"}
	}
	m = queuedMessages.Get().(*queuedMessage)
	m.queue, m.body, m.senderWaits = o, body, waits

	o.mu.Lock()
	if o.failed != nil {
		err := o.failed
		o.mu.Unlock()
		m.returnToPool()
		return nil, transports.NotWritten, err
	}
	o.queue = append(o.queue, m)
	if !o.busy && !o.closed {
		o.busy = true
		if Nonblocking && !o.lastWasBatch {
			o.writeBatch(o.Writer.tryWrite)
		}
		if o.busy = len(o.queue) > 0 && !o.closed; o.busy {
			o.writers.Add(1)
			go o.writeLoop()
		}
	}
	settled := m.completed
	o.mu.Unlock()
	if !settled {
		return m, transports.MaybeWritten, nil
	}
	d, err = m.Leave()
	return nil, d, err
}

// Failed implements PendingPost. The channel gets its token in completeDelivery.
func (m *queuedMessage) Failed() <-chan struct{} { return m.done }

// Leave implements PendingPost. A message that was written goes back to the pool; the sender must not touch it afterwards.
func (m *queuedMessage) Leave() (transports.Delivery, error) {
	m.queue.mu.Lock()
	if !m.completed {
		defer m.queue.mu.Unlock()
		return m.queue.withdrawMessage(m), nil
	}
	delivery, err := m.delivery, m.err
	m.queue.mu.Unlock()
	if err == nil {
		m.returnToPool()
		// A failed message is left to the collector, because a write in progress may still refer to it.
	}
	return delivery, err
}

// withdrawMessage takes back a message whose sender has left, if none of its bytes was written. Otherwise the rest must follow,
// or the next message would be unreadable: the queue keeps a copy of the body. The caller holds mu.
func (o *Queue) withdrawMessage(m *queuedMessage) transports.Delivery {
	m.abandoned = true
	if !m.writing && m.off == 0 {
		o.queue = slices.DeleteFunc(o.queue, func(q *queuedMessage) bool { return q == m })
		return transports.NotWritten
	}
	// The sender may use its memory again from here on.
	m.body = bytes.Clone(m.body)
	return transports.MaybeWritten
}

// writeLoop is the goroutine that writes until the queue is empty, or the pipe is closed.
func (o *Queue) writeLoop() {
	defer o.writers.Done()
	defer func() {
		if v := recover(); v != nil {
			o.FailAll(errs.PanicError(v))
			go o.OnBroken()
		}
	}()
	done := false
	o.Writer.writeLoop(func(write func([]byte) (int, error)) bool {
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
		// From here on, busy belongs to another sender.
		o.busy, done = false, true
		return true
	})
	// The file was closed while the loop waited for room.
	if !done {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.busy = false
		o.markBroken()
	}
}

// writeBatch makes one write of the front of the queue and reports whether another one may be tried at once. The caller holds mu,
// which writeBatch gives up during the write, so that senders can queue meanwhile.
func (o *Queue) writeBatch(write func([]byte) (int, error)) (more bool) {
	buf := pipeBuffers.Get().(*[]byte)
	defer pipeBuffers.Put(buf)
	size, count := o.fillBuffer(*buf)
	if size == 0 {
		return true // every sender has left
	}
	batch := o.queue[:count]
	n, err := o.writeUnlocked(write, (*buf)[:size])
	o.accountWritten(batch, n)
	if err != nil {
		o.markBroken()
	}
	return n > 0 && err == nil
}

// writeUnlocked gives up mu, which the caller holds, during a write. After a panic of write the caller holds mu as well, so that
// its deferred Unlock does not end the program.
func (o *Queue) writeUnlocked(write func([]byte) (int, error), buf []byte) (int, error) {
	o.mu.Unlock()
	defer o.mu.Lock()
	return write(buf)
}

// fillBuffer copies as much of the queue as fits into buf, and marks those messages as being written.
func (o *Queue) fillBuffer(buf []byte) (size, count int) {
	for _, m := range o.queue {
		if size == len(buf) || !Nonblocking && count > 0 {
			// A write that may wait (Windows) must not put more than one message in doubt.
			break
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

// accountWritten notes that the system has taken n bytes of the batch, which is the front of the queue, and completes the
// messages that are written whole. The caller holds mu.
func (o *Queue) accountWritten(batch []*queuedMessage, n int) {
	keep := o.queue[:0]
	for _, m := range batch {
		took := min(n, len(m.body)+1-m.off)
		m.off, n = m.off+took, n-took
		m.writing = false
		switch {
		case m.off > len(m.body):
			m.completeDelivery(transports.Written, nil)
		// It need not be written, and must not be: its sender has the result NotWritten or MaybeWritten already.
		case m.off == 0 && m.abandoned:
		default:
			keep = append(keep, m)
		}
	}
	keep = append(keep, o.queue[len(batch):]...)
	clear(o.queue[len(keep):])
	o.queue = keep
}

// markBroken is called when the pipe takes nothing any more. Queued messages wait on for FailAll, which knows how the child
// ended. The caller holds mu.
func (o *Queue) markBroken() {
	if !o.closed {
		o.closed = true
		go o.OnBroken()
	}
}

// FailAll completes every queued message with err, and refuses every later one. Only the first call counts.
func (o *Queue) FailAll(err *transports.Error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed != nil {
		return
	}
	o.failed, o.closed = err, true
	for _, m := range o.queue {
		if m.off > 0 || m.writing {
			m.completeDelivery(transports.MaybeWritten, err)
		} else {
			m.completeDelivery(transports.NotWritten, err)
		}
	}
	// A writing goroutine still looks at the front of the queue; it drops the rest itself when it sees closed.
	if !o.busy {
		clear(o.queue)
		o.queue = nil
	}
}

// completeDelivery sets the outcome once, and wakes a sender that waits for it. The caller holds mu.
func (m *queuedMessage) completeDelivery(d transports.Delivery, err error) {
	if m.completed || m.abandoned {
		return
	}
	m.completed, m.delivery, m.err = true, d, err
	if m.senderWaits || err != nil {
		m.done <- struct{}{}
	}
}

// returnToPool makes a completed message ready for another Send. It takes out the token that its sender may not have read.
func (m *queuedMessage) returnToPool() {
	select {
	case <-m.done:
	default:
	}
	*m = queuedMessage{done: m.done}
	queuedMessages.Put(m)
}
