package proxy

import (
	"io"
	"sync"
	"time"
)

// lineWriter is where lines are written. Somebody else's line never lands inside of one that was begun.
type lineWriter struct {
	mu        sync.Mutex
	lineEnded *sync.Cond // somebody may write a line
	w         io.Writer
	midline   bool
	closed    bool
	err       error
	onError   func() // called once, at the first error
}

func newLineWriter(w io.Writer, failed func()) *lineWriter {
	p := &lineWriter{w: w, onError: failed}
	p.lineEnded = sync.NewCond(&p.mu)
	return p
}

// writePart writes what one pump passes on as it comes. ends says whether a line ends with it.
func (p *lineWriter) writePart(b []byte, ends bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writeLocked(b)
	p.midline = !ends
	if ends {
		p.lineEnded.Broadcast()
	}
}

// writeLine writes whole lines, when no other line is under way.
func (p *lineWriter) writeLine(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.midline && !p.closed {
		p.lineEnded.Wait()
	}
	p.writeLocked(b)
}

// writeSlowly writes a line in pieces. Nobody else writes meanwhile.
func (p *lineWriter) writeSlowly(b []byte, chunk int, every time.Duration, stop <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.midline && !p.closed {
		p.lineEnded.Wait()
	}
	t := time.NewTimer(0)
	defer t.Stop()
	for len(b) > 0 && !p.closed {
		select {
		case <-t.C:
		case <-stop:
			p.writeLocked(b)
			return
		}
		n := min(chunk, len(b))
		p.writeLocked(b[:n])
		b = b[n:]
		t.Reset(every)
	}
}

// blockWrites lets nobody write for as long as on says.
func (p *lineWriter) blockWrites(on func() bool, stop <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := time.NewTicker(pollEvery)
	defer t.Stop()
	for on() && !p.closed {
		select {
		case <-t.C:
		case <-stop:
			return
		}
	}
}

// endPartial says that nothing of the pump will come any more: who waits for the end of its line need not.
func (p *lineWriter) endPartial() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.midline = false
	p.lineEnded.Broadcast()
}

// close lets every later write do nothing, and closes what is written to.
func (p *lineWriter) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	p.lineEnded.Broadcast()
	if c, ok := p.w.(io.Closer); ok {
		_ = c.Close() // the reader sees the end whatever this says
	}
}

// writeLocked is called with the lock held.
func (p *lineWriter) writeLocked(b []byte) {
	if p.closed || p.err != nil || len(b) == 0 {
		return
	}
	if _, p.err = p.w.Write(b); p.err != nil && p.onError != nil {
		go p.onError() // it may want this port
	}
}

// delayQueue does things after a time, in one goroutine; equal times keep their order.
type delayQueue struct {
	mu     sync.Mutex
	items  []delayedTask
	wakeup chan struct{}
}

type delayedTask struct {
	dueAt time.Time
	run   func()
}

func newDelayQueue() *delayQueue { return &delayQueue{wakeup: make(chan struct{}, 1)} }

func (l *delayQueue) addTask(d time.Duration, do func()) {
	l.mu.Lock()
	at := time.Now().Add(d)
	i := len(l.items)
	for i > 0 && l.items[i-1].dueAt.After(at) {
		i--
	}
	l.items = append(l.items, delayedTask{})
	copy(l.items[i+1:], l.items[i:])
	l.items[i] = delayedTask{at, do}
	l.mu.Unlock()
	l.wakeUp()
}

func (l *delayQueue) wakeUp() {
	select {
	case l.wakeup <- struct{}{}:
	default:
	}
}

// runDue does what is due, or everything, and says when the next thing is.
func (l *delayQueue) runDue(all bool) time.Time {
	for {
		l.mu.Lock()
		if len(l.items) == 0 {
			l.mu.Unlock()
			return time.Time{}
		}
		first := l.items[0]
		if !all && first.dueAt.After(time.Now()) {
			l.mu.Unlock()
			return first.dueAt
		}
		l.items = l.items[1:]
		l.mu.Unlock()
		first.run()
	}
}
