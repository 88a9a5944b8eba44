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
	inner   transports.Conn
	control *Control
	flow    *Flow
	sink    transports.Sink
	waits   bool // Send of a request returns when its answer has been given
	noise   atomic.Int64
	silent  atomic.Bool // half-open

	gate  sync.RWMutex
	down  bool
	cause atomic.Pointer[transports.Error] // of an end that a fault made

	ended    chan struct{} // closed with down
	released chan struct{}
	queue    queue
	kick     chan struct{}

	mu sync.Mutex
	// withheld are the requests whose answers have come and were not given yet.
	withheld map[int64]chan struct{}
}

var _ transports.Conn = (*conn)(nil)

// Send implements transports.Conn.
func (c *conn) Send(ctx context.Context, m transports.Message) (transports.Delivery, error) {
	if cause := c.cause.Load(); cause != nil {
		return transports.NotWritten, cause
	}
	if c.control.Passive() && !c.silent.Load() {
		return c.send(ctx, m)
	}
	if ctx.Err() != nil {
		return transports.NotWritten, contextError(ctx, "sending")
	}
	if c.silent.Load() {
		return c.stuck(ctx)
	}
	fates := c.flow.ToServer("", m.Body)
	c.poke()             // a message can begin something that goes by the clock
	if len(fates) != 1 { // nil; or a batch, which no client of ours sends
		return c.send(ctx, m)
	}
	fate := fates[0]
	// Nothing is given to the sink in this goroutine: it may be the sink's own.
	for _, b := range fate.Late {
		c.soon(fate.After, func() { c.give(func() { c.sink.Message(b) }) })
	}
	if len(fate.Late) == 0 && fate.After > 0 && !sleep(ctx, c.ended, fate.After) {
		return c.notSent(ctx)
	}
	for fate.Block != "" && c.flow.Active(fate.Block) {
		if !sleep(ctx, c.ended, look) {
			return c.notSent(ctx)
		}
	}
	switch {
	case fate.Refuse != nil && fate.Refuse.Status > 0:
		return transports.NotWritten, fate.Refuse.error()
	case fate.End != nil && !fate.Last:
		c.endSoon(fate.End)
		return transports.NotWritten, c.cause.Load()
	case fate.Drop && m.ID == 0 && m.Method == "notifications/cancelled":
		// Whoever cancels does not wait for it.
		return transports.NotWritten, &transports.Error{Class: messages.ClassNetwork, Text: "the cancellation was held back (a fault that was asked for)"}
	case fate.Drop:
		return c.stuck(ctx)
	}
	m.Body = fate.Body
	if fate.End != nil {
		defer c.endSoon(fate.End)
	}
	return c.send(ctx, m)
}

// send sends, and waits for the answer if it was held back and the kind wants that.
func (c *conn) send(ctx context.Context, m transports.Message) (transports.Delivery, error) {
	d, err := c.inner.Send(ctx, m)
	if err != nil {
		if cause := c.cause.Load(); cause != nil {
			return d, cause
		}
		return d, err
	}
	if !c.waits || m.ID == 0 {
		return d, nil
	}
	c.mu.Lock()
	given := c.withheld[m.ID]
	c.mu.Unlock()
	if given == nil {
		return d, nil
	}
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.withheld, m.ID)
	}()
	select {
	case <-given:
		return d, nil
	case <-ctx.Done():
		return d, contextError(ctx, "waiting for the answer")
	case <-c.ended:
		if cause := c.cause.Load(); cause != nil {
			return d, cause
		}
		return d, &transports.Error{Class: messages.ClassCanceled, Text: "the connection was closed"}
	}
}

// stuck is a message that nobody takes.
func (c *conn) stuck(ctx context.Context) (transports.Delivery, error) {
	select {
	case <-ctx.Done():
	case <-c.ended:
	}
	return c.notSent(ctx)
}

