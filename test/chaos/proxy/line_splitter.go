package proxy

import (
	"bytes"
)

// lineSplitter cuts a stream into lines. While nobody wants to hold lines back, bytes are passed on as they come, and the lines
// are only looked at; a line that is begun so is ended so.
type lineSplitter struct {
	// shouldHold says whether the next line is to be gathered before anything of it is passed on.
	shouldHold func() bool
	// passBytes passes bytes on; ends says whether a line ends with them.
	passBytes func(b []byte, ends bool)
	// onPassed is told of each line that has passed, if it was not too long; nil wants none.
	onPassed func(line []byte)
	// onHeld is given each line that was held, with its end.
	onHeld func(raw []byte)

	inLine  bool // something of a line has come
	holding bool
	tooLong bool // more than is kept of a line that passes
	buf     []byte
}

// trackLimit is the longest line that is looked at while it passes.
const trackLimit = 4 << 20

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
		if cap(l.buf) > trackLimit {
			l.buf = nil
		}
		b = b[i+1:]
	}
}

// trackLines looks at the lines in what has passed.
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

// endStream is the end of the stream: a last line without an end passes as it is.
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

// lineEnding is what stands behind the message in a line: its end, and white space before it.
func lineEnding(raw []byte) []byte { return raw[len(bytes.TrimRight(raw, " \t\r\n")):] }
