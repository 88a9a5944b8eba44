package transports

import (
	"io"
	"net/http"
	"time"
)

// restTime and restSize bound how much of a response is read after what was asked for has come.
const (
	restTime = 2 * time.Second
	restSize = 1 << 20
)

// inBackground reads the response to a message that expects no answer. Such a response has no body; what one has is
// read to its end, so that the connection can be used again.
func (x *exchange) inBackground(resp *http.Response, kind string) {
	if resp.ContentLength == 0 || resp.Body == http.NoBody {
		_ = resp.Body.Close()
		return
	}
	if kind == eventStream {
		x.rest(resp, newEventReader(io.LimitReader(resp.Body, restSize), x.origin.limit, x.holding()), false)
		return
	}
	x.goOn(resp, func() { _, _ = io.CopyN(io.Discard, resp.Body, restSize) })
}

// rest reads what a stream has after the answer: most often only its end, without which net/http opens a new connection
// for the next request. Messages in it are delivered. With answered it waits for the end, if that is worth it: whoever
// calls again at once finds the connection then.
func (x *exchange) rest(resp *http.Response, r *eventReader, answered bool) {
	if r.exhausted() {
		r.release()
		_ = resp.Body.Close()
		return
	}
	began := time.Now()
	most := endBound(began.Sub(x.began))
	ended := x.goOn(resp, func() {
		defer r.release()
		for {
			e, err := r.next()
			if err != nil {
				if after := time.Since(began); after < most {
					x.c.ends.note(after)
				}
				return
			}
			x.deliver(e)
		}
	})
	if !answered || resp.ProtoMajor > 1 || !x.c.ends.worth(most) { // HTTP/2 shares a connection between requests
		return
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ended:
	case <-x.caller.Done():
	case <-timer.C:
		x.c.ends.note(most)
	}
}

// goOn reads on in a goroutine that ends with the response, with the connection, or after restTime. ended is closed when
// read has returned.
func (x *exchange) goOn(resp *http.Response, read func()) (ended <-chan struct{}) {
	x.goingOn = true
	x.stop()
	done := make(chan struct{})
	go func() {
		defer x.life.guard()
		defer x.cancel()
		timer := time.AfterFunc(restTime, x.cancel)
		defer timer.Stop()
		defer func() { _ = resp.Body.Close() }()
		defer close(done)
		read()
	}()
	return done
}
