// Package admission lets callers in until it is closed, and knows when the last one has left.
//
//	if !c.Enter() { return }          // closed
//	defer func() { if c.Leave() { close(drained) } }()
//	…
//	if _, empty := c.Close(); empty { close(drained) }
//
// # How it fits
//
// Package session has one [Counter] in each gate, which admits calls; package lifetime one in each connection without a process, which
// admits goroutines.
//
// # Guarantees
//
// "Closed and empty" becomes true at one moment, and exactly one of Leave and Close reports it. Nothing blocks.
//
// # Not promised
//
// Nobody waits here: who wants to, makes a channel that is closed at that moment.
package admission

import "sync/atomic"

// Counter holds the closed bit and the number of callers inside in one word, so that nobody enters between the two. The zero Counter is
// open and empty. Safe for concurrent use.
type Counter struct{ word atomic.Uint64 }

// closed is the bit that marks the word as closed. The other bits count.
const closed = 1 << 63

// Enter lets the caller in, and reports false if it is closed. After true the caller must call Leave. It is a loop without a lock,
// because every call of every caller passes here.
func (c *Counter) Enter() bool {
	for {
		w := c.word.Load()
		if w&closed != 0 {
			return false
		}
		if c.word.CompareAndSwap(w, w+1) {
			return true
		}
	}
}

// Leave undoes Enter. It reports true once: to the last caller who leaves after Close.
func (c *Counter) Leave() (last bool) { return c.word.Add(^uint64(0)) == closed }

// Close lets nobody in from now on. It reports whether it was the first Close, and whether nobody was inside then, so that no Leave
// will report the end.
func (c *Counter) Close() (first, empty bool) {
	before := c.word.Or(closed)
	return before&closed == 0, before == 0
}

// Closed reports whether Close was called.
func (c *Counter) Closed() bool { return c.word.Load()&closed != 0 }

// Drained reports whether it is closed and nobody is inside.
func (c *Counter) Drained() bool { return c.word.Load() == closed }

// Inside returns the number of callers inside.
func (c *Counter) Inside() int { return int(c.word.Load() &^ closed) }
