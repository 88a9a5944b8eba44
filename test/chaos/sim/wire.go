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

// far is the other end of connections. Its methods are called from goroutines of the manager; they must not block, and
// must not call back.
type far interface {
	// dialed says that somebody wants the connection; accept or refuse follows, or nothing.
	dialed(c conn)
	// sent brings a message.
	sent(c conn, x *exchange)
	// left says that nobody waits any more, for the opening (x is nil) or for the answer to x.
	left(c conn, x *exchange)
	// closing says that the client has closed its side, or with signal that the process is asked to end. exit follows,
	// or nothing.
	closing(c conn, signal bool)
	// released says that nothing is left of it.
	released(c conn)
}

// conn is a connection as its far end sees it.
type conn interface {
	transports.Conn
	base() *wire
	// accept and refuse end the opening. They report false if nobody waits for it any more.
	accept(session string) bool
	refuse(err *transports.Error, delivery transports.Delivery) bool
	// give delivers a whole message. reply is the id of the request in whose exchange it goes, or empty; more says that
	// the exchange goes on. It reports false if nobody reads there any more.
	give(body []byte, reply string, more bool) bool
	// raw delivers bytes that are no whole message.
	raw(p []byte)
	// deny ends the exchange of that id ("": a notification's) without an answer.
	deny(reply string, d transports.Delivery, err *transports.Error) bool
	// cut ends the stream for what is said unasked.
	cut()
	// took says that the message was taken, and that no refusal of it follows.
	took(x *exchange)
	// exit ends the far side.
	exit(end ending)
	// hear says whether the far side reads.
	hear(ears bool)
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
	begun, settled bool
	renewed, again bool // it was sent again with another token; and that is not taken yet
	delivery       transports.Delivery
	err            error
	done           chan struct{} // closed when settled
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

// settle is called with the connection's lock held.
func (x *exchange) settle(d transports.Delivery, err error) {
	if !x.settled {
		x.settled, x.delivery, x.err = true, d, err
		close(x.done)
	}
}

// wire is what all connections have.
type wire struct {
	kind  messages.TransportKind
	label string
	limit int64
	grace time.Duration
	hide  func(string) string
	extra map[string]string // headers, with their secrets
	token *token            // nil where none is shown
	far   far
	sink  transports.Sink

	number int // of the opening; only the far side uses it
	posts  int // only the world's inbox uses it

	reading sync.RWMutex // held for reading while the sink is given something
	told    bool

	mu       sync.Mutex
	opened   bool
	gone     bool // nobody waits for the opening any more
	stuck    bool // the opening does not end before its answer
	cause    *transports.Error
	session  string
	stderr   string
	exitText string
	noise    int64

	answered chan struct{} // closed when the opening has ended
	refusal  *transports.Error
	dead     chan struct{} // closed when the connection has ended for its user
	exited   chan struct{} // closed when the far side has
	over     chan struct{} // closed when nothing is left

	exitOnce, releaseOnce sync.Once
}

func newWire(t *Transport, sink transports.Sink) wire {
	return wire{
		kind: t.Server, label: t.Label, limit: t.MaxMessage, grace: t.Grace, hide: t.Hide, extra: t.Headers, token: t.token, far: t.far, sink: sink,
		answered: make(chan struct{}), dead: make(chan struct{}), exited: make(chan struct{}), over: make(chan struct{}),
	}
}

func (w *wire) base() *wire { return w }

// Negotiated implements transports.Conn. No frame here depends on the version.
func (w *wire) Negotiated(string) {}

// Released implements transports.Conn.
func (w *wire) Released() <-chan struct{} { return w.over }

// Info implements transports.Conn.
func (w *wire) Info() transports.Info {
	w.mu.Lock()
	defer w.mu.Unlock()
	info := transports.Info{StderrTail: w.hide(w.stderr), Noise: w.noise, SessionID: w.session, Exit: w.exitText}
	if w.kind == messages.Stdio && w.exitText == "" {
		info.PID = firstPID + w.number
	}
	return info
}

// firstPID makes the process ids that are told differ from those of any real child.
const firstPID = 1 << 22

// tell gives the sink something, unless it was told of the end.
func (w *wire) tell(f func(transports.Sink)) {
	w.reading.RLock()
	defer w.reading.RUnlock()
	if !w.told {
		f(w.sink)
	}
}

// down tells the sink of the end, once.
func (w *wire) down() {
	w.reading.Lock()
	told := w.told
	w.told = true
	w.reading.Unlock()
	if told {
		return
	}
	defer func() { _ = recover() }() // a sink that panics in Down costs nothing: there is nothing left to end
	w.sink.Down(w.ended())
}

// end ends the connection for its user. Only the first cause counts.
func (w *wire) end(cause *transports.Error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cause != nil {
		return false
	}
	w.cause = cause
	close(w.dead)
	return true
}

// ended is why the connection has ended, nil while it lives. It is without the status and the body of a refusal, which are
// about one message.
func (w *wire) ended() *transports.Error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cause == nil || w.cause.Status == 0 && w.cause.Body == nil {
		return w.cause
	}
	e := *w.cause
	e.Status, e.Body = 0, nil
	return &e
}

