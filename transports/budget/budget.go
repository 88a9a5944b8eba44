package budget

import (
	"fmt"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Default is the limit in bytes if a program gives none.
const Default = 512 << 20

// Budget counts the memory of all servers together. All methods are safe for concurrent use.
type Budget struct {
	limit int64 // negative for none

	// mu guards everything below, and bytesHeld, listBytes and closed of every share.
	mu     sync.Mutex
	shares map[*Share]struct{}
	// total is the sum of all shares; excess the sum of what each holds beyond the fair share.
	total  int64
	excess int64
	freed  chan struct{} // closed when bytes are given back; nil while no caller waits
}

// New makes a budget of limit bytes; 0 means Default. A negative limit bounds nothing, but the bytes are counted all the same.
func New(limit int64) *Budget {
	if limit == 0 {
		limit = Default
	}
	return &Budget{limit: limit, shares: make(map[*Share]struct{})}
}

// Share counts the bytes that one server holds, and the work that it has caused. All methods are safe for concurrent use.
type Share struct {
	budget *Budget
	server string

	// budget.mu guards these.
	bytesHeld int64
	listBytes int64 // the part of bytesHeld that Keep has set
	closed    bool

	bucketMu sync.Mutex // guards bucket
	bucket   LeakyBucket
}

// Open makes the share of a server. More servers make the fair share of each smaller, without taking anything back.
func (b *Budget) Open(server string) *Share {
	s := &Share{budget: b, server: server}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shares[s] = struct{}{}
	b.recountExcess()
	return s
}

// Close gives everything back. Later calls of Take are refused. It may be called twice.
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

// Take counts n more bytes as held, or refuses them with an *ExceededError. It does not block.
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

// Give releases n bytes that were taken. Giving more than is held releases all.
func (s *Share) Give(n int64) {
	if s == nil || n <= 0 {
		return
	}
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	s.budget.changeShare(s, -min(n, s.bytesHeld))
}

// Keep turns bytes that were taken into those of the server's newest list of tools. It releases the list of before, and the part
// of the taken bytes that is not in the new list. The list outlives its connection, and so is never refused.
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

// Freed returns a channel that is closed when bytes are given back after this call. A caller must fetch it before it asks again,
// or it could miss a release in between.
func (s *Share) Freed() <-chan struct{} {
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.freed == nil {
		b.freed = make(chan struct{})
	}
	return b.freed
}

// changeShare is the only code that changes a share. It keeps total and excess right and wakes waiting callers. The caller holds
// mu.
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

// recountExcess recounts the excess after a change of the number of servers. The caller holds mu.
func (b *Budget) recountExcess() {
	fair := fairShare(b.limit, len(b.shares))
	b.excess = 0
	for s := range b.shares {
		b.excess += excessOver(s.bytesHeld, fair)
	}
	if b.freed != nil { // with fewer servers each has a larger fair share
		close(b.freed)
		b.freed = nil
	}
}

// Charge notes work that the server has caused unasked, at the time now. working is the number of requests that the server is
// working on, or [Unknown].
func (s *Share) Charge(work time.Duration, working int, now time.Time) {
	if s == nil {
		return
	}
	s.bucketMu.Lock()
	s.bucket = s.bucket.Charge(work, working, now)
	s.bucketMu.Unlock()
}

// Pause returns the time for which the server is not to be read, 0 for none.
func (s *Share) Pause(now time.Time) time.Duration {
	if s == nil {
		return 0
	}
	s.bucketMu.Lock()
	defer s.bucketMu.Unlock()
	return s.bucket.Pause(now)
}

// ExceededError means that a server already holds so much that it may not hold more now. errors.Is finds messages.ErrMemory.
type ExceededError struct {
	// Server asked for Asked bytes in addition to Held; all servers together held Total, of Limit.
	Server                    string
	Asked, Held, Total, Limit int64
}

// Error implements error.
func (e *ExceededError) Error() string {
	return fmt.Sprintf("%q asked for %s and holds %s; all servers together hold %s of %s",
		e.Server, sizeText(e.Asked), sizeText(e.Held), sizeText(e.Total), sizeText(e.Limit))
}

// Unwrap returns messages.ErrMemory.
func (e *ExceededError) Unwrap() error { return messages.ErrMemory }

// sizeText returns a size for people, in KiB below one MiB.
func sizeText(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d KiB", (n+1023)>>10)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
