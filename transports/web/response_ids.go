package web

import (
	"bytes"
	"iter"
	"strconv"
)

// answersRequest reports whether body is the response to the request with that id, or a batch that holds it. It reads no further
// than it must: serialisers put the id before the result, and a result may have megabytes. It is false for anything that is not
// JSON. The head of a message that was cut off suffices if the id is in it.
func answersRequest(body []byte, id int64) bool {
	for n := range responseIDs(body) {
		if n == id {
			return true
		}
	}
	return false
}

// responseIDs yields the ids of the responses in body, which is a message or a batch, and stops at the first byte it cannot read.
func responseIDs(body []byte) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		s := jsonScanner{b: body}
		switch s.peekByte() {
		case '{':
			if id, ok := s.scanResponse(); ok {
				yield(id)
			}
		case '[':
			s.i++
			for s.peekByte() == '{' {
				start := s.i
				if id, ok := s.scanResponse(); ok && !yield(id) {
					return
				}
				// scanResponse stops where it is certain, so that the walk to the next member begins at the start again.
				if s.i = start; !s.skipValue() || s.peekByte() != ',' {
					return
				}
				s.i++
			}
		}
	}
}

// jsonScanner walks over JSON without decoding or validating it: the session decodes it later, and finds every fault then.
type jsonScanner struct {
	b []byte
	// i is the index of the next byte.
	i int
}

// peekByte returns the next byte that is not space, 0 at the end, and moves to it.
func (s *jsonScanner) peekByte() byte {
	for ; s.i < len(s.b); s.i++ {
		switch s.b[s.i] {
		case ' ', '\t', '\r', '\n':
		default:
			return s.b[s.i]
		}
	}
	return 0
}

// scanResponse reads the members of an object until it is certain whether it is a response, and to which request. Ids that are no
// integers belong to no request of this client. The opening brace is next.
func (s *jsonScanner) scanResponse() (id int64, ok bool) {
	s.i++
	isResponse, hasID := false, false
	for s.peekByte() == '"' {
		start := s.i
		if !s.skipString() {
			return 0, false
		}
		// Keys are compared with their quotes; an escaped spelling of these keys is not recognised, and no serialiser writes one.
		key := s.b[start:s.i]
		if s.peekByte() != ':' {
			return 0, false
		}
		s.i++
		s.peekByte()
		value := s.i
		switch string(key) {
		case `"method"`:
			// A member "method" makes it a request or a notification of the server.
			return 0, false
		case `"result"`, `"error"`:
			if isResponse = true; hasID {
				return id, true
			}
		}
		if !s.skipValue() {
			return 0, false
		}
		if string(key) == `"id"` {
			// An id in quotes, or with a fraction, is none of this client's.
			n, err := strconv.ParseInt(string(bytes.TrimSpace(s.b[value:s.i])), 10, 64)
			if id, hasID = n, err == nil; hasID && isResponse {
				return id, true
			}
		}
		if s.peekByte() == ',' {
			s.i++
		}
	}
	return 0, false
}

// skipString skips a string, whose opening quote is next. It reports false if the string does not end in b.
func (s *jsonScanner) skipString() bool {
	for s.i++; ; {
		n := bytes.IndexByte(s.b[s.i:], '"')
		if n < 0 {
			return false
		}
		s.i += n
		// A quote ends the string if the number of backslashes before it is even.
		slashes := 0
		for s.b[s.i-1-slashes] == '\\' { // the opening quote ends this loop at the latest
			slashes++
		}
		s.i++
		if slashes%2 == 0 {
			return true
		}
	}
}

// skipValue skips one value. It reports false if the value does not end in b, which a message that was cut off does not.
func (s *jsonScanner) skipValue() bool {
	depth := 0
	for ; s.i < len(s.b); s.i++ {
		switch s.b[s.i] {
		case '"':
			if !s.skipString() {
				return false
			}
			s.i--
			if depth == 0 {
				s.i++
				return true
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				// The brace belongs to the object around a number or a literal.
				return true
			}
			if depth == 0 {
				s.i++
				return true
			}
		case ',':
			if depth == 0 {
				return true
			}
		}
	}
	return false
}
