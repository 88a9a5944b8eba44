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
	if older := c.older.Load(); older != nil {
		return older.Send(ctx, m)
	}
	c.attend(ctx, m)
	if ctx.Err() != nil {
		return NotWritten, contextError(ctx, "sending to "+c.origin.label)
	}
	if !c.life.enter() {
		return NotWritten, c.life.ended()
	}
	if m.isCancellation() {
		c.life.leave()
		return Written, nil
	}
	d, err := c.sendOnce(ctx, m)
	if err == nil {
		return d, nil
	}
	if m.Method == "initialize" && c.mayFallBack(err) {
		return c.fallBack(ctx, m, err)
	}
	return d, c.lost(err)
}

// sendOnce is one message and what came of it. The caller is inside c.life; sendOnce leaves.
func (c *httpConn) sendOnce(ctx context.Context, m Message) (Delivery, *Error) {
	x := newExchange(ctx, c.origin, c.life, m)
	defer x.leave()
	x.c = c
	if m.Version != "" {
		var err *Error
		x.version = m.Version
		if x.fields, err = c.origin.modernFields(m); err != nil {
			return NotWritten, err
		}
		return x.post()
	}
	if c.begin(x); m.ID == 0 {
		return x.post()
	}
	defer c.forget(x)
	if d, err := x.post(); err != nil {
		return x.orElsewhere(d, err)
	}
	return Written, nil
}

// exchange is one POST with its response, and the GETs that resume it.
type exchange struct {
	origin *origin
	life   *life
	c      *httpConn // nil for SSE
	m      Message
	caller context.Context
	began  time.Time
	body   sendBody

	session, version string // at the beginning; no session in the modern era
	fields           *fields

	ctx     context.Context
	cancel  context.CancelFunc
	stop    func() bool
	goingOn bool // a goroutine of its own reads the rest of the response, and leaves

	// lastID and retry are what the answer's stream has said until now.
	lastID string
	retry  time.Duration
	// heard says that the stream has brought something since it was opened.
	heard bool

	// unanswered says that the response ended as if it needed no answer, elsewhere that another stream brought it.
	unanswered bool
	elsewhere  atomic.Bool
}

// newExchange begins an exchange for a caller that is inside l. The caller leaves by leave.
func newExchange(ctx context.Context, o *origin, l *life, m Message) *exchange {
	x := &exchange{origin: o, life: l, m: m, caller: ctx, began: time.Now()}
	x.body.take(m.Body)
	// The request's context is not the caller's: when Send has returned and its context has ended, the response is
	// still read to its end, so that its connection can be used again.
	x.ctx, x.cancel = context.WithCancel(l.asking)
	x.stop = context.AfterFunc(ctx, x.cancel)
	return x
}

// holding is for what this exchange receives.
func (x *exchange) holding() holding {
	return holding{share: x.origin.share, ended: x.ctx.Done()}
}

func (x *exchange) leave() {
	x.body.detach()
	x.stop()
	if !x.goingOn {
		x.cancel()
		x.life.leave()
	}
}

// post sends the message.
func (x *exchange) post() (Delivery, *Error) {
	resp, d, err := x.origin.roundTrip(x.ctx, http.MethodPost, x.origin.url, x.fields, &x.body)
	if err != nil {
		return d, x.failure(err)
	}
	if resp.StatusCode/100 != 2 {
		return Written, x.refused(resp)
	}
	if x.m.Method == "initialize" {
		if err := x.c.capture(resp.Header); err != nil {
			_ = resp.Body.Close()
			return Written, err
		}
	}
	switch kind := mediaType(resp.Header); {
	case x.m.ID == 0:
		x.inBackground(resp, kind)
		if x.m.Method == "notifications/initialized" {
			x.c.listen()
		}
		return Written, nil
	case kind == eventStream:
		return x.follow(resp)
	case kind == oneJSON:
		return Written, x.json(resp)
	default:
		defer func() { _ = resp.Body.Close() }()
		return Written, x.wrongAnswer(resp, kind)
	}
}

