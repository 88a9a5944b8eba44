package transports

import (
	"errors"
	"io"
	"time"
)

// Some servers answer a POST with 202, or end its stream, and send the answer on another stream of the connection. The
// specification's legacy versions forbid it ("The server MUST NOT send a JSON-RPC response on the stream unless
// resuming a stream associated with a previous client request"), and it is clear all the same whose answer it is.

// strayAnswerTime is how long Send waits for an answer on another stream after its own response has ended without one.
const strayAnswerTime = 2 * time.Second

func (c *httpConn) forgetExchange(x *exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending[x.m.ID] == x {
		delete(c.pending, x.m.ID)
	}
}

// answeredExchanges are the exchanges whose answer body is, other than x itself. Almost always there are none. It must be asked
// before the sink gets body.
func (x *exchange) answeredExchanges(body []byte) (found []*exchange) {
	if x.c == nil {
		return nil
	}
	for id := range responseIDs(body) {
		x.c.mu.Lock()
		if other := x.c.pending[id]; other != nil && other != x {
			found = append(found, other)
		}
		x.c.mu.Unlock()
	}
	return found
}

// completeAnswered ends the Sends of those whose answer the sink has got.
func completeAnswered(answered []*exchange) {
	for _, x := range answered {
		x.answeredElsewhere.Store(true)
		x.cancel()
	}
}

// awaitStrayAnswer is the end of an exchange that brought no answer: that of the answer, if another stream has brought it,
// or brings it within strayAnswerTime. It waits only if its own response ended as if there were nothing to add, and if there
// is another stream that could bring it.
func (x *exchange) awaitStrayAnswer(d Delivery, err *Error) (Delivery, *Error) {
	if x.unanswered && !x.answeredElsewhere.Load() && x.c.hasOtherStreams() {
		sleepFor(x.ctx, strayAnswerTime)
	}
	if x.answeredElsewhere.Load() {
		return Written, nil
	}
	if x.unanswered && x.ctx.Err() != nil {
		return d, x.exchangeError(x.ctx.Err())
	}
	return d, err
}

// hasOtherStreams reports whether anything but the response to one request may bring messages.
func (c *httpConn) hasOtherStreams() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hasListenStream || len(c.pending) > 1
}

// noteEmptyEnd notes that a response ended without an answer, and as if that were right.
func (x *exchange) noteEmptyEnd(cause error) {
	x.unanswered = cause == nil || errors.Is(cause, io.EOF)
}
