package proxy

import (
	"bytes"
)

// lineSplitter cuts a stream into lines. Without rules it passes bytes on as they come and only looks at the lines; a line that
// began to pass goes on passing even if a rule comes into force in the middle.
type lineSplitter struct {
	// shouldHold is called at the start of each line and decides whether the splitter gathers it before it passes anything on.
	shouldHold func() bool
	// passBytes gets what passes; ends is true if a line ends with these bytes.
	passBytes func(b []byte, ends bool)
	// onPassed gets each line that has passed, unless it was longer than trackLimit; nil wants none.
	onPassed func(line []byte)
	// onHeld gets each gathered line with its end. The slice is reused afterwards.
	onHeld func(raw []byte)

	// inLine is set when a part of the current line has come, tooLong when it is too long to be kept.
	inLine  bool
	holding bool
	tooLong bool
	buf     []byte
}

// trackLimit is the length in bytes up to which a passing line or event is kept for the log.
const trackLimit = 4 << 20

// feedBytes handles the next bytes of the stream.
func (l *lineSplitter) feedBytes(b []byte) {
	for len(b) > 0 {
		if !l.inLine {
			l.inLine, l.holding = true, l.shouldHold()
		}
		if !l.holding {
			// Everything passes at once, whatever lines there are in it.
			l.passBytes(b, b[len(b)-1] == '\n')
			l.trackLines(b)
			return
		}
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			l.buf = append(l.buf, b...)
			// Above holdLimit the line passes without the rules, so that a line without an end does not fill the memory.
			if len(l.buf) > holdLimit {
				l.passBytes(l.buf, false)
				l.buf, l.holding, l.tooLong = nil, false, true
			}
			return
		}
		raw := b[:i+1]
		if len(l.buf) > 0 {
			l.buf = append(l.buf, raw...)
			raw = l.buf
		}
		l.inLine = false
		l.onHeld(raw)
		l.buf = l.buf[:0]
		// A long line must not keep its buffer for the rest of the run.
		if cap(l.buf) > trackLimit {
			l.buf = nil
		}
		b = b[i+1:]
	}
}

// trackLines finds the lines in what has passed.
func (l *lineSplitter) trackLines(b []byte) {
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		piece := b
		if i >= 0 {
			piece = b[:i+1]
		}
		l.inLine = i < 0
		if l.onPassed != nil && !l.tooLong {
			switch {
			case len(l.buf)+len(piece) > trackLimit:
				l.buf, l.tooLong = nil, true
			case i >= 0 && len(l.buf) == 0:
				l.onPassed(piece)
			default:
				l.buf = append(l.buf, piece...)
				if i >= 0 {
					l.onPassed(l.buf)
					l.buf = l.buf[:0]
				}
			}
		}
		if i < 0 {
			return
		}
		l.tooLong = false
		b = b[i+1:]
	}
}

// endStream handles the end of the stream: a last line without an end is handled like the others.
func (l *lineSplitter) endStream() {
	switch {
	case len(l.buf) == 0:
	case l.holding:
		l.onHeld(l.buf)
	case l.onPassed != nil:
		l.onPassed(l.buf)
	}
	l.buf = nil
}

// lineEnding returns the end of a line and the white space before it, so that a changed message keeps both.
func lineEnding(raw []byte) []byte { return raw[len(bytes.TrimRight(raw, " \t\r\n")):] }
