package fault

import (
	"context"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// Wrap lets a control's rules act on every connection of a transport. Give each server's transport the control that is
// Named after it. A connection costs one goroutine, which waits.
//
// A rule can be about "dial" as well, the opening of a connection.
func Wrap(t transports.Transport, c *Control) transports.Transport { return &wrapped{t, c} }

type wrapped struct {
	inner   transports.Transport
	control *Control
}

// Kind implements transports.Transport.
func (w *wrapped) Kind() messages.TransportKind { return w.inner.Kind() }

// Dial implements transports.Transport.
func (w *wrapped) Dial(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	flow := w.control.Flow()
	if !w.control.Passive() {
		if err := w.dialing(ctx, flow); err != nil {
			return nil, err
		}
	}
	c := &conn{
		control: w.control, flow: flow, sink: sink, ended: make(chan struct{}), released: make(chan struct{}),
		kick: make(chan struct{}, 1), withheld: map[int64]chan struct{}{},
	}
	switch w.inner.Kind() {
	case messages.HTTP, messages.ClaudeAIProxy:
		c.waits = true
	case messages.Stdio, messages.SSE, messages.WebSocket, messages.SDK:
	}
	var towards transports.Sink = (*incoming)(c)
	if r, ok := sink.(transports.Resumer); ok {
		towards = &resuming{(*incoming)(c), r}
	}
	inner, err := w.inner.Dial(ctx, towards)
	if err != nil {
		c.gate.Lock()
		c.down = true // nothing is told of a connection that there was not
		c.gate.Unlock()
		return nil, err
	}
	c.inner = inner
	go c.run()
	return c, nil
}

// dialing is what rules do to the opening of a connection.
func (w *wrapped) dialing(ctx context.Context, flow *Flow) error {
	if ctx.Err() != nil {
		return contextError(ctx, "connecting")
	}
	fate := flow.Exchange("dial")
	if fate.After > 0 && !sleep(ctx, nil, fate.After) {
		return contextError(ctx, "connecting")
	}
	for fate.Block != "" && flow.Active(fate.Block) {
		if !sleep(ctx, nil, look) {
			return contextError(ctx, "connecting")
		}
	}
	switch {
	case fate.Drop:
		<-ctx.Done()
		return contextError(ctx, "connecting")
	case fate.End != nil:
		return fate.End.cause()
	case fate.Refuse != nil && fate.Refuse.Status == 0:
		switch fate.Refuse.Body {
		case "missing":
			return &transports.Error{Class: messages.ClassMissing, Text: "the command is not there (a fault that was asked for)"}
		case "exhausted":
			return &transports.Error{Class: messages.ClassExhausted, Text: "too many open files (a fault that was asked for)"}
		}
		return &transports.Error{Class: messages.ClassNetwork, Text: "the connection was refused (a fault that was asked for)"}
	}
	return nil
}

// look is how often something is looked at that ends by a rule.
const look = 20 * time.Millisecond

// sleep reports false if ctx or the connection ended first.
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

func contextError(ctx context.Context, doing string) *transports.Error {
	if err := ctx.Err(); err == context.DeadlineExceeded {
		return &transports.Error{Class: messages.ClassTimeout, Text: doing + " took too long", Err: err}
	}
	return &transports.Error{Class: messages.ClassCanceled, Text: doing + " was canceled", Err: ctx.Err()}
}

// cause is what the transport would say of an end.
func (e *End) cause() *transports.Error {
	switch {
	case e.Session:
		return &transports.Error{Class: messages.ClassSession, Text: "the server does not know the session any more (a fault that was asked for)"}
	case e.Reset:
		return &transports.Error{Class: messages.ClassNetwork, Text: "the connection was reset by the peer (a fault that was asked for)"}
	}
	return &transports.Error{Class: messages.ClassExited, Text: "the server ended (a fault that was asked for)"}
}

// refusal is what the transport would say of a status.
func (r *Refusal) error() *transports.Error {
	e := &transports.Error{Class: messages.ClassNetwork, Status: r.Status, Body: []byte(r.Body), RetryAfter: r.RetryAfter}
	switch {
	case r.Status == 401:
		e.Class, e.Text = messages.ClassUnauthorized, "the server refused the credentials (a fault that was asked for)"
		e.Challenge = &messages.Challenge{}
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

// resuming is a sink that passes on that streams were opened again.
type resuming struct {
	*incoming
	to transports.Resumer
}

// StreamReopened implements transports.Resumer.
func (r *resuming) StreamReopened() { (*conn)(r.incoming).give(r.to.StreamReopened) }

var _ transports.Resumer = (*resuming)(nil)

// queue holds what is given to the client later, or by another goroutine. Equal times keep their order.
type queue struct {
	mu    sync.Mutex
	items []queued
}

type queued struct {
	at time.Time
	do func()
}

func (q *queue) add(at time.Time, do func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := len(q.items)
	for i > 0 && q.items[i-1].at.After(at) {
		i--
	}
	q.items = append(q.items, queued{})
	copy(q.items[i+1:], q.items[i:])
	q.items[i] = queued{at, do}
}

// due takes what is due, and says when the next one is. all takes everything.
func (q *queue) due(now time.Time, all bool) (do []func(), next time.Time) {
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
