package proxy_test

import (
	"bytes"
	"sync"
	"time"
)

// bound is for what must end at all. It is a deadline, not a measurement.
const bound = time.Minute

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// oddLines are lines that a proxy which decodes and encodes again would change.
const oddLines = "{\"jsonrpc\":\"2.0\", \"id\" : 1.0,\t\"method\":\"tools/call\",\"params\":{\"n\":9007199254740993,\"n\":1E+2,\"x\":null}}\r\n" +
	"\r\n   \n\xef\xbb\xbf{\"id\":\"\xff\xfe\"}\n[{\"id\":1},{\"id\":2}]\n[]\nnoise\n\x00\n{\"id\":1,\"result\":{}}{\"id\":2}\n{\"half\":"

// unmatchedRule is a rule that hits nothing, so that every line is held and asked about.
const unmatchedRule = "hang-call on=no/such/method"
