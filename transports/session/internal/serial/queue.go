package serial

import (
	"github.com/mcpvisor/mcpvisor/transports/session/internal/memory"
	"sync"
)

// A Queue runs the functions that are put into it, in order, on one goroutine that exists only while there is something
// to run. It is bounded: an item that does not fit, or finds no memory, is dropped and counted, so that Put never blocks the
// goroutine that reads.
type Queue struct {
	// Spawn starts the worker's goroutine; it reports false after the session has ended.
	Spawn func(func()) bool
	// MaxItems bounds the queue, mandatory items not included.
	MaxItems int
	MaxBytes int             // bound of the sizes given to Put; one item may be larger than that on its own
	Memory   *memory.Account // account for the sizes; nil for none

	mu sync.Mutex
	// mu guards the fields below it.
	queue   []queuedItem
	bytes   int   // sum of the sizes in queue
	isOpen  bool  // Open was called
	running bool  // the worker's goroutine runs
	dropped int64 // items that did not fit
}

// queuedItem is one function with its cost.
type queuedItem struct {
	run        func()
	size       int
	memoryHeld int64 // bytes reserved from memory, given back after run
}

// Put queues run, which keeps size bytes alive until it has run. A mandatory item is never dropped and is not counted against
// the memory; its sender bounds how many there are. taken is false for an item that was dropped.
func (l *Queue) Put(size int, mandatory bool, run func()) (taken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	full := len(l.queue) >= l.MaxItems || len(l.queue) > 0 && l.bytes+size > l.MaxBytes
	item := queuedItem{run: run, size: size}
	if !mandatory {
		if l.Memory != nil {
			item.memoryHeld = int64(size)
		}
		if full || item.memoryHeld > 0 && l.Memory.Reserve(item.memoryHeld) != nil {
			l.dropped++
			return false
		}
	}
	l.queue = append(l.queue, item)
	l.bytes += size
	l.startWorker()
	return true
}

// Open starts the queue, which only collects items before that: they may use a connection that Dial has not returned yet.
func (l *Queue) Open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isOpen = true
	l.startWorker()
}

// startWorker begins the worker's goroutine if it is needed. The caller holds mu.
func (l *Queue) startWorker() {
	if l.isOpen && !l.running && len(l.queue) > 0 {
		l.running = l.Spawn(l.drain)
		if !l.running {
			l.queue, l.bytes = nil, 0 // the session is over: no item will run
		}
	}
}

// drain runs items until the queue is empty. If an item panics, the queue stays marked as running and so never runs again:
// the panic has ended the session.
func (l *Queue) drain() {
	for {
		l.mu.Lock()
		if len(l.queue) == 0 {
			// queue is dropped, and not only emptied: a burst must not leave its memory behind.
			l.queue, l.running = nil, false
			l.mu.Unlock()
			return
		}
		item := l.queue[0]
		// The slot is cleared, or the item would live as long as the rest of the queue.
		l.queue[0] = queuedItem{}
		l.queue = l.queue[1:]
		l.bytes -= item.size
		l.mu.Unlock()
		item.run()
		if item.memoryHeld > 0 {
			l.Memory.Release(item.memoryHeld)
		}
	}
}

// Busy reports whether an item runs, or waits to.
func (l *Queue) Busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running || len(l.queue) > 0
}

// DroppedCount returns the number of items that did not fit.
func (l *Queue) DroppedCount() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped
}
