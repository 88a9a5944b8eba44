package proxy

import (
	"io"
	"sync"
	"time"
)

// port is where lines are written. Somebody else's line never lands inside of one that was begun.
type port struct {
	mu      sync.Mutex
	free    *sync.Cond // somebody may write a line
	w       io.Writer
	midline bool
	closed  bool
	err     error
	failed  func() // called once, at the first error
}

func newPort(w io.Writer, failed func()) *port {
	p := &port{w: w, failed: failed}
	p.free = sync.NewCond(&p.mu)
	return p
}

// stream writes what one pump passes on as it comes. ends says whether a line ends with it.
func (p *port) stream(b []byte, ends bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.write(b)
	p.midline = !ends
	if ends {
		p.free.Broadcast()
	}
}

// line writes whole lines, when no other line is under way.
func (p *port) line(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.midline && !p.closed {
		p.free.Wait()
	}
	p.write(b)
}

// drip writes a line in pieces. Nobody else writes meanwhile.
func (p *port) drip(b []byte, chunk int, every time.Duration, stop <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.midline && !p.closed {
		p.free.Wait()
	}
	t := time.NewTimer(0)
	defer t.Stop()
	for len(b) > 0 && !p.closed {
		select {
		case <-t.C:
		case <-stop:
			p.write(b)
			return
		}
		n := min(chunk, len(b))
		p.write(b[:n])
		b = b[n:]
		t.Reset(every)
	}
}

// stall lets nobody write for as long as on says.
func (p *port) stall(on func() bool, stop <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := time.NewTicker(look)
	defer t.Stop()
	for on() && !p.closed {
		select {
		case <-t.C:
		case <-stop:
			return
		}
	}
}

// over says that nothing of the pump will come any more: who waits for the end of its line need not.
func (p *port) over() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.midline = false
	p.free.Broadcast()
}

// close lets every later write do nothing, and closes what is written to.
func (p *port) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	p.free.Broadcast()
	if c, ok := p.w.(io.Closer); ok {
		_ = c.Close() // the reader sees the end whatever this says
	}
}

// write is called with the lock held.
func (p *port) write(b []byte) {
	if p.closed || p.err != nil || len(b) == 0 {
		return
	}
	if _, p.err = p.w.Write(b); p.err != nil && p.failed != nil {
		go p.failed() // it may want this port
	}
}

// later does things after a time, in one goroutine; equal times keep their order.
type later struct {
	mu    sync.Mutex
	items []item
	kick  chan struct{}
}

type item struct {
	at time.Time
	do func()
}

func newLater() *later { return &later{kick: make(chan struct{}, 1)} }

func (l *later) after(d time.Duration, do func()) {
	l.mu.Lock()
	at := time.Now().Add(d)
	i := len(l.items)
	for i > 0 && l.items[i-1].at.After(at) {
		i--
	}
	l.items = append(l.items, item{})
	copy(l.items[i+1:], l.items[i:])
	l.items[i] = item{at, do}
	l.mu.Unlock()
	l.poke()
}

func (l *later) poke() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// due does what is due, or everything, and says when the next thing is.
func (l *later) due(all bool) time.Time {
	for {
		l.mu.Lock()
		if len(l.items) == 0 {
			l.mu.Unlock()
			return time.Time{}
		}
		first := l.items[0]
		if !all && first.at.After(time.Now()) {
			l.mu.Unlock()
			return first.at
		}
		l.items = l.items[1:]
		l.mu.Unlock()
		first.do()
	}
}
