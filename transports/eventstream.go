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

// This file reads the event-stream format of the HTML standard as MCP uses it, with bounded memory whatever the server sends.

// event is one event of a stream, as the format's dispatch step yields it.
type event struct {
	// name is the value of the field "event", empty for the default, which is "message".
	name string
	// data belongs to the receiver; it is empty for an event that only carries an id or a retry time.
	data []byte
	// oversized is set in place of data if data was over the limit or had no room in the server's share of the memory.
	oversized *oversizedMessage
}

// isMessage reports whether the event carries JSON-RPC. Events with other names are not defined by MCP and are skipped.
func (e event) isMessage() bool { return e.name == "" || e.name == "message" }

// maxFieldLine is the longest line, in bytes, of a field other than data. A longer one is ignored.
const maxFieldLine = 8 << 10

// maxRetry is the longest reconnection time that a server can ask for. A longer one counts as this.
const maxRetry = time.Hour

// errEndlessEvent means that one event went on beyond skipBound. The stream is of no more use, because its next event may never
// begin.
var errEndlessEvent = errors.New("an event without an end")

// eventReader cuts a stream of bytes into events. One goroutine uses it; it is not safe for concurrent use.
type eventReader struct {
	// id is the last event id that an event carried, retry the last reconnection time, 0 if the stream gave none. Both stay valid
	// after an error and after releaseBuffers: the reconnection needs them.
	id    string
	retry time.Duration

	// limit bounds the data of one event in bytes.
	src            io.Reader
	limit          int64
	buf            *[]byte // from eventBuffers or wideBuffers, nil after releaseBuffers
	bufPos, bufEnd int     // what of buf has not been parsed
	err            error   // what src returned last; it is handed on after the bytes that came with it

	line   []byte // the beginning of the line, until it is known which field it is
	mode   lineMode
	first  bool // no line is complete yet: a byte order mark may stand here
	skipLF bool // the line before ended with CR: LF belongs to it

	// The event that is being collected: name and nextID are its fields until now, hasData is true after its first data line, and
	// oversized is set once data was given up.
	name      string
	nextID    *string
	hasData   bool
	data      messageBuffer
	oversized *oversizedMessage

	// unchargedLines counts the lines without data that were not charged to the server's share yet.
	unchargedLines int
}

// lineMode says which part of a line the next bytes belong to.
type lineMode uint8

const (
	lineStart lineMode = iota // the field is not known yet
	lineValue                 // "data:" has been read; one space may follow
	lineData                  // within the value of data
	lineSkip                  // a comment, or a field that is too long
)

// eventBuffers saves 4 KiB of garbage per answer. A stream that waits keeps one of its buffers; only within a large message a
// stream takes one of wideBuffers instead, which saves system calls.
var (
	eventBuffers = sync.Pool{New: func() any { b := make([]byte, 4<<10); return &b }}
	wideBuffers  = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}
)

// resizeBuffer exchanges the buffer for one of the size that fits the message being read. The caller has used it up, so that
// nothing need be copied.
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

// newEventReader reads events with at most limit bytes of data each. The caller must call releaseBuffers when it stops.
func newEventReader(src io.Reader, limit int64, h memoryReservation) *eventReader {
	r := &eventReader{src: src, limit: limit, buf: eventBuffers.Get().(*[]byte), first: true}
	r.data.reservation = h
	return r
}

// releaseBuffers gives the buffers and the reserved memory back, and may be called twice. Only id and retry may be used
// afterwards.
func (r *eventReader) releaseBuffers() {
	if r.buf != nil {
		r.data.releaseBuffer()
		// The event was given up, so that resizeBuffer finds little data and brings the small buffer back.
		r.resizeBuffer()
		eventBuffers.Put(r.buf)
		r.buf, r.bufPos, r.bufEnd = nil, 0, 0
	}
}

// isExhausted reports that the source has ended and that all of it was parsed, so that the HTTP connection can be used again.
func (r *eventReader) isExhausted() bool { return r.bufPos == r.bufEnd && errors.Is(r.err, io.EOF) }

