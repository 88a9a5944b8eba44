package actors

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// DefaultWatchBuffer is how many events wait for a slow watcher before the oldest are dropped.
const DefaultWatchBuffer = 256

// callLag is how long who waits may be left waiting when all that there is to tell is of calls. A server with a thousand
// calls a second would otherwise wake every watcher two thousand times, on the processors that the calls need.
const callLag = time.Millisecond

// Hub hands events to watchers. It blocks nobody: a watcher that does not keep up loses its oldest events and is told
// how many. Without watchers an event costs one atomic load; with watchers, one copy, however many they are. What is told
// of calls reaches a watcher that waits at most a millisecond late, everything else at once.
type Hub struct {
	watching atomic.Int32

	mu       sync.Mutex
	seq      uint64 // of the newest event
	closed   bool
	watchers map[*Watcher]struct{}
	asleep   int // how many of them wait
	// ring holds the newest segments of events, each at its number modulo the length: as many as the slowest watcher may still
	// read. They are used again and again, so that an event costs its publisher no allocation.
	ring []*segment
	// lateTimer wakes who waits when only calls were told of; armed says that it will.
	lateTimer *time.Timer
	armed     bool
}

// segment holds the events of segmentSize sequence numbers, the first of which is a multiple of that. Everybody who may still
// read one of them shares it; the hub's lock guards it.
type segment struct {
	events [segmentSize]messages.Event
	// shared says that a watcher that was closed reads it: the hub writes what it has begun to write, and never uses it again.
	shared bool
}

const segmentSize = 32

// NewHub has no watchers.
func NewHub() *Hub { return &Hub{watchers: map[*Watcher]struct{}{}} }

// Watched reports whether anybody would see an event. It saves building one.
func (h *Hub) Watched() bool { return h.watching.Load() > 0 }

// Publish gives e the next sequence number and the time, and tells every watcher.
func (h *Hub) Publish(e messages.Event) {
	if !h.Watched() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.watchers) == 0 {
		return
	}
	h.seq++
	e.Seq = h.seq
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	if h.ring == nil || h.seq%segmentSize == 0 {
		h.beginSegment()
	}
	*h.eventAt(h.seq) = e
	switch {
	case h.asleep == 0:
	case e.Kind != messages.EventCallStarted && e.Kind != messages.EventCallEnded:
		h.wakeWatchers()
	case h.armed:
	case h.lateTimer == nil:
		h.armed = true
		h.lateTimer = time.AfterFunc(callLag, h.wakeLate)
	default:
		h.armed = true
		h.lateTimer.Reset(callLag)
	}
}

func (h *Hub) eventAt(seq uint64) *messages.Event { return h.segmentOf(seq).eventAt(seq) }

func (h *Hub) segmentOf(seq uint64) *segment { return h.ring[seq/segmentSize%uint64(len(h.ring))] }

func (s *segment) eventAt(seq uint64) *messages.Event { return &s.events[seq%segmentSize] }

// beginSegment makes room for the segment of the newest event: in the place of one that nobody may read any more, or in a longer ring.
// The caller holds h.mu, as for all that follows.
func (h *Hub) beginSegment() {
	oldest, most := h.seq, 0
	for w := range h.watchers {
		oldest, most = min(oldest, w.firstSeq()), max(most, w.limit)
	}
	newest := h.seq / segmentSize
	if need := int(newest-oldest/segmentSize) + 1; need > len(h.ring) {
		ring := make([]*segment, max(need, min(2*len(h.ring), most/segmentSize+2)))
		for i := oldest / segmentSize; i < newest; i++ {
			ring[i%uint64(len(ring))] = h.ring[i%uint64(len(h.ring))]
		}
		h.ring = ring
	}
	if at := &h.ring[newest%uint64(len(h.ring))]; *at == nil || (*at).shared {
		*at = new(segment)
	}
}

// wakeWatchers wakes every watcher that waits.
func (h *Hub) wakeWatchers() {
	if h.asleep == 0 {
		return
	}
	for w := range h.watchers {
		w.wakeReader()
	}
}

func (h *Hub) wakeLate() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.armed = false
	h.wakeWatchers()
}

// Watch adds a watcher; buffer ≤ 0 means DefaultWatchBuffer. Close it.
func (h *Hub) Watch(buffer int) *Watcher {
	if buffer <= 0 {
		buffer = DefaultWatchBuffer
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	w := &Watcher{hub: h, limit: buffer, wake: make(chan struct{}, 1), next: h.seq + 1, closed: h.closed}
	if h.closed {
		return w
	}
	h.watchers[w] = struct{}{}
	h.watching.Add(1)
	return w
}

// Close ends every watcher after what it has not read yet. Nothing is copied for that.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for w := range h.watchers {
		h.dropWatcher(w)
	}
	if h.lateTimer != nil {
		h.lateTimer.Stop()
	}
}

