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
// Every call of the sink takes sinkMu as a reader; Down takes it as a writer, once, so that it is the last. An end
// that a fault makes calls Down first and closes the inner connection behind it, in the goroutine run.
type conn struct {
	// inner is set before run begins and Dial returns; until then only the sink's side runs, which does not use it.
	inner          transports.Conn
	control        *Control
	flow           *Flow
	sink           transports.Sink
	waitsForAnswer bool         // HTTP: Send of a request returns when its answer has been delivered
	noise          atomic.Int64 // invented lines of noise, which Info adds to the real ones
	halfOpen       atomic.Bool  // the connection is silent in both directions from now on

	sinkMu   sync.RWMutex
	down     bool                             // guarded by sinkMu: Down was called
	endCause atomic.Pointer[transports.Error] // the reason of an end that a fault made; nil until then

	ended    chan struct{} // closed together with down
	released chan struct{} // closed when run has returned and inner is released
	queue    deliveryQueue // deliveries that wait for their time
	wake     chan struct{} // capacity 1: makes run look at the queue and the clock

	mu sync.Mutex
	// heldAnswers are the requests whose answers have come while their Send was under way and were not delivered, by
	// id. Each channel is closed at the delivery, and never for an answer that is dropped. Send takes its request out
	// when the inner Send returns, whatever that returns. mu guards the map.
	heldAnswers map[int64]chan struct{}
	// torn is the part of a message that has arrived and waits for its rest; tornBy is the rule that keeps what follows from
	// arriving, empty for none. mu guards both; isTorn is set while there is such a part, and spares other messages the lock.
	// See torn.go.
	torn   []byte
	tornBy string
	isTorn atomic.Bool
}

var _ transports.Conn = (*conn)(nil)

// Send implements transports.Conn. It performs the disposition of the message: delay, block, refuse, drop, or send,
// in this order.
func (c *conn) Send(ctx context.Context, m transports.Message) (transports.Delivery, error) {
	if cause := c.endCause.Load(); cause != nil {
		return transports.NotWritten, cause
	}
	// Without rules a message passes without being read. A half-open connection stays silent also after its rule was
	// removed.
	if c.control.Passive() && !c.halfOpen.Load() {
		return c.sendAndAwait(ctx, m)
	}
	// The contract of Send: after its context has ended nothing is sent.
	if ctx.Err() != nil {
		return transports.NotWritten, contextError(ctx, "sending")
	}
	if c.halfOpen.Load() {
		return c.blockUntilEnd(ctx)
	}
	dispositions := c.flow.ToServer("", m.Body)
	c.wakeLoop()                // a message can begin a series, which run must time
	if len(dispositions) != 1 { // nil: the message passes as it is; a batch, which no client of ours sends, passes too
		return c.sendAndAwait(ctx, m)
	}
	disposition := dispositions[0]
	// Held answers go to the sink on run's goroutine: this goroutine may be one of the sink's own, and the sink must
	// not be called from inside its own call of Send.
	for _, b := range disposition.Late {
		c.scheduleAfter(disposition.After, func() { c.callSink(func() { c.sink.Message(b) }) })
	}
	// A delay holds up the sender, as a slow network does. Late answers take the delay for themselves.
	if len(disposition.Late) == 0 && disposition.After > 0 && !sleep(ctx, c.ended, disposition.After) {
		return c.notSentError(ctx)
	}
	// There is no signal for the end of a rule, so the wait looks again every pollInterval.
	for disposition.Block != "" && c.flow.Active(disposition.Block) {
		if !sleep(ctx, c.ended, pollInterval) {
			return c.notSentError(ctx)
		}
	}
	switch {
	// The answer of an HTTP server that refused the request: the message did not reach the program behind it.
	case disposition.Refuse != nil && disposition.Refuse.Status > 0:
		return transports.NotWritten, disposition.Refuse.transportError()
	// An end before the message means that the message never arrived; an end after it (Last) is scheduled behind the
	// real Send.
	case disposition.End != nil && !disposition.Last:
		c.scheduleEnd(disposition.End)
		return transports.NotWritten, c.endCause.Load()
	case disposition.Drop && m.ID == 0 && m.Method == "notifications/cancelled":
		// A caller does not wait for its cancellation, so it gets an error at once instead of a wait to the end of
		// its context.
		return transports.NotWritten, &transports.Error{Class: messages.ClassNetwork, Text: "the cancellation was held back (a fault that was asked for)"}
	case disposition.Lost:
		return c.loseMessage(ctx, m)
	case disposition.Drop:
		return c.blockUntilEnd(ctx)
	}
	m.Body = disposition.Body
	// Deferred: the server must have the message before its end.
	if disposition.End != nil {
		defer c.scheduleEnd(disposition.End)
	}
	return c.sendAndAwait(ctx, m)
}

