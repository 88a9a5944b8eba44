package transports

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/budget"
)

// The event-stream format of the HTML standard, as MCP uses it: bounded in memory whatever the server sends.

// event is one event of a stream.
type event struct {
	// name is empty for the default, which is "message".
	name string
	// data belongs to the receiver; empty for an event that only carries an id or a retry time.
	data []byte
	// oversized is set instead of data if data was over the limit.
	oversized *oversizedMessage
}

// isMessage reports whether the event carries JSON-RPC. Events with names that MCP does not define carry something
// else.
func (e event) isMessage() bool { return e.name == "" || e.name == "message" }

// maxFieldLine is the longest line, in bytes, of a field other than data. A longer one is ignored.
const maxFieldLine = 8 << 10

// maxRetry is the longest reconnection time that is believed.
const maxRetry = time.Hour

// errEndlessEvent says that one event went on far beyond the limit. The stream is of no more use.
var errEndlessEvent = errors.New("an event without an end")

// eventReader takes a stream of bytes apart into events. It is not safe for concurrent use.
type eventReader struct {
	// id is the last event id that the stream committed to, retry the last reconnection time, 0 if it gave none. Both
	// hold after an error too.
	id    string
	retry time.Duration

	src            io.Reader
	limit          int64
	buf            *[]byte // from eventBuffers
	bufPos, bufEnd int     // what of buf has not been looked at
	err            error   // what src said last; it comes after the bytes that came with it

	line   []byte // the beginning of the line, until it is known which field it is
	mode   lineMode
	first  bool // no line is complete yet: a byte order mark may stand here
	skipLF bool // the line before ended with CR: LF belongs to it

	name      string
	nextID    *string
	hasData   bool
	data      messageBuffer
	oversized *oversizedMessage

	unchargedLines int // that carried no data, and were not charged yet
}

type lineMode uint8

const (
	lineStart lineMode = iota // the field is not known yet
	lineValue                 // "data:" has been read; one space may follow
	lineData                  // within the value of data
	lineSkip                  // a comment, or a field that is too long
)

// eventBuffers saves 4 KiB of garbage per answer. A stream that waits keeps one; only within a large message a stream
// takes one of wideBuffers instead.
var (
	eventBuffers = sync.Pool{New: func() any { b := make([]byte, 4<<10); return &b }}
	wideBuffers  = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}
)

// resizeBuffer exchanges the buffer, which is empty, for the size that fits what is being read.
func (r *eventReader) resizeBuffer() {
	if wide := len(*r.buf) > 4<<10; wide == (len(r.data.b) > 16<<10) {
		return
	} else if wide {
		wideBuffers.Put(r.buf)
		r.buf = eventBuffers.Get().(*[]byte)
	} else {
		eventBuffers.Put(r.buf)
		r.buf = wideBuffers.Get().(*[]byte)
	}
}

// newEventReader reads events with at most limit bytes of data each. The reader calls release when it stops.
func newEventReader(src io.Reader, limit int64, h memoryReservation) *eventReader {
	r := &eventReader{src: src, limit: limit, buf: eventBuffers.Get().(*[]byte), first: true}
	r.data.reservation = h
	return r
}

// releaseBuffers gives the buffer back. The reader must not be used afterwards, except for id and retry.
func (r *eventReader) releaseBuffers() {
	if r.buf != nil {
		r.data.releaseBuffer()
		r.resizeBuffer()
		eventBuffers.Put(r.buf)
		r.buf, r.bufPos, r.bufEnd = nil, 0, 0
	}
}

// isExhausted reports that the source has ended and nothing of it is left.
func (r *eventReader) isExhausted() bool { return r.bufPos == r.bufEnd && errors.Is(r.err, io.EOF) }

// nextEvent is the next event. An event that the end of the stream cuts off is dropped, as the format wants it.
func (r *eventReader) nextEvent() (event, error) {
	for {
		if r.bufPos == r.bufEnd {
			if err := r.fillBuffer(); err != nil {
				return event{}, err
			}
		}
		chunk := (*r.buf)[r.bufPos:r.bufEnd]
		if r.skipLF {
			r.skipLF = false
			if chunk[0] == '\n' {
				r.bufPos++
				continue
			}
		}
		end := bytes.IndexByte(chunk, '\n')
		if cr := bytes.IndexByte(chunk[:max(end, 0)], '\r'); cr >= 0 {
			end = cr
		} else if end < 0 {
			end = bytes.IndexByte(chunk, '\r')
		}
		if end < 0 {
			r.bufPos = r.bufEnd
			if err := r.takeLinePiece(chunk); err != nil {
				return event{}, err
			}
			continue
		}
		r.bufPos += end + 1
		r.skipLF = chunk[end] == '\r'
		if err := r.takeLinePiece(chunk[:end]); err != nil {
			return event{}, err
		}
		if e, ok := r.endLine(); ok {
			return e, nil
		}
	}
}

