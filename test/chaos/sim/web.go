package sim

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// webConn is a connection made of exchanges: streamable HTTP, where a request's Send returns with its answer, and HTTP+SSE, where
// every Send returns when the server has taken the message.
//
// Streamable HTTP opens nothing before the first message. A server that refuses, or is gone, fails single messages; the
// connection itself ends only when the server has lost its session.
type webConn struct {
	baseConn

	// mu guards these. notReading is set while the server does not read; it takes no notices then. refusedDelivery is how far the
	// messages of a refused opening get. heldExchanges wait for the opening, requests for an answer (by id), openNotices to be
	// taken. version is the negotiated one.
	notReading      bool
	refusedDelivery transports.Delivery
	heldExchanges   []*exchange
	version         string
	requests        map[string][]*exchange
	openNotices     []*exchange
	// drained is made when the session is lost, and closed (isDrained) when no exchange is under way any more.
	drained   chan struct{}
	isDrained bool
	// stream is the GET stream for messages that belong to no request: it opens after the handshake of the legacy era, and
	// again after it was cut.
	stream struct {
		// timer reopens the stream after it was cut; nil before the first cut.
		open, reopened bool
		timer          *time.Timer
	}
}

// newWeb makes a connection that is not open yet. Messages may be sent before it is: they wait for the opening.
func newWeb(t *Transport, sink transports.Sink) *webConn {
	return &webConn{baseConn: newBaseConn(t, sink), requests: map[string][]*exchange{}}
}

// waitsForAnswer reports whether the Send of x returns only with its answer.
func (c *webConn) waitsForAnswer(x *exchange) bool { return c.kind != messages.SSE && x.id != "" }

// Send implements transports.Conn.
func (c *webConn) Send(ctx context.Context, m transports.Message) (transports.Delivery, error) {
	if ctx.Err() != nil {
		return transports.NotWritten, contextError(ctx, "sending to "+c.label)
	}
	if c.kind != messages.SSE && m.Version != "" && m.Method == "notifications/cancelled" {
		// In the modern era over HTTP the end of the request's response stream is the cancellation, so no message is sent.
		return transports.Written, nil
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
	// A message before the end of the opening waits in heldExchanges; the opening began with the dial.
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
		// When the session is lost, messages under way have answerGrace to end by themselves.
		if cause := c.endCause(); cause.Class == messages.ClassSession {
			select {
			case <-x.done:
			case <-ctx.Done():
			case <-c.allReleased:
			}
		}
	}
	return c.sendResult(ctx, x)
}

