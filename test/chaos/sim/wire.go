package sim

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/procinfo"
)

// This file, pipe.go and web.go are the transport in memory. Its other side is a remoteEnd: a simServer, or the scripted peer
// of the contract suite. Nothing here knows of virtual time, so that the contract suite of real transports can run on it.

// remoteEnd is the other end of connections. Goroutines of the manager call its methods, which must neither block nor call
// back.
type remoteEnd interface {
	// onDialed reports a dial; acceptOpening or refuseOpening follows later, or nothing.
	onDialed(c conn)
	// onSent hands a message over.
	onSent(c conn, x *exchange)
	// onAbandoned reports that the client waits no longer, for the opening (x is nil) or for the answer to x.
	onAbandoned(c conn, x *exchange)
	// onStreamWanted reports that the program's own client asks for a stream of events.
	onStreamWanted(c conn, x *exchange)
	// onClosing reports that the client has closed its side, or with signal that it sends the process SIGTERM. endRemote
	// follows later, or nothing.
	onClosing(c conn, signal bool)
	// onMeasured reports that the manager has read what the processes have used.
	onMeasured(c conn, used procinfo.Usage)
	// onReleased reports that nothing is left of the connection.
	onReleased(c conn)
}

// conn is a connection as its remoteEnd uses it.
type conn interface {
	transports.Conn
	base() *baseConn
	// acceptOpening and refuseOpening answer the dial. They return false if the client waits no longer.
	acceptOpening(session string) bool
	refuseOpening(err *transports.Error, delivery transports.Delivery) bool
	// deliverMessage delivers a whole message. reply is the id of the request in whose exchange it goes, or empty; more keeps
	// that exchange open. It returns false if the client has no stream for it.
	deliverMessage(body []byte, reply string, more bool) bool
	// deliverBytes delivers bytes that are no whole message.
	deliverBytes(p []byte)
	// denyExchange ends the exchange of the request reply ("": of a notification) without an answer. It returns false if there
	// is none.
	denyExchange(reply string, d transports.Delivery, err *transports.Error) bool
	// cutStream ends the stream for messages that belong to no request.
	cutStream()
	// markTaken ends the exchange of a message that has no answer, unless it was refused.
	markTaken(x *exchange)
	// endRemote ends the server's side.
	endRemote(end ending)
	// setReading stops or resumes the server's reading.
	setReading(reading bool)
}

// ending describes how the server's side of a connection ends.
type ending struct {
	// err is the error that the client sees.
	err *transports.Error
	// text is the exit status of a process ("exit status 1", "signal: killed"), empty otherwise.
	text string
}

// exchange is one message on its way and, over HTTP, its response.
type exchange struct {
	// id is the JSON text of a request's id, empty for other messages; call is the harness's id of a tool call, caller on whose behalf
	// the message is sent.
	id     string
	call   string
	caller string
	body   []byte
	method string
	// header holds what goes beside the message over HTTP.
	header map[string]string

	// The connection's lock guards these. handedOver is set when the server may have the message, completed when Send has its
	// result.
	handedOver, completed bool
	// resent is set when the message was sent again with a new token, resendPending until the server has handled it.
	resent, resendPending bool
	delivery              transports.Delivery
	err                   error
	// own is the response of the program's own client; nil for the model of it.
	own *ownResponse
	// done is closed when the exchange is completed.
	done chan struct{}
}

// newExchange copies the body, because the session reuses its buffer when Send returns.
func newExchange(m transports.Message) *exchange {
	x := &exchange{method: m.Method, caller: m.Caller, body: append([]byte(nil), m.Body...), done: make(chan struct{})}
	if m.ID != 0 {
		x.id = strconv.FormatInt(m.ID, 10)
	}
	if m.Method == "tools/call" {
		x.call = callOf(x.body)
	}
	return x
}

// isAboutTask reports whether the message is a request about a task.
func (x *exchange) isAboutTask() bool { return strings.HasPrefix(x.method, "tasks/") }

// completeLocked sets the result of an exchange; the first result counts. The caller holds the connection's lock.
func (x *exchange) completeLocked(d transports.Delivery, err error) {
	if !x.completed {
		x.completed, x.delivery, x.err = true, d, err
		close(x.done)
	}
}

