package auth

import (
	"context"
	"sync"
)

// goroutineLocks are locks by name among goroutines. mu guards locks and the users of each. The zero value is ready.
type goroutineLocks struct {
	mu    sync.Mutex
	locks map[string]*keyLock
}

// keyLock is a lock that a goroutine holds or waits for. It exists only as long as there is one, so that the map does not grow.
type keyLock struct {
	token chan struct{} // holds one element while the lock is free
	users int           // holders and waiters; with 0 the lock is dropped
}

// lockKey waits for the lock of a key, or until ctx ends. The caller calls unlock, once or more.
func (p *goroutineLocks) lockKey(ctx context.Context, key string) (unlock func(), err error) {
	p.mu.Lock()
	t := p.locks[key]
	if t == nil {
		t = &keyLock{token: make(chan struct{}, 1)}
		// The lock begins free.
		t.token <- struct{}{}
		if p.locks == nil {
			p.locks = map[string]*keyLock{}
		}
		p.locks[key] = t
	}
	// The waiter counts before it waits, so that the lock is not dropped meanwhile.
	t.users++
	p.mu.Unlock()
	leave := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(p.locks, key)
		}
	}
	select {
	// Go serves waiting receivers of a channel in order, which makes the lock fair.
	case <-t.token:
		return sync.OnceFunc(func() {
			t.token <- struct{}{}
			leave()
		}), nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
