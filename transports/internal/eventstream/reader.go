// Package eventstream reads the event-stream format of the HTML standard as MCP uses it, with bounded memory whatever the server
// sends. Package web reads the answers and the streams of servers with a [Reader].
//
//	r := eventstream.NewReader(resp.Body, limit, reservation)
//	defer r.ReleaseBuffers()
//	event, err := r.NextEvent()   // blocks until an event has come
//
// # How it fits
//
// The goroutine that reads a response owns the [Reader]. Bytes go through pooled buffers into an incoming.Buffer, whose memory is
// taken from the server's share; the message that comes out belongs to the sink. ID and Retry tell package web how to go on with a
// stream that broke.
//
// # Guarantees
//
// A message above the limit, or one for which the share has no room, comes as its size and its ends and not as an error, so that
// one large answer does not cost the connection. An event without an end is an error after SkipBound bytes. Lines without data are
// charged to the server, because comments without an end would otherwise cost processor time only here.
//
// # Not promised
//
// The reader knows no time: a stream that falls silent blocks NextEvent until its source is closed.
package eventstream

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/budget"
	"github.com/mcpvisor/mcpvisor/transports/internal/incoming"
)

// Event is one event of a stream, as the format's dispatch step yields it.
type Event struct {
	// Name is the value of the field "event", empty for the default, which is "message".
	Name string
	// Data belongs to the receiver; it is empty for an event that only carries an id or a retry time.
	Data []byte
	// Oversized is set in place of data if data was over the limit or had no room in the server's share of the memory.
	Oversized *incoming.Oversized
}

// IsMessage reports whether the event carries JSON-RPC. Events with other names are not defined by MCP and are skipped.
func (e Event) IsMessage() bool { return e.Name == "" || e.Name == "message" }

// maxFieldLine is the longest line, in bytes, of a field other than data. A longer one is ignored.
const maxFieldLine = 8 << 10

// maxRetry is the longest reconnection time that a server can ask for. A longer one counts as this.
const maxRetry = time.Hour

// ErrEndless means that one event went on beyond SkipBound. The stream is of no more use, because its next event may never begin.
var ErrEndless = errors.New("an event without an end")

// Reader cuts a stream of bytes into events. One goroutine uses it; it is not safe for concurrent use.
type Reader struct {
	// ID is the last event id that an event carried, Retry the last reconnection time, 0 if the stream gave none. Both stay valid
	// after an error and after ReleaseBuffers: the reconnection needs them.
	ID    string
	Retry time.Duration

	// limit bounds the data of one event in bytes.
	src            io.Reader
	limit          int64
	buf            *[]byte // from eventBuffers or wideBuffers, nil after ReleaseBuffers
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
	data      incoming.Buffer
	oversized *incoming.Oversized

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
func (r *Reader) resizeBuffer() {
	if wide := len(*r.buf) > 4<<10; wide == (len(r.data.Bytes) > 16<<10) {
		return
	} else if wide {
		wideBuffers.Put(r.buf)
		r.buf = eventBuffers.Get().(*[]byte)
	} else {
		eventBuffers.Put(r.buf)
		r.buf = wideBuffers.Get().(*[]byte)
	}
}

// NewReader reads events with at most limit bytes of data each. The caller must call ReleaseBuffers when it stops.
func NewReader(src io.Reader, limit int64, h incoming.Reservation) *Reader {
	r := &Reader{src: src, limit: limit, buf: eventBuffers.Get().(*[]byte), first: true}
	r.data.Reservation = h
	return r
}

// ReleaseBuffers gives the buffers and the reserved memory back, and may be called twice. Only ID and Retry may be used
// afterwards.
func (r *Reader) ReleaseBuffers() {
	if r.buf != nil {
		r.data.ReleaseBuffer()
		// The event was given up, so that resizeBuffer finds little data and brings the small buffer back.
		r.resizeBuffer()
		eventBuffers.Put(r.buf)
		r.buf, r.bufPos, r.bufEnd = nil, 0, 0
	}
}

// IsExhausted reports that the source has ended and that all of it was parsed, so that the HTTP connection can be used again.
func (r *Reader) IsExhausted() bool { return r.bufPos == r.bufEnd && errors.Is(r.err, io.EOF) }

// NextEvent returns the next event, and blocks until there is one. The error is that of the source, or ErrEndless. An event
// that the end of the stream cuts off is dropped, as the format says.
func (r *Reader) NextEvent() (Event, error) {
	for {
		if r.bufPos == r.bufEnd {
			if err := r.fillBuffer(); err != nil {
				return Event{}, err
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
				return Event{}, err
			}
			continue
		}
		r.bufPos += end + 1
		r.skipLF = chunk[end] == '\r'
		if err := r.takeLinePiece(chunk[:end]); err != nil {
			return Event{}, err
		}
		if e, ok := r.endLine(); ok {
			return e, nil
		}
	}
}

// fillBuffer reads once into the empty buffer. It gives up after 100 reads without bytes and without an error, as bufio does.
func (r *Reader) fillBuffer() error {
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
func (r *Reader) takeLinePiece(p []byte) error {
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
func (r *Reader) beginData(value []byte) error {
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
// keeps only the ends and the size. It returns ErrEndless when more than SkipBound was dropped.
func (r *Reader) addData(p []byte) error {
	tooLong := int64(len(r.data.Bytes)+len(p)) > r.limit
	if r.oversized == nil && (tooLong || !r.data.MakeRoom(p, int(r.limit))) {
		r.oversized = &incoming.Oversized{OverBudget: !tooLong}
		r.oversized.AddBytes(r.data.Bytes)
		r.data.ReleaseBuffer()
	}
	if r.oversized == nil {
		r.data.Bytes = append(r.data.Bytes, p...)
		return nil
	}
	r.oversized.AddBytes(p)
	if r.oversized.Size > incoming.SkipBound(r.limit) {
		return ErrEndless
	}
	return nil
}

// endLine ends the current line: it stores a short field, or dispatches the event at an empty line. ok is true if that event has
// data.
func (r *Reader) endLine() (e Event, ok bool) {
	r.first = false
	mode, line := r.mode, r.line
	r.mode, r.line = lineStart, r.line[:0]
	if mode == lineStart || mode == lineSkip {
		r.chargeLine()
	}
	switch {
	case mode != lineStart:
		return Event{}, false
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
			r.Retry = maxRetry
			if ms < uint64(maxRetry/time.Millisecond) {
				r.Retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
	return Event{}, false
}

// chargeLine charges the server for lines that carry no data. A server can send comments without an end, each of which costs
// processor time here; the stream of an ordinary answer has two or three such lines, and so pays nothing. Every 256 lines are
// charged at once, at 50 ns each, and then the reader pauses as long as the share says.
func (r *Reader) chargeLine() {
	if r.unchargedLines++; r.unchargedLines < 256 {
		return
	}
	h := &r.data.Reservation
	h.Share.Charge(time.Duration(r.unchargedLines)*50*time.Nanosecond, budget.Unknown, time.Now())
	r.unchargedLines = 0
	incoming.TakePause(h.Share, h.ConnEnded)
}

// dispatchEvent hands out the event that an empty line has ended, and commits its id. It resets the collected fields, but never
// the id: the format keeps the last one for the reconnection.
func (r *Reader) dispatchEvent() (e Event, ok bool) {
	if r.nextID != nil {
		r.ID, r.nextID = *r.nextID, nil
	}
	e = Event{Name: r.name, Data: r.data.TakeMessage(), Oversized: r.oversized}
	ok = r.hasData
	r.name, r.oversized, r.hasData = "", nil, false
	return e, ok
}
