package sim

import "sync"

// goroutinePool runs functions in goroutines, and keeps those whose function has returned for the next one, because their stacks
// have grown already. A day gives millions of turns to actors: growing a stack for each was a fifth of its processor time. The zero
// value is ready; any goroutine may use it.
type goroutinePool struct {
	mu sync.Mutex
	// idle holds the channels of the goroutines that wait for a function.
	idle []chan func()
	// dismissed is set when no goroutine is to be kept any more.
	dismissed bool
}

// run runs f in a goroutine and does not wait for it. f recovers its own panics.
func (p *goroutinePool) run(f func()) {
	p.mu.Lock()
	var next chan func()
	if n := len(p.idle); n > 0 {
		next, p.idle = p.idle[n-1], p.idle[:n-1]
	}
	p.mu.Unlock()
	if next == nil {
		next = make(chan func(), 1)
		go p.work(next)
	}
	next <- f
}

// work runs what comes from next, until dismiss closes it or has been called.
func (p *goroutinePool) work(next chan func()) {
	for f := range next {
		f()
		p.mu.Lock()
		dismissed := p.dismissed
		if !dismissed {
			p.idle = append(p.idle, next)
		}
		p.mu.Unlock()
		if dismissed {
			return
		}
	}
}

// dismiss ends the goroutines that wait, and lets the others end when their function returns.
func (p *goroutinePool) dismiss() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, next := range p.idle {
		close(next)
	}
	p.idle, p.dismissed = nil, true
}
