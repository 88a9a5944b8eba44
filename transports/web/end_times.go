package web

import (
	"sync/atomic"
	"time"
)

// streamEndTimes averages how long after an answer the end of its stream comes on one connection. A stream should end with its
// answer, and most ends are there within microseconds: waiting for one costs less than the new connection that a caller needs who
// calls again at once. Some servers leave their streams open for longer, or for good. Waiting for those would cost every call the
// same again, so that a goroutine reads their ends, and the number of connections grows until there are enough.
//
// The zero value expects ends to come soon. It is safe for concurrent use; of two ends that are noted at once one may be lost,
// which changes the average little.
type streamEndTimes struct{ average atomic.Int64 } // nanoseconds

// endBound returns how long a Send waits for the end after an answer that took so long: as long again, because on a busy machine
// both take long, but at least 20 ms and at most 100 ms.
func endBound(answer time.Duration) time.Duration {
	return min(max(answer, 20*time.Millisecond), 100*time.Millisecond)
}

// isWorthWaiting reports whether an end is worth waiting for up to that bound: it is if the average end comes within a quarter of
// it.
func (e *streamEndTimes) isWorthWaiting(bound time.Duration) bool {
	return time.Duration(e.average.Load()) <= bound/4
}

// endTimeWeight is the number of ends over which the average goes: each new one counts for an eighth.
const endTimeWeight = 8

// noteEnd notes an end that came so long after its answer, or that was waited for so long in vain.
func (e *streamEndTimes) noteEnd(after time.Duration) {
	was := e.average.Load()
	e.average.Store(was + (int64(after)-was)/endTimeWeight)
}
