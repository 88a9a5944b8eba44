package web

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/eventstream"
	"github.com/mcpvisor/mcpvisor/transports/internal/incoming"
	"github.com/mcpvisor/mcpvisor/transports/internal/origin"
	"github.com/mcpvisor/mcpvisor/transports/internal/pause"
)

// startListening opens the stream for unasked messages, once, if the protocol version has one: the versions from 2026 on do not.
// Send calls it after notifications/initialized.
func (c *httpConn) startListening() {
	c.mu.Lock()
	start := !c.listening && c.version != "" && c.version < "2026"
	c.listening = c.listening || start
	c.hasListenStream = c.hasListenStream || start
	if start {
		c.listenReady, c.listenSince = make(chan struct{}), time.Now()
	}
	c.mu.Unlock()
	if start && c.lifetime.Enter() {
		go func() {
			defer c.lifetime.LeaveRecovering()
			defer c.endListening()
			c.keepListening()
		}()
	}
}

// listenReadyTimeout bounds the wait of a request for the stream to be open, counted from the handshake. Most servers answer the
// GET at once, so that no request waits; the bound is for those that send no response header before the first event.
const listenReadyTimeout = time.Second

// awaitListenStream delays a request during which a server may ask for something until the stream is open on which it asks. A
// question that the server sends while no stream is open is lost, and the server waits for the answer until its own timeout.
//
// 2025-11-25, Listening for Messages from the Server: "The server MAY send JSON-RPC requests and notifications on the stream."
func (c *httpConn) awaitListenStream(ctx context.Context, m transports.Message) {
	switch m.Method {
	case "tools/call", "prompts/get", "resources/read":
	default:
		return
	}
	c.mu.Lock()
	hearing, since := c.listenReady, c.listenSince
	c.mu.Unlock()
	if hearing == nil {
		return
	}
	select {
	case <-hearing:
		return
	default:
	}
	// Long after the handshake the rest of the time is negative, and the timer fires at once.
	timer := time.NewTimer(listenReadyTimeout - time.Since(since))
	defer timer.Stop()
	select {
	case <-hearing:
	case <-timer.C:
	case <-ctx.Done():
	case <-c.lifetime.Ctx.Done():
	}
}

// endListening notes that no stream for unasked messages will come any more, so that no Send waits for an answer on it.
func (c *httpConn) endListening() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hasListenStream = false
}

// The pauses before the stream is opened again. After a stream that worked it is listenMinDelay: a proxy that cuts idle streams
// costs a second each time. Then they double. A time that the server asks for (retry, Retry-After) is a lower bound.
const (
	listenMinDelay = time.Second
	listenMaxDelay = 30 * time.Second
	// listenWorkedTime is the time that a stream without an event must last to count as one that worked.
	listenWorkedTime = 10 * time.Second
)

// keepListening keeps the stream open until the connection ends or the server says that there is none. A broken stream does not
// end the connection, however long it lasts, because requests go on without it.
func (c *httpConn) keepListening() {
	l := streamListener{c: c, firstOpened: c.listenReady}
	for failures := 0; ; failures++ {
		opened := time.Now()
		more, heard := l.listenOnce()
		if !more {
			return
		}
		if heard || time.Since(opened) >= listenWorkedTime {
			failures = 0
		}
		if !pause.For(c.lifetime.Ctx, streamDelay(c.rand, failures, l.wait, listenMinDelay, listenMaxDelay)) {
			return
		}
	}
}

// streamListener has the state that one stream hands on to the one that replaces it. One goroutine, keepListening's, uses it.
type streamListener struct {
	c *httpConn
	// lastID is the last event id, empty if the server does not number its events; retry is the last time that it asked for.
	lastID string
	retry  time.Duration
	// wait is the least pause that the server asks for before the next attempt.
	wait time.Duration
	// firstOpened is closed when the first opening is done, and nil after that.
	firstOpened chan struct{}
	// gap is true after the first attempt: from then on there was a time in which no stream was open.
	gap bool
}

