package proxy

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/fault"
)

// applyBeforeMessage does what a fate says before its message arrives.
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

// applyAfterMessage does what a fate says after its message.
func (x *exchange) applyAfterMessage(f fault.Disposition) {
	if f.End != nil && f.Last {
		x.mu.Lock()
		_ = http.NewResponseController(x.w).Flush() // it goes out before the end comes
		x.mu.Unlock()
		x.crashServer(f.End)
	}
}

// writeMessage is an answer of one message.
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

// writeBytes writes bytes whole, torn or dripping. The lock is held.
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

// sendLateAnswer is a whole answer that comes late.
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

// pauseFor reports false if the exchange has ended.
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

// answerLate gives an answer that was held back to the exchange that waits for it.
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
				default: // it has had enough of them
				}
			})
		}
	}
}
