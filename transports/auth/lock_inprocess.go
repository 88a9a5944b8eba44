package auth

import (
	"context"
	"sync"
)

// inProcess are locks by name among goroutines. The zero value is ready.
type inProcess struct {
	mu   sync.Mutex
	held map[string]*turn
}

// turn is a lock that a goroutine holds or waits for.
type turn struct {
	token chan struct{} // holds one element while the lock is free
	users int           // holders and waiters; with 0 the turn is dropped
}

// lock waits for its turn, or until ctx ends.
func (p *inProcess) lock(ctx context.Context, key string) (unlock func(), err error) {
	p.mu.Lock()
	t := p.held[key]
	if t == nil {
		t = &turn{token: make(chan struct{}, 1)}
		t.token <- struct{}{}
		if p.held == nil {
			p.held = map[string]*turn{}
		}
		p.held[key] = t
	}
	t.users++
	p.mu.Unlock()
	leave := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(p.held, key)
		}
	}
	select {
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