func (w *wire) release(c conn) {
	w.releaseOnce.Do(func() {
		w.far.released(c)
		close(w.over)
	})
}

// left says that the far side is gone.
func (w *wire) leave(text string) {
	w.exitOnce.Do(func() {
		w.mu.Lock()
		w.exitText = text
		w.mu.Unlock()
		close(w.exited)
	})
}

// exits waits until the far side is gone, for at most d.
func (w *wire) exits(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-w.exited:
		return true
	case <-t.C:
		return false
	}
}

// wait waits for the release.
func (w *wire) wait(ctx context.Context) error {
	select {
	case <-w.over:
		return nil
	default:
	}
	select {
	case <-w.over:
		return nil
	case <-ctx.Done():
		return contextError(ctx, "closing the connection")
	}
}

// open waits for the answer to a dial.
func (w *wire) open(ctx context.Context, c conn) (transports.Conn, error) {
	select {
	case <-w.answered:
	case <-ctx.Done():
		w.mu.Lock()
		if w.stuck {
			w.mu.Unlock()
			<-w.answered
			break
		}
		late := w.opened || w.refusal != nil
		w.gone = !late
		w.mu.Unlock()
		if !late {
			w.far.left(c, nil)
			return nil, contextError(ctx, "opening the connection to "+w.label)
		}
	}
	if w.refusal != nil {
		return nil, w.refusal
	}
	return c, nil
}

// hold lets the opening last until its answer, whatever its context says.
func (w *wire) hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stuck = true
}

// answer ends the opening. It reports false if nobody waits for it.
func (w *wire) answer(session string, refusal *transports.Error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone || w.opened || w.refusal != nil {
		return false
	}
	w.opened, w.session, w.refusal = refusal == nil, session, refusal
	close(w.answered)
	return true
}

// message gives the sink a whole message, or says that it is too long.
func (w *wire) message(body []byte) {
	if int64(len(body)) > w.limit {
		w.oversized(body, int64(len(body)))
		return
	}
	body = append([]byte(nil), body...)
	w.tell(func(s transports.Sink) { s.Message(body) })
}

// endSize is how much of each end of a message that is too long is kept, noiseSize how much of a line of noise.
const (
	endSize   = 4 << 10
	noiseSize = 256
)

func (w *wire) oversized(p []byte, size int64) {
	head := append([]byte(nil), p[:min(len(p), endSize)]...)
	tail := append([]byte(nil), p[max(0, len(p)-endSize):]...)
	w.tell(func(s transports.Sink) { s.Oversized(head, tail, size) })
}

func (w *wire) disturb(line []byte) {
	w.mu.Lock()
	w.noise++
	w.mu.Unlock()
	line = []byte(w.hide(string(line[:min(len(line), noiseSize)])))
	w.tell(func(s transports.Sink) { s.Noise(line) })
}

func (w *wire) sessionID() string {
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

func closedByUs() *transports.Error {
	return &transports.Error{Class: messages.ClassCanceled, Text: "the connection was closed"}
}
