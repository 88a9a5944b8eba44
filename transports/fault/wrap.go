package fault

import (
	"context"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// Wrap returns a transport on whose connections the rules of c act. Each server's transport should get the control
// that is [Control.Named] after it. A connection costs one goroutine, which waits.
//
// A rule can also name the method "dial", the opening of a connection.
func Wrap(t transports.Transport, c *Control) transports.Transport { return &wrappedTransport{t, c} }

// wrappedTransport is a transport with faults.
type wrappedTransport struct {
	inner   transports.Transport
	control *Control
}

// Kind implements transports.Transport.
func (w *wrappedTransport) Kind() messages.TransportKind { return w.inner.Kind() }

// Dial implements transports.Transport. Faults of "dial" come before the real connection is opened.
func (w *wrappedTransport) Dial(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	flow := w.control.Flow()
	// A rule that is added during the dial acts on the connection, and not on the dial any more.
	if !w.control.Passive() {
		if err := w.applyDialFaults(ctx, flow); err != nil {
			return nil, err
		}
	}
	c := &conn{
		control: w.control, flow: flow, sink: sink, ended: make(chan struct{}), released: make(chan struct{}),
		wake: make(chan struct{}, 1), heldAnswers: map[int64]chan struct{}{},
	}
	// With these transports Send of a request returns with its answer.
	c.waitsForAnswer = w.inner.Kind().PairsAnswers()
	// The inner transport looks for this interface to decide whether it reports reopened streams, so only a sink that
	// has it may get it.
	var wrappedSink transports.Sink = (*connSink)(c)
	if r, ok := sink.(transports.StreamReopenSink); ok {
		wrappedSink = &resumingSink{(*connSink)(c), r}
	}
	inner, err := w.inner.Dial(ctx, wrappedSink)
	if err != nil {
		// The inner transport promises no call after its error; delayed ones of this package must not come either.
		c.sinkMu.Lock()
		c.down = true // Dial failed, so the sink must get no call any more
		c.sinkMu.Unlock()
		return nil, err
	}
	c.inner = inner
	go c.run()
	return c, nil
}

// applyDialFaults performs the rules for "dial". An error is that of the whole Dial.
func (w *wrappedTransport) applyDialFaults(ctx context.Context, flow *Flow) error {
	if ctx.Err() != nil {
		return contextError(ctx, "connecting")
	}
	// The order is that of Send: delay, block, then the end of the attempt.
	disposition := flow.Exchange("dial")
	if disposition.After > 0 && !sleep(ctx, nil, disposition.After) {
		return contextError(ctx, "connecting")
	}
	for disposition.Block != "" && flow.Active(disposition.Block) {
		if !sleep(ctx, nil, pollInterval) {
			return contextError(ctx, "connecting")
		}
	}
	switch {
	case disposition.Drop:
		<-ctx.Done() // a dropped dial hangs until its caller gives up
		return contextError(ctx, "connecting")
	case disposition.End != nil:
		return disposition.End.transportError()
	case disposition.Refuse != nil && disposition.Refuse.Status == 0:
		// The table puts the kind of failure into Body.
		switch disposition.Refuse.Body {
		case "missing":
			return &transports.Error{Class: messages.ClassMissing, Text: "the command is not there (a fault that was asked for)"}
		case "config":
			return &transports.Error{Class: messages.ClassConfig, Text: "the command may not be run (a fault that was asked for)"}
		case "exhausted":
			return &transports.Error{Class: messages.ClassExhausted, Text: "too many open files (a fault that was asked for)"}
		}
		return &transports.Error{Class: messages.ClassNetwork, Text: "the connection was refused (a fault that was asked for)"}
	}
	return nil
}

// pollInterval is the time between two looks at a rule whose end something waits for. Rules change rarely and waits
// are long, so a signal for each rule would not pay.
const pollInterval = 20 * time.Millisecond

// sleep waits for d and reports true; false if ctx or the connection ended first. A nil ended is never closed.
func sleep(ctx context.Context, ended <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-ended:
	}
	return false
}

