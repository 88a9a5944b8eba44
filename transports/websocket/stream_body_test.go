package websocket

import (
	"io"
	"net"
	"strings"
	"testing"
)

// A response whose body cannot be written is no connection, also with the status of one.
func TestABodyThatCannotBeWrittenIsNoConnection(t *testing.T) {
	if s, ok := newStream(io.NopCloser(strings.NewReader("x"))); ok || s != nil {
		t.Errorf("%v, %v", s, ok)
	}
	a, b := net.Pipe()
	defer b.Close()
	s, ok := newStream(a)
	if !ok || s == nil {
		t.Fatal("a pipe is none")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
