package main

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"sync"
	"unicode/utf8"

	"github.com/mcpvisor/mcpvisor/messages"
)

// escapeWriter is what stands before every terminal that a run writes to. Whatever acts on a terminal, or is not seen there, comes
// out as an escape (\x07, \u009b, \u202e, \U000e0041), except what this program itself says to a terminal. Each command
// neutralises the texts of strangers where it prints them; this is for the one that was forgotten. Safe for concurrent
// use. A rune that is cut between two writes is kept for the second one.
type escapeWriter struct {
	out     io.Writer
	mu      sync.Mutex
	partial []byte
}

// ownSequencePattern are the control sequences of this program: colours of package text, the picture of up, a line that is drawn anew.
var ownSequencePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\x1b\[(?:(?:0|1|2|3[0-7]|9[0-7])?(?:;(?:0|1|2|3[0-7]|9[0-7])){0,3}m|2?K|2?J|H|\?(?:1049|2026|25|7)[hl])`)
})

// Write reports all of p as written if the terminal took what became of it.
func (t *escapeWriter) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := append(t.partial, p...)
	t.partial = nil
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
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

// escapeTerminal puts a shield before w if w is a terminal.
func escapeTerminal(w io.Writer) io.Writer {
	if !isTerminal(w) {
		return w
	}
	return &escapeWriter{out: w}
}

// Fd is that of the terminal.
func (t *escapeWriter) Fd() uintptr { return t.out.(interface{ Fd() uintptr }).Fd() }
