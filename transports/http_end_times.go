package transports

import (
	"sync/atomic"
	"time"
)

// streamEndTimes is how long after an answer the end of its stream comes on one connection, lately. A stream should end with its
// answer, and the end of most is there within microseconds: waiting for it costs less than what a caller pays who comes
// again and finds no connection. Some servers leave their streams open for longer, or for good. Waiting for those would
// cost every call the same again, so their ends are left to a goroutine, and the number of connections grows until there
// are enough.
//
// The zero value expects ends to come soon. Of two that are noted at once one may be lost.
type streamEndTimes struct{ average atomic.Int64 } // nanoseconds

// endBound is how long the end is waited for after an answer that took so long: as long again, because on a busy machine
// both take long, but at least 20 ms and at most 100 ms.
func endBound(answer time.Duration) time.Duration {
	return min(max(answer, 20*time.Millisecond), 100*time.Millisecond)
}

// isWorthWaiting reports whether an end is worth waiting for up to that bound: if the usual end comes within a quarter of it.
func (e *streamEndTimes) isWorthWaiting(bound time.Duration) bool {
	return time.Duration(e.average.Load()) <= bound/4
}

// endTimeWeight is how many ends it takes to change an opinion.
const endTimeWeight = 8

// noteEnd notes an end that came so long after its answer, or that was waited for so long in vain.
func (e *streamEndTimes) noteEnd(after time.Duration) {
	was := e.average.Load()
	e.average.Store(was + (int64(after)-was)/endTimeWeight)
}
