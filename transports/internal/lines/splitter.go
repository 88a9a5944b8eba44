// Package lines cuts the output of a child into messages, noise and lines that are too long, with bounded memory whatever the child
// writes. Package stdio feeds a [Splitter] with what it reads.
//
//	s := &lines.Splitter{Limit: limit, EndlessSize: lines.EndlessLine(limit), OnMessage: …, OnOversized: …, OnNoise: …}
//	for s.Feed(piece) { … }   // false: the line at hand will not end
//	s.EndStream()
//
// # How it fits
//
//	pipe.Reader ── pieces ──> Splitter ──> OnMessage, OnOversized, OnNoise ──> package stdio ──> Sink
//
// The goroutine that reads the pipe runs everything. Package incoming has the bounds of the memory, package redact says how many
// bytes beyond a cut must be kept so that a secret across it is found.
//
// # Guarantees
//
// How the stream is cut into pieces changes nothing. Every byte of a message is kept, or its size and its ends are; noise is cut to
// its beginning. A callback that panics leaves a splitter that can go on.
//
// # Not promised
//
// A message is told by its first character, not by its grammar: what begins with { and is no JSON comes to OnMessage, and the
// session judges it.
package lines

import (
	"bytes"
	"encoding/json"
	"math"
	"sync"

	"github.com/mcpvisor/mcpvisor/transports/internal/incoming"
)

const (
	// endlessTimes and endlessLeast say how long a line may be, as [EndlessLine] tells.
	endlessTimes = 128
	endlessLeast = 128 << 20
	// linePieceSize is the number of bytes of a long line in one buffer. Buffers are pooled for the next long line, of any
	// connection.
	linePieceSize = 1 << 20
)

// EndlessLine returns the length at which a line is given up as one that never ends, where a message may have limit bytes. Dropping
// bytes costs nothing but time, so that with the usual 16 MiB it is above anything that a broken tool has been seen to print (1 GiB).
func EndlessLine(limit int64) int64 {
	if limit > math.MaxInt64/endlessTimes {
		return math.MaxInt64
	}
	return max(endlessTimes*limit, endlessLeast)
}

// Splitter cuts a child's output into messages. Its reader feeds it pieces of any size; where they are cut makes no difference. A
// line whose first character is { or [ is a message; an empty line is nothing; any other line is noise, and so is a message that
// the end of the stream cuts off. A byte order mark and white space before the line, and white space after it (a carriage
// return), do not belong to it.
//
// Memory: a message is copied once, into a slice of its own size, which the sink owns. A line that spans pieces is gathered in
// pooled buffers of at most 1 MiB each. Of a line that is noise, over the limit, or without room in the server's share of the
// memory, only the ends are kept. Between two lines the splitter holds no buffer. One goroutine uses it.
type Splitter struct {
	Limit       int64 // of one message, without its newline
	EndlessSize int64 // of one line
	// Overlap is the number of bytes kept of a noise line beyond NoiseSize, so that a secret across the cut can be found.
	Overlap int

	Reservation incoming.Reservation // for what is in fullPieces, and as much again for the copy in one piece

	// The three callbacks run in the goroutine that feeds.
	OnMessage   func(body []byte) // owns body
	OnOversized func(over *incoming.Oversized)
	OnNoise     func(line []byte) // must not keep line

	state     lineState
	markBytes int   // bytes of the byte order mark seen, in state inBlank
	lineSize  int64 // bytes of the line until now
	// lastPiece has the end of the line and fullPieces what is before it, in state inMessage; nil in other states.
	lastPiece  *[]byte
	fullPieces []*[]byte
	oversized  incoming.Oversized // the ends of the line, in states inOversized and inNoise
}

// lineState says what the line at hand is, as far as its first bytes have shown.
type lineState uint8

const (
	inBlank     lineState = iota // only white space until now
	inMessage                    // begun with { or [
	inOversized                  // begun so, and over the limit
	inNoise                      // begun otherwise
)

var (
	// utf8ByteOrderMark is written by some programs on Windows before their first line.
	utf8ByteOrderMark = []byte("\xef\xbb\xbf")
	// lineBuffers start at 64 KiB and may have grown to linePieceSize when they come back.
	lineBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 64<<10); return &b }}
)

// Feed takes the next piece of the stream. It reports false if the line at hand is endless; the caller must feed nothing then.
func (l *Splitter) Feed(p []byte) bool {
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			l.addLinePart(p)
			return l.lineSize <= l.EndlessSize
		}
		if l.state == inBlank && l.markBytes == 0 && i > 0 && incoming.IsMessageStart(p[0]) && int64(i) <= l.Limit {
			// Nearly every line comes by here: it is whole in one piece, and is copied once without a pooled buffer.
			l.OnMessage(bytes.Clone(trimEnd(p[:i])))
		} else {
			l.addLinePart(p[:i])
			l.endLine()
		}
		p = p[i+1:]
	}
}

// EndStream handles the end of the stream. A last line without a newline counts if it is valid JSON, because some servers answer
// and exit without writing one.
func (l *Splitter) EndStream() {
	if l.state == inMessage {
		if p, _ := l.joinedLine(); !json.Valid(p) {
			l.OnNoise(l.NoisePart(p))
			l.releaseBuffers()
			l.state = inBlank
		}
	}
	l.endLine()
}