// sendResult returns the result of a Send. If the exchange is not completed, the client gave up or the connection ended; a
// message that was handed over may then have arrived.
func (c *webConn) sendResult(ctx context.Context, x *exchange) (transports.Delivery, error) {
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

// dropExchange forgets an exchange (nil: none), and closes drained with the last one. The caller holds mu.
func (c *webConn) dropExchange(x *exchange) {
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

// completeExchange ends an exchange with a result. The caller holds mu.
func (c *webConn) completeExchange(x *exchange, d transports.Delivery, err error) {
	c.dropExchange(x)
	x.completeLocked(d, err)
}

// acceptOpening implements conn. The messages that waited follow in their order.
func (c *webConn) acceptOpening(session string) bool {
	if !c.answerOpening(session, nil) {
		return false
	}
	c.flushHeld()
	return true
}

// flushHeld sends the messages that waited for the opening, in order.
func (c *webConn) flushHeld() {
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

// refuseOpening implements conn. d says how far the waiting messages got; later ones get the same answer.
func (c *webConn) refuseOpening(err *transports.Error, d transports.Delivery) bool {
	if !c.answerOpening("", err) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusedDelivery = d
	c.failAll(d, err)
	return true
}

// failAll ends every exchange with an error, in the order of the ids, because a map has none. The caller holds mu.
func (c *webConn) failAll(d transports.Delivery, err *transports.Error) {
	for _, id := range slices.Sorted(maps.Keys(c.requests)) {
		for _, x := range slices.Clone(c.requests[id]) {
			c.completeExchange(x, c.deliveryOf(x, d), err)
		}
	}
	for _, x := range slices.Clone(c.openNotices) {
		c.completeExchange(x, c.deliveryOf(x, d), err)
	}
}

// deliveryOf returns how far x got, if the server can only say d of it: a message that was never handed over cannot have
// arrived.
func (c *webConn) deliveryOf(x *exchange, d transports.Delivery) transports.Delivery {
	if !x.handedOver && d == transports.MaybeWritten {
		return transports.NotWritten
	}
	return d
}

// markTaken implements conn: the server answers a notification with 202.
func (c *webConn) markTaken(x *exchange) {
	if c.waitsForAnswer(x) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.notReading:
		// setReading calls again once the server reads.
		return
	case x.resendPending:
		x.resendPending = false
		// The message was refused for its token, and a second attempt is under way.
		return
	}
	c.completeExchange(x, transports.Written, nil)
	if x.method == "notifications/initialized" && c.kind != messages.SSE {
		c.stream.open = true
	}
}

// denyExchange implements conn. A message that was refused for its token is first sent again with a new one.
func (c *webConn) denyExchange(reply string, d transports.Delivery, err *transports.Error) (denied bool) {
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

// loseSession ends the connection because the server has forgotten its session. Messages under way have answerGrace to be
// answered or refused by themselves.
func (c *webConn) loseSession(err *transports.Error) {
	if !c.endConn(err) {
		return
	}
	c.mu.Lock()
	c.stopStream()
	c.drained = make(chan struct{})
	c.dropExchange(nil)
	c.mu.Unlock()
	// This goroutine ends after answerGrace at the latest.
	go func() {
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

// answerGrace is the same time as in package web.
const answerGrace = time.Second

// deliverMessage implements conn. An answer over the limit still completes its exchange, with an error.
func (c *webConn) deliverMessage(body []byte, reply string, more bool) bool {
	c.mu.Lock()
	var x *exchange
	if xs := c.requests[reply]; len(xs) > 0 {
		x = xs[0]
	}
	heard := c.kind == messages.SSE || x != nil || reply == "" && c.stream.open
	c.mu.Unlock()
	if !heard {
		// The client has closed the response, or has no stream open.
		return false
	}
	request := int64(0)
	if x != nil && c.kind == messages.HTTP {
		request, _ = strconv.ParseInt(reply, 10, 64) // the client's own ids are numbers
	}
	c.deliverOn(request, body)
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

// deliverBytes implements conn: a reader of event streams skips what is no event.
func (c *webConn) deliverBytes([]byte) {}

// setReading implements conn. Notices that wait are taken when the server reads again.
func (c *webConn) setReading(reading bool) {
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

// reopenDelay is the time until a cut stream is open again, the mean of the pauses of package web.
const reopenDelay = 750 * time.Millisecond

// cutStream ends the GET stream. It opens again after reopenDelay, and the sink learns that it may have missed messages.
func (c *webConn) cutStream() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stream.open || c.cause != nil {
		return
	}
	c.stream.open = false
	// After the end of the connection this does nothing but call the sink, which callSink refuses.
	c.stream.timer = time.AfterFunc(reopenDelay, func() {
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

// stopStream closes the GET stream at the end of the connection. The caller holds mu.
func (c *webConn) stopStream() {
	c.stream.open = false
	if c.stream.timer != nil {
		c.stream.timer.Stop()
	}
}

// endRemote implements conn: it breaks every exchange. HTTP+SSE ends with its stream; over streamable HTTP a later message
// shows whether the server is back.
func (c *webConn) endRemote(e ending) {
	c.mu.Lock()
	c.stopStream()
	c.failAll(transports.MaybeWritten, e.err)
	c.mu.Unlock()
	select {
	// The client has closed, and this end answers its DELETE.
	case <-c.connEnded:
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

// Close implements transports.Conn. The user is told at once; then the client announces its end to the server, if the server
// keeps a session, and waits for the answer for Grace at most.
func (c *webConn) Close(ctx context.Context) error {
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

// messageHeaders returns the headers that go with a message, by canonical name, as the specification of the message's era wants
// them.
func (c *webConn) messageHeaders(m transports.Message) map[string]string {
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
	// The modern era has no sessions, and names version, method and tool with every message.
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
func (c *webConn) Negotiated(version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version = version
}
