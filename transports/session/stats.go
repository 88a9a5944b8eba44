package session

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// noiseCounter counts input that is not JSON-RPC, per second.
type noiseCounter struct {
	mu    sync.Mutex
	total int64
	last  []byte    // the beginning of the last line, at most 256 bytes
	since time.Time // when the present second began
	count int       // since then
}

// countLine counts one line and reports whether there are more than limit in the present second. line is copied,
// because it belongs to the transport's buffer.
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

// totalAndLast returns the number of lines and the last one, neutralised for a terminal.
func (n *noiseCounter) totalAndLast() (total int64, last string) {
	if n == nil {
		return 0, ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.total, messages.Line(string(n.last), 200)
}

// counts are the numbers behind Stats, apart from those that the queues keep.
type counts struct {
	unmatched, oversized, refused, unsent atomic.Int64
}

// Stats counts the messages that a session ignored or lost since Dial. None of them ended a call that another outcome
// was due to.
type Stats struct {
	// Noise counts input that was no JSON-RPC message, lines and broken messages; LastNoise is the beginning of the
	// last one, neutralised.
	Noise     int64
	LastNoise string
	// Unmatched counts answers without a waiting request: unknown ids, duplicates, and those that came after their
	// caller had left. Notifications of subscriptions that are not ours count, too.
	Unmatched int64
	// Oversized counts messages beyond the transport's limit, or beyond the server's share of the memory.
	Oversized int64
	// Refused counts the server's requests that no handler got: answered with an error in the legacy era, because
	// there is no handler for them or too many came at once, and ignored in the modern era, which has no requests of
	// servers.
	Refused int64
	// Unsent counts answers and cancellations that could not be written or did not fit into the queue; DroppedLogs
	// the log messages and progress notifications that came faster than the callbacks returned.
	Unsent, DroppedLogs int64
}

// Stats returns the counts as they are now.
func (s *Session) Stats() Stats {
	total, last := s.noise.Load().totalAndLast()
	return Stats{
		Noise: total, LastNoise: last,
		Unmatched: s.counts.unmatched.Load(), Oversized: s.counts.oversized.Load(), Refused: s.counts.refused.Load(),
		Unsent: s.counts.unsent.Load() + s.writeQueue.DroppedCount(), DroppedLogs: s.callbacks.DroppedCount(),
	}
}
