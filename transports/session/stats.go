package session

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// noiseCounter counts what is not JSON-RPC, per second.
type noiseCounter struct {
	mu    sync.Mutex
	total int64
	last  []byte // the last line, cut
	since time.Time
	count int // since then
}

// countLine reports whether the limit is exceeded.
func (n *noiseCounter) countLine(line []byte, limit int, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.total++
	n.last = append(n.last[:0], line[:min(len(line), 256)]...)
	if now.Sub(n.since) >= time.Second {
		n.since, n.count = now, 0
	}
	n.count++
	return n.count > limit
}

// totalAndLast is how many there were, and the last, neutralised.
func (n *noiseCounter) totalAndLast() (total int64, last string) {
	if n == nil {
		return 0, ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.total, messages.Line(string(n.last), 200)
}

// counts are what a session ignored or lost.
type counts struct {
	unmatched, oversized, refused, unsent atomic.Int64
}

// Stats counts what a session ignored or lost since Dial. None of it ended a call that another outcome was due to.
type Stats struct {
	// Noise counts what was no JSON-RPC message, lines and broken messages; LastNoise is the beginning of the last one,
	// neutralised.
	Noise     int64
	LastNoise string
	// Unmatched counts answers that nobody waited for: unknown ids, duplicates, and those that came after their caller
	// had left.
	Unmatched int64
	// Oversized counts messages beyond the transport's limit.
	Oversized int64
	// Refused counts the server's requests that nobody dealt with: answered with an error in the legacy era, because nothing
	// handles them or too many came at once, and ignored in the modern era, which has none.
	Refused int64
	// Unsent counts answers and cancellations that could not be written or did not fit into the queue; DroppedLogs the
	// log messages that came faster than OnLog returned.
	Unsent, DroppedLogs int64
}

// Stats counts what was ignored or lost until now.
func (s *Session) Stats() Stats {
	total, last := s.noise.Load().totalAndLast()
	return Stats{
		Noise: total, LastNoise: last,
		Unmatched: s.counts.unmatched.Load(), Oversized: s.counts.oversized.Load(), Refused: s.counts.refused.Load(),
		Unsent: s.counts.unsent.Load() + s.writeQueue.droppedCount(), DroppedLogs: s.callbacks.droppedCount(),
	}
}
