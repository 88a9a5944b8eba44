package terminal

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"sync"
	"unicode/utf8"

	"github.com/mcpvisor/mcpvisor/messages"
)

// escapeWriter stands before every terminal that a run writes to. It writes characters that act on a terminal or are invisible
// as escapes (\x07, \u009b, \u202e, \U000e0041), except the control sequences of this program itself. Each command escapes the
// texts of strangers where it prints them; this writer is for the place that was forgotten. It is safe for concurrent use.
type escapeWriter struct {
	out io.Writer
	mu  sync.Mutex
	// partial holds the first bytes of a rune that was cut between two writes; mu guards it and the order of writes.
	partial []byte
}

// ownSequencePattern matches the control sequences that this program writes: colours, the table of up, a line drawn over. A
// server that writes them can recolour, clear or switch the screen, and nothing else.
var ownSequencePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\x1b\[(?:(?:0|1|2|3[0-7]|9[0-7])?(?:;(?:0|1|2|3[0-7]|9[0-7])){0,3}m|2?K|2?J|H|\?(?:1049|2026|25|7)[hl])`)
})

// Write escapes p and writes it. It reports all of p as written if the terminal accepted the escaped form, whose length
// differs.
func (t *escapeWriter) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := append(t.partial, p...)
	t.partial = nil
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		// A sequence of our own is at most a few bytes, and is never split over two writes.
		if b[0] == 0x1b {
			if own := ownSequencePattern().Find(b[:min(len(b), 32)]); own != nil {
				out, b = append(out, own...), b[len(own):]
				continue
			}
		}
		if !utf8.FullRune(b) {
			t.partial = bytes.Clone(b)
			break
		}
		r, size := utf8.DecodeRune(b)
		switch text := string(b[:size]); {
		case r == utf8.RuneError && size == 1:
			out = fmt.Appendf(out, `\x%02x`, b[0])
		// A carriage return passes only before a newline or a sequence of our own; alone it would let a text overwrite its
		// line.
		case r == '\r' && len(b) > 1 && (b[1] == '\n' || b[1] == 0x1b), r == utf8.RuneError, messages.Printable(text) == text:
			out = append(out, text...)
		case r < 0x80:
			out = fmt.Appendf(out, `\x%02x`, r)
		case r <= 0xffff:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			out = fmt.Appendf(out, `\U%08x`, r)
		}
		b = b[size:]
	}
	if _, err := t.out.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Escape puts an escapeWriter before w if w is a terminal. Pipes and files get the bytes as they are.
func Escape(w io.Writer) io.Writer {
	if !IsTerminal(w) {
		return w
	}
	return &escapeWriter{out: w}
}

// Fd returns the descriptor of the terminal, so that IsTerminal and ColumnsOf look through the writer.
func (t *escapeWriter) Fd() uintptr { return t.out.(interface{ Fd() uintptr }).Fd() }
