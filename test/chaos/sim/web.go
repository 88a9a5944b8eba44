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
	baseConn

	notReading      bool                   // under mu
	refusedDelivery transports.Delivery    // under mu: how far a message gets that the refused opening belongs to
	heldExchanges   []*exchange            // under mu: what waits for the opening
	version         string                 // under mu: what was negotiated
	requests        map[string][]*exchange // under mu: what waits for an answer, by id
	openNotices     []*exchange            // under mu: what waits to be taken
	// drained is closed when nothing is under way any more; made when the session is lost.
	drained   chan struct{}
	isDrained bool
	// stream is the one for what is said unasked (GET): it is opened after the handshake of the legacy era, and again
	// after it was cut.
	stream struct {
		open, reopened bool
		timer          *time.Timer
	}
}

func newWeb(t *Transport, sink transports.Sink) *web {
	return &web{baseConn: newBaseConn(t, sink), requests: map[string][]*exchange{}}
}

// waitsForAnswer reports whether the Send of x returns only after its answer.
func (c *web) waitsForAnswer(x *exchange) bool { return c.kind != messages.SSE && x.id != "" }

// Send implements transports.Conn.
func (c *web) Send(ctx context.Context, m transports.Message) (transports.Delivery, error) {
	if ctx.Err() != nil {
		return transports.NotWritten, contextError(ctx, "sending to "+c.label)
	}
	if c.kind != messages.SSE && m.Version != "" && m.Method == "notifications/cancelled" {
		return transports.Written, nil // the end of the request's Send says it
	}
	x := newExchange(m)
	x.header = c.messageHeaders(m)
	c.mu.Lock()
	switch {
	case c.cause != nil:
		c.mu.Unlock()
		return transports.NotWritten, c.endCause()
	case c.refusal != nil:
		defer c.mu.Unlock()
		return c.refusedDelivery, c.refusal
	}
	if c.waitsForAnswer(x) {
		c.requests[x.id] = append(c.requests[x.id], x)
	} else {
		c.openNotices = append(c.openNotices, x)
	}
	if x.handedOver = c.opened; !x.handedOver {
		c.heldExchanges = append(c.heldExchanges, x)
	}
	c.mu.Unlock()
	if x.handedOver {
		c.remote.onSent(c, x)
	}
	select {
	case <-x.done:
	case <-ctx.Done():
	case <-c.connEnded:
		if cause := c.endCause(); cause.Class == messages.ClassSession { // those under way are given a moment
			select {
			case <-x.done:
			case <-ctx.Done():
			case <-c.allReleased:
			}
		}
	}
	return c.sendResult(ctx, x)
}

// sendResult is what a Send returns that waits no longer.
func (c *web) sendResult(ctx context.Context, x *exchange) (transports.Delivery, error) {
	c.mu.Lock()
	if x.completed {
		defer c.mu.Unlock()
		return x.delivery, x.err
	}
	c.dropExchange(x)
	delivery := transports.NotWritten
	if x.handedOver {
		delivery = transports.MaybeWritten
	}
	x.completed = true
	dead := c.cause != nil
	c.mu.Unlock()
	if dead {
		return delivery, c.endCause()
	}
	c.remote.onAbandoned(c, x)
	return delivery, contextError(ctx, "waiting for "+c.label)
}

// dropExchange forgets an exchange. mu is held.
func (c *web) dropExchange(x *exchange) {
	defer func() {
		if c.drained != nil && len(c.requests) == 0 && len(c.openNotices) == 0 && !c.isDrained {
			c.isDrained = true
			close(c.drained)
		}
	}()
	if x == nil {
		return
	}
	isSame := func(y *exchange) bool { return x == y }
	c.heldExchanges = slices.DeleteFunc(c.heldExchanges, isSame)
	c.openNotices = slices.DeleteFunc(c.openNotices, isSame)
	if rest := slices.DeleteFunc(c.requests[x.id], isSame); len(rest) > 0 {
		c.requests[x.id] = rest
	} else {
		delete(c.requests, x.id)
	}
}

// completeExchange ends an exchange. mu is held.
func (c *web) completeExchange(x *exchange, d transports.Delivery, err error) {
	c.dropExchange(x)
	x.completeLocked(d, err)
}

func (c *web) acceptOpening(session string) bool {
	if !c.answerOpening(session, nil) {
		return false
	}
	c.flushHeld()
	return true
}

// flushHeld sends on what waited for the opening.
func (c *web) flushHeld() {
	c.mu.Lock()
	exchanges := c.heldExchanges
	c.heldExchanges = nil
	for _, x := range exchanges {
		x.handedOver = true
	}
	c.mu.Unlock()
	for _, x := range exchanges {
		c.remote.onSent(c, x)
	}
}

func (c *web) refuseOpening(err *transports.Error, d transports.Delivery) bool {
	if !c.answerOpening("", err) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusedDelivery = d
	c.failAll(d, err)
	return true
}

