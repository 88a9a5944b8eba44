package proxy

import (
	"bytes"
)

// liner cuts a stream into lines. While nobody wants to hold lines back, bytes are passed on as they come, and the lines
// are only looked at; a line that is begun so is ended so.
type liner struct {
	// hold says whether the next line is to be gathered before anything of it is passed on.
	hold func() bool
	// pass passes bytes on; ends says whether a line ends with them.
	pass func(b []byte, ends bool)
	// seen is told of each line that has passed, if it was not too long; nil wants none.
	seen func(line []byte)
	// line is given each line that was held, with its end.
	line func(raw []byte)

	begun   bool // something of a line has come
	holding bool
	long    bool // more than is kept of a line that passes
	buf     []byte
}

// trackLimit is the longest line that is looked at while it passes.
const trackLimit = 4 << 20

func (l *liner) feed(b []byte) {
	for len(b) > 0 {
		if !l.begun {
			l.begun, l.holding = true, l.hold()
		}
		if !l.holding {
			// Everything passes at once, whatever lines there are in it.
			l.pass(b, b[len(b)-1] == '\n')
			l.watch(b)
			return
		}
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			l.buf = append(l.buf, b...)
			if len(l.buf) > holdLimit {
				l.pass(l.buf, false)
				l.buf, l.holding, l.long = nil, false, true
			}
			return
		}
		raw := b[:i+1]
		if len(l.buf) > 0 {
			l.buf = append(l.buf, raw...)
			raw = l.buf
		}
		l.begun = false
		l.line(raw)
		l.buf = l.buf[:0]
		if cap(l.buf) > trackLimit {
			l.buf = nil
		}
		b = b[i+1:]
	}
}

// watch looks at the lines in what has passed.
func (l *liner) watch(b []byte) {
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		piece := b
		if i >= 0 {
			piece = b[:i+1]
		}
		l.begun = i < 0
		if l.seen != nil && !l.long {
			switch {
			case len(l.buf)+len(piece) > trackLimit:
				l.buf, l.long = nil, true
			case i >= 0 && len(l.buf) == 0:
				l.seen(piece)
			default:
				l.buf = append(l.buf, piece...)
				if i >= 0 {
					l.seen(l.buf)
					l.buf = l.buf[:0]
				}
			}
		}
		if i < 0 {
			return
		}
		l.long = false
		b = b[i+1:]
	}
}

// end is the end of the stream: a last line without an end passes as it is.
func (l *liner) end() {
	switch {
	case len(l.buf) == 0:
	case l.holding:
		l.line(l.buf)
	case l.seen != nil:
		l.seen(l.buf)
	}
	l.buf = nil
}

// ending is what stands behind the message in a line: its end, and white space before it.
func ending(raw []byte) []byte { return raw[len(bytes.TrimRight(raw, " \t\r\n")):] }