// addLinePart takes a part of a line, the last one or not, and decides by the first visible byte what the line is.
func (l *Splitter) addLinePart(p []byte) {
	l.lineSize += int64(len(p))
	if l.state == inBlank {
		if p = l.skipLinePrefix(p); len(p) == 0 {
			return
		}
		if l.markBytes == 0 && incoming.IsMessageStart(p[0]) {
			l.state, l.lastPiece = inMessage, emptyBuffer()
		} else {
			l.state = inNoise
			// The bytes were no byte order mark, and so belong to the line.
			l.oversized.AddBytes(utf8ByteOrderMark[:l.markBytes])
		}
	}
	switch l.state {
	case inMessage:
		// The bound is one byte more than the limit, because the last byte may be a carriage return.
		if int64(len(l.fullPieces)*linePieceSize+len(*l.lastPiece)+len(p)) > l.Limit+1 {
			l.keepEndsOnly(p)
			return
		}
		if rest := l.bufferBytes(p); rest != nil {
			l.oversized.OverBudget = true
			l.keepEndsOnly(rest)
		}
	case inOversized:
		l.oversized.AddBytes(p)
	case inNoise:
		if l.oversized.Size < int64(incoming.NoiseSize+l.Overlap) {
			l.oversized.AddBytes(l.NoisePart(p))
		}
	}
}

// keepEndsOnly turns the line into an oversized one: it measures what was collected and rest, which follows it, and frees the
// buffers.
func (l *Splitter) keepEndsOnly(rest []byte) {
	for _, piece := range l.fullPieces {
		l.oversized.AddBytes(*piece)
	}
	l.oversized.AddBytes(*l.lastPiece)
	l.oversized.AddBytes(rest)
	l.releaseBuffers()
	l.state = inOversized
}

// bufferBytes appends p to the collected bytes. It returns as rest the bytes for which the server's share has no room, nil if all
// fit.
func (l *Splitter) bufferBytes(p []byte) (rest []byte) {
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
		// A second piece means a large message: it is charged twice, because endLine joins the pieces into a copy.
		if !l.Reservation.ReserveMore(2 * linePieceSize) {
			return p
		}
		l.fullPieces, l.lastPiece = append(l.fullPieces, l.lastPiece), emptyBuffer()
	}
}

// emptyBuffer takes a pooled buffer and empties it: nothing of an earlier line may come before this one.
func emptyBuffer() *[]byte {
	b := lineBuffers.Get().(*[]byte)
	*b = (*b)[:0]
	return b
}

// joinedLine returns the collected bytes in one slice. copied is false if the slice is a pooled buffer, which the caller must
// clone before it releases the buffers.
func (l *Splitter) joinedLine() (p []byte, copied bool) {
	if len(l.fullPieces) == 0 {
		return *l.lastPiece, false
	}
	p = make([]byte, 0, len(l.fullPieces)*linePieceSize+len(*l.lastPiece))
	for _, piece := range l.fullPieces {
		p = append(p, *piece...)
	}
	return append(p, *l.lastPiece...), true
}

// skipLinePrefix removes white space and a byte order mark from the beginning of a line. It remembers in markBytes how much of a
// mark it has seen, because the mark may be cut by the end of a piece.
func (l *Splitter) skipLinePrefix(p []byte) []byte {
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

// endLine ends the line at hand and gives it to the callback that fits. The state is reset first, so that a callback that panics
// leaves a usable splitter.
func (l *Splitter) endLine() {
	state, over := l.state, l.oversized
	l.state, l.markBytes, l.lineSize, l.oversized = inBlank, 0, 0, incoming.Oversized{}
	switch state {
	case inMessage:
		p, copied := l.joinedLine()
		p = trimEnd(p)
		if int64(len(p)) <= l.Limit {
			if !copied {
				p = bytes.Clone(p)
			}
			l.releaseBuffers()
			l.OnMessage(p)
			return
		}
		// Only the carriage return that was allowed for was no carriage return: the message is over the limit by one byte.
		over.AddBytes(p)
		l.releaseBuffers()
		fallthrough
	case inOversized:
		l.OnOversized(&over)
	case inNoise:
		if p := trimEnd(l.NoisePart(over.Head)); len(p) > 0 {
			l.OnNoise(p)
		}
	}
}

// IsDropping reports whether the bytes of the line at hand are dropped, which the reader charges to the server.
func (l *Splitter) IsDropping() bool { return l.state == inOversized || l.state == inNoise }

// releaseBuffers gives the line's buffers back to the pool and its memory to the server's share.
func (l *Splitter) releaseBuffers() {
	for _, piece := range l.fullPieces {
		*piece = (*piece)[:0]
		lineBuffers.Put(piece)
	}
	*l.lastPiece = (*l.lastPiece)[:0]
	lineBuffers.Put(l.lastPiece)
	l.lastPiece, l.fullPieces = nil, nil
	l.Reservation.ReleaseAll()
}

// trimEnd removes white space at the end of a line. Programs on Windows end their lines with CRLF.
func trimEnd(p []byte) []byte {
	for len(p) > 0 && (p[len(p)-1] == '\r' || p[len(p)-1] == ' ' || p[len(p)-1] == '\t') {
		p = p[:len(p)-1]
	}
	return p
}

// NoisePart returns as much of a line as the redactor needs to hide secrets in its first NoiseSize bytes.
func (l *Splitter) NoisePart(p []byte) []byte {
	return p[:min(len(p), incoming.NoiseSize+l.Overlap)]
}
