package audit

import (
	"bytes"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/messages"
)

const (
	// gatherTime is the wait for further records before the first is written: a write for each record would cost more than the call.
	gatherTime = 10 * time.Millisecond
	// chunk bounds the bytes that the writer gets at once, unless one line alone is longer.
	chunk = 64 << 10
	// maxSpare bounds the buffer that is kept for the next queue.
	maxSpare = 1 << 20
	// firstRetry and lastRetry are the shortest and the longest time before a writer that failed is tried again.
	firstRetry, lastRetry = 100 * time.Millisecond, 5 * time.Second
)

// formatCount writes a count for a person.
func formatCount(n uint64) string { return strconv.FormatUint(n, 10) }

// writeLoop is the goroutine of a log, and the only one that calls the writer. A panic in it, a defect of this package, closes the
// log; a panic of the writer is caught in writeOnce.
func (l *Log) writeLoop() {
	defer close(l.done)
	// The state of the writer belongs to this goroutine and needs no lock.
	w := &batchWriter{Log: l}
	defer func() {
		if p := recover(); p != nil {
			l.opts.Logger.Error("panic in the audit log; it ends", zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
			l.mu.Lock()
			l.closed = true
			l.mu.Unlock()
		}
	}()
	for {
		over := false
		select {
		case <-l.wake:
			w.gatherRecords()
		// The queue is written once more below, and then the goroutine ends.
		case <-l.closing:
			over = true
		}
		for batch := l.takeQueue(); batch != nil; batch = l.takeQueue() {
			rest := w.writeBatch(batch)
			l.keepBuffer(batch)
			// The log is closing and the last try has failed: the rest is lost.
			if rest != nil {
				l.dropUnwritten(rest)
				return
			}
		}
		if over {
			return
		}
	}
}

// batchWriter has what the goroutine remembers of the writer: whether it failed, and when to try again.
type batchWriter struct {
	*Log
	// torn says that the writer last took a part of a line.
	torn bool
	wait time.Duration // before the next try; 0 while the writer works
	// scratch is reused for a batch that needs a leading newline.
	scratch []byte
}

// gatherRecords waits a little for more records, unless Flush or Close waits for them.
func (w *batchWriter) gatherRecords() {
	t := time.NewTimer(gatherTime)
	defer t.Stop()
	select {
	case <-t.C:
	// A caller waits, so gathering would only delay it.
	case <-w.flushAsked:
	case <-w.closing:
	}
}

// takeQueue empties the queue and returns its lines; nil if there are none. Without records to write, an open gap is reported.
func (l *Log) takeQueue() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	// After a flood the gap is reported even if no record follows.
	if l.queued == 0 && l.gap != nil {
		l.queueGap(0)
	}
	if l.queued == 0 {
		return nil
	}
	// The two buffers change places, so that calls can queue while the goroutine writes.
	batch := l.queue
	// The taken records still count against the bounds until they are written.
	l.takenRecords, l.takenBytes = l.queued, len(batch)
	l.queue, l.spareBuffer, l.queued = l.spareBuffer[:0], nil, 0
	return batch
}

