package stdio

import (
	"slices"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/transports/internal/redact"
)

// outputTail keeps the last bytes of a stream, and as many before them as a secret that reaches into them may have. It grows with
// the stream up to its size, so that a silent child costs nothing. It is safe for concurrent use.
type outputTail struct {
	size    int // bytes that are shown
	overlap int // bytes kept before them, to find secrets across the cut

	// mu guards buf, a ring once it is full, and next, where the next byte goes then.
	mu   sync.Mutex
	buf  []byte
	next int
}

// write appends to the tail, and overwrites the oldest bytes when the ring is full.
func (t *outputTail) write(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	size := t.size + t.overlap
	if len(p) > size {
		p = p[len(p)-size:]
		t.buf, t.next = t.buf[:0], 0
	}
	if room := size - len(t.buf); room > 0 {
		n := min(room, len(p))
		t.buf = append(t.buf, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(t.buf[t.next:], p)
		p = p[n:]
		t.next = (t.next + n) % size
	}
}

// clearText forgets everything.
func (t *outputTail) clearText() {
	t.mu.Lock()
	t.buf, t.next = nil, 0
	t.mu.Unlock()
}

// redactedText returns the last bytes without secrets. If earlier bytes were lost, it starts with a whole line where there is
// one, because half a line misleads.
func (t *outputTail) redactedText(s *redact.Redactor) string {
	all, lost := t.keptText()
	if !lost && len(all) <= t.size {
		return s.RedactText(all)
	}
	from := len(all) - min(t.size, len(all))
	// A cut through a secret would leave a part that no longer matches any form, and so would not be hidden.
	from = s.CutAfterSecret(all, from)
	all = all[from:]
	if i := strings.IndexByte(all, '\n'); i >= 0 && i < len(all)-1 {
		all = all[s.CutAfterSecret(all, i+1):]
	}
	return s.RedactText(all)
}

// keptText returns the bytes that are kept, and whether something was written before them. A ring that is exactly full counts as
// such.
func (t *outputTail) keptText() (text string, lost bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.buf) < t.size+t.overlap {
		return string(t.buf), false
	}
	return string(slices.Concat(t.buf[t.next:], t.buf[:t.next])), true
}