// baseConn is the part that all connections share.
type baseConn struct {
	kind messages.TransportKind
	// label names the server and its port in errors, limit is the longest message in bytes.
	label string
	limit int64
	// grace is the time between the steps of a process's end, and for the answer to a DELETE.
	grace time.Duration
	// hide removes the server's secrets from a text. extra are headers that go with every message, secrets included. token is
	// nil where no credential is shown.
	hide   func(string) string
	extra  map[string]string
	token  *bearerToken
	remote remoteEnd
	sink   transports.Sink

	// number is the connection's number at the server; only the server's side uses it. itemCount counts its items in the inbox,
	// whose lock guards it.
	number    int
	itemCount int

	// sinkMu is held for reading while the sink is called, so that nothing reaches the sink after Down.
	// mu is not held then: a sink may call the connection.
	sinkMu       sync.RWMutex
	downReported bool

	// mu guards the state of the connection. openAbandoned is set when the client no longer waits for the opening; openHeld
	// makes the opening last until its answer, whatever its context says. cause is set when the connection has ended for its
	// user.
	mu            sync.Mutex
	opened        bool
	openAbandoned bool
	openHeld      bool
	cause         *transports.Error
	session       string
	stderr        string
	exitText      string
	noiseCount    int64

	// busySince is the time at which the shares runs and waits began, zero if the manager cannot read what the processes use.
	busySince   time.Time
	runs, waits float64

	// openAnswered is closed when the opening has an answer, connEnded when the connection has ended for its user, remoteExited
	// when the server's side has ended, allReleased when nothing is left.
	openAnswered chan struct{}
	refusal      *transports.Error
	connEnded    chan struct{}
	remoteExited chan struct{}
	allReleased  chan struct{}

	exitOnce, releaseOnce sync.Once
}

// newBaseConn takes the settings from the transport; nothing is dialled yet.
func newBaseConn(t *Transport, sink transports.Sink) baseConn {
	return baseConn{
		kind: t.Emulated, label: t.Label, limit: t.MaxMessage, grace: t.Grace, hide: t.Redact, extra: t.Headers, token: t.token, remote: t.remote, sink: sink,
		openAnswered: make(chan struct{}), connEnded: make(chan struct{}), remoteExited: make(chan struct{}), allReleased: make(chan struct{}),
	}
}

func (w *baseConn) base() *baseConn { return w }

// Negotiated implements transports.Conn. No frame here depends on the version.
func (w *baseConn) Negotiated(string) {}

// Released implements transports.Conn.
func (w *baseConn) Released() <-chan struct{} { return w.allReleased }

// Info implements transports.Conn.
func (w *baseConn) Info() transports.Info {
	w.mu.Lock()
	defer w.mu.Unlock()
	info := transports.Info{StderrTail: w.hide(w.stderr), Noise: w.noiseCount, SessionID: w.session, Exit: w.exitText}
	if w.kind == messages.Stdio && w.exitText == "" {
		info.PID = firstPID + w.number
	}
	return info
}

// setBusy says how the processes spend their time from now on: they run on a processor, and wait for one, for these shares of it.
func (w *baseConn) setBusy(runs, waits float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busySince, w.runs, w.waits = time.Now(), runs, waits
}

// usageNow returns what the processes have used since setBusy, and false before it.
func (w *baseConn) usageNow() (used procinfo.Usage, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busySince.IsZero() {
		return procinfo.Usage{}, false
	}
	passed := float64(time.Since(w.busySince))
	return procinfo.Usage{CPU: time.Duration(passed * w.runs), CPUWait: time.Duration(passed * w.waits)}, true
}

// firstPID is added to a connection's number to make a process id that no real process has.
const firstPID = 1 << 22

// callSink calls the sink, unless it was told of the end. sinkMu makes Down wait for calls that are under way.
func (w *baseConn) callSink(f func(transports.Sink)) {
	w.sinkMu.RLock()
	defer w.sinkMu.RUnlock()
	if !w.downReported {
		f(w.sink)
	}
}

// reportDown tells the sink of the end, once.
func (w *baseConn) reportDown() {
	w.sinkMu.Lock()
	reported := w.downReported
	w.downReported = true
	w.sinkMu.Unlock()
	if reported {
		return
	}
	// A sink that panics in Down harms nothing, because the connection has ended.
	defer func() { _ = recover() }()
	w.sink.Down(w.endCause())
}

// endConn ends the connection for its user. It returns false if it had ended before; only the first cause counts.
func (w *baseConn) endConn(cause *transports.Error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cause != nil {
		return false
	}
	w.cause = cause
	close(w.connEnded)
	return true
}

// endCause returns why the connection has ended, nil while it lives. It leaves out the HTTP status and body of a refusal, which
// belong to one message.
func (w *baseConn) endCause() *transports.Error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cause == nil || w.cause.Status == 0 && w.cause.Body == nil {
		return w.cause
	}
	e := *w.cause
	e.Status, e.Body = 0, nil
	return &e
}

