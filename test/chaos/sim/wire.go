package sim

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// This file and those beside it (pipe.go, web.go) are the transport in memory. What is on the other side of it is a far: the
// world, or the scripted peer of the contract suite. They know nothing of virtual time.

// remoteEnd is the other end of connections. Its methods are called from goroutines of the manager; they must not block, and
// must not call back.
type remoteEnd interface {
	// onDialed says that somebody wants the connection; accept or refuse follows, or nothing.
	onDialed(c conn)
	// onSent brings a message.
	onSent(c conn, x *exchange)
	// onAbandoned says that nobody waits any more, for the opening (x is nil) or for the answer to x.
	onAbandoned(c conn, x *exchange)
	// onClosing says that the client has closed its side, or with signal that the process is asked to end. exit follows,
	// or nothing.
	onClosing(c conn, signal bool)
	// onReleased says that nothing is left of it.
	onReleased(c conn)
}

// conn is a connection as its far end sees it.
type conn interface {
	transports.Conn
	base() *baseConn
	// acceptOpening and refuse end the opening. They report false if nobody waits for it any more.
	acceptOpening(session string) bool
	refuseOpening(err *transports.Error, delivery transports.Delivery) bool
	// deliverMessage delivers a whole message. reply is the id of the request in whose exchange it goes, or empty; more says that
	// the exchange goes on. It reports false if nobody reads there any more.
	deliverMessage(body []byte, reply string, more bool) bool
	// deliverBytes delivers bytes that are no whole message.
	deliverBytes(p []byte)
	// denyExchange ends the exchange of that id ("": a notification's) without an answer.
	denyExchange(reply string, d transports.Delivery, err *transports.Error) bool
	// cutStream ends the stream for what is said unasked.
	cutStream()
	// markTaken says that the message was taken, and that no refusal of it follows.
	markTaken(x *exchange)
	// endRemote ends the far side.
	endRemote(end ending)
	// setReading says whether the far side reads.
	setReading(reading bool)
}

// ending is how the far side of a connection ends.
type ending struct {
	err  *transports.Error
	text string // of a process: "exit status 1", "signal: killed"
}

// exchange is one message on its way, and, over HTTP, its answer.
type exchange struct {
	id     string // of a request, as JSON text
	call   string // the caller's own id of a call
	body   []byte
	method string
	header map[string]string // over HTTP

	// These belong to the connection's lock.
	handedOver, completed bool
	resent, resendPending bool // it was sent again with another token; and that is not taken yet
	delivery              transports.Delivery
	err                   error
	done                  chan struct{} // closed when settled
}

func newExchange(m transports.Message) *exchange {
	x := &exchange{method: m.Method, body: append([]byte(nil), m.Body...), done: make(chan struct{})}
	if m.ID != 0 {
		x.id = strconv.FormatInt(m.ID, 10)
	}
	if m.Method == "tools/call" {
		x.call = callOf(x.body)
	}
	return x
}

// completeLocked is called with the connection's lock held.
func (x *exchange) completeLocked(d transports.Delivery, err error) {
	if !x.completed {
		x.completed, x.delivery, x.err = true, d, err
		close(x.done)
	}
}

// baseConn is what all connections have.
type baseConn struct {
	kind   messages.TransportKind
	label  string
	limit  int64
	grace  time.Duration
	hide   func(string) string
	extra  map[string]string // headers, with their secrets
	token  *bearerToken      // nil where none is shown
	remote remoteEnd
	sink   transports.Sink

	number    int // of the opening; only the far side uses it
	itemCount int // only the world's inbox uses it

	sinkMu       sync.RWMutex // held for reading while the sink is given something
	downReported bool

	mu            sync.Mutex
	opened        bool
	openAbandoned bool // nobody waits for the opening any more
	openHeld      bool // the opening does not end before its answer
	cause         *transports.Error
	session       string
	stderr        string
	exitText      string
	noiseCount    int64

	openAnswered chan struct{} // closed when the opening has ended
	refusal      *transports.Error
	connEnded    chan struct{} // closed when the connection has ended for its user
	remoteExited chan struct{} // closed when the far side has
	allReleased  chan struct{} // closed when nothing is left

	exitOnce, releaseOnce sync.Once
}

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

// firstPID makes the process ids that are told differ from those of any real child.
const firstPID = 1 << 22

// callSink gives the sink something, unless it was told of the end.
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
	defer func() { _ = recover() }() // a sink that panics in Down costs nothing: there is nothing left to end
	w.sink.Down(w.endCause())
}

// endConn ends the connection for its user. Only the first cause counts.
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

// endCause is why the connection has ended, nil while it lives. It is without the status and the body of a refusal, which are
// about one message.
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

func (w *baseConn) releaseConn(c conn) {
	w.releaseOnce.Do(func() {
		w.remote.onReleased(c)
		close(w.allReleased)
	})
}

// left says that the far side is gone.
func (w *baseConn) markExited(text string) {
	w.exitOnce.Do(func() {
		w.mu.Lock()
		w.exitText = text
		w.mu.Unlock()
		close(w.remoteExited)
	})
}

// awaitExit waits until the far side is gone, for at most d.
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

// awaitRelease waits for the release.
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

// awaitOpening waits for the answer to a dial.
func (w *baseConn) awaitOpening(ctx context.Context, c conn) (transports.Conn, error) {
	select {
	case <-w.openAnswered:
	case <-ctx.Done():
		w.mu.Lock()
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

// holdOpening lets the opening last until its answer, whatever its context says.
func (w *baseConn) holdOpening() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.openHeld = true
}

// answerOpening ends the opening. It reports false if nobody waits for it.
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

// deliverToSink gives the sink a whole message, or says that it is too long.
func (w *baseConn) deliverToSink(body []byte) {
	if int64(len(body)) > w.limit {
		w.reportOversized(body, int64(len(body)))
		return
	}
	body = append([]byte(nil), body...)
	w.callSink(func(s transports.Sink) { s.Message(body) })
}

// endSize is how much of each end of a message that is too long is kept, noiseSize how much of a line of noise.
const (
	endSize   = 4 << 10
	noiseSize = 256
)

func (w *baseConn) reportOversized(p []byte, size int64) {
	head := append([]byte(nil), p[:min(len(p), endSize)]...)
	tail := append([]byte(nil), p[max(0, len(p)-endSize):]...)
	w.callSink(func(s transports.Sink) { s.Oversized(head, tail, size) })
}

func (w *baseConn) reportNoise(line []byte) {
	w.mu.Lock()
	w.noiseCount++
	w.mu.Unlock()
	line = []byte(w.hide(string(line[:min(len(line), noiseSize)])))
	w.callSink(func(s transports.Sink) { s.Noise(line) })
}

func (w *baseConn) sessionID() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.session
}

func contextError(ctx context.Context, doing string) *transports.Error {
	if err := ctx.Err(); err == context.DeadlineExceeded {
		return &transports.Error{Class: messages.ClassTimeout, Text: doing + " took too long", Err: err}
	}
	return &transports.Error{Class: messages.ClassCanceled, Text: doing + " was canceled", Err: ctx.Err()}
}

func closedError() *transports.Error {
	return &transports.Error{Class: messages.ClassCanceled, Text: "the connection was closed"}
}
