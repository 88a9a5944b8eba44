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
	// heldPiece is how much of a long line one buffer holds. Buffers are kept for the next long line, of any connection.
	heldPiece = 1 << 20
)

// lines cuts what a child writes into messages. It is fed with pieces of any size; where they are cut makes no
// difference. A line whose first character is { or [ is a message; an empty line is nothing; any other line is noise,
// and so is a message that the end of the stream cuts off. A byte order mark and white space before the line, and white
// space after it (a carriage return), do not belong to it.
//
// Memory: a message is copied once, into a slice of its own size, which the sink owns. A line that spans pieces is
// gathered in pooled buffers, of 1 MiB at most and one more than it fills. Of a line that is noise or over the limit only
// the ends are kept, as of one that the server's share of the memory has no room for. Between two lines nothing is held.
type lines struct {
	limit   int64 // of one message, without its newline
	endless int64 // of one line
	overlap int   // what noise is given of a line beyond noiseSize, to find secrets across the cut

	holding holding // what is in full, and as much again for the copy

	message func(body []byte) // owns body
	large   func(over *oversize)
	noise   func(line []byte) // must not keep line

	state lineState
	marks int     // bytes of the byte order mark seen, in state inBlank
	seen  int64   // bytes of the line until now
	held  *[]byte // what there is of the line, in state inMessage, behind what is in full
	full  []*[]byte
	over  oversize // the ends of the line, in states inLarge and inNoise
}

type lineState uint8

const (
	inBlank   lineState = iota // only white space until now
	inMessage                  // begun with { or [
	inLarge                    // begun so, and over the limit
	inNoise                    // begun otherwise
)

var (
	byteOrder = []byte("\xef\xbb\xbf")
	heldLines = sync.Pool{New: func() any { b := make([]byte, 0, 64<<10); return &b }}
)

// feed takes the next piece of the stream. It reports false if the line at hand is endless; nothing may be fed then.
func (l *lines) feed(p []byte) bool {
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			l.hold(p)
			return l.seen <= l.endless
		}
		if l.state == inBlank && l.marks == 0 && i > 0 && opens(p[0]) && int64(i) <= l.limit {
			l.message(bytes.Clone(trimEnd(p[:i]))) // nearly every line comes by here
		} else {
			l.hold(p[:i])
			l.close()
		}
		p = p[i+1:]
	}
}

// end is the end of the stream. A last line without a newline counts if it is a whole message: some servers answer and
// exit without one.
func (l *lines) end() {
	if l.state == inMessage {
		if p, _ := l.whole(); !json.Valid(p) {
			l.noise(l.start(p))
			l.drop()
			l.state = inBlank
		}
	}
	l.close()
}

// hold takes a part of a line, the last one or not.
func (l *lines) hold(p []byte) {
	l.seen += int64(len(p))
	if l.state == inBlank {
		if p = l.skip(p); len(p) == 0 {
			return
		}
		if l.marks == 0 && opens(p[0]) {
			l.state, l.held = inMessage, emptyBuffer()
		} else {
			l.state = inNoise
			l.over.add(byteOrder[:l.marks]) // it was none
		}
	}
	switch l.state {
	case inMessage:
		// One byte more than the limit, because the last one may be a carriage return.
		if int64(len(l.full)*heldPiece+len(*l.held)+len(p)) > l.limit+1 {
			l.giveUp(p)
			return
		}
		if rest := l.gather(p); rest != nil {
			l.over.unheld = true
			l.giveUp(rest)
		}
	case inLarge:
		l.over.add(p)
	case inNoise:
		if l.over.size < int64(noiseSize+l.overlap) {
			l.over.add(l.start(p))
		}
	}
}

// giveUp keeps the ends of the line alone. rest follows the bytes that are held.
func (l *lines) giveUp(rest []byte) {
	for _, piece := range l.full {
		l.over.add(*piece)
	}
	l.over.add(*l.held)
	l.over.add(rest)
	l.drop()
	l.state = inLarge
}

// gather appends to the bytes that are held, and returns as rest those for which there is no room, nil if there are none.
func (l *lines) gather(p []byte) (rest []byte) {
	for {
		n := min(len(p), heldPiece-len(*l.held))
		if need := len(*l.held) + n; need > cap(*l.held) {
			bigger := make([]byte, len(*l.held), min(max(need, 2*cap(*l.held)), heldPiece))
			copy(bigger, *l.held)
			*l.held = bigger
		}
		*l.held = append(*l.held, p[:n]...)
		if p = p[n:]; len(p) == 0 {
			return nil
		}
		if !l.holding.more(2 * heldPiece) {
			return p
		}
		l.full, l.held = append(l.full, l.held), emptyBuffer()
	}
}

// emptyBuffer takes a buffer that others have used: nothing of what they held may come before this line.
func emptyBuffer() *[]byte {
	b := heldLines.Get().(*[]byte)
	*b = (*b)[:0]
	return b
}

// whole returns the bytes that are held, in one piece. It copies them if they are in several.
func (l *lines) whole() (p []byte, copied bool) {
	if len(l.full) == 0 {
		return *l.held, false
	}
	p = make([]byte, 0, len(l.full)*heldPiece+len(*l.held))
	for _, piece := range l.full {
		p = append(p, *piece...)
	}
	return append(p, *l.held...), true
}

// skip removes what does not belong to a line from its beginning.
func (l *lines) skip(p []byte) []byte {
	for i, c := range p {
		switch {
		case c == byteOrder[l.marks]:
			l.marks = (l.marks + 1) % len(byteOrder)
		case l.marks == 0 && (c == ' ' || c == '\t' || c == '\r'):
		default:
			return p[i:]
		}
	}
	return nil
}

// close ends the line at hand.
func (l *lines) close() {
	state, over := l.state, l.over
	l.state, l.marks, l.seen, l.over = inBlank, 0, 0, oversize{}
	switch state {
	case inMessage:
		p, copied := l.whole()
		p = trimEnd(p)
		if int64(len(p)) <= l.limit {
			if !copied {
				p = bytes.Clone(p)
			}
			l.drop()
			l.message(p)
			return
		}
		over.add(p)
		l.drop()
		fallthrough
	case inLarge:
		l.large(&over)
	case inNoise:
		if p := trimEnd(l.start(over.head)); len(p) > 0 {
			l.noise(p)
		}
	}
}

// dropping reports whether the line at hand is one of which only the ends are kept.
func (l *lines) dropping() bool { return l.state == inLarge || l.state == inNoise }

// drop gives the held line's buffers back.
func (l *lines) drop() {
	for _, piece := range l.full {
		*piece = (*piece)[:0]
		heldLines.Put(piece)
	}
	*l.held = (*l.held)[:0]
	heldLines.Put(l.held)
	l.held, l.full = nil, nil
	l.holding.drop()
}

func opens(c byte) bool { return c == '{' || c == '[' }

func trimEnd(p []byte) []byte {
	for len(p) > 0 && (p[len(p)-1] == '\r' || p[len(p)-1] == ' ' || p[len(p)-1] == '\t') {
		p = p[:len(p)-1]
	}
	return p
}

// start returns as much of a line as the code that hides secrets in it needs.
func (l *lines) start(p []byte) []byte { return p[:min(len(p), noiseSize+l.overlap)] }
