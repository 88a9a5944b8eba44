package transports

import (
	"bytes"
	"encoding/json"
	"sync"
)

const (
	// noiseSize is how much of a line of noise the sink gets.
	noiseSize = 256
	// endlessLine is the length at which a line is given up as one that never ends. What is dropped costs nothing but
	// time, so it is above anything that a broken tool has been seen to print (1 GiB).
	endlessLine = 2 << 30
	// linePieceSize is how much of a long line one buffer holds. Buffers are kept for the next long line, of any connection.
	linePieceSize = 1 << 20
)

// lineSplitter cuts what a child writes into messages. It is fed with pieces of any size; where they are cut makes no
// difference. A line whose first character is { or [ is a message; an empty line is nothing; any other line is noise,
// and so is a message that the end of the stream cuts off. A byte order mark and white space before the line, and white
// space after it (a carriage return), do not belong to it.
//
// Memory: a message is copied once, into a slice of its own size, which the sink owns. A line that spans pieces is
// gathered in pooled buffers, of 1 MiB at most and one more than it fills. Of a line that is noise or over the limit only
// the ends are kept, as of one that the server's share of the memory has no room for. Between two lines nothing is held.
type lineSplitter struct {
	limit       int64 // of one message, without its newline
	endlessSize int64 // of one line
	overlap     int   // what noise is given of a line beyond noiseSize, to find secrets across the cut

	reservation memoryReservation // what is in full, and as much again for the copy

	onMessage   func(body []byte) // owns body
	onOversized func(over *oversizedMessage)
	onNoise     func(line []byte) // must not keep line

	state      lineState
	markBytes  int     // bytes of the byte order mark seen, in state inBlank
	lineSize   int64   // bytes of the line until now
	lastPiece  *[]byte // what there is of the line, in state inMessage, behind what is in full
	fullPieces []*[]byte
	oversized  oversizedMessage // the ends of the line, in states inOversized and inNoise
}

type lineState uint8

const (
	inBlank     lineState = iota // only white space until now
	inMessage                    // begun with { or [
	inOversized                  // begun so, and over the limit
	inNoise                      // begun otherwise
)

var (
	utf8ByteOrderMark = []byte("\xef\xbb\xbf")
	lineBuffers       = sync.Pool{New: func() any { b := make([]byte, 0, 64<<10); return &b }}
)

// feed takes the next piece of the stream. It reports false if the line at hand is endless; nothing may be fed then.
func (l *lineSplitter) feed(p []byte) bool {
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			l.addLinePart(p)
			return l.lineSize <= l.endlessSize
		}
		if l.state == inBlank && l.markBytes == 0 && i > 0 && isMessageStart(p[0]) && int64(i) <= l.limit {
			l.onMessage(bytes.Clone(trimEnd(p[:i]))) // nearly every line comes by here
		} else {
			l.addLinePart(p[:i])
			l.endLine()
		}
		p = p[i+1:]
	}
}

// endStream is the end of the stream. A last line without a newline counts if it is a whole message: some servers answer and
// exit without one.
func (l *lineSplitter) endStream() {
	if l.state == inMessage {
		if p, _ := l.joinedLine(); !json.Valid(p) {
			l.onNoise(l.noisePart(p))
			l.releaseBuffers()
			l.state = inBlank
		}
	}
	l.endLine()
}

// addLinePart takes a part of a line, the last one or not.
func (l *lineSplitter) addLinePart(p []byte) {
	l.lineSize += int64(len(p))
	if l.state == inBlank {
		if p = l.skipLinePrefix(p); len(p) == 0 {
			return
		}
		if l.markBytes == 0 && isMessageStart(p[0]) {
			l.state, l.lastPiece = inMessage, emptyBuffer()
		} else {
			l.state = inNoise
			l.oversized.addBytes(utf8ByteOrderMark[:l.markBytes]) // it was none
		}
	}
	switch l.state {
	case inMessage:
		// One byte more than the limit, because the last one may be a carriage return.
		if int64(len(l.fullPieces)*linePieceSize+len(*l.lastPiece)+len(p)) > l.limit+1 {
			l.keepEndsOnly(p)
			return
		}
		if rest := l.bufferBytes(p); rest != nil {
			l.oversized.overBudget = true
			l.keepEndsOnly(rest)
		}
	case inOversized:
		l.oversized.addBytes(p)
	case inNoise:
		if l.oversized.size < int64(noiseSize+l.overlap) {
			l.oversized.addBytes(l.noisePart(p))
		}
	}
}

