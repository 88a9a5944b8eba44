package actors

import (
	"context"
	"sync"
	"time"
)

// sharedPings lets the requests that one broken stream has lost look together whether their server still serves: one ping answers for all that
// are made with the same credentials. A connection that breaks under many reads would otherwise be followed by as many pings at once. The zero
// value is ready.
type sharedPings struct {
	mu sync.Mutex
	// running are the pings under way, by the caller whose credentials they have.
	running map[string]*sharedPing
}

// sharedPing is one ping under way. answered is set before done is closed.
type sharedPing struct {
	done     chan struct{}
	answered bool
}

// ask reports whether the ping of a caller is answered, and sends one unless one is under way. A ping outlives the request that began it, for at
// most wait, because others may wait for it.
func (p *sharedPings) ask(ctx context.Context, caller string, wait time.Duration, ping func(context.Context) bool) bool {
	p.mu.Lock()
	s := p.running[caller]
	if s == nil {
		if p.running == nil {
			p.running = map[string]*sharedPing{}
		}
		s = &sharedPing{done: make(chan struct{})}
		p.running[caller] = s
		go func() { // it ends with the ping
			bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait)
			defer cancel()
			defer func() {
				_ = recover() // a defect counts as no answer
				p.mu.Lock()
				delete(p.running, caller)
				p.mu.Unlock()
				close(s.done)
			}()
			s.answered = ping(bounded)
		}()
	}
	p.mu.Unlock()
	// A ping that is not answered in time counts as no answer: the caller then waits for the next connection.
	bounded, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	select {
	case <-s.done:
		return s.answered
	case <-bounded.Done():
		return false
	}
}
