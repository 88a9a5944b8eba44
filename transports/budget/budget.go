package budget

import (
	"fmt"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Default is the limit if a program says none.
const Default = 512 << 20

// Budget is the memory of all servers together. All methods are safe for concurrent use.
type Budget struct {
	limit int64 // negative for none

	mu     sync.Mutex
	shares map[*Share]struct{}
	total  int64
	excess int64         // what all shares hold beyond the fair one
	freed  chan struct{} // closed when something is given back; nil while no message waits for room
}

// New makes a budget of limit bytes; 0 is Default, and a negative limit bounds nothing and counts all the same.
func New(limit int64) *Budget {
	if limit == 0 {
		limit = Default
	}
	return &Budget{limit: limit, shares: make(map[*Share]struct{})}
}

// Share counts what one server holds, and what its flood has cost. All methods are safe for concurrent use.
type Share struct {
	budget *Budget
	server string

	// The budget's lock guards these.
	bytesHeld int64
	listBytes int64 // of held, what Keep was told
	closed    bool

	bucketMu sync.Mutex // guards pace
	bucket   LeakyBucket
}

// Open gives a server its share.
func (b *Budget) Open(server string) *Share {
	s := &Share{budget: b, server: server}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shares[s] = struct{}{}
	b.recountExcess()
	return s
}

// Close gives everything back. Nothing can be taken afterwards.
func (s *Share) Close() {
	if s == nil {
		return
	}
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.closed {
		return
	}
	b.changeShare(s, -s.bytesHeld)
	s.closed, s.listBytes = true, 0
	delete(b.shares, s)
	b.recountExcess()
}

// Total returns how many bytes all servers hold.
func (b *Budget) Total() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total
}

// Held returns how many bytes the server holds.
func (s *Share) Held() int64 {
	if s == nil {
		return 0
	}
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	return s.bytesHeld
}

// Take counts n more bytes as held, or refuses them with an *Exceeded.
func (s *Share) Take(n int64) error {
	if s == nil || n <= 0 {
		return nil
	}
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.closed || b.limit >= 0 && !mayTake(b.limit, len(b.shares), b.excess, s.bytesHeld, n) {
		return &ExceededError{Server: s.server, Asked: n, Held: s.bytesHeld, Total: b.total, Limit: b.limit}
	}
	b.changeShare(s, n)
	return nil
}

// Give lets n bytes go that were taken.
func (s *Share) Give(n int64) {
	if s == nil || n <= 0 {
		return
	}
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	s.budget.changeShare(s, -min(n, s.bytesHeld))
}

// Keep makes the bytes of the server's newest list of tools out of bytes that were taken: the list of before, and what was
// taken for the new one and is no part of it, are let go. It outlives the connection that it came by, and is not refused.
func (s *Share) Keep(taken, list int64) {
	if s == nil {
		return
	}
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	if !s.closed {
		s.budget.changeShare(s, max(list-taken-s.listBytes, -s.bytesHeld))
		s.listBytes = list
	}
}

// Freed is closed when something is given back after this call.
func (s *Share) Freed() <-chan struct{} {
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.freed == nil {
		b.freed = make(chan struct{})
	}
	return b.freed
}

// changeShare is the only place where a share changes. The caller holds mu.
func (b *Budget) changeShare(s *Share, n int64) {
	if s.closed {
		return
	}
	fair := fairShare(b.limit, len(b.shares))
	b.excess -= excessOver(s.bytesHeld, fair)
	s.bytesHeld += n
	b.total += n
	b.excess += excessOver(s.bytesHeld, fair)
	if n < 0 && b.freed != nil {
		close(b.freed)
		b.freed = nil
	}
}

// recountExcess follows a change of the number of servers. The caller holds mu.
func (b *Budget) recountExcess() {
	fair := fairShare(b.limit, len(b.shares))
	b.excess = 0
	for s := range b.shares {
		b.excess += excessOver(s.bytesHeld, fair)
	}
	if b.freed != nil { // fewer servers have larger shares
		close(b.freed)
		b.freed = nil
	}
}

// Charge notes work that the server made us do unasked, at the time now. working is how many of our requests it is working on, or Unknown.
func (s *Share) Charge(work time.Duration, working int, now time.Time) {
	if s == nil {
		return
	}
	s.bucketMu.Lock()
	s.bucket = s.bucket.Charge(work, working, now)
	s.bucketMu.Unlock()
}

// Pause is for how long the server is to be left unread, 0 for not at all.
func (s *Share) Pause(now time.Time) time.Duration {
	if s == nil {
		return 0
	}
	s.bucketMu.Lock()
	defer s.bucketMu.Unlock()
	return s.bucket.Pause(now)
}

// ExceededError says that a server holds so much already that it may not hold more now. errors.Is finds messages.ErrMemory.
type ExceededError struct {
	// Server asked for Asked bytes beside the Held ones; all servers together held Total, of Limit.
	Server                    string
	Asked, Held, Total, Limit int64
}

// Error implements error.
func (e *ExceededError) Error() string {
	return fmt.Sprintf("%q asked for %s and holds %s; all servers together hold %s of %s",
		e.Server, sizeText(e.Asked), sizeText(e.Held), sizeText(e.Total), sizeText(e.Limit))
}

// Unwrap gives messages.ErrMemory.
func (e *ExceededError) Unwrap() error { return messages.ErrMemory }

func sizeText(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d KiB", (n+1023)>>10)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
