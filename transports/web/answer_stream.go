package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/eventstream"
	"github.com/mcpvisor/mcpvisor/transports/internal/origin"
	"github.com/mcpvisor/mcpvisor/transports/internal/pause"
)

// readAnswerStream reads the answer's event stream until the answer, over as many responses as that takes.
//
// 2025-11-25, Resumability and Redelivery: "If the client wishes to resume after a disconnection (whether due to network failure
// or server-initiated closure), it SHOULD issue an HTTP GET to the MCP endpoint, and include the Last-Event-ID header to indicate
// the last event ID it received." A stream without event ids cannot be resumed, and the request is lost.
//
// A server may let the client poll for as long as the request takes: "After the server has sent an SSE event with an event ID to
// the client, the server MAY close the connection (without terminating the SSE stream) at any time in order to avoid holding a
// long-lived connection. The client SHOULD then \"poll\" the SSE stream by attempting to reconnect." Each response that brings a
// message, a new id or a retry time counts as a success; only the others count towards maxResumes.
func (x *exchange) readAnswerStream(resp *http.Response) (transports.Delivery, *transports.Error) {
	for fruitless := 0; ; fruitless++ {
		var broken error
		if resp != nil {
			done, err := x.readResponse(resp)
			if done {
				return transports.Written, nil
			}
			// An *Error says that the answer came and cannot be used, so that resuming would bring the same again.
			var own *transports.Error
			if errors.As(err, &own) {
				return transports.Written, own
			}
			if broken = err; x.hadEvents {
				fruitless = 0
			}
		}
		if x.ctx.Err() != nil {
			return transports.MaybeWritten, x.exchangeError(x.ctx.Err())
		}
		// 2026-07-28: "Resumable SSE streams via Last-Event-ID are not supported."
		if x.lastID == "" || fruitless == maxResumes || x.m.Version != "" {
			x.noteEmptyEnd(broken)
			return transports.MaybeWritten, x.brokenStreamError(broken)
		}
		if !pause.For(x.ctx, streamDelay(x.c.rand, fruitless, x.retry, resumeMinDelay, resumeMaxDelay)) {
			return transports.MaybeWritten, x.exchangeError(x.ctx.Err())
		}
		next, err := x.resumeStream() //nolint:bodyclose // the next round reads it to its end and closes it
		if err != nil {
			return transports.MaybeWritten, err
		}
		resp = next
	}
}

// maxResumes bounds the attempts in a row that bring nothing; then the request is given up as lost. The pauses between them begin
// at resumeMinDelay and double up to resumeMaxDelay, unless the server asks for another one.
const (
	maxResumes     = 5
	resumeMinDelay = 100 * time.Millisecond
	resumeMaxDelay = 5 * time.Second
)

// brokenStreamError is the error for a stream that ended before the answer and cannot be resumed. cause is nil for a clean end.
func (x *exchange) brokenStreamError(cause error) *transports.Error {
	if cause == nil {
		cause = io.ErrUnexpectedEOF
	}
	return &transports.Error{Class: messages.ClassNetwork, Err: cause,
		Text: x.origin.Label + " broke the stream before the answer came"}
}

// readResponse reads one response up to the answer or its end. It notes in x the last event id, the retry time, and whether there
// was any event. err is an *Error if resuming cannot help. After done, drainStream owns the body.
func (x *exchange) readResponse(resp *http.Response) (done bool, err error) {
	x.hadEvents = false
	r := eventstream.NewReader(resp.Body, x.origin.Limit, x.newReservation())
	defer func() {
		if !done {
			r.ReleaseBuffers()
			_ = resp.Body.Close()
		}
	}()
	for {
		e, err := r.NextEvent()
		if r.ID != "" {
			x.hadEvents = x.hadEvents || r.ID != x.lastID
			x.lastID = r.ID
		}
		if r.Retry > 0 {
			x.retry, x.hadEvents = r.Retry, true
		}
		if err != nil {
			if errors.Is(err, eventstream.ErrEndless) {
				return false, x.tooLongError()
			}
			return false, err
		}
		x.hadEvents = true
		answer, tooLong := x.deliverEvent(e)
		if tooLong {
			return false, x.tooLongError()
		}
		if answer {
			x.drainStream(resp, r, true)
			return true, nil
		}
	}
}

// resumeStream asks for the rest of the stream by a GET. A nil response without an error asks the caller to try again after a
// pause: the network or the server failed in a way that passes. Any other refusal is final.
func (x *exchange) resumeStream() (*http.Response, *transports.Error) {
	resp, err := x.c.openStream(x.ctx, x.lastID)
	if err != nil {
		var own *transports.Error
		switch {
		case x.ctx.Err() != nil:
			return nil, x.exchangeError(err)
		case errors.As(err, &own) && own.Class != messages.ClassNetwork:
			return nil, own
		}
		return nil, nil
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	// The server is overloaded or restarting, and may still have the stream.
	e := x.readRefusal(resp)
	if e.Class == messages.ClassNetwork && e.Status >= 500 || e.Class == messages.ClassThrottled {
		x.retry = max(x.retry, e.RetryAfter)
		return nil, nil
	}
	if e.Class == messages.ClassSession || e.Class == messages.ClassUnauthorized {
		return nil, e
	}
	return nil, x.brokenStreamError(e)
}

// openStream opens a stream by GET, to go on after lastID if that is not empty. The caller judges a response with another status
// than 200; a 200 that is no event stream is an *Error.
//
// 2025-11-25: "The client MUST include an Accept header, listing text/event-stream as a supported content type."
func (c *httpConn) openStream(ctx context.Context, lastID string) (*http.Response, error) {
	h := sessionHeader(c.sessionAndVersion())
	h.Set("Accept", "text/event-stream")
	if lastID != "" {
		h.Set("Last-Event-Id", lastID)
	}
	resp, _, err := c.origin.RoundTrip(ctx, http.MethodGet, c.origin.URL, &origin.HeaderSet{Own: h}, nil)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK && origin.MediaType(resp.Header) != origin.MediaEventStream {
		_ = resp.Body.Close()
		return nil, &transports.Error{Class: messages.ClassProtocol, Status: resp.StatusCode,
			Text: c.origin.Label + " answered a GET with something else than an event stream"}
	}
	return resp, nil
}
