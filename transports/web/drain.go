package web

import (
	"io"
	"net/http"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/internal/eventstream"
	"github.com/mcpvisor/mcpvisor/transports/internal/origin"
)

// responseDrainTime and responseDrainSize bound how much of a response is read after its answer has come. A longer rest costs
// more than the new connection that reading it saves.
const (
	responseDrainTime = 2 * time.Second
	responseDrainSize = 1 << 20
)

// drainResponse reads the response to a message that expects no answer. Such a response should have no body; a body is read to
// its end all the same, so that the connection can be used again.
func (x *exchange) drainResponse(resp *http.Response, kind string) {
	if resp.ContentLength == 0 || resp.Body == http.NoBody {
		_ = resp.Body.Close()
		return
	}
	// Some servers answer a notification with a stream; messages on it are delivered.
	if kind == origin.MediaEventStream {
		x.drainStream(resp, eventstream.NewReader(io.LimitReader(resp.Body, responseDrainSize), x.origin.Limit, x.newReservation()), false)
		return
	}
	x.readRestAsync(resp, func() { _, _ = io.CopyN(io.Discard, resp.Body, responseDrainSize) })
}

// drainStream reads what a stream has after the answer: most often only its end, without which net/http opens a new connection
// for the next request. It delivers messages. With answered it waits for the end, if that is worth it: a caller that calls again
// at once then finds the connection free.
func (x *exchange) drainStream(resp *http.Response, r *eventstream.Reader, answered bool) {
	if r.IsExhausted() {
		r.ReleaseBuffers()
		_ = resp.Body.Close()
		return
	}
	began := time.Now()
	bound := endBound(began.Sub(x.began))
	ended := x.readRestAsync(resp, func() {
		defer r.ReleaseBuffers()
		for {
			e, err := r.NextEvent()
			if err != nil {
				// The end came soon; the next Send may wait for it.
				if after := time.Since(began); after < bound {
					x.c.endTimes.noteEnd(after)
				}
				return
			}
			x.deliverEvent(e)
		}
	})
	// HTTP/2 shares a connection between requests, so that nothing is gained by waiting.
	if !answered || resp.ProtoMajor > 1 || !x.c.endTimes.isWorthWaiting(bound) {
		return
	}
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case <-ended:
	case <-x.callerCtx.Done():
	case <-timer.C:
		x.c.endTimes.noteEnd(bound)
	}
}

// readRestAsync reads on in a goroutine that ends with the response, with the connection, or after responseDrainTime. ended is
// closed when read has returned. The goroutine takes over the exchange's place inside the lifetime, so that endExchange does not
// leave.
func (x *exchange) readRestAsync(resp *http.Response, read func()) (ended <-chan struct{}) {
	x.readsRestAsync = true
	// From here on the end of the caller's context does not cut the response off.
	x.stop()
	done := make(chan struct{})
	go func() {
		defer x.lifetime.LeaveRecovering()
		defer x.cancel()
		timer := time.AfterFunc(responseDrainTime, x.cancel)
		defer timer.Stop()
		defer func() { _ = resp.Body.Close() }()
		defer close(done)
		read()
	}()
	return done
}
