package proxy

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/fault"
)

// applyBeforeMessage performs the part of a decision that comes before the message: a delay, a hold until the rule ends, or the
// end of the server. It panics with ErrAbortHandler to break the exchange.
func (x *exchange) applyBeforeMessage(f fault.Disposition) {
	if f.After > 0 && !x.pauseFor(f.After) {
		panic(http.ErrAbortHandler)
	}
	for f.Block != "" && x.h.flow.Active(f.Block) {
		if !x.pauseFor(pollEvery) {
			panic(http.ErrAbortHandler)
		}
	}
	if f.End != nil && !f.Last {
		x.crashServer(f.End)
	}
}

// applyAfterMessage performs the part that comes after: the end of the server.
func (x *exchange) applyAfterMessage(f fault.Disposition) {
	if f.End != nil && f.Last {
		x.mu.Lock()
		// The message must reach the agent before the connection is reset.
		_ = http.NewResponseController(x.w).Flush()
		x.mu.Unlock()
		x.crashServer(f.End)
	}
}

// writeMessage writes an answer of one message as a whole body.
func (x *exchange) writeMessage(status int, f fault.Disposition) {
	b := f.Body
	if f.Big > 0 {
		b = growObject(b, f.Big)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	x.writeStatus(status)
	x.writeBytes(b, f)
}

// writeBytes writes bytes whole, cut short, or slowly. The caller holds x.mu, so that no other message lands in between.
func (x *exchange) writeBytes(b []byte, f fault.Disposition) {
	if f.Torn {
		b = b[:min(f.Cut, len(b))]
	}
	if f.Chunk <= 0 {
		x.writeAndFlush(b)
		return
	}
	for c := range slices.Chunk(b, f.Chunk) {
		x.writeAndFlush(c)
		if !x.pauseFor(f.Every) {
			return
		}
	}
}

// sendLateAnswer sends an answer that the rules had held back, as an event or as a body.
func (x *exchange) sendLateAnswer(b []byte) {
	x.mu.Lock()
	sse := x.sse
	x.mu.Unlock()
	if sse || x.acceptsEvents() {
		x.insertMessage(b)
		return
	}
	x.mu.Lock()
	x.w.Header().Set("Content-Type", "application/json")
	x.mu.Unlock()
	x.writeMessage(http.StatusOK, fault.Disposition{Body: b})
}

// pauseFor waits for d. It returns false if the exchange ended first.
func (x *exchange) pauseFor(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-x.ctx.Done():
		return false
	}
}

// answerLate hands an answer that a rule held back to the exchange that waits for it.
func (h *HTTP) answerLate(body []byte, f fault.Disposition) {
	seen := h.flow.Inspect(toClient, "", body, false)
	if len(seen) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for x := range h.exchanges {
		if x.hasRequest(seen[0].ID) {
			time.AfterFunc(f.After, func() {
				select {
				case x.lateAnswers <- body:
				// lateAnswers has room for four; further answers are dropped.
				default:
				}
			})
		}
	}
}
