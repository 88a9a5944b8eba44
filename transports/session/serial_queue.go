package session

import "sync"

// serialQueue runs what is put into it, in order, on one goroutine that exists only while there is something to run. It is
// bounded: what does not fit, or finds no memory, is dropped and counted, so that put never blocks.
type serialQueue struct {
	spawn    func(func()) bool
	maxItems int
	maxBytes int     // of the sizes given to put; one item may be larger than that on its own
	memory   *memory // of which the sizes are taken; nil for none

	mu      sync.Mutex
	queue   []queuedItem
	bytes   int
	isOpen  bool
	running bool
	dropped int64
}

type queuedItem struct {
	run        func()
	size       int
	memoryHeld int64 // of memory
}

// put queues run, which keeps size bytes alive. must is for the few items that may not be lost.
func (l *serialQueue) put(size int, mandatory bool, run func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	full := len(l.queue) >= l.maxItems || len(l.queue) > 0 && l.bytes+size > l.maxBytes
	item := queuedItem{run: run, size: size}
	if !mandatory {
		if l.memory != nil {
			item.memoryHeld = int64(size)
		}
		if full || item.memoryHeld > 0 && l.memory.reserve(item.memoryHeld) != nil {
			l.dropped++
			return
		}
	}
	l.queue = append(l.queue, item)
	l.bytes += size
	l.startWorker()
}

// open lets the lane run. Before that it only queues.
func (l *serialQueue) open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isOpen = true
	l.startWorker()
}

// startWorker begins the goroutine if it is needed. The caller holds mu.
func (l *serialQueue) startWorker() {
	if l.isOpen && !l.running && len(l.queue) > 0 {
		l.running = l.spawn(l.drain)
		if !l.running {
			l.queue, l.bytes = nil, 0 // the session is over
		}
	}
}

// drain runs the queue until it is empty. If an item panics, the lane stays marked as running, and so never runs again:
// the session has ended.
func (l *serialQueue) drain() {
	for {
		l.mu.Lock()
		if len(l.queue) == 0 {
			l.queue, l.running = nil, false
			l.mu.Unlock()
			return
		}
		item := l.queue[0]
		l.queue[0] = queuedItem{}
		l.queue = l.queue[1:]
		l.bytes -= item.size
		l.mu.Unlock()
		item.run()
		if item.memoryHeld > 0 {
			l.memory.release(item.memoryHeld)
		}
	}
}

// droppedCount is the number of items that did not fit.
func (l *serialQueue) droppedCount() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped
}
