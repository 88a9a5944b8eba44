package sim

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// web is a connection made of exchanges: streamable HTTP, where a request's Send waits for its answer, and HTTP+SSE, where
// every message is only taken.
//
// Streamable HTTP opens nothing before the first message. A server that is refused, or gone, fails messages, and the
// connection itself ends only when the server does not know its session any more.
type web struct {
	wire

	deafened bool                   // under mu
	delivery transports.Delivery    // under mu: how far a message gets that the refused opening belongs to
	held     []*exchange            // under mu: what waits for the opening
	version  string                 // under mu: what was negotiated
	requests map[string][]*exchange // under mu: what waits for an answer, by id
	notices  []*exchange            // under mu: what waits to be taken
	// emptied is closed when nothing is under way any more; made when the session is lost.
	emptied chan struct{}
	isEmpty bool
	// stream is the one for what is said unasked (GET): it is opened after the handshake of the legacy era, and again
	// after it was cut.
	stream struct {
		open, again bool
		timer       *time.Timer
	}
}

func newWeb(t *Transport, sink transports.Sink) *web {
	return &web{wire: newWire(t, sink), requests: map[string][]*exchange{}}
}

// waits reports whether the Send of x returns only after its answer.
func (c *web) waits(x *exchange) bool { return c.kind != messages.SSE && x.id != "" }

// Send implements transports.Conn.
func (c *web) Send(ctx context.Context, m transports.Message) (transports.Delivery, error) {
	if ctx.Err() != nil {
		return transports.NotWritten, contextError(ctx, "sending to "+c.label)
	}
	if c.kind != messages.SSE && m.Version != "" && m.Method == "notifications/cancelled" {
		return transports.Written, nil // the end of the request's Send says it
	}
	x := newExchange(m)
	x.header = c.headers(m)
	c.mu.Lock()
	switch {
	case c.cause != nil:
		c.mu.Unlock()
		return transports.NotWritten, c.ended()
	case c.refusal != nil:
		defer c.mu.Unlock()
		return c.delivery, c.refusal
	}
	if c.waits(x) {
		c.requests[x.id] = append(c.requests[x.id], x)
	} else {
		c.notices = append(c.notices, x)
	}
	if x.begun = c.opened; !x.begun {
		c.held = append(c.held, x)
	}
	c.mu.Unlock()
	if x.begun {
		c.far.sent(c, x)
	}
	select {
	case <-x.done:
	case <-ctx.Done():
	case <-c.dead:
		if cause := c.ended(); cause.Class == messages.ClassSession { // those under way are given a moment
			select {
			case <-x.done:
			case <-ctx.Done():
			case <-c.over:
			}
		}
	}
	return c.result(ctx, x)
}

// result is what a Send returns that waits no longer.
func (c *web) result(ctx context.Context, x *exchange) (transports.Delivery, error) {
	c.mu.Lock()
	if x.settled {
		defer c.mu.Unlock()
		return x.delivery, x.err
	}
	c.drop(x)
	delivery := transports.NotWritten
	if x.begun {
		delivery = transports.MaybeWritten
	}
	x.settled = true
	dead := c.cause != nil
	c.mu.Unlock()
	if dead {
		return delivery, c.ended()
	}
	c.far.left(c, x)
	return delivery, contextError(ctx, "waiting for "+c.label)
}

// drop forgets an exchange. mu is held.
func (c *web) drop(x *exchange) {
	defer func() {
		if c.emptied != nil && len(c.requests) == 0 && len(c.notices) == 0 && !c.isEmpty {
			c.isEmpty = true
			close(c.emptied)
		}
	}()
	if x == nil {
		return
	}
	is := func(y *exchange) bool { return x == y }
	c.held = slices.DeleteFunc(c.held, is)
	c.notices = slices.DeleteFunc(c.notices, is)
	if rest := slices.DeleteFunc(c.requests[x.id], is); len(rest) > 0 {
		c.requests[x.id] = rest
	} else {
		delete(c.requests, x.id)
	}
}

// finish ends an exchange. mu is held.
func (c *web) finish(x *exchange, d transports.Delivery, err error) {
	c.drop(x)
	x.settle(d, err)
}

func (c *web) accept(session string) bool {
	if !c.answer(session, nil) {
		return false
	}
	c.flush()
	return true
}

// flush sends on what waited for the opening.
func (c *web) flush() {
	c.mu.Lock()
	held := c.held
	c.held = nil
	for _, x := range held {
		x.begun = true
	}
	c.mu.Unlock()
	for _, x := range held {
		c.far.sent(c, x)
	}
}

func (c *web) refuse(err *transports.Error, d transports.Delivery) bool {
	if !c.answer("", err) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.delivery = d
	c.fail(d, err)
	return true
}

// fail ends every exchange. mu is held.
func (c *web) fail(d transports.Delivery, err *transports.Error) {
	for _, id := range slices.Sorted(maps.Keys(c.requests)) {
		for _, x := range slices.Clone(c.requests[id]) {
			c.finish(x, c.reached(x, d), err)
		}
	}
	for _, x := range slices.Clone(c.notices) {
		c.finish(x, c.reached(x, d), err)
	}
}

// reached is how far x got if the far side can only say d of it.
func (c *web) reached(x *exchange, d transports.Delivery) transports.Delivery {
	if !x.begun && d == transports.MaybeWritten {
		return transports.NotWritten
	}
	return d
}