// dropWatcher ends a watcher, which keeps what it has not read: the segments, which it shares with all others.
func (h *Hub) dropWatcher(w *Watcher) {
	if _, ok := h.watchers[w]; !ok {
		return
	}
	w.missed += w.skipLost()
	w.closed, w.last = true, h.seq
	for seq := w.next; seq <= w.last; seq += segmentSize - seq%segmentSize {
		kept := h.segmentOf(seq)
		kept.shared = true
		w.unread = append(w.unread, kept)
	}
	w.wakeReader()
	delete(h.watchers, w)
	h.watching.Add(-1)
	if len(h.watchers) == 0 {
		h.ring = nil
	}
}

// Watcher receives events in the order in which they happened. One goroutine reads it.
type Watcher struct {
	hub   *Hub
	limit int
	wake  chan struct{}

	// batch belongs to the goroutine that reads: what it took and has not given yet. It lies in store.
	batch, store []messages.Event

	// The hub's lock guards what follows. next is the sequence number of the event to read next.
	next   uint64
	asleep bool
	closed bool
	unread []*segment // what was not read when it was closed, up to last
	last   uint64
	missed uint64 // before that
}

// batchSize is how many events a reader takes at once. They are read as far as the bound of its buffer is concerned.
const batchSize = 32

// firstSeq is the sequence number of the oldest event that the watcher may still read.
func (w *Watcher) firstSeq() uint64 {
	if lag := w.hub.seq + 1 - w.next; lag > uint64(w.limit) {
		return w.hub.seq + 1 - uint64(w.limit)
	}
	return w.next
}

// skipLost goes on to the oldest event that may still be read, and says how many were lost.
func (w *Watcher) skipLost() (lost uint64) {
	first := w.firstSeq()
	lost, w.next = first-w.next, first
	return lost
}

// wakeReader wakes the reader if it waits.
func (w *Watcher) wakeReader() {
	if !w.asleep {
		return
	}
	w.asleep = false
	w.hub.asleep--
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Next returns the next event. After dropped events it returns one of kind EventGap first. It returns ErrClosed when the
// watcher or its manager is closed and nothing is left to read, or ctx's error when ctx ends and nothing is there: with a
// context that has ended it reads without waiting.
func (w *Watcher) Next(ctx context.Context) (messages.Event, error) {
	for {
		if len(w.batch) > 0 {
			e := w.batch[0]
			w.batch[0] = messages.Event{}
			w.batch = w.batch[1:]
			return e, nil
		}
		gap, over := w.takeBatch()
		switch {
		case gap.Missed > 0:
			return gap, nil
		case len(w.batch) > 0:
			continue
		case over:
			return messages.Event{}, messages.ErrClosed
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
			w.hub.mu.Lock()
			w.wakeReader()
			w.hub.mu.Unlock()
			return messages.Event{}, ctx.Err()
		}
	}
}

// takeBatch fills the batch, or says what was lost before it, or that there will be no more. If it does none of these, the
// watcher counts as waiting.
func (w *Watcher) takeBatch() (gap messages.Event, over bool) {
	h := w.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.closed {
		lost := w.missed
		w.missed = 0
		if lost > 0 {
			return gapOf(lost, w.next-1), false
		}
		w.fillBatch(w.last)
		return gap, len(w.batch) == 0
	}
	if lost := w.skipLost(); lost > 0 {
		return gapOf(lost, w.next-1), false
	}
	if w.fillBatch(h.seq); len(w.batch) == 0 {
		w.asleep = true
		h.asleep++
	}
	return gap, false
}

// fillBatch takes as many events as fit into the batch, up to the last one. Of a watcher that was closed they lie in rest.
func (w *Watcher) fillBatch(last uint64) {
	n := min(last+1-w.next, batchSize)
	if n == 0 {
		w.batch, w.unread = nil, nil
		return
	}
	if w.store == nil {
		w.store = make([]messages.Event, batchSize)
	}
	w.batch = w.store[:n]
	for i := range w.batch {
		if w.closed {
			w.batch[i] = *w.unread[0].eventAt(w.next)
		} else {
			w.batch[i] = *w.hub.eventAt(w.next)
		}
		if w.next++; w.closed && w.next%segmentSize == 0 {
			w.unread = w.unread[1:]
		}
	}
}

func gapOf(lost, seq uint64) messages.Event {
	return messages.Event{Kind: messages.EventGap, Missed: lost, Seq: seq, Time: time.Now()}
}

// Events yields events until ctx ends, whatever waits to be read then, or until the watcher is closed and what it had not read
// has been yielded.
func (w *Watcher) Events(ctx context.Context) iter.Seq[messages.Event] {
	return func(yield func(messages.Event) bool) {
		for ctx.Err() == nil {
			e, err := w.Next(ctx)
			if err != nil || !yield(e) {
				return
			}
		}
	}
}

// Close ends the watcher: Next returns what is queued and then ErrClosed.
func (w *Watcher) Close() {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	w.hub.dropWatcher(w)
}