// failAll ends every exchange. mu is held.
func (c *web) failAll(d transports.Delivery, err *transports.Error) {
	for _, id := range slices.Sorted(maps.Keys(c.requests)) {
		for _, x := range slices.Clone(c.requests[id]) {
			c.completeExchange(x, c.deliveryOf(x, d), err)
		}
	}
	for _, x := range slices.Clone(c.openNotices) {
		c.completeExchange(x, c.deliveryOf(x, d), err)
	}
}

// deliveryOf is how far x got if the far side can only say d of it.
func (c *web) deliveryOf(x *exchange, d transports.Delivery) transports.Delivery {
	if !x.handedOver && d == transports.MaybeWritten {
		return transports.NotWritten
	}
	return d
}

func (c *web) markTaken(x *exchange) {
	if c.waitsForAnswer(x) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.notReading:
		return // when it hears again
	case x.resendPending:
		x.resendPending = false
		return // it was refused, and is on its way once more
	}
	c.completeExchange(x, transports.Written, nil)
	if x.method == "notifications/initialized" && c.kind != messages.SSE {
		c.stream.open = true
	}
}

func (c *web) denyExchange(reply string, d transports.Delivery, err *transports.Error) (denied bool) {
	c.mu.Lock()
	xs := c.requests[reply]
	if reply == "" || c.kind == messages.SSE {
		xs = c.openNotices
	}
	for _, x := range xs {
		if x.id == reply && !denied {
			if denied = true; !c.resendRenewed(x, err) {
				c.completeExchange(x, d, err)
			}
			break
		}
	}
	c.mu.Unlock()
	if err.Class == messages.ClassSession {
		c.loseSession(err)
	}
	return denied
}

// loseSession ends the connection because the server has forgotten its session. Messages under way have a second to be answered
// or refused by themselves.
func (c *web) loseSession(err *transports.Error) {
	if !c.endConn(err) {
		return
	}
	c.mu.Lock()
	c.stopStream()
	c.drained = make(chan struct{})
	c.dropExchange(nil)
	c.mu.Unlock()
	go func() { // ends after answerGrace
		t := time.NewTimer(answerGrace)
		defer t.Stop()
		select {
		case <-c.drained:
		case <-t.C:
		}
		c.reportDown()
		c.releaseConn(c)
	}()
}

// answerGrace is that of package transports.
const answerGrace = time.Second

func (c *web) deliverMessage(body []byte, reply string, more bool) bool {
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
	c.deliverToSink(body)
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
	c.completeExchange(x, transports.Written, err)
	return true
}

// deliverBytes is something that is no event of a stream: who reads event streams skips it.
func (c *web) deliverBytes([]byte) {}

func (c *web) setReading(reading bool) {
	c.mu.Lock()
	c.notReading = !reading
	notices := slices.Clone(c.openNotices)
	c.mu.Unlock()
	if reading {
		for _, x := range notices {
			c.markTaken(x)
		}
	}
}

// reopenDelay is how long it takes until a stream that was cut is open again, as package transports has it on average.
const reopenDelay = 750 * time.Millisecond

// cutStream ends the stream for what is said unasked. It is opened again soon, and the user is told that something may have been
// missed.
func (c *web) cutStream() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stream.open || c.cause != nil {
		return
	}
	c.stream.open = false
	c.stream.timer = time.AfterFunc(reopenDelay, func() { // it does nothing after the end
		c.mu.Lock()
		c.stream.open = c.cause == nil
		c.mu.Unlock()
		c.callSink(func(s transports.Sink) {
			if r, ok := s.(transports.StreamReopenSink); ok {
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

// endRemote breaks what is under way. HTTP+SSE ends with its stream; over streamable HTTP a later message shows whether there is
// somebody again.
func (c *web) endRemote(e ending) {
	c.mu.Lock()
	c.stopStream()
	c.failAll(transports.MaybeWritten, e.err)
	c.mu.Unlock()
	select {
	case <-c.connEnded: // the goodbye was heard
		c.markExited(e.text)
	default:
	}
	if c.kind == messages.SSE {
		c.markExited(e.text)
		if c.endConn(e.err) {
			c.reportDown()
			c.releaseConn(c)
		}
	}
}

// Close implements transports.Conn. The user is told at once; then the server is said goodbye to, if there is a session
// that it keeps, for as long as Grace.
func (c *web) Close(ctx context.Context) error {
	if c.endConn(closedError()) {
		go func() {
			defer c.releaseConn(c)
			c.mu.Lock()
			c.stopStream()
			goodbye := c.session != "" && c.opened && c.kind != messages.SSE
			c.mu.Unlock()
			c.reportDown()
			c.remote.onClosing(c, false)
			if goodbye {
				c.awaitExit(c.grace)
			}
		}()
	}
	return c.awaitRelease(ctx)
}

// messageHeaders are what goes beside a message, by canonical name.
func (c *web) messageHeaders(m transports.Message) map[string]string {
	h := make(map[string]string, len(m.Header)+len(c.extra)+4)
	if c.token != nil {
		h["Authorization"] = c.token.authorizationHeader()
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
