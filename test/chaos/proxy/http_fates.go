package proxy

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/fault"
)

// wanted does what a fate says before its message arrives.
func (x *exchange) wanted(f fault.Fate) {
	if f.After > 0 && !x.pause(f.After) {
		panic(http.ErrAbortHandler)
	}
	for f.Block != "" && x.h.flow.Active(f.Block) {
		if !x.pause(look) {
			panic(http.ErrAbortHandler)
		}
	}
	if f.End != nil && !f.Last {
		x.die(f.End)
	}
}

// ended does what a fate says after its message.
func (x *exchange) ended(f fault.Fate) {
	if f.End != nil && f.Last {
		x.mu.Lock()
		_ = http.NewResponseController(x.w).Flush() // it goes out before the end comes
		x.mu.Unlock()
		x.die(f.End)
	}
}

// body1 is an answer of one message.
func (x *exchange) body1(status int, f fault.Fate) {
	b := f.Body
	if f.Big > 0 {
		b = grown(b, f.Big)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	x.begin(status)
	x.put(b, f)
}

// put writes bytes whole, torn or dripping. The lock is held.
func (x *exchange) put(b []byte, f fault.Fate) {
	if f.Torn {
		b = b[:min(f.Cut, len(b))]
	}
	if f.Chunk <= 0 {
		x.out(b)
		return
	}
	for c := range slices.Chunk(b, f.Chunk) {
		x.out(c)
		if !x.pause(f.Every) {
			return
		}
	}
}

// give is a whole answer that comes late.
func (x *exchange) give(b []byte) {
	x.mu.Lock()
	sse := x.sse
	x.mu.Unlock()
	if sse || x.takesEvents() {
		x.say(b)
		return
	}
	x.mu.Lock()
	x.w.Header().Set("Content-Type", "application/json")
	x.mu.Unlock()
	x.body1(http.StatusOK, fault.Fate{Body: b})
}

// pause reports false if the exchange has ended.
func (x *exchange) pause(d time.Duration) bool {
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
func (h *HTTP) answerLate(body []byte, f fault.Fate) {
	seen := h.flow.See(toClient, "", body, false)
	if len(seen) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for x := range h.open {
		if x.asked(seen[0].ID) {
			time.AfterFunc(f.After, func() {
				select {
				case x.late <- body:
				default: // it has had enough of them
				}
			})
		}
	}
}