// sendAndAwait sends a message. Over HTTP it also waits until a held answer was delivered, because the contract of
// transports.Conn says so: Send of a request blocks until the answer has been given to the sink.
func (c *conn) sendAndAwait(ctx context.Context, m transports.Message) (transports.Delivery, error) {
	d, err := c.inner.Send(ctx, m)
	delivered := c.takeHeldAnswer(m.ID)
	if err != nil {
		// The fault ended the connection, so its reason is the true one and not the symptom of the inner connection.
		if cause := c.endCause.Load(); cause != nil {
			return d, cause
		}
		return d, err
	}
	if delivered == nil {
		return d, nil
	}
	// The answer arrived and is held: wait for its delivery, the caller, or the end.
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

// blockUntilEnd waits as a send does whose receiver does not read, until the caller gives up or the connection ends.
func (c *conn) blockUntilEnd(ctx context.Context) (transports.Delivery, error) {
	select {
	case <-ctx.Done():
	case <-c.ended:
	}
	return c.notSentError(ctx)
}

// notSentError returns the result of a Send whose message was not written: with the reason of the end, or of the
// caller's context.
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

// Close implements transports.Conn. The inner connection's end calls Down, which ends run; Close waits for both.
func (c *conn) Close(ctx context.Context) error {
	if err := c.inner.Close(ctx); err != nil {
		return err
	}
	select {
	case <-c.released:
		return nil
	case <-ctx.Done():
		// Both may be ready: success counts.
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

// connSink is the sink that the inner connection gets. It performs the dispositions of the server's messages.
type connSink conn

var (
	_ transports.RequestStreamSink = (*connSink)(nil)
	_ transports.DiscardSink       = (*connSink)(nil)
)

// Message implements transports.Sink.
func (i *connSink) Message(body []byte) { i.MessageOn(0, body) }

// MessageOn implements transports.RequestStreamSink; stream is 0 for a message that came on no request's stream. It calls the
// real sink in the reader's goroutine if nothing is to be delayed.
func (i *connSink) MessageOn(stream int64, body []byte) {
	c := (*conn)(i)
	if c.halfOpen.Load() {
		return
	}
	if c.control.Passive() {
		c.callSink(func() { c.passMessage(stream, body) })
		return
	}
	// From here on the body is read; a body that no rule changes still passes as the same bytes.
	dispositions := c.flow.ToClient("", body)
	if dispositions == nil && c.standsStill() != "" {
		dispositions = []Disposition{{Body: body}}
	}
	if dispositions == nil {
		c.callSink(func() { c.passMessage(stream, body) })
		return
	}
	// A batch becomes single messages; sessions accept both.
	for _, f := range dispositions {
		c.applyDisposition(stream, f)
	}
}

// passMessage gives a message to the sink, with the request on whose stream it came if the sink wants to know that.
func (c *conn) passMessage(stream int64, body []byte) {
	body = c.joinTorn(body)
	if r, ok := c.sink.(transports.RequestStreamSink); ok && stream != 0 {
		r.MessageOn(stream, body)
		return
	}
	c.sink.Message(body)
}

// applyDisposition performs the disposition of a message from the server, which came on that request's stream.
func (c *conn) applyDisposition(stream int64, f Disposition) {
	for _, b := range f.Before {
		c.callSink(func() { c.passMessage(stream, b) })
	}
	var id int64
	if m, ok := readMessage(f.Body); ok && m.answer {
		_, _ = fmt.Sscan(m.id, &id) // our clients use numbers as ids; any other id stays 0 and is not waited for
	}
	switch {
	// The server ends before this message: Send of the request then fails with the reason of the end.
	case f.End != nil && !f.Last:
		c.endByFault(f.End)
		return
	// A dropped answer keeps the Send of its request waiting, as a server does that never answers.
	case f.Drop:
		c.holdAnswer(id)
		return
	case f.Block != "":
		c.deliverUnblocked(stream, f, id)
	// Nothing gets past a message that stands half in the stream.
	case c.standsStill() != "":
		f.Block = c.standsStill()
		c.deliverUnblocked(stream, f, id)
	case f.Torn:
		c.holdAnswer(id)
		c.deliverAfter(f.After, 0, func() { c.tearMessage(f) })
	// From the head a session learns which call the answer belongs to.
	case f.Big > 0:
		// The oversized message is not built: the sink only gets what a transport would report of it.
		head := bytes.Clone(f.Body[:min(len(f.Body), 4<<10)])
		c.deliverAfter(f.After, id, func() { c.sink.Oversized(head, bytes.Repeat([]byte{' '}, 4<<10), f.Big) })
	default:
		// Each copy has bytes of its own, because the sink owns the body that it gets.
		for range f.Copies {
			b := bytes.Clone(f.Body)
			c.deliverAfter(f.After, 0, func() { c.passMessage(stream, b) })
		}
		c.deliverAfter(f.After, id, func() { c.passMessage(stream, f.Body) })
	}
	// The end follows the delivery, with the same delay.
	if f.End != nil {
		if f.After > 0 {
			c.scheduleAfter(f.After, func() { c.endByFault(f.End) })
			return
		}
		c.endByFault(f.End)
	}
}

// deliverUnblocked delivers a message when the rule that blocks it is no longer in force. Blocked messages keep their
// order, because each is queued again with the same interval.
func (c *conn) deliverUnblocked(stream int64, f Disposition, id int64) {
	delivered := c.holdAnswer(id)
	var retry func()
	retry = func() {
		if c.flow.Active(f.Block) {
			c.scheduleAfter(pollInterval, retry)
			return
		}
		c.callSink(func() { c.passMessage(stream, f.Body) })
		if delivered != nil {
			close(delivered)
		}
	}
	c.scheduleAfter(pollInterval, retry)
}

// deliverAfter delivers something to the sink after a delay, in this goroutine if there is none. id is the request
// that it answers, 0 for none: a Send that waits for the answer then waits for the delivery.
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

// scheduleAfter lets run do something after a delay.
func (c *conn) scheduleAfter(delay time.Duration, do func()) {
	c.queue.add(time.Now().Add(delay), do)
	c.wakeLoop()
}

// holdAnswer records that the answer to a request has come and is not delivered yet. The result must be closed at the
// delivery; it is nil if no Send waits for it.
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

// takeHeldAnswer removes a request from heldAnswers. It returns nil if its answer was not held back; messages that need
// no answer have id 0 and are never there.
func (c *conn) takeHeldAnswer(id int64) chan struct{} {
	if id == 0 || !c.waitsForAnswer {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delivered := c.heldAnswers[id]
	delete(c.heldAnswers, id)
	return delivered
}

// Oversized implements transports.Sink. It passes as it is: the message is too large to be read by rules.
func (i *connSink) Oversized(head, tail []byte, size int64) {
	c := (*conn)(i)
	c.callSink(func() { c.sink.Oversized(head, tail, size) })
}

// Discarded implements transports.DiscardSink. A sink that makes no difference gets Oversized.
func (i *connSink) Discarded(head, tail []byte, size int64) {
	c := (*conn)(i)
	c.callSink(func() {
		if d, ok := c.sink.(transports.DiscardSink); ok {
			d.Discarded(head, tail, size)
			return
		}
		c.sink.Oversized(head, tail, size)
	})
}

// Noise implements transports.Sink.
func (i *connSink) Noise(line []byte) {
	c := (*conn)(i)
	c.callSink(func() { c.sink.Noise(line) })
}

// Down implements transports.Sink. Delayed messages are delivered first, because the peer sent them before its end.
func (i *connSink) Down(err error) {
	c := (*conn)(i)
	do, _ := c.queue.takeDue(time.Time{}, true)
	for _, f := range do {
		f()
	}
	c.reportTorn()
	c.reportDown(err)
}

// callSink runs do, which calls the sink, unless Down was called. The lock keeps Down from running meanwhile.
func (c *conn) callSink(do func()) {
	c.sinkMu.RLock()
	defer c.sinkMu.RUnlock()
	if !c.down {
		do()
	}
}

// reportDown calls the sink's Down, once, after all calls of callSink have returned, and ends run.
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

// endByFault ends the connection as if the server had ended. The caller must not be inside a call of the sink.
func (c *conn) endByFault(e *End) {
	cause := e.transportError()
	if c.endCause.CompareAndSwap(nil, cause) {
		c.reportTorn()
		c.reportDown(cause)
	}
}

// scheduleEnd is endByFault for a goroutine that may be inside a call of the sink: run calls Down instead, because
// reportDown would wait for that call for ever.
func (c *conn) scheduleEnd(e *End) {
	cause := e.transportError()
	if c.endCause.CompareAndSwap(nil, cause) {
		c.scheduleAfter(0, func() { c.reportDown(cause) })
	}
}

// run is the goroutine of the connection: it performs whatever is due, and closes the inner connection when Down was
// called.
func (c *conn) run() {
	defer close(c.released)
	defer func() {
		_ = c.inner.Close(context.Background()) // the transport bounds its closing itself
		<-c.inner.Released()
	}()
	defer func() {
		// A panic of the sink ends its connection and not the program.
		if v := recover(); v != nil {
			e := &transports.Error{Class: messages.ClassPanic, Text: "panic: " + messages.Line(fmt.Sprint(v), 200),
				Err: fmt.Errorf("panic: %v\n%s", v, debug.Stack())}
			if c.endCause.CompareAndSwap(nil, e) {
				c.reportDown(e)
			}
		}
	}()
	// The duration does not matter: each round sets the timer, or stops it if nothing is due.
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		// Changed is read before the queue and the clock, so that a change in between is not missed.
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

// wakeLoop makes run look at the queue and the clock again. It does not block: one signal that waits is enough.
func (c *conn) wakeLoop() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// applyEvent performs one event of the clock.
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
	// Inside of a program the session's end is that of its connection.
	case ForgetSession:
		c.endByFault(&End{Session: true})
	// Nothing is closed: the client must find out by itself.
	case HalfOpen:
		c.halfOpen.Store(true)
	case Raw, Stderr, Stop, Continue, CutStreams, ForgetToken: // Control refuses the kinds with these events for Program
	}
}
