package session

import "sync"

// lane runs what is put into it, in order, on one goroutine that exists only while there is something to run. It is
// bounded: what does not fit, or finds no memory, is dropped and counted, so that put never blocks.
type lane struct {
	start    func(func()) bool
	maxItems int
	maxBytes int     // of the sizes given to put; one item may be larger than that on its own
	memory   *memory // of which the sizes are taken; nil for none

	mu      sync.Mutex
	queue   []laneItem
	bytes   int
	isOpen  bool
	running bool
	dropped int64
}

type laneItem struct {
	run  func()
	size int
	held int64 // of memory
}

// put queues run, which keeps size bytes alive. must is for the few items that may not be lost.
func (l *lane) put(size int, must bool, run func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	full := len(l.queue) >= l.maxItems || len(l.queue) > 0 && l.bytes+size > l.maxBytes
	item := laneItem{run: run, size: size}
	if !must {
		if l.memory != nil {
			item.held = int64(size)
		}
		if full || item.held > 0 && l.memory.take(item.held) != nil {
			l.dropped++
			return
		}
	}
	l.queue = append(l.queue, item)
	l.bytes += size
	l.wake()
}

// open lets the lane run. Before that it only queues.
func (l *lane) open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isOpen = true
	l.wake()
}

// wake begins the goroutine if it is needed. The caller holds mu.
func (l *lane) wake() {
	if l.isOpen && !l.running && len(l.queue) > 0 {
		l.running = l.start(l.drain)
		if !l.running {
			l.queue, l.bytes = nil, 0 // the session is over
		}
	}
}

// drain runs the queue until it is empty. If an item panics, the lane stays marked as running, and so never runs again:
// the session has ended.
func (l *lane) drain() {
	for {
		l.mu.Lock()
		if len(l.queue) == 0 {
			l.queue, l.running = nil, false
			l.mu.Unlock()
			return
		}
		item := l.queue[0]
		l.queue[0] = laneItem{}
		l.queue = l.queue[1:]
		l.bytes -= item.size
		l.mu.Unlock()
		item.run()
		if item.held > 0 {
			l.memory.give(item.held)
		}
	}
}

// drops is the number of items that did not fit.
func (l *lane) drops() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped
}
