package actors

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// DefaultWatchBuffer bounds the events that wait for a slow watcher; above it the oldest are dropped.
const DefaultWatchBuffer = 256

// callLag bounds the time that a waiting watcher is left asleep if the only events are about calls. A server with a thousand
// calls a second would otherwise wake every watcher two thousand times, on the processors that the calls need.
const callLag = time.Millisecond

// Hub distributes events to watchers. It never blocks a publisher: a watcher that does not keep up loses its oldest events, and
// gets their number. Without watchers an event costs one atomic load; with watchers, one copy, however many they are. Events about
// calls reach a waiting watcher at most a millisecond late, all others at once.
type Hub struct {
	// watching is len(watchers), readable without the lock; watchingCalls counts those that want events about calls.
	watching, watchingCalls atomic.Int32

	// mu guards all that follows, and the fields of watchers that name it.
	mu       sync.Mutex
	seq      uint64 // the sequence number of the newest event
	closed   bool
	watchers map[*Watcher]struct{}
	asleep   int // how many watchers wait in Next
	// ring holds the newest segments of events, each at its number modulo the length: as many as the slowest watcher may still
	// read. They are used again, so that an event costs its publisher no allocation.
	ring []*segment
	// lateTimer wakes the waiting watchers after events about calls only; armed says that it runs.
	lateTimer *time.Timer
	armed     bool
}

// segment holds the events of segmentSize sequence numbers, the first of which is a multiple of that. All watchers that may still
// read one of them share it; the hub's lock guards it.
type segment struct {
	events [segmentSize]messages.Event
	// shared says that a closed watcher still reads it: the hub completes it, and does not reuse it.
	shared bool
}

// segmentSize is the number of events by which the ring grows.
const segmentSize = 32

// NewHub makes a hub without watchers.
func NewHub() *Hub { return &Hub{watchers: map[*Watcher]struct{}{}} }

// Watched reports whether an event would reach any watcher. With false the caller need not build one.
func (h *Hub) Watched() bool { return h.watching.Load() > 0 }

// CallsWatched reports whether a watcher wants events about calls.
func (h *Hub) CallsWatched() bool { return h.watchingCalls.Load() > 0 }

// Publish gives e the next sequence number and, if it has none, the time, and makes it readable for every watcher.
func (h *Hub) Publish(e messages.Event) {
	// The load is atomic; a watcher that is added at this moment may miss the event, which happened before it.
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
	// Waiting watchers are woken at once, except for events of calls: those wait for callLag, and are then read together.
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

// eventAt returns the place of an event that the ring still holds.
func (h *Hub) eventAt(seq uint64) *messages.Event { return h.segmentOf(seq).eventAt(seq) }

func (h *Hub) segmentOf(seq uint64) *segment { return h.ring[seq/segmentSize%uint64(len(h.ring))] }

func (s *segment) eventAt(seq uint64) *messages.Event { return &s.events[seq%segmentSize] }

// beginSegment makes room for the segment of the newest event: in the place of one that no watcher may read any more, or in a longer
// ring. The caller holds h.mu, as for all that follows.
func (h *Hub) beginSegment() {
	// The slowest watcher decides how many segments must be kept, within its buffer.
	oldest, most := h.seq, 0
	for w := range h.watchers {
		oldest, most = min(oldest, w.firstSeq()), max(most, w.limit)
	}
	newest := h.seq / segmentSize
	// The ring is full of segments that some watcher may read: it grows, at most to what the largest buffer needs.
	// The segments keep their numbers modulo the new length.
	if need := int(newest-oldest/segmentSize) + 1; need > len(h.ring) {
		ring := make([]*segment, max(need, min(2*len(h.ring), most/segmentSize+2)))
		for i := oldest / segmentSize; i < newest; i++ {
			ring[i%uint64(len(ring))] = h.ring[i%uint64(len(h.ring))]
		}
		h.ring = ring
	}
	// A shared segment belongs to closed watchers now.
	if at := &h.ring[newest%uint64(len(h.ring))]; *at == nil || (*at).shared {
		*at = new(segment)
	}
}

// wakeWatchers wakes every watcher that waits in Next.
func (h *Hub) wakeWatchers() {
	if h.asleep == 0 {
		return
	}
	for w := range h.watchers {
		w.wakeReader()
	}
}

// wakeLate runs when lateTimer rings.
func (h *Hub) wakeLate() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.armed = false
	h.wakeWatchers()
}

