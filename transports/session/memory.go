package session

import (
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/budget"
)

// memory is the account of one session within its server's share of the memory. It knows how much the session has
// reserved, so that releaseAll can give back the rest at the end.
type memory struct {
	share *budget.Share // nil: nothing is counted

	// mu guards n and ended. It may be taken while the mutex of a queue or of a list is held; under it only the share
	// is called.
	mu    sync.Mutex
	n     int64 // bytes reserved and not given back
	ended bool  // releaseAll has run
}

// reserve counts n bytes against the share. An error says that the share has no room: it wraps messages.ErrMemory,
// and nothing is reserved.
func (m *memory) reserve(n int64) error {
	if m.share == nil || n <= 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return nil // the session is over, and drops what it gets now at once
	}
	if err := m.share.Take(n); err != nil {
		return err
	}
	m.n += n
	return nil
}

// release gives n bytes back. After releaseAll it does nothing, because n is 0 then.
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

// keepList turns the taken bytes into the memory of the newest list of tools, which has list bytes. From here on they
// belong to the server and not to the session: the owner gives the list to the next connection as Config.Listed.
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

// releaseAll gives everything back that the session has reserved; later reservations are not counted.
func (m *memory) releaseAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.share.Give(m.n)
	m.n, m.ended = 0, true
}

// entryCost is the cost of one entry of a list besides its bytes, in bytes: the parsed entry and its place in maps.
// It is an estimate.
const entryCost = 512

// Size returns the bytes that the list costs its server's share of the memory.
func (t *ToolList) Size() (n int64) {
	if t == nil {
		return 0
	}
	for i := range t.all {
		n += int64(len(t.all[i].Raw)) + entryCost
	}
	return n
}

// reserveMemory reserves the memory of the entries of the newest page. A list that the share has no room for is an
// error; fetchPages then gives back the memory of the earlier pages.
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

// The price of a message that the session did not ask for, in processor time: for itself, and for its bytes. The
// prices were measured with BenchmarkFlood, are rounded up, and include the work of net/http or of a pipe.
const (
	noticePrice = 2 * time.Microsecond
	logPrice    = 6 * time.Microsecond // the session queues it, decodes it and calls OnLog
	askPrice    = 8 * time.Microsecond // the session answers it
	bytePrice   = 3 * time.Nanosecond
)

// chargeUnasked charges a message of size bytes, which the session did not ask for, to the server's share: the
// transports read a server more slowly that costs too much. The number of pending requests goes with it, because a
// server that works on many may send more.
func (s *Session) chargeUnasked(price time.Duration, size int) {
	if s.cfg.Share == nil {
		return
	}
	s.mu.Lock()
	working := len(s.pending)
	s.mu.Unlock()
	s.cfg.Share.Charge(price+time.Duration(size)*bytePrice, working, time.Now())
}
