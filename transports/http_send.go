package transports

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/budget"
)

// Send implements Conn. It works in the caller's goroutine until the answer has been given to the sink.
func (c *httpConn) Send(ctx context.Context, m Message) (Delivery, error) {
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

// sendOnce is one message and what came of it. The caller is inside c.life; sendOnce leaves.
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
		return x.awaitStrayAnswer(d, err)
	}
	return Written, nil
}

// exchange is one POST with its response, and the GETs that resume it.
type exchange struct {
	origin    *origin
	lifetime  *lifetime
	c         *httpConn // nil for SSE
	m         Message
	callerCtx context.Context
	began     time.Time
	body      requestBody

	session, version string // at the beginning; no session in the modern era
	headers          *headerSet

	ctx            context.Context
	cancel         context.CancelFunc
	stop           func() bool
	readsRestAsync bool // a goroutine of its own reads the rest of the response, and leaves

	// lastID and retry are what the answer's stream has said until now.
	lastID string
	retry  time.Duration
	// hadEvents says that the stream has brought something since it was opened.
	hadEvents bool

	// unanswered says that the response ended as if it needed no answer, elsewhere that another stream brought it.
	unanswered        bool
	answeredElsewhere atomic.Bool
}

// newExchange begins an exchange for a caller that is inside l. The caller leaves by leave.
func newExchange(ctx context.Context, o *origin, l *lifetime, m Message) *exchange {
	x := &exchange{origin: o, lifetime: l, m: m, callerCtx: ctx, began: time.Now()}
	x.body.setData(m.Body)
	// The request's context is not the caller's: when Send has returned and its context has ended, the response is
	// still read to its end, so that its connection can be used again.
	x.ctx, x.cancel = context.WithCancel(l.requestCtx)
	x.stop = context.AfterFunc(ctx, x.cancel)
	return x
}

// newReservation is for what this exchange receives.
func (x *exchange) newReservation() memoryReservation {
	return memoryReservation{share: x.origin.share, connEnded: x.ctx.Done()}
}

func (x *exchange) endExchange() {
	x.body.detachReaders()
	x.stop()
	if !x.readsRestAsync {
		x.cancel()
		x.lifetime.leave()
	}
}

// postMessage sends the message.
func (x *exchange) postMessage() (Delivery, *Error) {
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
		if x.m.Method == "notifications/initialized" {
			x.c.startListening()
		}
		return Written, nil
	case kind == mediaEventStream:
		return x.readAnswerStream(resp)
	case kind == mediaJSON:
		return Written, x.readJSONAnswer(resp)
	default:
		defer func() { _ = resp.Body.Close() }()
		return Written, x.wrongAnswerError(resp, kind)
	}
}

// exchangeError is why an exchange broke: the connection's end, the caller's, or the network's.
func (x *exchange) exchangeError(err error) *Error {
	if ended := x.lifetime.endError(); ended != nil {
		return ended
	}
	if x.callerCtx.Err() != nil {
		return contextError(x.callerCtx, "waiting for "+x.origin.label)
	}
	return x.origin.networkError(err, x.session)
}

// readRefusal reads a response that is no success.
func (x *exchange) readRefusal(resp *http.Response) *Error {
	body := readErrorBody(resp.Body, x.cancel)
	_ = resp.Body.Close()
	return x.origin.statusError(resp, body, x.session)
}

// wrongAnswerError says what is wrong with a successful response that holds no answer.
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

// readJSONAnswer reads an answer in one piece.
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

func (x *exchange) tooLongError() *Error {
	return &Error{Class: messages.ClassProtocol, Text: x.origin.label + " gave an answer that is over the limit",
		Fix: "raise maxMessage, or ask for less"}
}

// chargeEmptyEvent has the server pay for an event that carries nothing.
func (x *exchange) chargeEmptyEvent(size int) {
	x.origin.share.Charge(time.Microsecond+readCost(size), budget.Unknown, time.Now())
	takePause(x.origin.share, x.lifetime.ctx.Done())
}

// deliverEvent gives an event's message to the sink and reports whether it was the answer; tooLongError that it was the answer,
// or may have been, and was over the limit.
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
	if x.m.ID != 0 && x.c.requestSink != nil { // only a message of ours has a connection here for sure
		x.c.requestSink.MessageOn(x.m.ID, e.data)
	} else {
		x.lifetime.sink.Message(e.data)
	}
	completeAnswered(others)
	if !answer {
		takePause(x.origin.share, x.lifetime.ctx.Done())
	}
	return answer, false
}
