package web

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/budget"
	"github.com/mcpvisor/mcpvisor/transports/internal/errs"
	"github.com/mcpvisor/mcpvisor/transports/internal/eventstream"
	"github.com/mcpvisor/mcpvisor/transports/internal/incoming"
	"github.com/mcpvisor/mcpvisor/transports/internal/lifetime"
	"github.com/mcpvisor/mcpvisor/transports/internal/origin"
)

// Send implements Conn. It works in the caller's goroutine until the sink has the answer.
func (c *httpConn) Send(ctx context.Context, m transports.Message) (transports.Delivery, error) {
	// The server has turned out to speak HTTP+SSE.
	if older := c.sseFallback.Load(); older != nil {
		return older.Send(ctx, m)
	}
	c.awaitListenStream(ctx, m)
	if ctx.Err() != nil {
		return transports.NotWritten, errs.ContextError(ctx, "sending to "+c.origin.Label)
	}
	if !c.lifetime.Enter() {
		return transports.NotWritten, c.lifetime.EndError()
	}
	// The session cancels the request's own Send, which closes the stream; there is nothing to post.
	if isCancellation(&m) {
		c.lifetime.Leave()
		return transports.Written, nil
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
func (c *httpConn) sendOnce(ctx context.Context, m transports.Message) (transports.Delivery, *transports.Error) {
	x := newExchange(ctx, c.origin, c.lifetime, m)
	defer x.endExchange()
	x.c = c
	if m.Version != "" {
		var err *transports.Error
		x.version = m.Version
		if x.headers, err = modernHeaders(c.origin, m); err != nil {
			return transports.NotWritten, err
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
	return transports.Written, nil
}

// exchange is one POST with its response, and the GETs that resume it. The goroutine of its Send owns it, until a goroutine that
// reads the rest of the response takes over.
type exchange struct {
	origin   *origin.Origin
	lifetime *lifetime.Lifetime
	c        *httpConn // nil for SSE
	m        transports.Message
	// callerCtx is the context of Send; its end cancels ctx until the answer has come.
	callerCtx context.Context
	began     time.Time
	body      origin.RequestBody

	// session and version are those at the beginning; there is no session in the modern era.
	session, version string
	headers          *origin.HeaderSet

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
func newExchange(ctx context.Context, o *origin.Origin, l *lifetime.Lifetime, m transports.Message) *exchange {
	x := &exchange{origin: o, lifetime: l, m: m, callerCtx: ctx, began: time.Now()}
	x.body.SetData(m.Body)
	// The request's context is not the caller's: when Send has returned and its context has ended, the response is
	// still read to its end, so that its connection can be used again. It has the caller's values: the Authorizer, and a
	// RoundTripper of the program, find there on whose behalf they work.
	x.ctx, x.cancel = context.WithCancel(requestContext{l.RequestCtx, ctx})
	x.stop = context.AfterFunc(ctx, x.cancel)
	return x
}

// requestContext is the context of a connection's requests with the values of the caller's.
type requestContext struct {
	context.Context
	caller context.Context
}

// Value implements context.Context. The connection's own context comes first, because it has no values but those by which package
// context finds its end.
func (c requestContext) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.caller.Value(key)
}

// newReservation makes the reservation for one message that this exchange receives.
func (x *exchange) newReservation() incoming.Reservation {
	return incoming.Reservation{Share: x.origin.Share, ConnEnded: x.ctx.Done()}
}

// endExchange ends an exchange: net/http reads no more of the caller's bytes, and the requests are canceled unless a goroutine
// still reads the rest of the response.
func (x *exchange) endExchange() {
	x.body.DetachReaders()
	x.stop()
	if !x.readsRestAsync {
		x.cancel()
		x.lifetime.Leave()
	}
}

// postMessage sends the message and reads its answer, by the kind of the response.
func (x *exchange) postMessage() (transports.Delivery, *transports.Error) {
	// The body belongs to this exchange until endExchange detaches it.
	resp, d, err := x.origin.RoundTrip(x.ctx, http.MethodPost, x.origin.URL, x.headers, &x.body)
	if err != nil {
		return d, x.exchangeError(err)
	}
	if resp.StatusCode/100 != 2 {
		return transports.Written, x.readRefusal(resp)
	}
	if x.m.Method == "initialize" {
		if err := x.c.captureSession(resp.Header); err != nil {
			_ = resp.Body.Close()
			return transports.Written, err
		}
	}
	switch kind := origin.MediaType(resp.Header); {
	case x.m.ID == 0:
		x.drainResponse(resp, kind)
		// Only now may the server send requests of its own (2025-11-25, Initialization).
		if x.m.Method == "notifications/initialized" {
			x.c.startListening()
		}
		return transports.Written, nil
	// The server chooses between a stream and one JSON document, for each request.
	case kind == origin.MediaEventStream:
		return x.readAnswerStream(resp)
	case kind == origin.MediaJSON:
		return transports.Written, x.readJSONAnswer(resp)
	default:
		defer func() { _ = resp.Body.Close() }()
		return transports.Written, x.wrongAnswerError(resp, kind)
	}
}

// exchangeError returns the error of an exchange that broke: the connection's end counts first, then the caller's, then the
// network's.
func (x *exchange) exchangeError(err error) *transports.Error {
	if ended := x.lifetime.EndError(); ended != nil {
		return ended
	}
	if x.callerCtx.Err() != nil {
		return errs.ContextError(x.callerCtx, "waiting for "+x.origin.Label)
	}
	return x.origin.NetworkError(err, x.session)
}

// readRefusal reads a response that is no success and translates it.
func (x *exchange) readRefusal(resp *http.Response) *transports.Error {
	body := origin.ReadErrorBody(resp.Body, x.cancel)
	_ = resp.Body.Close()
	return x.origin.StatusError(resp, body, x.session)
}

// wrongAnswerError is the error for a successful response that holds no answer.
func (x *exchange) wrongAnswerError(resp *http.Response, kind string) *transports.Error {
	e := &transports.Error{Class: messages.ClassProtocol, Status: resp.StatusCode}
	switch {
	case resp.StatusCode == http.StatusAccepted, resp.StatusCode == http.StatusNoContent, resp.ContentLength == 0:
		x.noteEmptyEnd(nil)
		e.Text = x.origin.Label + " took the request and gave no answer"
	case kind == "":
		e.Text = x.origin.Label + " answered without a content type"
	default:
		e.Text = x.origin.Label + " answered with " + messages.Line(kind, 60) + " instead of JSON or an event stream"
		e.Fix = "check that the URL is an MCP endpoint"
	}
	return e
}

// readJSONAnswer reads an answer in one piece. A message that is not the answer reaches the sink all the same, because it may be
// the answer to another request, or may explain the fault.
func (x *exchange) readJSONAnswer(resp *http.Response) *transports.Error {
	defer func() { _ = resp.Body.Close() }()
	msg, big, err := incoming.ReadBody(resp.Body, resp.ContentLength, x.origin.Limit, x.newReservation())
	switch {
	case err != nil:
		return x.exchangeError(err)
	case big != nil:
		incoming.ReportDiscarded(x.lifetime.Sink, big)
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
		start = x.origin.RedactStart(msg, incoming.KeptEndSize, x.session)
	}
	x.lifetime.Sink.Message(msg)
	if !isAnswer {
		completeAnswered(others)
		return &transports.Error{Class: messages.ClassProtocol, Status: resp.StatusCode, Body: start,
			Text: x.origin.Label + " answered with something else than the answer to the request"}
	}
	return nil
}

// tooLongError is the error for the caller of an answer over the limit; the sink has its ends.
func (x *exchange) tooLongError() *transports.Error {
	return &transports.Error{Class: messages.ClassProtocol, Text: x.origin.Label + " gave an answer that is over the limit",
		Fix: "raise maxMessage, or ask for less"}
}

// chargeEmptyEvent charges the server for an event that carries no message, and pauses reading if the share says so.
func (x *exchange) chargeEmptyEvent(size int) {
	x.origin.Share.Charge(time.Microsecond+incoming.ReadCost(size), budget.Unknown, time.Now())
	incoming.TakePause(x.origin.Share, x.lifetime.Ctx.Done())
}

// deliverEvent gives an event's message to the sink and reports whether it was the answer to this exchange's request. tooLong
// reports that it was the answer, or its beginning, and was over the limit.
func (x *exchange) deliverEvent(e eventstream.Event) (answer, tooLong bool) {
	switch {
	case !e.IsMessage():
		x.chargeEmptyEvent(len(e.Data))
		return false, false
	case e.Oversized != nil:
		tooLong = x.m.ID != 0 && answersRequest(e.Oversized.Head, x.m.ID)
		incoming.ReportDiscarded(x.lifetime.Sink, e.Oversized)
		incoming.TakePause(x.origin.Share, x.lifetime.Ctx.Done())
		return false, tooLong
	case len(e.Data) == 0:
		x.chargeEmptyEvent(0)
		return false, false
	}
	answer = x.m.ID != 0 && answersRequest(e.Data, x.m.ID)
	var others []*exchange
	if !answer {
		others = x.answeredExchanges(e.Data)
	}
	// The exchange of a stream that belongs to no request has id 0; its messages go to Message.
	if x.m.ID != 0 && x.c.requestSink != nil {
		x.c.requestSink.MessageOn(x.m.ID, e.Data)
	} else {
		x.lifetime.Sink.Message(e.Data)
	}
	completeAnswered(others)
	// An answer was asked for, so that the server is not paused after it.
	if !answer {
		incoming.TakePause(x.origin.Share, x.lifetime.Ctx.Done())
	}
	return answer, false
}
