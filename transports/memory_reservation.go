package transports

import (
	"time"

	"github.com/mcpvisor/mcpvisor/transports/budget"
)

// reservationWait is how long a message waits, half received, until others let go of so much that the rest of it may be held too.
// Nothing more is read from the server meanwhile. Then the message is discarded: two of them that wait for each other end so.
const reservationWait = 2 * time.Second

// memoryReservation counts the bytes that a connection holds of messages that are not complete, as far as the server's share knows of it: what
// fits into the buffers that are used again is not counted. The zero value holds nothing and asks no share. It is used by
// one goroutine at a time.
type memoryReservation struct {
	share     *budget.Share
	connEnded <-chan struct{} // closed when the connection ends: whatever waits for room gives up then
	reserved  int64
}

// reserveMore asks for n more bytes. It reports false if they are not to be had.
func (h *memoryReservation) reserveMore(n int64) bool {
	if h.share == nil {
		return true
	}
	freed := h.share.Freed() // before asking: what is given back in between counts
	if h.share.Take(n) == nil {
		h.reserved += n
		return true
	}
	t := time.NewTimer(reservationWait)
	defer t.Stop()
	for {
		select {
		case <-freed:
		case <-h.connEnded:
			return false
		case <-t.C:
			return false
		}
		freed = h.share.Freed()
		if h.share.Take(n) == nil {
			h.reserved += n
			return true
		}
	}
}

// releaseBytes lets n bytes go.
func (h *memoryReservation) releaseBytes(n int64) {
	h.share.Give(n)
	h.reserved -= n
}

// releaseAll lets everything go.
func (h *memoryReservation) releaseAll() { h.releaseBytes(h.reserved) }

// DiscardSink is a Sink that wants to know which messages were discarded because the server's share of the memory is used
// up, and not because of the limit. A sink that wraps another one may leave it out: Oversized says the same and less.
type DiscardSink interface {
	// Discarded is Oversized.
	Discarded(head, tail []byte, size int64)
}

// reportDiscarded tells a sink of a message that was not kept.
func reportDiscarded(to Sink, big *oversizedMessage) {
	if d, ok := to.(DiscardSink); ok && big.overBudget {
		d.Discarded(big.head, big.tail, big.size)
		return
	}
	to.Oversized(big.head, big.tail, big.size)
}

// takePause leaves a server unread that has made us work unasked, as long as its share says, or until ended is closed. What it
// writes meanwhile waits in the pipe or the connection, and so does the server when that is full.
func takePause(share *budget.Share, ended <-chan struct{}) {
	d := share.Pause(time.Now())
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ended:
	}
}

// readCost returns the processor time that reading and dropping so many bytes costs: 64 KiB in some 30 µs.
func readCost(n int) time.Duration { return time.Duration(n / 2) }
