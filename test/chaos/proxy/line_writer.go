package proxy

import (
	"io"
	"sync"
	"time"
)

// lineWriter writes lines from several goroutines. A line never lands inside another one that was begun: writers of whole lines
// wait for its end.
type lineWriter struct {
	// mu guards everything below and is held while writing, so that a reader that does not read blocks all writers.
	mu sync.Mutex
	// lineEnded wakes the writers that wait for the current line to end.
	lineEnded *sync.Cond
	w         io.Writer
	// midline is set while a line that passes in parts has not ended.
	midline bool
	closed  bool
	err     error
	// onError is called once, at the first error of writing, in a goroutine of its own.
	onError func()
}

func newLineWriter(w io.Writer, failed func()) *lineWriter {
	p := &lineWriter{w: w, onError: failed}
	p.lineEnded = sync.NewCond(&p.mu)
	return p
}

// writePart writes bytes that pass as they come. ends is true if a line ends with them. Only one goroutine, the one that passes
// the stream, calls it.
func (p *lineWriter) writePart(b []byte, ends bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writeLocked(b)
	p.midline = !ends
	if ends {
		p.lineEnded.Broadcast()
	}
}

// writeLine writes whole lines once no other line is under way.
func (p *lineWriter) writeLine(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.midline && !p.closed {
		p.lineEnded.Wait()
	}
	p.writeLocked(b)
}

// writeSlowly writes a line in chunks, and at once what is left when stop is closed. The other writers wait meanwhile, as they
// would for a slow pipe.
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

// blockWrites keeps all writers waiting as long as on returns true, at most until stop is closed.
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

// endPartial ends the line of writePart, because its stream has ended and brings no more.
func (p *lineWriter) endPartial() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.midline = false
	p.lineEnded.Broadcast()
}

// close makes every later write do nothing, and closes the destination.
func (p *lineWriter) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	p.lineEnded.Broadcast()
	if c, ok := p.w.(io.Closer); ok {
		// The reader sees the end even if closing returns an error.
		_ = c.Close()
	}
}

// writeLocked writes and keeps the first error; after an error nothing more is written. The caller holds mu.
func (p *lineWriter) writeLocked(b []byte) {
	if p.closed || p.err != nil || len(b) == 0 {
		return
	}
	if _, p.err = p.w.Write(b); p.err != nil && p.onError != nil {
		// The caller holds mu, and onError may need it.
		go p.onError()
	}
}

// delayQueue runs functions after a time. Its owner calls runDue in one goroutine; equal times keep their order.
type delayQueue struct {
	mu    sync.Mutex
	items []delayedTask
	// wakeup holds one token when an earlier task may have come.
	wakeup chan struct{}
}

type delayedTask struct {
	dueAt time.Time
	run   func()
}

func newDelayQueue() *delayQueue { return &delayQueue{wakeup: make(chan struct{}, 1)} }

// addTask adds a task that runs after d. It inserts from the end, because most tasks come in the order of their times.
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

// wakeUp makes the owner look at the queue.
func (l *delayQueue) wakeUp() {
	select {
	case l.wakeup <- struct{}{}:
	default:
	}
}

// runDue runs what is due, or with all everything, and returns the time of the next task, zero if there is none. It runs
// without the lock, so that a task may add another.
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