// releaseConn reports that nothing is left of the connection, once.
func (w *baseConn) releaseConn(c conn) {
	w.releaseOnce.Do(func() {
		w.remote.onReleased(c)
		close(w.allReleased)
	})
}

// markExited records that the server's side has ended, once.
func (w *baseConn) markExited(text string) {
	w.exitOnce.Do(func() {
		w.mu.Lock()
		w.exitText = text
		w.mu.Unlock()
		close(w.remoteExited)
	})
}

// awaitExit waits until the server's side has ended, at most d.
func (w *baseConn) awaitExit(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-w.remoteExited:
		return true
	case <-t.C:
		return false
	}
}

// awaitRelease waits until nothing is left, or until ctx ends. A connection that is released already wins over an ended ctx.
func (w *baseConn) awaitRelease(ctx context.Context) error {
	select {
	case <-w.allReleased:
		return nil
	default:
	}
	select {
	case <-w.allReleased:
		return nil
	case <-ctx.Done():
		return contextError(ctx, "closing the connection")
	}
}

// awaitOpening waits for the answer to a dial. If ctx ends first, the dial is abandoned; an answer that came in the same
// instant still counts.
func (w *baseConn) awaitOpening(ctx context.Context, c conn) (transports.Conn, error) {
	select {
	case <-w.openAnswered:
	case <-ctx.Done():
		w.mu.Lock()
		// The fault stuck-dial: this dial returns only with its answer.
		if w.openHeld {
			w.mu.Unlock()
			<-w.openAnswered
			break
		}
		late := w.opened || w.refusal != nil
		w.openAbandoned = !late
		w.mu.Unlock()
		if !late {
			w.remote.onAbandoned(c, nil)
			return nil, contextError(ctx, "opening the connection to "+w.label)
		}
	}
	if w.refusal != nil {
		return nil, w.refusal
	}
	return c, nil
}

// holdOpening makes the opening last until its answer, whatever its context says (fault stuck-dial).
func (w *baseConn) holdOpening() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.openHeld = true
}

// answerOpening answers the dial. It returns false if the client waits no longer, or an answer was given before.
func (w *baseConn) answerOpening(session string, refusal *transports.Error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.openAbandoned || w.opened || w.refusal != nil {
		return false
	}
	w.opened, w.session, w.refusal = refusal == nil, session, refusal
	close(w.openAnswered)
	return true
}

// deliverToSink gives a copy of a whole message to the sink, or reports that it is too long.
func (w *baseConn) deliverToSink(body []byte) { w.deliverOn(0, body) }

// deliverOn is deliverToSink for a message that came on the stream of a request of the client; 0 for any other.
func (w *baseConn) deliverOn(request int64, body []byte) {
	if int64(len(body)) > w.limit {
		w.reportOversized(body, int64(len(body)))
		return
	}
	body = append([]byte(nil), body...)
	w.callSink(func(s transports.Sink) {
		if r, ok := s.(transports.RequestStreamSink); ok && request != 0 {
			r.MessageOn(request, body)
			return
		}
		s.Message(body)
	})
}

// endSize is the number of bytes kept of each end of an oversized message, noiseSize the number kept of a line of noise, as in
// package transports/internal/incoming.
const (
	endSize   = 4 << 10
	noiseSize = 256
)

// reportOversized reports a message over the limit to the sink, with its head and tail.
func (w *baseConn) reportOversized(p []byte, size int64) {
	head := append([]byte(nil), p[:min(len(p), endSize)]...)
	tail := append([]byte(nil), p[max(0, len(p)-endSize):]...)
	w.callSink(func(s transports.Sink) { s.Oversized(head, tail, size) })
}

// reportNoise counts a line that is no message, and gives its beginning to the sink without secrets.
func (w *baseConn) reportNoise(line []byte) {
	w.mu.Lock()
	w.noiseCount++
	w.mu.Unlock()
	line = []byte(w.hide(string(line[:min(len(line), noiseSize)])))
	w.callSink(func(s transports.Sink) { s.Noise(line) })
}

// sessionID returns the id of the HTTP session, empty if there is none.
func (w *baseConn) sessionID() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.session
}

// contextError translates the end of a context into an error of package transports.
func contextError(ctx context.Context, doing string) *transports.Error {
	if err := ctx.Err(); err == context.DeadlineExceeded {
		return &transports.Error{Class: messages.ClassTimeout, Text: doing + " took too long", Err: err}
	}
	return &transports.Error{Class: messages.ClassCanceled, Text: doing + " was canceled", Err: ctx.Err()}
}

// closedError is the cause of a connection that its user has closed.
func closedError() *transports.Error {
	return &transports.Error{Class: messages.ClassCanceled, Text: "the connection was closed"}
}
