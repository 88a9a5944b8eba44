package fault

import (
	"bytes"
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// conn is one connection with faults.
//
// Everything that goes to the sink passes the gate as a reader; Down passes it as a writer, once, so that it is last. An
// end that a fault makes calls Down first and closes the connection behind it.
type conn struct {
	inner          transports.Conn
	control        *Control
	flow           *Flow
	sink           transports.Sink
	waitsForAnswer bool // Send of a request returns when its answer has been given
	noise          atomic.Int64
	halfOpen       atomic.Bool // half-open

	sinkMu   sync.RWMutex
	down     bool
	endCause atomic.Pointer[transports.Error] // of an end that a fault made

	ended    chan struct{} // closed with down
	released chan struct{}
	queue    deliveryQueue
	wake     chan struct{}

	mu sync.Mutex
	// heldAnswers are the requests whose answers have come and were not given yet.
	heldAnswers map[int64]chan struct{}
}

var _ transports.Conn = (*conn)(nil)

// Send implements transports.Conn.
func (c *conn) Send(ctx context.Context, m transports.Message) (transports.Delivery, error) {
	if cause := c.endCause.Load(); cause != nil {
		return transports.NotWritten, cause
	}
	if c.control.Passive() && !c.halfOpen.Load() {
		return c.sendAndAwait(ctx, m)
	}
	if ctx.Err() != nil {
		return transports.NotWritten, contextError(ctx, "sending")
	}
	if c.halfOpen.Load() {
		return c.blockUntilEnd(ctx)
	}
	dispositions := c.flow.ToServer("", m.Body)
	c.wakeLoop()                // a message can begin something that goes by the clock
	if len(dispositions) != 1 { // nil; or a batch, which no client of ours sends
		return c.sendAndAwait(ctx, m)
	}
	disposition := dispositions[0]
	// Nothing is given to the sink in this goroutine: it may be the sink's own.
	for _, b := range disposition.Late {
		c.scheduleAfter(disposition.After, func() { c.callSink(func() { c.sink.Message(b) }) })
	}
	if len(disposition.Late) == 0 && disposition.After > 0 && !sleep(ctx, c.ended, disposition.After) {
		return c.notSentError(ctx)
	}
	for disposition.Block != "" && c.flow.Active(disposition.Block) {
		if !sleep(ctx, c.ended, pollInterval) {
			return c.notSentError(ctx)
		}
	}
	switch {
	case disposition.Refuse != nil && disposition.Refuse.Status > 0:
		return transports.NotWritten, disposition.Refuse.transportError()
	case disposition.End != nil && !disposition.Last:
		c.scheduleEnd(disposition.End)
		return transports.NotWritten, c.endCause.Load()
	case disposition.Drop && m.ID == 0 && m.Method == "notifications/cancelled":
		// Whoever cancels does not wait for it.
		return transports.NotWritten, &transports.Error{Class: messages.ClassNetwork, Text: "the cancellation was held back (a fault that was asked for)"}
	case disposition.Drop:
		return c.blockUntilEnd(ctx)
	}
	m.Body = disposition.Body
	if disposition.End != nil {
		defer c.scheduleEnd(disposition.End)
	}
	return c.sendAndAwait(ctx, m)
}

// sendAndAwait sends, and waits for the answer if it was held back and the kind wants that.
func (c *conn) sendAndAwait(ctx context.Context, m transports.Message) (transports.Delivery, error) {
	d, err := c.inner.Send(ctx, m)
	if err != nil {
		if cause := c.endCause.Load(); cause != nil {
			return d, cause
		}
		return d, err
	}
	if !c.waitsForAnswer || m.ID == 0 {
		return d, nil
	}
	c.mu.Lock()
	delivered := c.heldAnswers[m.ID]
	c.mu.Unlock()
	if delivered == nil {
		return d, nil
	}
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.heldAnswers, m.ID)
	}()
	select {
	case <-delivered:
		return d, nil
	case <-ctx.Done():
		return d, contextError(ctx, "waiting for the answer")
	case <-c.ended:
		if cause := c.endCause.Load(); cause != nil {
			return d, cause
		}
		return d, &transports.Error{Class: messages.ClassCanceled, Text: "the connection was closed"}
	}
}

