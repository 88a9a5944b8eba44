package incoming

import (
	"time"

	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/budget"
)

// reservationWait bounds the time for which a half-received message waits until other servers release so much that the rest of it
// fits. The connection reads nothing more from the server meanwhile. Then the message is discarded, which also ends the deadlock
// of two messages that wait for each other's memory.
const reservationWait = 2 * time.Second

// Reservation counts the bytes that a connection has taken from the server's share for messages that are not complete. What fits
// into the pooled buffers is not counted. The zero value holds nothing and asks no share. One goroutine at a time uses it.
type Reservation struct {
	// Share is the server's part of the memory budget, nil for no bound.
	Share *budget.Share
	// ConnEnded is closed when the connection ends; ReserveMore gives up then.
	ConnEnded <-chan struct{}
	// reserved is the number of bytes that share counts for this connection.
	reserved int64
}

// ReserveMore takes n more bytes, and waits up to reservationWait for them. It reports false if they are still not free, or if
// the connection has ended; the caller discards the message then.
func (h *Reservation) ReserveMore(n int64) bool {
	if h.Share == nil {
		return true
	}
	// The channel is fetched before the attempt, so that a release between the two wakes the wait below.
	freed := h.Share.Freed()
	if h.Share.Take(n) == nil {
		h.reserved += n
		return true
	}
	t := time.NewTimer(reservationWait)
	defer t.Stop()
	for {
		select {
		case <-freed:
		case <-h.ConnEnded:
			return false
		case <-t.C:
			return false
		}
		freed = h.Share.Freed()
		if h.Share.Take(n) == nil {
			h.reserved += n
			return true
		}
	}
}

// releaseBytes gives n bytes back to the share.
func (h *Reservation) releaseBytes(n int64) {
	h.Share.Give(n)
	h.reserved -= n
}

// ReleaseAll gives everything back. The reservation can be used again.
func (h *Reservation) ReleaseAll() { h.releaseBytes(h.reserved) }

// ReportDiscarded gives a sink the ends of a message that was not kept, by the method that fits the reason.
func ReportDiscarded(to transports.Sink, big *Oversized) {
	if d, ok := to.(transports.DiscardSink); ok && big.OverBudget {
		d.Discarded(big.Head, big.Tail, big.Size)
		return
	}
	to.Oversized(big.Head, big.Tail, big.Size)
}

// TakePause stops reading from a server that has caused unasked work, as long as its share says, or until ended is closed. What
// the server writes meanwhile stays in the pipe or the connection; when that is full, the server itself is held up.
func TakePause(share *budget.Share, ended <-chan struct{}) {
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

// ReadCost returns the processor time that reading and dropping n bytes costs, half a nanosecond each: 64 KiB in some 30 µs.
func ReadCost(n int) time.Duration { return time.Duration(n / 2) }
