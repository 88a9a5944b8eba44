package web

import (
	"errors"
	"io"
	"time"

	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/pause"
)

// Some servers answer a POST with 202, or end its stream, and send the answer on another stream of the connection. The
// specification's legacy versions forbid it ("The server MUST NOT send a JSON-RPC response on the stream unless resuming a stream
// associated with a previous client request"), but the id shows which request it answers, so that this file lets it count.

// strayAnswerTime bounds the wait of Send for an answer on another stream after its own response has ended without one.
const strayAnswerTime = 2 * time.Second

// forgetExchange ends what beginExchange began. A later request with the same id stays known.
func (c *httpConn) forgetExchange(x *exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending[x.m.ID] == x {
		delete(c.pending, x.m.ID)
	}
}

// answeredExchanges returns the other exchanges that body answers, in nearly all cases none. It must be called before the sink
// gets body, because the sink may free the ids for new requests.
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

// completeAnswered ends the Sends of the exchanges whose answer the sink has got. Their wait ends by their context.
func completeAnswered(answered []*exchange) {
	for _, x := range answered {
		x.answeredElsewhere.Store(true)
		x.cancel()
	}
}

// awaitStrayAnswer returns the outcome of an exchange that brought no answer: success if another stream has brought the answer,
// or brings it within strayAnswerTime; else d and err. It waits only if its own response ended as if there were nothing to add,
// and if there is another stream that could bring the answer.
func (x *exchange) awaitStrayAnswer(d transports.Delivery, err *transports.Error) (transports.Delivery, *transports.Error) {
	if x.unanswered && !x.answeredElsewhere.Load() && x.c.hasOtherStreams() {
		pause.For(x.ctx, strayAnswerTime)
	}
	if x.answeredElsewhere.Load() {
		return transports.Written, nil
	}
	// The connection or the caller ended during the wait; that is the reason then.
	if x.unanswered && x.ctx.Err() != nil {
		return d, x.exchangeError(x.ctx.Err())
	}
	return d, err
}

// hasOtherStreams reports whether any stream but the response to one request may bring messages.
func (c *httpConn) hasOtherStreams() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hasListenStream || len(c.pending) > 1
}

// noteEmptyEnd notes that a response ended without an answer. A clean end means that the server sees nothing to add; a broken
// stream would have had more.
func (x *exchange) noteEmptyEnd(cause error) {
	x.unanswered = cause == nil || errors.Is(cause, io.EOF)
}
