// Package memory accounts for the memory that one session holds, within the share that its server has of the memory of all.
//
//	account := memory.Account{Share: share} // a nil Share counts nothing
//	err := account.Reserve(n)
//	account.Release(n)
//	account.ReleaseAll() // at the end of the session
//
// Package budget divides the memory between the servers; an [Account] knows how much of it one session has taken, so that
// ReleaseAll gives back what the parts of the session have not.
//
// The mutex of an Account may be taken under those of a queue or a list; under it only the share's own lock is taken. After
// ReleaseAll a session that still reads is not counted any more, because what it gets then is dropped at once.
//
// Not promised: that all memory is counted. Requests, small answers and the session itself are bounded by numbers, not by the share.
package memory

import (
	"sync"

	"github.com/mcpvisor/mcpvisor/transports/budget"
)

// Account is the account of one session within its server's share of the memory. It knows how much the session has
// reserved, so that ReleaseAll can give back the rest at the end.
type Account struct {
	Share *budget.Share // nil: nothing is counted

	// mu guards n and ended. It may be taken while the mutex of a queue or of a list is held; under it only the share
	// is called.
	mu    sync.Mutex
	n     int64 // bytes reserved and not given back
	ended bool  // ReleaseAll has run
}

// Reserve counts n bytes against the share. An error says that the share has no room: it wraps messages.ErrMemory,
// and nothing is reserved.
func (m *Account) Reserve(n int64) error {
	if m.Share == nil || n <= 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return nil // the session is over, and drops what it gets now at once
	}
	if err := m.Share.Take(n); err != nil {
		return err
	}
	m.n += n
	return nil
}

// Release gives n bytes back. After ReleaseAll it does nothing, because n is 0 then.
func (m *Account) Release(n int64) {
	if m.Share == nil || n <= 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n = min(n, m.n)
	m.n -= n
	m.Share.Give(n)
}

// KeepList turns the taken bytes into the memory of the newest list of tools, which has list bytes. From here on they
// belong to the server and not to the session: the owner gives the list to the next connection as Config.Listed.
func (m *Account) KeepList(taken, list int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Share == nil || m.ended {
		return
	}
	taken = min(taken, m.n)
	m.n -= taken
	m.Share.Keep(taken, list)
}

// ReleaseAll gives everything back that the session has reserved; later reservations are not counted.
func (m *Account) ReleaseAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Share.Give(m.n)
	m.n, m.ended = 0, true
}