// keepBuffer keeps a buffer for the next queue, unless it is large.
func (l *Log) keepBuffer(batch []byte) {
	if cap(batch) > maxSpare {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spareBuffer = batch[:0]
}

// writeBatch writes whole lines until the writer has taken them all, however often it must try. When the log is closed it tries once
// more, and returns what is still not written.
func (w *batchWriter) writeBatch(batch []byte) (rest []byte) {
	last := false
	// partial counts the bytes of the first line that the writer has, if only its end is missing.
	partial := 0
	for len(batch) > 0 {
		// The writer may take any number of bytes: whole lines count as written, and the rest is tried again.
		n, err := w.writeOnce(wholeLines(batch)[partial:])
		n += partial
		whole := bytes.LastIndexByte(batch[:n], '\n') + 1
		if n > partial {
			w.torn = whole < n
		}
		// A line that lacks only its end is a record for a reader already: written again, it would be read twice.
		if partial = 0; n > whole && batch[n] == '\n' {
			partial, w.torn = n-whole, false
		}
		w.countWritten(bytes.Count(batch[:whole], []byte{'\n'}), whole)
		batch = batch[whole:]
		if err == nil {
			// The loop continues with the next lines.
			w.noteRecovery()
			continue
		}
		w.noteFailure(err)
		if last {
			return batch
		}
		// A closed log does not wait: it tries once more and ends.
		t := time.NewTimer(w.wait)
		select {
		case <-t.C:
		case <-w.closing:
			last = true
		}
		t.Stop()
	}
	return nil
}

// wholeLines returns the whole lines at the beginning of a batch that are written at once; at least one.
func wholeLines(batch []byte) []byte {
	if len(batch) <= chunk {
		return batch
	}
	// The last newline within the chunk; a first line that is longer than a chunk goes alone.
	if n := bytes.LastIndexByte(batch[:chunk], '\n'); n >= 0 {
		return batch[:n+1]
	}
	return batch[:bytes.IndexByte(batch, '\n')+1]
}

// writeOnce calls the writer, and returns how many bytes of p it took. If the writer has a torn line, a newline is written first. A
// panic counts as an error after which any part may have been written.
func (w *batchWriter) writeOnce(p []byte) (n int, err error) {
	lead := 0
	if w.torn {
		// One write, so that no other process can come between the newline and the lines.
		w.scratch = append(append(w.scratch[:0], '\n'), p...)
		p, lead = w.scratch, 1
	}
	defer func() {
		if r := recover(); r != nil {
			n, err = 0, fmt.Errorf("the writer panicked: %v", r)
			w.torn = true // it may have taken any part
		}
	}()
	n, err = w.writer.Write(p)
	// A writer with a defect may return any number.
	n = min(max(n, 0), len(p))
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	if n >= lead && lead > 0 {
		w.torn = false
	}
	return max(n-lead, 0), err
}

// countWritten counts records as written, and wakes the callers of Flush.
func (l *Log) countWritten(records, size int) {
	if records == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.takenRecords, l.takenBytes = l.takenRecords-records, l.takenBytes-size
	l.settled += uint64(records)       //nolint:gosec // a count
	l.stats.Written += uint64(records) //nolint:gosec // a count
	l.wakeWaiters()
}

// wakeWaiters wakes the goroutines that wait for records to be settled. The caller holds mu.
func (l *Log) wakeWaiters() {
	if l.change != nil {
		close(l.change)
		l.change = nil
	}
}

// dropUnwritten counts the rest of a batch, and the queue behind it, as lost: the log is closed and the writer fails.
func (l *Log) dropUnwritten(rest []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, lines := range [][]byte{rest, l.queue} {
		// The lines are decoded again for their kinds, which the lost record counts.
		for line := range bytes.Lines(lines) {
			kind := KindCall
			if r, ok := decodeRecord(line); ok {
				kind = r.Kind
			}
			l.settled++
			l.countLost(kind, time.Now())
		}
	}
	l.takenRecords, l.takenBytes, l.queued, l.queue = 0, 0, 0, nil
	l.wakeWaiters()
	l.opts.Logger.Error("audit records are lost", zap.Uint64("lost", l.stats.Lost), zap.String("error", l.stats.Failing))
}

// noteFailure records the writer's error and doubles the wait. Only the first failure in a row is logged.
func (w *batchWriter) noteFailure(err error) {
	text := messages.Line(err.Error(), 300)
	// The wait is zero only while the writer works.
	first := w.wait == 0
	w.wait = min(max(2*w.wait, firstRetry), lastRetry)
	w.mu.Lock()
	w.stats.Failing = text
	if w.gap != nil {
		w.gap.Why = text
	}
	if first {
		w.stats.Since = time.Now()
	}
	w.mu.Unlock()
	if first {
		w.opts.Logger.Error("audit records cannot be written; it is tried again, and what cannot wait is lost",
			zap.String("error", text))
	}
}

// noteRecovery records that the writer works again.
func (w *batchWriter) noteRecovery() {
	// The usual case: the writer has never failed, or recovered before.
	if w.wait == 0 {
		return
	}
	w.wait = 0
	w.mu.Lock()
	lost := w.stats.Lost
	w.stats.Failing, w.stats.Since = "", time.Time{}
	w.mu.Unlock()
	w.opts.Logger.Warn("audit records are written again", zap.Uint64("lost", lost))
}