func (r *eventReader) fillBuffer() error {
	if r.err != nil {
		return r.err
	}
	r.resizeBuffer()
	for range 100 {
		n, err := r.src.Read(*r.buf)
		r.bufPos, r.bufEnd, r.err = 0, n, err
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// takeLinePiece adds a piece of a line, without its end.
func (r *eventReader) takeLinePiece(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	switch r.mode {
	case lineSkip:
		return nil
	case lineValue:
		r.mode = lineData
		if p[0] == ' ' {
			p = p[1:]
		}
		return r.addData(p)
	case lineData:
		return r.addData(p)
	}
	// The usual line begins with data: and is not copied twice.
	if len(r.line) == 0 {
		if value, ok := bytes.CutPrefix(p, []byte("data:")); ok {
			return r.beginData(value)
		}
	}
	r.line = append(r.line, p...)
	if r.first {
		if bytes.HasPrefix(r.line, byteOrderMark) {
			r.line, r.first = r.line[len(byteOrderMark):], false
		} else if bytes.HasPrefix(byteOrderMark, r.line) {
			return nil
		}
	}
	if value, ok := bytes.CutPrefix(r.line, []byte("data:")); ok {
		// Rare: the field's name was cut in two, or followed a byte order mark.
		r.line = r.line[:0]
		return r.beginData(value)
	}
	if len(r.line) > 0 && r.line[0] == ':' || len(r.line) > maxFieldLine {
		r.line, r.mode = r.line[:0], lineSkip
	}
	return nil
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// beginData starts a line of data. Lines of one event are joined by LF.
func (r *eventReader) beginData(value []byte) error {
	r.mode = lineValue
	if r.hasData {
		if err := r.addData([]byte{'\n'}); err != nil {
			return err
		}
	}
	r.hasData = true
	return r.takeLinePiece(value)
}

// addData adds to the data of the event, or only to its measure once that is over the limit.
func (r *eventReader) addData(p []byte) error {
	tooLong := int64(len(r.data.b)+len(p)) > r.limit
	if r.oversized == nil && (tooLong || !r.data.makeRoom(p, int(r.limit))) {
		r.oversized = &oversizedMessage{overBudget: !tooLong}
		r.oversized.addBytes(r.data.b)
		r.data.releaseBuffer()
	}
	if r.oversized == nil {
		r.data.b = append(r.data.b, p...)
		return nil
	}
	r.oversized.addBytes(p)
	if r.oversized.size > skipBound(r.limit) {
		return errEndlessEvent
	}
	return nil
}

// endLine ends the current line. ok is true if that ended an event with data.
func (r *eventReader) endLine() (e event, ok bool) {
	r.first = false
	mode, line := r.mode, r.line
	r.mode, r.line = lineStart, r.line[:0]
	if mode == lineStart || mode == lineSkip {
		r.chargeLine()
	}
	switch {
	case mode != lineStart:
		return event{}, false
	case len(line) == 0:
		return r.dispatchEvent()
	}
	field, value, _ := bytes.Cut(line, []byte{':'})
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(field) {
	case "data": // without a colon: an empty line of data
		_ = r.beginData(nil)
		r.mode = lineStart
	case "event":
		r.name = string(value)
	case "id":
		// "If the field value does not contain U+0000 NULL, then set the last event ID buffer to the field value."
		if bytes.IndexByte(value, 0) < 0 {
			id := string(value)
			r.nextID = &id
		}
	case "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 63); err == nil {
			r.retry = maxRetry
			if ms < uint64(maxRetry/time.Millisecond) {
				r.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
	return event{}, false
}

// chargeLine notes a line that carries no data. A stream may be comments without an end; that of an answer has two or three
// such lines.
func (r *eventReader) chargeLine() {
	if r.unchargedLines++; r.unchargedLines < 256 {
		return
	}
	h := &r.data.reservation
	h.share.Charge(time.Duration(r.unchargedLines)*50*time.Nanosecond, budget.Unknown, time.Now())
	r.unchargedLines = 0
	takePause(h.share, h.connEnded)
}

// dispatchEvent ends an event.
func (r *eventReader) dispatchEvent() (e event, ok bool) {
	if r.nextID != nil {
		r.id, r.nextID = *r.nextID, nil
	}
	e = event{name: r.name, data: r.data.takeMessage(), oversized: r.oversized}
	ok = r.hasData
	r.name, r.oversized, r.hasData = "", nil, false
	return e, ok
}

// oversizedMessage measures a message that is over the limit and keeps its ends.
type oversizedMessage struct {
	head, tail []byte
	size       int64
	overBudget bool // it was not over the limit: the server's share of the memory had no room for it
}

// keptEndSize is how many bytes of each end of an oversized message are kept.
const keptEndSize = 4 << 10

func (o *oversizedMessage) addBytes(p []byte) {
	o.size += int64(len(p))
	if room := keptEndSize - len(o.head); room > 0 {
		o.head = append(o.head, p[:min(len(p), room)]...)
	}
	if len(p) >= keptEndSize {
		o.tail = append(o.tail[:0], p[len(p)-keptEndSize:]...)
		return
	}
	if over := len(o.tail) + len(p) - keptEndSize; over > 0 {
		o.tail = o.tail[:copy(o.tail, o.tail[over:])]
	}
	o.tail = append(o.tail, p...)
}

// skipBound is how many bytes of one oversized message are read before its connection is given up: what is dropped
// costs time and traffic, and a body without an end never ends by itself.
func skipBound(limit int64) int64 { return max(16*limit, 64<<20) }
