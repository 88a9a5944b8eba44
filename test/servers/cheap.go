package servers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
)

var cheapKinds = []Kind{
	{"cheap", cheapEcho,
		"behaves, and answers a call of echo without decoding anything: the bytes of its text are copied, and answers leave " +
			"together when no request waits, so that in a measurement the client is what is measured"},
}

// cheapEcho serves calls of echo from the bytes of the line, and leaves every other message to a good server.
func cheapEcho(p params) int {
	s := newServer(p)
	in := bufio.NewReaderSize(os.Stdin, 256<<10)
	out := bufio.NewWriterSize(os.Stdout, 256<<10)
	// long holds a line that is longer than the buffer of in. It is reused, because ReadSlice keeps no copy.
	var long []byte
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long[:0], line...)
			for errors.Is(err, bufio.ErrBufferFull) {
				line, err = in.ReadSlice('\n')
				long = append(long, line...)
			}
			line = long
		}
		if err != nil {
			// The client has closed the input and reads no answers.
			_ = out.Flush()
			return 0
		}
		// Answers that wait in the buffer go out before the good server writes to the same file.
		if !Echo(out, line) {
			_ = out.Flush()
			var m message
			if json.Unmarshal(line, &m) == nil && m.Method != "" {
				s.dispatch(m)
			}
			continue
		}
		// Answers leave together while requests wait, as one write for many.
		if in.Buffered() == 0 {
			_ = out.Flush()
		}
	}
}

// The parts of a call of echo by which Echo finds its values.
var (
	echoCall = []byte(`"method":"tools/call"`)
	echoID   = []byte(`"id":`)
	echoText = []byte(`"text":"`)
)

// Echo writes the answer to a call of echo and a newline, made of the bytes of the request: its id and its text are
// copied unchanged. It reports false and writes nothing if the line is no such call in the form that clients write,
// without white space between the tokens. Errors of w are ignored; a bufio.Writer keeps them.
func Echo(w io.Writer, line []byte) bool {
	if !bytes.Contains(line, echoCall) {
		return false
	}
	id, text := textAfter(line, echoID), textAfter(line, echoText)
	if id == nil || text == nil {
		return false
	}
	if end := bytes.IndexAny(id[:min(len(id), 64)], ",}"); end > 0 {
		id = id[:end]
	} else {
		return false
	}
	end := closingQuote(text)
	if end < 0 {
		return false
	}
	for _, part := range [][]byte{
		[]byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"result":{"content":[{"type":"text","text":"`), text[:end],
		[]byte("\"}],\"isError\":false}}\n"),
	} {
		_, _ = w.Write(part)
	}
	return true
}

// closingQuote returns the index at which a JSON string ends whose opening quote is not part of text; -1 if it does
// not.
func closingQuote(text []byte) int {
	for from := 0; ; {
		i := bytes.IndexByte(text[from:], '"')
		if i < 0 {
			return -1
		}
		i += from
		// A quote after an odd number of backslashes is escaped.
		slashes := 0
		for i-slashes > 0 && text[i-slashes-1] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
		from = i + 1
	}
}

// textAfter returns the bytes behind the first key in a line; nil if it is missing.
func textAfter(line, key []byte) []byte {
	i := bytes.Index(line, key)
	if i < 0 {
		return nil
	}
	return line[i+len(key):]
}