// blockUntilEnd is a message that nobody takes.
func (c *conn) blockUntilEnd(ctx context.Context) (transports.Delivery, error) {
	select {
	case <-ctx.Done():
	case <-c.ended:
	}
	return c.notSentError(ctx)
}

func (c *conn) notSentError(ctx context.Context) (transports.Delivery, error) {
	if cause := c.endCause.Load(); cause != nil {
		return transports.NotWritten, cause
	}
	if ctx.Err() != nil {
		return transports.NotWritten, contextError(ctx, "sending")
	}
	return transports.NotWritten, &transports.Error{Class: messages.ClassCanceled, Text: "the connection was closed"}
}

// Negotiated implements transports.Conn.
func (c *conn) Negotiated(version string) { c.inner.Negotiated(version) }

// Close implements transports.Conn.
func (c *conn) Close(ctx context.Context) error {
	if err := c.inner.Close(ctx); err != nil {
		return err
	}
	select {
	case <-c.released:
		return nil
	case <-ctx.Done():
		select {
		case <-c.released:
			return nil
		default:
		}
		return contextError(ctx, "closing the connection")
	}
}

// Released implements transports.Conn.
func (c *conn) Released() <-chan struct{} { return c.released }

// Info implements transports.Conn.
func (c *conn) Info() transports.Info {
	i := c.inner.Info()
	i.Noise += c.noise.Load()
	return i
}

// connSink is the sink that the wrapped connection is given.
type connSink conn

var _ transports.Sink = (*connSink)(nil)

// Message implements transports.Sink.
func (i *connSink) Message(body []byte) {
	c := (*conn)(i)
	if c.halfOpen.Load() {
		return
	}
	if c.control.Passive() {
		c.callSink(func() { c.sink.Message(body) })
		return
	}
	dispositions := c.flow.ToClient("", body)
	if dispositions == nil {
		c.callSink(func() { c.sink.Message(body) })
		return
	}
	for _, f := range dispositions {
		c.applyDisposition(f)
	}
}

// applyDisposition performs the fate of what the server sent.
func (c *conn) applyDisposition(f Disposition) {
	for _, b := range f.Before {
		c.callSink(func() { c.sink.Message(b) })
	}
	var id int64
	if m, ok := readMessage(f.Body); ok && m.answer {
		_, _ = fmt.Sscan(m.id, &id) // ours are numbers
	}
	switch {
	case f.End != nil && !f.Last:
		c.endByFault(f.End)
		return
	case f.Drop:
		c.holdAnswer(id)
		return
	case f.Block != "":
		c.deliverUnblocked(f, id)
	case f.Big > 0:
		head := bytes.Clone(f.Body[:min(len(f.Body), 4<<10)])
		c.deliverAfter(f.After, id, func() { c.sink.Oversized(head, bytes.Repeat([]byte{' '}, 4<<10), f.Big) })
	default:
		for range f.Copies {
			b := bytes.Clone(f.Body)
			c.deliverAfter(f.After, 0, func() { c.sink.Message(b) })
		}
		c.deliverAfter(f.After, id, func() { c.sink.Message(f.Body) })
	}
	if f.End != nil {
		if f.After > 0 {
			c.scheduleAfter(f.After, func() { c.endByFault(f.End) })
			return
		}
		c.endByFault(f.End)
	}
}

// deliverUnblocked gives a message when the fault that blocks it is over. Its place in the queue keeps the order.
func (c *conn) deliverUnblocked(f Disposition, id int64) {
	delivered := c.holdAnswer(id)
	var retry func()
	retry = func() {
		if c.flow.Active(f.Block) {
			c.scheduleAfter(pollInterval, retry)
			return
		}
		c.callSink(func() { c.sink.Message(f.Body) })
		if delivered != nil {
			close(delivered)
		}
	}
	c.scheduleAfter(pollInterval, retry)
}

// deliverAfter gives something to the sink after a time, in this goroutine if that is now. id is the request that it answers.
func (c *conn) deliverAfter(delay time.Duration, id int64, do func()) {
	if delay <= 0 {
		c.callSink(do)
		return
	}
	delivered := c.holdAnswer(id)
	c.scheduleAfter(delay, func() {
		c.callSink(do)
		if delivered != nil {
			close(delivered)
		}
	})
}

