package serve

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	// maxReplayEvents and maxReplayBytes bound what a session keeps of its streams for an agent that reconnects; the oldest go first.
	// maxReplayTotal bounds what all sessions of the process keep: beyond it nothing is kept.
	maxReplayEvents = 128
	maxReplayBytes  = 256 << 10
	maxReplayTotal  = 64 << 20
)

// replayTotal counts the bytes that all sessions keep.
var replayTotal atomic.Int64

// A replayLog keeps the events of the streams of one session of the legacy era, so that an agent whose connection is lost can fetch what
// it has missed. mu guards everything; it is taken after that of the stream which sends, and before that of the one which follows.
//
// 2025-11-25, Resumability and Redelivery: "Servers MAY attach an id field to their SSE events … the ID MUST be globally unique across
// all streams within that session". "The server MUST NOT replay messages that would have been delivered on a different stream."
//
// An answer that was plain JSON cannot be fetched: only events have ids, and an agent that has got none has nothing to name.
type replayLog struct {
	mu      sync.Mutex
	streams int
	events  []replayEvent
	bytes   int
	// open has the streams of requests that have no answer, with who follows them since the connection of the first one was lost.
	open   map[int]*eventStream
	closed bool
}

// A replayEvent is one event. Those of a stream are numbered from 1.
type replayEvent struct {
	stream, number int
	body           []byte
}

// isOfRequest reports whether a stream is that of a request, which ends with its answer. These have even numbers.
func isOfRequest(stream int) bool { return stream%2 == 0 }

// eventID is the id of an event: that of its stream, and its number.
func eventID(stream, number int) string {
	return strconv.Itoa(stream) + "-" + strconv.Itoa(number)
}

// readEventID takes an id apart.
func readEventID(id string) (stream, number int, ok bool) {
	a, b, _ := strings.Cut(id, "-")
	stream, errA := strconv.Atoi(a)
	number, errB := strconv.Atoi(b)
	return stream, number, errA == nil && errB == nil && stream > 0 && number >= 0
}

// openStream returns the number of a new stream; that of a request is open until its answer.
func (l *replayLog) openStream(ofRequest bool) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.streams++
	if !ofRequest {
		return 2*l.streams + 1
	}
	if l.open == nil {
		l.open = map[int]*eventStream{}
	}
	l.open[2*l.streams] = nil
	return 2 * l.streams
}

// dropStream forgets a stream that ends without an answer in it, and ends that of who follows.
func (l *replayLog) dropStream(stream int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if follower := l.open[stream]; follower != nil {
		follower.endStream()
	}
	delete(l.open, stream)
}

// isOver reports whether nothing comes behind an event: its request has ended, and what is kept ends with the event.
func (l *replayLog) isOver(stream, number int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, open := l.open[stream]
	return isOfRequest(stream) && !open && !slices.ContainsFunc(l.events, func(e replayEvent) bool { return e.stream == stream && e.number > number })
}

// keepEvent keeps an event, and sends it to who follows the stream; last says that it is the answer, with which the stream ends. It
// reports whether somebody follows.
func (l *replayLog) keepEvent(stream, number int, body []byte, last bool) (followed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	follower := l.open[stream]
	if follower != nil {
		follower.queueEvent(event{eventID(stream, number), body}, true)
	}
	if last {
		delete(l.open, stream)
		if follower != nil {
			follower.endStream()
		}
	}
	if n := int64(len(body)); !l.closed && n <= maxReplayBytes && replayTotal.Add(n) <= maxReplayTotal {
		l.events, l.bytes = append(l.events, replayEvent{stream, number, body}), l.bytes+len(body)
	} else if !l.closed && n <= maxReplayBytes {
		replayTotal.Add(-n)
	}
	drop := 0
	for len(l.events)-drop > maxReplayEvents || l.bytes > maxReplayBytes {
		l.bytes -= len(l.events[drop].body)
		replayTotal.Add(-int64(len(l.events[drop].body)))
		drop++
	}
	if drop > 0 {
		l.events = append([]replayEvent(nil), l.events[drop:]...)
	}
	return follower != nil
}

// follow sends the events of a stream after a number, in their order, and those that come from now on, if the stream is open.
func (l *replayLog) follow(stream, number int, to *eventStream) (open bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		if e.stream == stream && e.number > number {
			to.queueEvent(event{eventID(stream, e.number), e.body}, true)
		}
	}
	before, open := l.open[stream]
	if open {
		if before != nil {
			before.endStream()
		}
		l.open[stream] = to
	}
	return open
}

// unfollow ends that, if to still is the one.
func (l *replayLog) unfollow(stream int, to *eventStream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[stream] == to {
		l.open[stream] = nil
	}
}

// closeLog drops everything.
func (l *replayLog) closeLog() {
	l.mu.Lock()
	defer l.mu.Unlock()
	replayTotal.Add(-int64(l.bytes))
	l.events, l.bytes, l.closed = nil, 0, true
}

// keepEvents makes a stream one whose events are kept by a session.
func (s *eventStream) keepEvents(session *Session, ofRequest bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log, s.ofRequest, s.primes = &session.replay, ofRequest, session.Version == legacyVersions[0]
	if s.primes {
		s.timer.Reset(min(primeTime, s.keepAlive))
	}
}