// nextEvent returns the next event, and blocks until there is one. The error is that of the source, or errEndlessEvent. An event
// that the end of the stream cuts off is dropped, as the format says.
func (r *eventReader) nextEvent() (event, error) {
	for {
		if r.bufPos == r.bufEnd {
			if err := r.fillBuffer(); err != nil {
				return event{}, err
			}
		}
		// A line ends with LF, CR or CRLF. A CR at the end of the chunk ends the line at once, because waiting for the next byte
		// would hold up an event that is complete; skipLF drops the LF if it comes.
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

// fillBuffer reads once into the empty buffer. It gives up after 100 reads without bytes and without an error, as bufio does.
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

// takeLinePiece adds a piece of a line, without its end. It decides the field from as few bytes as possible, so that data, which
// may be megabytes in one line, goes straight to addData and only short fields are kept in line.
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
	// The usual line begins with "data:" and comes in one piece: its value is not copied into line first.
	if len(r.line) == 0 {
		if value, ok := bytes.CutPrefix(p, []byte("data:")); ok {
			return r.beginData(value)
		}
	}
	r.line = append(r.line, p...)
	if r.first {
		if bytes.HasPrefix(r.line, byteOrderMark) {
			r.line, r.first = r.line[len(byteOrderMark):], false
			// The mark may still be incomplete: wait for its next bytes.
		} else if bytes.HasPrefix(byteOrderMark, r.line) {
			return nil
		}
	}
	if value, ok := bytes.CutPrefix(r.line, []byte("data:")); ok {
		// This is rare: the field's name was cut in two, or followed a byte order mark.
		r.line = r.line[:0]
		return r.beginData(value)
	}
	// A comment, or a field longer than any that is used: the rest of the line is dropped unread.
	if len(r.line) > 0 && r.line[0] == ':' || len(r.line) > maxFieldLine {
		r.line, r.mode = r.line[:0], lineSkip
	}
	return nil
}

// byteOrderMark may stand at the beginning of a stream; the format says to skip it.
var byteOrderMark = []byte("\xef\xbb\xbf")

// beginData starts the value of a data line. The format joins the lines of one event by LF.
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

// addData adds to the data of the event. Once the data is over the limit, or the server's share of the memory is used up, it
// keeps only the ends and the size. It returns errEndlessEvent when more than skipBound was dropped.
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

// endLine ends the current line: it stores a short field, or dispatches the event at an empty line. ok is true if that event has
// data.
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
	// The field without a colon is an empty line of data.
	case "data":
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
		// The standard says: digits only, else the field is ignored.
		if ms, err := strconv.ParseUint(string(value), 10, 63); err == nil {
			r.retry = maxRetry
			if ms < uint64(maxRetry/time.Millisecond) {
				r.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
	return event{}, false
}

// chargeLine charges the server for lines that carry no data. A server can send comments without an end, each of which costs
// processor time here; the stream of an ordinary answer has two or three such lines, and so pays nothing. Every 256 lines are
// charged at once, at 50 ns each, and then the reader pauses as long as the share says.
func (r *eventReader) chargeLine() {
	if r.unchargedLines++; r.unchargedLines < 256 {
		return
	}
	h := &r.data.reservation
	h.share.Charge(time.Duration(r.unchargedLines)*50*time.Nanosecond, budget.Unknown, time.Now())
	r.unchargedLines = 0
	takePause(h.share, h.connEnded)
}

// dispatchEvent hands out the event that an empty line has ended, and commits its id. It resets the collected fields, but never
// the id: the format keeps the last one for the reconnection.
func (r *eventReader) dispatchEvent() (e event, ok bool) {
	if r.nextID != nil {
		r.id, r.nextID = *r.nextID, nil
	}
	e = event{name: r.name, data: r.data.takeMessage(), oversized: r.oversized}
	ok = r.hasData
	r.name, r.oversized, r.hasData = "", nil, false
	return e, ok
}