func (c *web) took(x *exchange) {
	if c.waits(x) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.deafened:
		return // when it hears again
	case x.again:
		x.again = false
		return // it was refused, and is on its way once more
	}
	c.finish(x, transports.Written, nil)
	if x.method == "notifications/initialized" && c.kind != messages.SSE {
		c.stream.open = true
	}
}

func (c *web) deny(reply string, d transports.Delivery, err *transports.Error) (denied bool) {
	c.mu.Lock()
	xs := c.requests[reply]
	if reply == "" || c.kind == messages.SSE {
		xs = c.notices
	}
	for _, x := range xs {
		if x.id == reply && !denied {
			if denied = true; !c.renewed(x, err) {
				c.finish(x, d, err)
			}
			break
		}
	}
	c.mu.Unlock()
	if err.Class == messages.ClassSession {
		c.lose(err)
	}
	return denied
}

// lose ends the connection because the server has forgotten its session. Messages under way have a second to be answered
// or refused by themselves.
func (c *web) lose(err *transports.Error) {
	if !c.end(err) {
		return
	}
	c.mu.Lock()
	c.stopStream()
	c.emptied = make(chan struct{})
	c.drop(nil)
	c.mu.Unlock()
	go func() { // ends after lastAnswers
		t := time.NewTimer(lastAnswers)
		defer t.Stop()
		select {
		case <-c.emptied:
		case <-t.C:
		}
		c.down()
		c.release(c)
	}()
}

// lastAnswers is that of package transports.
const lastAnswers = time.Second

func (c *web) give(body []byte, reply string, more bool) bool {
	c.mu.Lock()
	var x *exchange
	if xs := c.requests[reply]; len(xs) > 0 {
		x = xs[0]
	}
	heard := c.kind == messages.SSE || x != nil || reply == "" && c.stream.open
	c.mu.Unlock()
	if !heard {
		return false // its response was closed, or there is no stream: nobody reads it
	}
	c.message(body)
	if x == nil || more {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	if int64(len(body)) > c.limit {
		err = &transports.Error{Class: messages.ClassProtocol,
			Text: c.label + " gave an answer that is over the limit", Fix: "raise maxMessage, or ask for less"}
	}
	c.finish(x, transports.Written, err)
	return true
}

// raw is something that is no event of a stream: who reads event streams skips it.
func (c *web) raw([]byte) {}

func (c *web) hear(ears bool) {
	c.mu.Lock()
	c.deafened = !ears
	notices := slices.Clone(c.notices)
	c.mu.Unlock()
	if ears {
		for _, x := range notices {
			c.took(x)
		}
	}
}

// reopen is how long it takes until a stream that was cut is open again, as package transports has it on average.
const reopen = 750 * time.Millisecond

// cut ends the stream for what is said unasked. It is opened again soon, and the user is told that something may have been
// missed.
func (c *web) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stream.open || c.cause != nil {
		return
	}
	c.stream.open = false
	c.stream.timer = time.AfterFunc(reopen, func() { // it does nothing after the end
		c.mu.Lock()
		c.stream.open = c.cause == nil
		c.mu.Unlock()
		c.tell(func(s transports.Sink) {
			if r, ok := s.(transports.Resumer); ok {
				r.StreamReopened()
			}
		})
	})
}

// stopStream is for the end. mu is held.
func (c *web) stopStream() {
	c.stream.open = false
	if c.stream.timer != nil {
		c.stream.timer.Stop()
	}
}

// exit breaks what is under way. HTTP+SSE ends with its stream; over streamable HTTP a later message shows whether there is
// somebody again.
func (c *web) exit(e ending) {
	c.mu.Lock()
	c.stopStream()
	c.fail(transports.MaybeWritten, e.err)
	c.mu.Unlock()
	select {
	case <-c.dead: // the goodbye was heard
		c.leave(e.text)
	default:
	}
	if c.kind == messages.SSE {
		c.leave(e.text)
		if c.end(e.err) {
			c.down()
			c.release(c)
		}
	}
}

// Close implements transports.Conn. The user is told at once; then the server is said goodbye to, if there is a session
// that it keeps, for as long as Grace.
func (c *web) Close(ctx context.Context) error {
	if c.end(closedByUs()) {
		go func() {
			defer c.release(c)
			c.mu.Lock()
			c.stopStream()
			goodbye := c.session != "" && c.opened && c.kind != messages.SSE
			c.mu.Unlock()
			c.down()
			c.far.closing(c, false)
			if goodbye {
				c.exits(c.grace)
			}
		}()
	}
	return c.wait(ctx)
}

// headers are what goes beside a message, by canonical name.
func (c *web) headers(m transports.Message) map[string]string {
	h := make(map[string]string, len(m.Header)+len(c.extra)+4)
	if c.token != nil {
		h["Authorization"] = c.token.authorization()
	}
	for name, value := range c.extra {
		h[http.CanonicalHeaderKey(name)] = value
	}
	for name, value := range m.Header {
		h[http.CanonicalHeaderKey(name)] = value
	}
	c.mu.Lock()
	session, version := c.session, c.version
	c.mu.Unlock()
	if m.Version != "" {
		h["Mcp-Protocol-Version"], h["Mcp-Method"] = m.Version, m.Method
		if m.Name != "" {
			h["Mcp-Name"] = transports.HeaderValue(m.Name)
		}
		return h
	}
	if session != "" && m.Method != "initialize" {
		h["Mcp-Session-Id"] = session
	}
	if version != "" {
		h["Mcp-Protocol-Version"] = version
	}
	return h
}

// Negotiated implements transports.Conn.
func (c *web) Negotiated(version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version = version
}
