package transports

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// listen opens the stream for what the server sends unasked, once, if the protocol version has one: the versions from
// 2026 on do not.
func (c *httpConn) listen() {
	c.mu.Lock()
	start := !c.listening && c.version != "" && c.version < "2026"
	c.listening = c.listening || start
	c.hears = c.hears || start
	if start {
		c.hearing, c.since = make(chan struct{}), time.Now()
	}
	c.mu.Unlock()
	if start && c.life.enter() {
		go func() {
			defer c.life.guard()
			defer c.deaf()
			c.keepListening()
		}()
	}
}

// attentionTime is how long a request waits for the stream to be open, counted from the handshake. Servers answer the
// GET at once, so that nothing is waited for as a rule; this is for those that keep the head back until there is an
// event.
const attentionTime = time.Second

// attend waits with a request that a server may have questions about until the stream is open on which it asks them.
// What it asks while no stream is open is lost, and it waits for the answer until its own timeout.
//
// 2025-11-25, Listening for Messages from the Server: "The server MAY send JSON-RPC requests and notifications on the
// stream."
func (c *httpConn) attend(ctx context.Context, m Message) {
	switch m.Method {
	case "tools/call", "prompts/get", "resources/read":
	default:
		return
	}
	c.mu.Lock()
	hearing, since := c.hearing, c.since
	c.mu.Unlock()
	if hearing == nil {
		return
	}
	select {
	case <-hearing:
		return
	default:
	}
	timer := time.NewTimer(attentionTime - time.Since(since))
	defer timer.Stop()
	select {
	case <-hearing:
	case <-timer.C:
	case <-ctx.Done():
	case <-c.life.ctx.Done():
	}
}

func (c *httpConn) deaf() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hears = false
}

// The pauses before the stream is opened again. After a stream that worked, the first one: a proxy that cuts idle
// streams costs a second each time. Then they double. A server's own wish (retry, Retry-After) is a lower bound.
const (
	listenFirst = time.Second
	listenMost  = 30 * time.Second
	// listenWorked is how long a stream must last, without an event, to count as one that worked.
	listenWorked = 10 * time.Second
)

// keepListening keeps the stream open until the connection ends or the server says that there is none. A lost stream is
// no lost connection, however long it lasts.
func (c *httpConn) keepListening() {
	l := listener{c: c, first: c.hearing}
	for failures := 0; ; failures++ {
		opened := time.Now()
		more, heard := l.once()
		if !more {
			return
		}
		if heard || time.Since(opened) >= listenWorked {
			failures = 0
		}
		if !sleepFor(c.life.ctx, streamDelay(failures, l.wait, listenFirst, listenMost)) {
			return
		}
	}
}

// listener holds the state that one stream hands on to the one that replaces it.
type listener struct {
	c      *httpConn
	lastID string
	retry  time.Duration
	// wait is the least pause that the server asks for before the next attempt.
	wait time.Duration
	// first is closed when the first opening is done, and nil after that.
	first chan struct{}
	// gap says that there was a time since the handshake in which no stream was open.
	gap bool
}

// once opens the stream and reads it to its end. more is false if the server has no stream.
func (l *listener) once() (more, heard bool) {
	ctx, cancel := context.WithCancel(l.c.life.ctx)
	defer cancel()
	l.wait = l.retry
	resp, err := l.c.openStream(ctx, l.lastID)
	if l.first != nil {
		close(l.first)
		l.first = nil
	}
	gap := l.gap && l.lastID == ""
	l.gap = true
	if err != nil {
		// A redirect that is not followed, or a page: there is no stream. Without credentials there is none either,
		// unless it is the network that keeps them.
		var own *Error
		return !errors.As(err, &own) || own.Class == messages.ClassNetwork, false
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusOK {
		if gap && l.c.resumer != nil {
			l.c.resumer.StreamReopened()
		}
		heard = l.read(resp)
		l.wait = l.retry
		return true, heard
	}
	session, _ := l.c.state()
	e := l.c.lost(l.c.origin.statusError(resp, startOf(resp.Body, cancel), session))
	l.wait = max(l.wait, e.RetryAfter)
	return l.again(e), false
}

// again reports whether a refusal means that the stream may be had later.
//
// "The server MUST either return Content-Type: text/event-stream in response to this HTTP GET, or else return HTTP 405
// Method Not Allowed, indicating that the server does not offer an SSE stream at this endpoint." Most other refusals
// mean the same; a POST will show what is wrong, if anything is. But 409 is how servers say that they have not
// noticed the end of the stream before, and a server that has a stream may refuse to go on after an event that it
// does not know any more.
func (l *listener) again(e *Error) bool {
	switch {
	case e.Class == messages.ClassThrottled, e.Status >= 500 && e.Status != http.StatusNotImplemented,
		e.Status == http.StatusConflict:
		return true
	case e.Class == messages.ClassUnauthorized, e.Class == messages.ClassForbidden, e.Class == messages.ClassSession,
		e.Status == http.StatusMethodNotAllowed, l.lastID == "":
		return false
	}
	l.lastID = ""
	return true
}

// read delivers everything that a stream brings.
func (l *listener) read(resp *http.Response) (heard bool) {
	r := newEventReader(resp.Body, l.c.origin.limit, holding{share: l.c.origin.share, ended: l.c.life.ctx.Done()})
	defer r.release()
	x := exchange{origin: l.c.origin, life: l.c.life, c: l.c} // of no message: nothing is its own answer
	for ; ; heard = true {
		e, err := r.next()
		if r.id != "" {
			l.lastID = r.id
		}
		if r.retry > 0 {
			l.retry = r.retry
		}
		if err != nil {
			return heard
		}
		x.deliver(e)
	}
}

// streamDelay is the pause before a stream is opened again: from first, doubled for each failure in a row up to most,
// shortened by up to a half at random so that a thousand streams that one proxy cut do not come back in one moment.
// asked is the server's wish, 0 if it has none. It is kept as it is after a stream that worked, and is a lower bound
// after failures.
//
// 2025-11-25: "If a server sends a retry field, the client MUST respect it, waiting the given number of milliseconds
// before attempting to reconnect."
func streamDelay(failures int, asked, first, most time.Duration) time.Duration {
	if failures == 0 && asked > 0 {
		return max(asked, leastDelay)
	}
	d := most
	if failures < 20 {
		d = min(first<<failures, most)
	}
	d -= rand.N(d/2 + 1)
	return max(d, asked)
}

// leastDelay keeps a server that asks for no pause, and ends each stream at once, from keeping us busy.
const leastDelay = 20 * time.Millisecond
