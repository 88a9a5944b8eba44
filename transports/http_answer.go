package transports

import (
	"bytes"
	"io"
	"iter"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// answers reports whether body is the response to the request with that id, or a batch that holds it. It reads no
// further than it must: serialisers put the id before the result, and a result may have megabytes. For anything that is
// not JSON it is false. The head of a message that was cut off is enough, if the id is in it.
func answers(body []byte, id int64) bool {
	for n := range responses(body) {
		if n == id {
			return true
		}
	}
	return false
}

// responses gives the ids of the responses in body, which is a message or a batch.
func responses(body []byte) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		s := scanner{b: body}
		switch s.peek() {
		case '{':
			if id, ok := s.response(); ok {
				yield(id)
			}
		case '[':
			s.i++
			for s.peek() == '{' {
				start := s.i
				if id, ok := s.response(); ok && !yield(id) {
					return
				}
				if s.i = start; !s.skip() || s.peek() != ',' {
					return
				}
				s.i++
			}
		}
	}
}

// scanner walks over JSON without decoding it, and without judging it: the code that decodes it later does that.
type scanner struct {
	b []byte
	i int
}

// peek is the next byte that is not space, 0 at the end.
func (s *scanner) peek() byte {
	for ; s.i < len(s.b); s.i++ {
		switch s.b[s.i] {
		case ' ', '\t', '\r', '\n':
		default:
			return s.b[s.i]
		}
	}
	return 0
}

// response reads the members of an object up to the point where it is certain whether it is a response, and to which
// request. Ids that are no integers are none of ours.
func (s *scanner) response() (id int64, ok bool) {
	s.i++
	isResponse, hasID := false, false
	for s.peek() == '"' {
		start := s.i
		if !s.str() {
			return 0, false
		}
		key := s.b[start:s.i]
		if s.peek() != ':' {
			return 0, false
		}
		s.i++
		s.peek()
		value := s.i
		switch string(key) {
		case `"method"`:
			return 0, false
		case `"result"`, `"error"`:
			if isResponse = true; hasID {
				return id, true
			}
		}
		if !s.skip() {
			return 0, false
		}
		if string(key) == `"id"` {
			n, err := strconv.ParseInt(string(bytes.TrimSpace(s.b[value:s.i])), 10, 64)
			if id, hasID = n, err == nil; hasID && isResponse {
				return id, true
			}
		}
		if s.peek() == ',' {
			s.i++
		}
	}
	return 0, false
}

// str skips a string, whose opening quote is next.
func (s *scanner) str() bool {
	for s.i++; ; {
		n := bytes.IndexByte(s.b[s.i:], '"')
		if n < 0 {
			return false
		}
		s.i += n
		slashes := 0
		for s.b[s.i-1-slashes] == '\\' { // ends at the opening quote at the latest
			slashes++
		}
		s.i++
		if slashes%2 == 0 {
			return true
		}
	}
}

// skip skips one value. It reports false if the value does not end in b.
func (s *scanner) skip() bool {
	depth := 0
	for ; s.i < len(s.b); s.i++ {
		switch s.b[s.i] {
		case '"':
			if !s.str() {
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
				return true // of the object around a number or a word
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

// eventStream and oneJSON are the media types that an answer may have.
const (
	eventStream = "text/event-stream"
	oneJSON     = "application/json"
)

// mediaType is the type of a response's body, in lower case and without parameters; empty if it says none.
func mediaType(h http.Header) string {
	full := h.Get("Content-Type")
	switch kind, _, _ := strings.Cut(full, ";"); kind {
	case eventStream, oneJSON: // as almost everybody writes them
		return kind
	}
	kind, _, _ := mime.ParseMediaType(full)
	return kind
}

// readBody reads one message. big is set instead if the message is over the limit, or if h has no room for it.
func readBody(body io.Reader, length, limit int64, h holding) (msg []byte, big *oversize, err error) {
	g := growing{holding: h}
	defer g.drop()
	if length >= 0 {
		// One byte more than announced, so that the end of the body is seen without growing.
		size := min(length, limit) + 1
		if size > sharedRoom && !g.holding.more(size) {
			return measure(nil, body, limit, true)
		}
		g.b = make([]byte, 0, size)
	} else {
		err = g.begin(body)
	}
	for err == nil && int64(len(g.b)) <= limit {
		if len(g.b) == cap(g.b) {
			if !g.reserve(len(g.b)+1, int(limit)+1) {
				return measure(g.b, body, limit, true)
			}
		}
		var n int
		n, err = body.Read(g.b[len(g.b):cap(g.b)])
		g.b = g.b[:len(g.b)+n]
	}
	switch {
	case int64(len(g.b)) > limit:
		return measure(g.b, body, limit, false)
	case err != io.EOF: //nolint:errorlint // one that wraps it may be a connection that broke
		return nil, nil, err
	}
	return g.take(), nil, nil
}

// measure reads the rest of a body that is not kept and keeps its ends. What comes after skipBound is not read:
// the exchange is given up then, and its connection with it.
func measure(seen []byte, body io.Reader, limit int64, unheld bool) ([]byte, *oversize, error) {
	big := &oversize{unheld: unheld}
	big.add(seen)
	buf := make([]byte, 32<<10)
	for big.size < skipBound(limit) {
		n, err := body.Read(buf)
		big.add(buf[:n])
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return nil, big, nil
}