// scheduleAfter lets the goroutine of the connection do something after a time.
func (c *conn) scheduleAfter(delay time.Duration, do func()) {
	c.queue.add(time.Now().Add(delay), do)
	c.wakeLoop()
}

// holdAnswer notes that the answer to a request has come and is not given.
func (c *conn) holdAnswer(id int64) chan struct{} {
	if id == 0 || !c.waitsForAnswer {
		return nil
	}
	delivered := make(chan struct{})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heldAnswers[id] = delivered
	return delivered
}

// Oversized implements transports.Sink.
func (i *connSink) Oversized(head, tail []byte, size int64) {
	c := (*conn)(i)
	c.callSink(func() { c.sink.Oversized(head, tail, size) })
}

// Noise implements transports.Sink.
func (i *connSink) Noise(line []byte) {
	c := (*conn)(i)
	c.callSink(func() { c.sink.Noise(line) })
}

// Down implements transports.Sink. What was delayed is given first: the peer delivered it before its end.
func (i *connSink) Down(err error) {
	c := (*conn)(i)
	do, _ := c.queue.takeDue(time.Time{}, true)
	for _, f := range do {
		f()
	}
	c.reportDown(err)
}

// callSink calls the sink, unless Down was called.
func (c *conn) callSink(do func()) {
	c.sinkMu.RLock()
	defer c.sinkMu.RUnlock()
	if !c.down {
		do()
	}
}

func (c *conn) reportDown(err error) {
	c.sinkMu.Lock()
	defer c.sinkMu.Unlock()
	if c.down {
		return
	}
	c.down = true
	defer close(c.ended)
	c.sink.Down(err)
}

// endByFault is the end of the server's side that a fault makes.
func (c *conn) endByFault(e *End) {
	cause := e.transportError()
	if c.endCause.CompareAndSwap(nil, cause) {
		c.reportDown(cause)
	}
}

// scheduleEnd is end for a goroutine that may be the sink's own: Down is called by another one.
func (c *conn) scheduleEnd(e *End) {
	cause := e.transportError()
	if c.endCause.CompareAndSwap(nil, cause) {
		c.scheduleAfter(0, func() { c.reportDown(cause) })
	}
}

// run is the goroutine of the connection: it does what is due, and releases the connection when it has ended.
func (c *conn) run() {
	defer close(c.released)
	defer func() {
		_ = c.inner.Close(context.Background()) // it has its own bounds
		<-c.inner.Released()
	}()
	defer func() {
		// A sink that panics costs its connection, not the program.
		if v := recover(); v != nil {
			e := &transports.Error{Class: messages.ClassPanic, Text: "panic: " + messages.Line(fmt.Sprint(v), 200),
				Err: fmt.Errorf("panic: %v\n%s", v, debug.Stack())}
			if c.endCause.CompareAndSwap(nil, e) {
				c.reportDown(e)
			}
		}
	}()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		changed := c.control.Changed()
		do, next := c.queue.takeDue(time.Now(), false)
		for _, f := range do {
			f()
		}
		events, wake := c.flow.Tick()
		for _, e := range events {
			c.applyEvent(e)
		}
		if next.IsZero() || !wake.IsZero() && wake.Before(next) {
			next = wake
		}
		if next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(max(time.Until(next), 0))
		}
		select {
		case <-timer.C:
		case <-c.wake:
		case <-changed:
		case <-c.ended:
			return
		}
	}
}

// wakeLoop lets run look again.
func (c *conn) wakeLoop() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *conn) applyEvent(e Event) {
	switch e.Do {
	case Deliver:
		if !c.halfOpen.Load() {
			c.callSink(func() { c.sink.Message(e.Body) })
		}
	case Noise:
		c.noise.Add(1)
		c.callSink(func() { c.sink.Noise(e.Body) })
	case Ending:
		c.endByFault(e.End)
	case ForgetSession:
		c.endByFault(&End{Session: true})
	case HalfOpen:
		c.halfOpen.Store(true)
	case Raw, Stderr, Stop, Continue, Cut, ForgetToken: // refused by Control: they are not done inside of a program
	}
}
