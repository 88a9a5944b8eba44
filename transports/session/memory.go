package session

import (
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/budget"
)

// memory is what a session holds of its server's share. What it has not given back when it ends, end does.
type memory struct {
	share *budget.Share

	mu    sync.Mutex
	n     int64
	ended bool
}

func (m *memory) reserve(n int64) error {
	if m.share == nil || n <= 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return nil // what comes now is let go at once
	}
	if err := m.share.Take(n); err != nil {
		return err
	}
	m.n += n
	return nil
}

func (m *memory) release(n int64) {
	if m.share == nil || n <= 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n = min(n, m.n)
	m.n -= n
	m.share.Give(n)
}

// keepList makes the newest list of tools of what was taken for it. It is the server's from here on, and not the session's: whoever
// dials the server again is given it as Config.Listed.
func (m *memory) keepList(taken, list int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.share == nil || m.ended {
		return
	}
	taken = min(taken, m.n)
	m.n -= taken
	m.share.Keep(taken, list)
}

// releaseAll gives everything back.
func (m *memory) releaseAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.share.Give(m.n)
	m.n, m.ended = 0, true
}

// entryCost is what an entry of a list costs besides its bytes: what was read of it, and its place in maps.
const entryCost = 512

// Size is what the list costs its server's share of the memory, in bytes.
func (t *ToolList) Size() (n int64) {
	if t == nil {
		return 0
	}
	for i := range t.all {
		n += int64(len(t.all[i].Raw)) + entryCost
	}
	return n
}

// reserveMemory takes the memory of the entries that were added last. A list that the server's share has no room for is an error,
// and what was taken for it before is given back by fetch.
func (l *pageCollector[T]) reserveMemory(s *Session) *messages.Error {
	err := s.memory.reserve(l.cost - l.memoryTaken)
	if err == nil {
		l.memoryTaken = l.cost
		return nil
	}
	return &messages.Error{
		Op: "read", Outcome: messages.OutcomeUnknown, Class: messages.ClassExhausted, Err: err,
		Text: "the server's " + l.kind.singular + " list was refused, because it holds its share of the memory for all servers: " + err.Error(),
		Fix:  "raise the memory budget, or have the server list less",
	}
}

// What a message costs that was not asked for, in processor time: for itself, and for its bytes. They were measured with
// BenchmarkFlood, are rounded up, and include what net/http or a pipe takes to bring it.
const (
	noticePrice = 2 * time.Microsecond
	logPrice    = 6 * time.Microsecond // it is hidden in, kept and told
	askPrice    = 8 * time.Microsecond // it is answered
	bytePrice   = 3 * time.Nanosecond
)

// chargeUnasked notes unasked work: the price of a message, and its bytes.
func (s *Session) chargeUnasked(price time.Duration, size int) {
	if s.cfg.Share == nil {
		return
	}
	s.mu.Lock()
	working := len(s.pending)
	s.mu.Unlock()
	s.cfg.Share.Charge(price+time.Duration(size)*bytePrice, working, time.Now())
}
