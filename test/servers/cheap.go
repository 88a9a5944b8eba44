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

// cheapEcho serves calls of echo from the bytes of the line, and everything else like a good server.
func cheapEcho(p params) int {
	s := newServer(p)
	in := bufio.NewReaderSize(os.Stdin, 256<<10)
	out := bufio.NewWriterSize(os.Stdout, 256<<10)
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
			_ = out.Flush() // whoever closed our input does not read the answers
			return 0
		}
		if !Echo(out, line) {
			_ = out.Flush()
			var m message
			if json.Unmarshal(line, &m) == nil && m.Method != "" {
				s.dispatch(m)
			}
			continue
		}
		if in.Buffered() == 0 {
			_ = out.Flush()
		}
	}
}

var (
	echoCall = []byte(`"method":"tools/call"`)
	echoID   = []byte(`"id":`)
	echoText = []byte(`"text":"`)
)

// Echo writes the answer to a call of echo and a newline, made of the bytes of the request: its id and its text are copied
// as they stand. It reports false and writes nothing if the line is no such call, as clients write it: without white space
// between the tokens. A write's error is the writer's to keep.
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

// closingQuote is where a JSON string ends whose opening quote is not part of text; -1 if it does not.
func closingQuote(text []byte) int {
	for from := 0; ; {
		i := bytes.IndexByte(text[from:], '"')
		if i < 0 {
			return -1
		}
		i += from
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

func textAfter(line, key []byte) []byte {
	i := bytes.Index(line, key)
	if i < 0 {
		return nil
	}
	return line[i+len(key):]
}
