package proxy

import (
	"bytes"
	"slices"
)

// eventSplitter cuts a stream of server-sent events at the empty lines between them, whatever ends its lines. Like a liner it
// passes bytes on as they come while nobody wants to hold them back.
type eventSplitter struct {
	shouldHold func() bool
	passBytes  func(b []byte)
	onPassed   func(raw []byte) // nil wants none
	onHeld     func(raw []byte)

	inEvent, holding, tooLong bool
	lineEmpty                 bool // the line at hand has nothing in it
	afterCR                   bool // the last byte was CR: LF belongs to it
	buf                       []byte
}

func newEventSplitter() *eventSplitter { return &eventSplitter{lineEmpty: true} }

func (e *eventSplitter) feedBytes(b []byte) {
	for len(b) > 0 {
		if !e.inEvent {
			e.inEvent, e.holding = true, e.shouldHold()
		}
		n, complete := e.scanEvent(b)
		piece := b[:n]
		b = b[n:]
		if !e.holding {
			e.passBytes(piece)
		}
		if e.holding || e.onPassed != nil && !e.tooLong {
			e.buf = append(e.buf, piece...)
		}
		switch {
		case complete && e.holding:
			e.onHeld(e.buf)
		case complete && e.onPassed != nil && !e.tooLong:
			e.onPassed(e.buf)
		case e.holding && len(e.buf) > holdLimit:
			e.passBytes(e.buf)
			e.holding, e.tooLong, e.buf = false, true, nil
		case len(e.buf) > trackLimit && !e.holding:
			e.tooLong, e.buf = true, nil
		}
		if complete {
			e.inEvent, e.tooLong, e.buf = false, false, e.buf[:0]
		}
	}
}

// scanEvent counts the bytes up to the end of the event, all of them if it does not end.
func (e *eventSplitter) scanEvent(b []byte) (n int, complete bool) {
	for i, c := range b {
		after := e.afterCR
		e.afterCR = c == '\r'
		switch {
		case c == '\n' && after: // the second half of an end
		case c == '\n' || c == '\r':
			if e.lineEmpty {
				return i + 1, true
			}
			e.lineEmpty = true
		default:
			e.lineEmpty = false
		}
	}
	return len(b), false
}

// endStream is the end of the stream: what is left is no whole event, and passes.
func (e *eventSplitter) endStream() {
	if e.holding && len(e.buf) > 0 {
		e.passBytes(e.buf)
	}
	e.buf = nil
}

// eventLines are the lines of an event without their ends.
func eventLines(raw []byte) [][]byte {
	raw = bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n"))
	raw = bytes.ReplaceAll(raw, []byte("\r"), []byte("\n"))
	return bytes.Split(bytes.TrimRight(raw, "\n"), []byte("\n"))
}

// eventData is the data of an event, nil if it has none, and its name.
func eventData(raw []byte) (name string, data []byte) {
	for _, line := range eventLines(raw) {
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			name = string(value)
		case "data":
			if data != nil {
				data = append(data, '\n')
			}
			data = append(slices.Grow(data, len(value)+1), value...)
			if data == nil {
				data = []byte{}
			}
		}
	}
	return name, data
}

// eventWith is the event with other data; its id and the like stay.
func eventWith(raw, data []byte) []byte {
	var out []byte
	done := false
	for _, line := range eventLines(raw) {
		if field, _, _ := bytes.Cut(line, []byte(":")); string(field) == "data" {
			if done {
				continue
			}
			line, done = slices.Concat([]byte("data: "), data), true
		}
		out = append(append(out, line...), '\n')
	}
	return append(out, '\n')
}

// newEvent is a message as an event.
func newEvent(body []byte) []byte {
	return slices.Concat([]byte("event: message\ndata: "), body, []byte("\n\n"))
}
