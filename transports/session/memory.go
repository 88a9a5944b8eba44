package session

import (
	"sync"

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
