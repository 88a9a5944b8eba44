package audit

import "sync"

// recordBuffer is the memory in which the goroutine of a call encodes a record before it is queued. With it, calls encode and hash
// beside one another and hold the queue's lock for a copy only, and no argument stays in memory that is kept.
type recordBuffer struct {
	line []byte
	// form is the canonical form of arguments while they are hashed.
	form []byte
}

// keptLine bounds the memory that is kept for the next line and for the next form, in bytes each: more than any record without
// arguments needs.
const keptLine = 16 << 10

// recordBuffers keeps buffers between calls; the runtime may drop them at any collection.
var recordBuffers = sync.Pool{New: func() any { return &recordBuffer{line: make([]byte, 0, 1<<10)} }}

// release gives the buffer back. Large ones go, so that one call with large arguments does not hold memory for ever.
func (p *recordBuffer) release() {
	if cap(p.line) > keptLine {
		p.line = nil
	}
	if cap(p.form) > keptLine {
		p.form = nil
	}
	recordBuffers.Put(p)
}