// Watch adds a watcher for the events from now on; buffer ≤ 0 means DefaultWatchBuffer. The caller closes it.
func (h *Hub) Watch(buffer int) *Watcher {
	if buffer <= 0 {
		buffer = DefaultWatchBuffer
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	// A watcher of a closed hub ends with its first Next.
	w := &Watcher{hub: h, limit: buffer, wake: make(chan struct{}, 1), next: h.seq + 1, last: h.seq, closed: h.closed}
	if h.closed {
		return w
	}
	h.watchers[w] = struct{}{}
	h.watching.Add(1)
	h.watchingCalls.Add(1)
	return w
}

// Close closes every watcher; each may still read the events that it has not read. They are not copied for that.
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

// dropWatcher closes a watcher. It keeps references to the segments that it has not read, which the hub then no longer reuses.
func (h *Hub) dropWatcher(w *Watcher) {
	if _, ok := h.watchers[w]; !ok {
		return
	}
	// Losses are counted before the watcher leaves, because the ring may change afterwards.
	w.missed += w.skipLost()
	w.closed, w.last = true, h.seq
	// The segments that hold its unread events are marked, so that no later event overwrites them.
	for seq := w.next; seq <= w.last; seq += segmentSize - seq%segmentSize {
		kept := h.segmentOf(seq)
		kept.shared = true
		w.unread = append(w.unread, kept)
	}
	w.wakeReader()
	delete(h.watchers, w)
	h.watching.Add(-1)
	if !w.withoutCalls {
		h.watchingCalls.Add(-1)
	}
	if len(h.watchers) == 0 {
		h.ring = nil
	}
}

// Watcher receives events in the order in which they happened. Only one goroutine may call Next; Close may come from any.
type Watcher struct {
	hub *Hub
	// limit bounds the events that wait; wake has room for one signal, so the hub never blocks on it.
	limit int
	wake  chan struct{}

	// batch belongs to the goroutine that reads: the events that it took and has not returned yet. It is a part of store.
	batch, store []messages.Event

	// The hub's lock guards the fields below. next is the sequence number of the event to read next.
	next   uint64
	asleep bool
	closed bool
	// withoutCalls says that it needs no events about calls.
	withoutCalls bool

	unread []*segment // the segments that were not read when it was closed, up to the event last
	last   uint64
	missed uint64 // how many events were lost before those
}

// WithoutCalls says that w's reader needs no events about calls, and returns w. While no watcher needs them, calls publish none; for the
// sake of another watcher w may still get some.
func (w *Watcher) WithoutCalls() *Watcher {
	h := w.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, open := h.watchers[w]; open && !w.withoutCalls {
		w.withoutCalls = true
		h.watchingCalls.Add(-1)
	}
	return w
}

// batchSize bounds the events that a reader takes at once, under one lock. They no longer count against the watcher's buffer.
const batchSize = 32

// firstSeq returns the sequence number of the oldest event that the watcher may still read.
func (w *Watcher) firstSeq() uint64 {
	// More events than the buffer holds: the oldest are lost for this watcher.
	if lag := w.hub.seq + 1 - w.next; lag > uint64(w.limit) {
		return w.hub.seq + 1 - uint64(w.limit)
	}
	return w.next
}

// skipLost moves on to the oldest event that may still be read, and returns how many were lost.
func (w *Watcher) skipLost() (lost uint64) {
	first := w.firstSeq()
	lost, w.next = first-w.next, first
	return lost
}

// wakeReader wakes the reader if it waits. The caller holds the hub's lock.
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

// Next returns the next event. If events were lost it first returns one of kind EventGap with their number. It returns ErrClosed
// when the watcher or its manager is closed and nothing is left to read, or ctx's error when ctx ends and nothing is there: with
// a context that has ended it reads without waiting.
func (w *Watcher) Next(ctx context.Context) (messages.Event, error) {
	for {
		if len(w.batch) > 0 {
			// Next drops its reference: an event may hold a large status.
			e := w.batch[0]
			w.batch[0] = messages.Event{}
			w.batch = w.batch[1:]
			return e, nil
		}
		// The batch is empty: more events are taken under the hub's lock.
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
			// The reader no longer waits, so it must not count as asleep.
			w.hub.mu.Lock()
			w.wakeReader()
			w.hub.mu.Unlock()
			return messages.Event{}, ctx.Err()
		}
	}
}

// takeBatch fills the batch, or returns a gap that comes before it, or over if there will be no more events. If it does none of
// these, the watcher counts as asleep, and the next event sends it a signal.
func (w *Watcher) takeBatch() (gap messages.Event, over bool) {
	h := w.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.closed {
		// A closed watcher's losses were counted when it was closed.
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

// fillBatch copies as many events as fit into the batch, up to the one numbered last. A closed watcher has them in unread.
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

// gapOf returns the event that stands for lost ones; seq is the number of the last of them.
func gapOf(lost, seq uint64) messages.Event {
	return messages.Event{Kind: messages.EventGap, Missed: lost, Seq: seq, Time: time.Now()}
}

// Events yields events until ctx ends, even if more are ready then, or until the watcher is closed and its remaining events
// have been yielded.
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

// Close closes the watcher: Next returns the events that are ready and then ErrClosed. It is idempotent.
func (w *Watcher) Close() {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	w.hub.dropWatcher(w)
}
