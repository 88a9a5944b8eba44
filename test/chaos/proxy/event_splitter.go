package proxy

import (
	"bytes"
	"slices"
)

// eventSplitter cuts a stream of server-sent events at the empty lines between them; lines may end in LF, CR or CRLF. Like a
// lineSplitter it passes bytes on as they come unless the rules want whole events.
type eventSplitter struct {
	// shouldHold is called at the start of each event and decides whether the splitter gathers it before it passes anything on.
	// passBytes gets what passes, onHeld each gathered event.
	shouldHold func() bool
	passBytes  func(b []byte)
	// onPassed gets each event that has passed, unless it was longer than trackLimit; nil wants none.
	onPassed func(raw []byte)
	onHeld   func(raw []byte)

	// tooLong is set when the current event is too long to be kept.
	inEvent, holding, tooLong bool
	// lineEmpty is set while the current line has no character. afterCR is set when the last byte was CR, so that a following
	// LF belongs to it.
	lineEmpty bool
	afterCR   bool
	buf       []byte
}

func newEventSplitter() *eventSplitter { return &eventSplitter{lineEmpty: true} }

// feedBytes handles the next bytes of the stream.
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
		// An event above the limit passes without the rules, so that a stream without empty lines does not fill the memory.
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

// scanEvent returns the number of bytes up to the end of the event, or all of them if it does not end there.
func (e *eventSplitter) scanEvent(b []byte) (n int, complete bool) {
	for i, c := range b {
		after := e.afterCR
		e.afterCR = c == '\r'
		switch {
		// The LF of a CRLF ends no second line.
		case c == '\n' && after:
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

// endStream handles the end of the stream: a rest is no whole event, and passes.
func (e *eventSplitter) endStream() {
	if e.holding && len(e.buf) > 0 {
		e.passBytes(e.buf)
	}
	e.buf = nil
}

// eventLines returns the lines of an event without their ends.
func eventLines(raw []byte) [][]byte {
	raw = bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n"))
	raw = bytes.ReplaceAll(raw, []byte("\r"), []byte("\n"))
	return bytes.Split(bytes.TrimRight(raw, "\n"), []byte("\n"))
}

// eventData returns the name and the data of an event; data is nil if the event has none. Several data lines are joined by LF,
// as the format says.
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

// eventWith returns the event with other data in one line; its other fields (id, event, retry) stay.
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

// newEvent encodes a message as an event.
func newEvent(body []byte) []byte {
	return slices.Concat([]byte("event: message\ndata: "), body, []byte("\n\n"))
}
