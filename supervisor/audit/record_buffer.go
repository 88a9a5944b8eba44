package audit

import "sync"

// recordBuffer is the memory in which the goroutine of a call writes a record before it is queued: with it a call encodes and hashes beside
// every other, holds the queue's lock for a copy only, and leaves nothing of its arguments behind.
type recordBuffer struct {
	line []byte
	form canonicalHasher
}

// keptLine is the largest line whose memory is kept for the next one, in bytes: larger than any without arguments.
const keptLine = 16 << 10

var recordBuffers = sync.Pool{New: func() any { return &recordBuffer{line: make([]byte, 0, 1<<10)} }}

func (p *recordBuffer) release() {
	if cap(p.line) > keptLine {
		p.line = nil
	}
	recordBuffers.Put(p)
}