// listenOnce opens the stream and reads it to its end. more is false if the server has no stream; heard is true if any event
// came.
func (l *streamListener) listenOnce() (more, heard bool) {
	ctx, cancel := context.WithCancel(l.c.lifetime.Ctx)
	defer cancel()
	l.wait = l.retry
	resp, err := l.c.openStream(ctx, l.lastID)
	if l.firstOpened != nil {
		close(l.firstOpened)
		l.firstOpened = nil
	}
	// With an event id the server sends again the missed events, so that nothing is lost.
	gap := l.gap && l.lastID == ""
	l.gap = true
	if err != nil {
		// A redirect that is not followed, or a page: the server has no stream. Without credentials there is none either, unless
		// only the network keeps them away.
		var own *transports.Error
		return !errors.As(err, &own) || own.Class == messages.ClassNetwork, false
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusOK {
		if gap && l.c.reopenSink != nil {
			l.c.reopenSink.StreamReopened()
		}
		heard = l.deliverEvents(resp)
		l.wait = l.retry
		return true, heard
	}
	session, _ := l.c.sessionAndVersion()
	e := l.c.endIfSessionLost(l.c.origin.StatusError(resp, origin.ReadErrorBody(resp.Body, cancel), session))
	l.wait = max(l.wait, e.RetryAfter)
	return l.mayReopen(e), false
}

// mayReopen reports whether a refusal means that the stream may be had later.
//
// "The server MUST either return Content-Type: text/event-stream in response to this HTTP GET, or else return HTTP 405 Method Not
// Allowed, indicating that the server does not offer an SSE stream at this endpoint." Most other refusals mean the same; a POST
// will show the fault, if there is one. But servers answer 409 when they have not noticed the end of the stream before, and a
// server that has a stream may refuse to go on after an event that it no longer knows: the next attempt then goes without an
// event id.
func (l *streamListener) mayReopen(e *transports.Error) bool {
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

// deliverEvents delivers every message that a stream brings, until the stream ends. heard is true if any event came.
func (l *streamListener) deliverEvents(resp *http.Response) (heard bool) {
	r := eventstream.NewReader(resp.Body, l.c.origin.Limit, incoming.Reservation{Share: l.c.origin.Share, ConnEnded: l.c.lifetime.Ctx.Done()})
	defer r.ReleaseBuffers()
	// This exchange belongs to no message, so that no event counts as its answer.
	x := exchange{origin: l.c.origin, lifetime: l.c.lifetime, c: l.c}
	for ; ; heard = true {
		e, err := r.NextEvent()
		if r.ID != "" {
			l.lastID = r.ID
		}
		if r.Retry > 0 {
			l.retry = r.Retry
		}
		if err != nil {
			return heard
		}
		x.deliverEvent(e)
	}
}

// streamDelay returns the pause before a stream is opened again: from first, doubled for each failure in a row up to maxDelay,
// and shortened by up to a half at random, so that a thousand streams that one proxy has cut do not come back in one moment.
// serverDelay is the time that the server asks for, 0 if it does not. It is kept as it is after a stream that worked, and is a
// lower bound after failures.
//
// 2025-11-25: "If a server sends a retry field, the client MUST respect it, waiting the given number of milliseconds before
// attempting to reconnect."
func streamDelay(random func() float64, failures int, serverDelay, first, maxDelay time.Duration) time.Duration {
	if failures == 0 && serverDelay > 0 {
		return max(serverDelay, minStreamDelay)
	}
	d := maxDelay
	if failures < 20 {
		d = min(first<<failures, maxDelay)
	}
	d -= time.Duration(random() * float64(d/2+1))
	return max(d, serverDelay)
}

// minStreamDelay bounds the load of a server that asks for no pause, and ends each stream at once: 50 attempts a second.
const minStreamDelay = 20 * time.Millisecond
