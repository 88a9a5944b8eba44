package transports

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/budget"
)

// Send implements Conn. It works in the caller's goroutine until the sink has the answer.
func (c *httpConn) Send(ctx context.Context, m Message) (Delivery, error) {
	// The server has turned out to speak HTTP+SSE.
	if older := c.sseFallback.Load(); older != nil {
		return older.Send(ctx, m)
	}
	c.awaitListenStream(ctx, m)
	if ctx.Err() != nil {
		return NotWritten, contextError(ctx, "sending to "+c.origin.label)
	}
	if !c.lifetime.enter() {
		return NotWritten, c.lifetime.endError()
	}
	// The session cancels the request's own Send, which closes the stream; there is nothing to post.
	if m.isCancellation() {
		c.lifetime.leave()
		return Written, nil
	}
	d, err := c.sendOnce(ctx, m)
	if err == nil {
		return d, nil
	}
	if m.Method == "initialize" && c.mayFallBack(err) {
		return c.fallBack(ctx, m, err)
	}
	return d, c.endIfSessionLost(err)
}

// sendOnce posts one message and reads its answer. The caller has entered c.lifetime; sendOnce leaves it.
func (c *httpConn) sendOnce(ctx context.Context, m Message) (Delivery, *Error) {
	x := newExchange(ctx, c.origin, c.lifetime, m)
	defer x.endExchange()
	x.c = c
	if m.Version != "" {
		var err *Error
		x.version = m.Version
		if x.headers, err = c.origin.modernHeaders(m); err != nil {
			return NotWritten, err
		}
		return x.postMessage()
	}
	if c.beginExchange(x); m.ID == 0 {
		return x.postMessage()
	}
	defer c.forgetExchange(x)
	if d, err := x.postMessage(); err != nil {
		// The answer may have come, or may still come, on another stream.
		return x.awaitStrayAnswer(d, err)
	}
	return Written, nil
}

// exchange is one POST with its response, and the GETs that resume it. The goroutine of its Send owns it, until a goroutine that
// reads the rest of the response takes over.
type exchange struct {
	origin   *origin
	lifetime *lifetime
	c        *httpConn // nil for SSE
	m        Message
	// callerCtx is the context of Send; its end cancels ctx until the answer has come.
	callerCtx context.Context
	began     time.Time
	body      requestBody

	// session and version are those at the beginning; there is no session in the modern era.
	session, version string
	headers          *headerSet

	// ctx is the context of the requests, which ends with the connection; stop detaches it from the caller's.
	ctx    context.Context
	cancel context.CancelFunc
	stop   func() bool
	// readsRestAsync is true if a goroutine reads the rest of the response; that one leaves the lifetime then.
	readsRestAsync bool

	// lastID and retry are the last event id and the last reconnection time on the answer's stream.
	lastID string
	retry  time.Duration
	// hadEvents is true if the stream has brought anything since it was opened last.
	hadEvents bool

	// unanswered is true if the response ended as if no answer were needed. answeredElsewhere is true if another stream has
	// brought the answer; the reader of that stream sets it.
	unanswered        bool
	answeredElsewhere atomic.Bool
}

// newExchange begins an exchange for a caller that has entered l. endExchange leaves l.
func newExchange(ctx context.Context, o *origin, l *lifetime, m Message) *exchange {
	x := &exchange{origin: o, lifetime: l, m: m, callerCtx: ctx, began: time.Now()}
	x.body.setData(m.Body)
	// The request's context is not the caller's: when Send has returned and its context has ended, the response is
	// still read to its end, so that its connection can be used again.
	x.ctx, x.cancel = context.WithCancel(l.requestCtx)
	x.stop = context.AfterFunc(ctx, x.cancel)
	return x
}

// newReservation makes the reservation for one message that this exchange receives.
func (x *exchange) newReservation() memoryReservation {
	return memoryReservation{share: x.origin.share, connEnded: x.ctx.Done()}
}

// endExchange ends an exchange: net/http reads no more of the caller's bytes, and the requests are canceled unless a goroutine
// still reads the rest of the response.
func (x *exchange) endExchange() {
	x.body.detachReaders()
	x.stop()
	if !x.readsRestAsync {
		x.cancel()
		x.lifetime.leave()
	}
}

// postMessage sends the message and reads its answer, by the kind of the response.
func (x *exchange) postMessage() (Delivery, *Error) {
	// The body belongs to this exchange until endExchange detaches it.
	resp, d, err := x.origin.roundTrip(x.ctx, http.MethodPost, x.origin.url, x.headers, &x.body)
	if err != nil {
		return d, x.exchangeError(err)
	}
	if resp.StatusCode/100 != 2 {
		return Written, x.readRefusal(resp)
	}
	if x.m.Method == "initialize" {
		if err := x.c.captureSession(resp.Header); err != nil {
			_ = resp.Body.Close()
			return Written, err
		}
	}
	switch kind := mediaType(resp.Header); {
	case x.m.ID == 0:
		x.drainResponse(resp, kind)
		// Only now may the server send requests of its own (2025-11-25, Initialization).
		if x.m.Method == "notifications/initialized" {
			x.c.startListening()
		}
		return Written, nil
	// The server chooses between a stream and one JSON document, for each request.
	case kind == mediaEventStream:
		return x.readAnswerStream(resp)
	case kind == mediaJSON:
		return Written, x.readJSONAnswer(resp)
	default:
		defer func() { _ = resp.Body.Close() }()
		return Written, x.wrongAnswerError(resp, kind)
	}
}