// contextError returns the error of an action that ctx ended.
func contextError(ctx context.Context, action string) *transports.Error {
	// The two ends have classes of their own: a timeout may be retried, a cancellation is the caller's wish.
	if err := ctx.Err(); err == context.DeadlineExceeded {
		return &transports.Error{Class: messages.ClassTimeout, Text: action + " took too long", Err: err}
	}
	return &transports.Error{Class: messages.ClassCanceled, Text: action + " was canceled", Err: ctx.Err()}
}

// transportError returns the error that a transport would report for this end of a server.
func (e *End) transportError() *transports.Error {
	switch {
	// The classes are those that a session translates into outcomes: see transports.Error.
	case e.Session:
		return &transports.Error{Class: messages.ClassSession, Text: "the server does not know the session any more (a fault that was asked for)"}
	case e.Reset:
		return &transports.Error{Class: messages.ClassNetwork, Text: "the connection was reset by the peer (a fault that was asked for)"}
	}
	return &transports.Error{Class: messages.ClassExited, Text: "the server ended (a fault that was asked for)"}
}

// transportError returns the error that a transport would report for this HTTP answer.
func (r *Refusal) transportError() *transports.Error {
	e := &transports.Error{Class: messages.ClassNetwork, Status: r.Status, Body: []byte(r.Body), RetryAfter: r.RetryAfter}
	switch {
	case r.Status == 401:
		e.Class, e.Text = messages.ClassUnauthorized, "the server refused the credentials (a fault that was asked for)"
		e.Challenge = &messages.Challenge{} // a challenge without content: the caller must have one to act on
	case r.Status == 403:
		e.Class, e.Text = messages.ClassForbidden, "the server refused this request (a fault that was asked for)"
		e.Challenge = &messages.Challenge{}
	case r.Status == 429 || r.RetryAfter > 0:
		e.Class, e.Text = messages.ClassThrottled, "the server has too many requests (a fault that was asked for)"
	default:
		e.Text = "the server answered with an error (a fault that was asked for)"
	}
	return e
}

// resumingSink is a connSink that also passes the report of reopened streams to its sink.
type resumingSink struct {
	*connSink
	resumer transports.StreamReopenSink
}

// StreamReopened implements transports.StreamReopenSink.
func (r *resumingSink) StreamReopened() { (*conn)(r.connSink).callSink(r.resumer.StreamReopened) }

var _ transports.StreamReopenSink = (*resumingSink)(nil)

// deliveryQueue holds the deliveries of a connection that are due later, or that another goroutine must do. Equal
// times keep their order.
type deliveryQueue struct {
	mu sync.Mutex
	// items are sorted by time. Their number is bounded only by the messages of the connection during the longest
	// delay.
	items []queuedCall // sorted by time
}

// A queuedCall is one delivery and its time.
type queuedCall struct {
	at time.Time
	do func()
}

// add puts a delivery behind all that are due at the same time or earlier. New ones are mostly the latest, so it
// searches from the end.
func (q *deliveryQueue) add(at time.Time, do func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	// Insertion keeps items sorted, and equal times in the order in which they were added.
	i := len(q.items)
	for i > 0 && q.items[i-1].at.After(at) {
		i--
	}
	q.items = append(q.items, queuedCall{})
	copy(q.items[i+1:], q.items[i:])
	q.items[i] = queuedCall{at, do}
}

// takeDue removes and returns the deliveries that are due at now, and the time of the next one, zero if there is
// none. all takes everything.
func (q *deliveryQueue) takeDue(now time.Time, all bool) (do []func(), next time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for n < len(q.items) && (all || !q.items[n].at.After(now)) {
		do = append(do, q.items[n].do)
		n++
	}
	q.items = append(q.items[:0:0], q.items[n:]...)
	if len(q.items) > 0 {
		next = q.items[0].at
	}
	return do, next
}