// failure is why an exchange broke: the connection's end, the caller's, or the network's.
func (x *exchange) failure(err error) *Error {
	if ended := x.life.ended(); ended != nil {
		return ended
	}
	if x.caller.Err() != nil {
		return contextError(x.caller, "waiting for "+x.origin.label)
	}
	return x.origin.networkError(err, x.session)
}

// refused reads a response that is no success.
func (x *exchange) refused(resp *http.Response) *Error {
	body := startOf(resp.Body, x.cancel)
	_ = resp.Body.Close()
	return x.origin.statusError(resp, body, x.session)
}

// wrongAnswer says what is wrong with a successful response that holds no answer.
func (x *exchange) wrongAnswer(resp *http.Response, kind string) *Error {
	e := &Error{Class: messages.ClassProtocol, Status: resp.StatusCode}
	switch {
	case resp.StatusCode == http.StatusAccepted, resp.StatusCode == http.StatusNoContent, resp.ContentLength == 0:
		x.endedEmpty(nil)
		e.Text = x.origin.label + " took the request and gave no answer"
	case kind == "":
		e.Text = x.origin.label + " answered without a content type"
	default:
		e.Text = x.origin.label + " answered with " + messages.Line(kind, 60) + " instead of JSON or an event stream"
		e.Fix = "check that the URL is an MCP endpoint"
	}
	return e
}

// json reads an answer in one piece.
func (x *exchange) json(resp *http.Response) *Error {
	defer func() { _ = resp.Body.Close() }()
	msg, big, err := readBody(resp.Body, resp.ContentLength, x.origin.limit, x.holding())
	switch {
	case err != nil:
		return x.failure(err)
	case big != nil:
		discard(x.life.sink, big)
		return x.tooLong()
	case len(msg) == 0:
		return x.wrongAnswer(resp, "an empty body")
	}
	ours := answers(msg, x.m.ID)
	var start []byte
	var others []*exchange
	if !ours {
		others = x.others(msg)
		start = x.origin.scrubStart(msg, endSize, x.session)
	}
	x.life.sink.Message(msg)
	if !ours {
		tell(others)
		return &Error{Class: messages.ClassProtocol, Status: resp.StatusCode, Body: start,
			Text: x.origin.label + " answered with something else than the answer to the request"}
	}
	return nil
}

func (x *exchange) tooLong() *Error {
	return &Error{Class: messages.ClassProtocol, Text: x.origin.label + " gave an answer that is over the limit",
		Fix: "raise maxMessage, or ask for less"}
}

// waste has the server pay for an event that carries nothing.
func (x *exchange) waste(size int) {
	x.origin.share.Charge(time.Microsecond+readPrice(size), budget.Unknown, time.Now())
	takePause(x.origin.share, x.life.ctx.Done())
}

// deliver gives an event's message to the sink and reports whether it was the answer; tooLong that it was the answer,
// or may have been, and was over the limit.
func (x *exchange) deliver(e event) (answer, tooLong bool) {
	switch {
	case !e.isMessage():
		x.waste(len(e.data))
		return false, false
	case e.big != nil:
		tooLong = x.m.ID != 0 && answers(e.big.head, x.m.ID)
		discard(x.life.sink, e.big)
		takePause(x.origin.share, x.life.ctx.Done())
		return false, tooLong
	case len(e.data) == 0:
		x.waste(0)
		return false, false
	}
	answer = x.m.ID != 0 && answers(e.data, x.m.ID)
	var others []*exchange
	if !answer {
		others = x.others(e.data)
	}
	if x.m.ID != 0 && x.c.relater != nil { // only a message of ours has a connection here for sure
		x.c.relater.MessageOn(x.m.ID, e.data)
	} else {
		x.life.sink.Message(e.data)
	}
	tell(others)
	if !answer {
		takePause(x.origin.share, x.life.ctx.Done())
	}
	return answer, false
}
