package audit

import "sync"

// pad is the memory in which the goroutine of a call writes a record before it is queued: with it a call encodes and hashes beside
// every other, holds the queue's lock for a copy only, and leaves nothing of its arguments behind.
type pad struct {
	line []byte
	form canonical
}

// keptLine is the largest line whose memory is kept for the next one, in bytes: larger than any without arguments.
const keptLine = 16 << 10

var pads = sync.Pool{New: func() any { return &pad{line: make([]byte, 0, 1<<10)} }}

func (p *pad) back() {
	if cap(p.line) > keptLine {
		p.line = nil
	}
	pads.Put(p)
}