// exchangeError returns the error of an exchange that broke: the connection's end counts first, then the caller's, then the
// network's.
func (x *exchange) exchangeError(err error) *Error {
	if ended := x.lifetime.endError(); ended != nil {
		return ended
	}
	if x.callerCtx.Err() != nil {
		return contextError(x.callerCtx, "waiting for "+x.origin.label)
	}
	return x.origin.networkError(err, x.session)
}

// readRefusal reads a response that is no success and translates it.
func (x *exchange) readRefusal(resp *http.Response) *Error {
	body := readErrorBody(resp.Body, x.cancel)
	_ = resp.Body.Close()
	return x.origin.statusError(resp, body, x.session)
}

// wrongAnswerError is the error for a successful response that holds no answer.
func (x *exchange) wrongAnswerError(resp *http.Response, kind string) *Error {
	e := &Error{Class: messages.ClassProtocol, Status: resp.StatusCode}
	switch {
	case resp.StatusCode == http.StatusAccepted, resp.StatusCode == http.StatusNoContent, resp.ContentLength == 0:
		x.noteEmptyEnd(nil)
		e.Text = x.origin.label + " took the request and gave no answer"
	case kind == "":
		e.Text = x.origin.label + " answered without a content type"
	default:
		e.Text = x.origin.label + " answered with " + messages.Line(kind, 60) + " instead of JSON or an event stream"
		e.Fix = "check that the URL is an MCP endpoint"
	}
	return e
}

// readJSONAnswer reads an answer in one piece. A message that is not the answer reaches the sink all the same, because it may be
// the answer to another request, or may explain the fault.
func (x *exchange) readJSONAnswer(resp *http.Response) *Error {
	defer func() { _ = resp.Body.Close() }()
	msg, big, err := readBody(resp.Body, resp.ContentLength, x.origin.limit, x.newReservation())
	switch {
	case err != nil:
		return x.exchangeError(err)
	case big != nil:
		reportDiscarded(x.lifetime.sink, big)
		return x.tooLongError()
	case len(msg) == 0:
		return x.wrongAnswerError(resp, "an empty body")
	}
	isAnswer := answersRequest(msg, x.m.ID)
	var start []byte
	var others []*exchange
	// Both are prepared before the sink gets the message, because the sink owns the bytes from then on.
	if !isAnswer {
		others = x.answeredExchanges(msg)
		start = x.origin.redactStart(msg, keptEndSize, x.session)
	}
	x.lifetime.sink.Message(msg)
	if !isAnswer {
		completeAnswered(others)
		return &Error{Class: messages.ClassProtocol, Status: resp.StatusCode, Body: start,
			Text: x.origin.label + " answered with something else than the answer to the request"}
	}
	return nil
}

// tooLongError is the error for the caller of an answer over the limit; the sink has its ends.
func (x *exchange) tooLongError() *Error {
	return &Error{Class: messages.ClassProtocol, Text: x.origin.label + " gave an answer that is over the limit",
		Fix: "raise maxMessage, or ask for less"}
}

// chargeEmptyEvent charges the server for an event that carries no message, and pauses reading if the share says so.
func (x *exchange) chargeEmptyEvent(size int) {
	x.origin.share.Charge(time.Microsecond+readCost(size), budget.Unknown, time.Now())
	takePause(x.origin.share, x.lifetime.ctx.Done())
}

// deliverEvent gives an event's message to the sink and reports whether it was the answer to this exchange's request. tooLong
// reports that it was the answer, or its beginning, and was over the limit.
func (x *exchange) deliverEvent(e event) (answer, tooLong bool) {
	switch {
	case !e.isMessage():
		x.chargeEmptyEvent(len(e.data))
		return false, false
	case e.oversized != nil:
		tooLong = x.m.ID != 0 && answersRequest(e.oversized.head, x.m.ID)
		reportDiscarded(x.lifetime.sink, e.oversized)
		takePause(x.origin.share, x.lifetime.ctx.Done())
		return false, tooLong
	case len(e.data) == 0:
		x.chargeEmptyEvent(0)
		return false, false
	}
	answer = x.m.ID != 0 && answersRequest(e.data, x.m.ID)
	var others []*exchange
	if !answer {
		others = x.answeredExchanges(e.data)
	}
	// The exchange of a stream that belongs to no request has id 0; its messages go to Message.
	if x.m.ID != 0 && x.c.requestSink != nil {
		x.c.requestSink.MessageOn(x.m.ID, e.data)
	} else {
		x.lifetime.sink.Message(e.data)
	}
	completeAnswered(others)
	// An answer was asked for, so that the server is not paused after it.
	if !answer {
		takePause(x.origin.share, x.lifetime.ctx.Done())
	}
	return answer, false
}