func (c *conn) notSent(ctx context.Context) (transports.Delivery, error) {
	if cause := c.cause.Load(); cause != nil {
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

// incoming is the sink that the wrapped connection is given.
type incoming conn

var _ transports.Sink = (*incoming)(nil)

// Message implements transports.Sink.
func (i *incoming) Message(body []byte) {
	c := (*conn)(i)
	if c.silent.Load() {
		return
	}
	if c.control.Passive() {
		c.give(func() { c.sink.Message(body) })
		return
	}
	fates := c.flow.ToClient("", body)
	if fates == nil {
		c.give(func() { c.sink.Message(body) })
		return
	}
	for _, f := range fates {
		c.arrive(f)
	}
}

// arrive performs the fate of what the server sent.
func (c *conn) arrive(f Fate) {
	for _, b := range f.Before {
		c.give(func() { c.sink.Message(b) })
	}
	var id int64
	if m, ok := read(f.Body); ok && m.answer {
		_, _ = fmt.Sscan(m.id, &id) // ours are numbers
	}
	switch {
	case f.End != nil && !f.Last:
		c.end(f.End)
		return
	case f.Drop:
		c.hold(id)
		return
	case f.Block != "":
		c.held(f, id)
	case f.Big > 0:
		head := bytes.Clone(f.Body[:min(len(f.Body), 4<<10)])
		c.later(f.After, id, func() { c.sink.Oversized(head, bytes.Repeat([]byte{' '}, 4<<10), f.Big) })
	default:
		for range f.Copies {
			b := bytes.Clone(f.Body)
			c.later(f.After, 0, func() { c.sink.Message(b) })
		}
		c.later(f.After, id, func() { c.sink.Message(f.Body) })
	}
	if f.End != nil {
		if f.After > 0 {
			c.soon(f.After, func() { c.end(f.End) })
			return
		}
		c.end(f.End)
	}
}

// held gives a message when the fault that blocks it is over. Its place in the queue keeps the order.
func (c *conn) held(f Fate, id int64) {
	given := c.hold(id)
	var again func()
	again = func() {
		if c.flow.Active(f.Block) {
			c.soon(look, again)
			return
		}
		c.give(func() { c.sink.Message(f.Body) })
		if given != nil {
			close(given)
		}
	}
	c.soon(look, again)
}

// later gives something to the sink after a time, in this goroutine if that is now. id is the request that it answers.
func (c *conn) later(after time.Duration, id int64, do func()) {
	if after <= 0 {
		c.give(do)
		return
	}
	given := c.hold(id)
	c.soon(after, func() {
		c.give(do)
		if given != nil {
			close(given)
		}
	})
}

// soon lets the goroutine of the connection do something after a time.
func (c *conn) soon(after time.Duration, do func()) {
	c.queue.add(time.Now().Add(after), do)
	c.poke()
}

// hold notes that the answer to a request has come and is not given.
func (c *conn) hold(id int64) chan struct{} {
	if id == 0 || !c.waits {
		return nil
	}
	given := make(chan struct{})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.withheld[id] = given
	return given
}

// Oversized implements transports.Sink.
func (i *incoming) Oversized(head, tail []byte, size int64) {
	c := (*conn)(i)
	c.give(func() { c.sink.Oversized(head, tail, size) })
}

// Noise implements transports.Sink.
func (i *incoming) Noise(line []byte) {
	c := (*conn)(i)
	c.give(func() { c.sink.Noise(line) })
}

// Down implements transports.Sink. What was delayed is given first: the peer delivered it before its end.
func (i *incoming) Down(err error) {
	c := (*conn)(i)
	do, _ := c.queue.due(time.Time{}, true)
	for _, f := range do {
		f()
	}
	c.finish(err)
}

// give calls the sink, unless Down was called.
func (c *conn) give(do func()) {
	c.gate.RLock()
	defer c.gate.RUnlock()
	if !c.down {
		do()
	}
}

func (c *conn) finish(err error) {
	c.gate.Lock()
	defer c.gate.Unlock()
	if c.down {
		return
	}
	c.down = true
	defer close(c.ended)
	c.sink.Down(err)
}

// end is the end of the server's side that a fault makes.
func (c *conn) end(e *End) {
	cause := e.cause()
	if c.cause.CompareAndSwap(nil, cause) {
		c.finish(cause)
	}
}

// endSoon is end for a goroutine that may be the sink's own: Down is called by another one.
func (c *conn) endSoon(e *End) {
	cause := e.cause()
	if c.cause.CompareAndSwap(nil, cause) {
		c.soon(0, func() { c.finish(cause) })
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
			if c.cause.CompareAndSwap(nil, e) {
				c.finish(e)
			}
		}
	}()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		changed := c.control.Changed()
		do, next := c.queue.due(time.Now(), false)
		for _, f := range do {
			f()
		}
		events, wake := c.flow.Tick()
		for _, e := range events {
			c.happen(e)
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
		case <-c.kick:
		case <-changed:
		case <-c.ended:
			return
		}
	}
}

// poke lets run look again.
func (c *conn) poke() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

func (c *conn) happen(e Event) {
	switch e.Do {
	case Deliver:
		if !c.silent.Load() {
			c.give(func() { c.sink.Message(e.Body) })
		}
	case Noise:
		c.noise.Add(1)
		c.give(func() { c.sink.Noise(e.Body) })
	case Ending:
		c.end(e.End)
	case ForgetSession:
		c.end(&End{Session: true})
	case HalfOpen:
		c.silent.Store(true)
	case Raw, Stderr, Stop, Continue, Cut, ForgetToken: // refused by Control: they are not done inside of a program
	}
}