// keepEndsOnly keeps the ends of the line alone. rest follows the bytes that are held.
func (l *lineSplitter) keepEndsOnly(rest []byte) {
	for _, piece := range l.fullPieces {
		l.oversized.addBytes(*piece)
	}
	l.oversized.addBytes(*l.lastPiece)
	l.oversized.addBytes(rest)
	l.releaseBuffers()
	l.state = inOversized
}

// bufferBytes appends to the bytes that are held, and returns as rest those for which there is no room, nil if there are none.
func (l *lineSplitter) bufferBytes(p []byte) (rest []byte) {
	for {
		n := min(len(p), linePieceSize-len(*l.lastPiece))
		if need := len(*l.lastPiece) + n; need > cap(*l.lastPiece) {
			bigger := make([]byte, len(*l.lastPiece), min(max(need, 2*cap(*l.lastPiece)), linePieceSize))
			copy(bigger, *l.lastPiece)
			*l.lastPiece = bigger
		}
		*l.lastPiece = append(*l.lastPiece, p[:n]...)
		if p = p[n:]; len(p) == 0 {
			return nil
		}
		if !l.reservation.reserveMore(2 * linePieceSize) {
			return p
		}
		l.fullPieces, l.lastPiece = append(l.fullPieces, l.lastPiece), emptyBuffer()
	}
}

// emptyBuffer takes a buffer that others have used: nothing of what they held may come before this line.
func emptyBuffer() *[]byte {
	b := lineBuffers.Get().(*[]byte)
	*b = (*b)[:0]
	return b
}

// joinedLine returns the bytes that are held, in one piece. It copies them if they are in several.
func (l *lineSplitter) joinedLine() (p []byte, copied bool) {
	if len(l.fullPieces) == 0 {
		return *l.lastPiece, false
	}
	p = make([]byte, 0, len(l.fullPieces)*linePieceSize+len(*l.lastPiece))
	for _, piece := range l.fullPieces {
		p = append(p, *piece...)
	}
	return append(p, *l.lastPiece...), true
}

// skipLinePrefix removes what does not belong to a line from its beginning.
func (l *lineSplitter) skipLinePrefix(p []byte) []byte {
	for i, c := range p {
		switch {
		case c == utf8ByteOrderMark[l.markBytes]:
			l.markBytes = (l.markBytes + 1) % len(utf8ByteOrderMark)
		case l.markBytes == 0 && (c == ' ' || c == '\t' || c == '\r'):
		default:
			return p[i:]
		}
	}
	return nil
}

// endLine ends the line at hand.
func (l *lineSplitter) endLine() {
	state, over := l.state, l.oversized
	l.state, l.markBytes, l.lineSize, l.oversized = inBlank, 0, 0, oversizedMessage{}
	switch state {
	case inMessage:
		p, copied := l.joinedLine()
		p = trimEnd(p)
		if int64(len(p)) <= l.limit {
			if !copied {
				p = bytes.Clone(p)
			}
			l.releaseBuffers()
			l.onMessage(p)
			return
		}
		over.addBytes(p)
		l.releaseBuffers()
		fallthrough
	case inOversized:
		l.onOversized(&over)
	case inNoise:
		if p := trimEnd(l.noisePart(over.head)); len(p) > 0 {
			l.onNoise(p)
		}
	}
}

// isDropping reports whether the line at hand is one of which only the ends are kept.
func (l *lineSplitter) isDropping() bool { return l.state == inOversized || l.state == inNoise }

// releaseBuffers gives the held line's buffers back.
func (l *lineSplitter) releaseBuffers() {
	for _, piece := range l.fullPieces {
		*piece = (*piece)[:0]
		lineBuffers.Put(piece)
	}
	*l.lastPiece = (*l.lastPiece)[:0]
	lineBuffers.Put(l.lastPiece)
	l.lastPiece, l.fullPieces = nil, nil
	l.reservation.releaseAll()
}

func isMessageStart(c byte) bool { return c == '{' || c == '[' }

func trimEnd(p []byte) []byte {
	for len(p) > 0 && (p[len(p)-1] == '\r' || p[len(p)-1] == ' ' || p[len(p)-1] == '\t') {
		p = p[:len(p)-1]
	}
	return p
}

// noisePart returns as much of a line as the code that hides secrets in it needs.
func (l *lineSplitter) noisePart(p []byte) []byte { return p[:min(len(p), noiseSize+l.overlap)] }
