package websocket_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/websocket"
)

// RFC 6455 forbids each of these. It costs the connection, at once and by name, and nothing of it is delivered.
func TestWebSocketWhatIsForbiddenCostsTheConnection(t *testing.T) {
	long := func(first byte, size uint64) string {
		return string(binary.BigEndian.AppendUint64([]byte{first, 127}, size))
	}
	for name, frames := range map[string]string{
		"compressed, which nobody agreed on": "\xc1\x07{\"a\":1}",
		"another reserved bit":               "\xa1\x07{\"a\":1}",
		"a reserved data frame":              "\x83\x07{\"a\":1}",
		"a reserved control frame":           "\x8b\x00",
		"a ping in fragments":                "\x09\x01x\x80\x01y",
		"a ping of 126 bytes":                "\x89\x7e\x00\x7e" + strings.Repeat("x", 126),
		"a ping of 8 EiB":                    long(0x89, 1<<62),
		"a close of 64 KiB":                  "\x88\x7e\xff\xff" + strings.Repeat("x", 1<<16),
		"a close with half a code":           "\x88\x01\x03",
		"a negative length":                  long(0x81, 1<<63|7) + `{"a":1}`,
		"a continuation of nothing":          "\x80\x07{\"a\":1}",
		"a message within another":           "\x01\x06{\"a\":1\x81\x07{\"b\":2}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := rawServer(t, func(s *rawSocket) {
				_, _ = s.Write([]byte(frames)) // the client may have gone before its end
				for op := byte(1); op != 0; {
					op, _ = s.read()
				}
			})
			_, r, _ := dialSocket(t, websocket.Config{URL: url})
			r.Wait(t, 15*time.Second, "Down", func() bool { return len(r.Downs()) > 0 })
			if got := r.Messages(); len(got) > 0 {
				t.Errorf("delivered %.40q", got)
			}
			if e := downOf(t, r); e.Class != messages.ClassProtocol {
				t.Errorf("down: %q %v", e.Class, e)
			}
		})
	}
}

// A server that agrees to what the client has not offered, or proves nothing, gets no connection.
func TestWebSocketHandshakeThatLiesIsRefused(t *testing.T) {
	for name, lie := range map[string]func(http.Header){
		"a proof of another key":     func(h http.Header) { h.Set("Sec-Websocket-Accept", "AAAAAAAAAAAAAAAAAAAAAAAAAAA=") },
		"no proof":                   func(h http.Header) { h.Del("Sec-Websocket-Accept") },
		"compression":                func(h http.Header) { h.Set("Sec-Websocket-Extensions", "permessage-deflate") },
		"an extension of its own":    func(h http.Header) { h.Set("Sec-Websocket-Extensions", "x-evil") },
		"another subprotocol":        func(h http.Header) { h.Set("Sec-Websocket-Protocol", "graphql") },
		"another protocol":           func(h http.Header) { h.Set("Upgrade", "h2c") },
		"no upgrade of a connection": func(h http.Header) { h.Del("Connection") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			near, far := net.Pipe()
			defer far.Close()
			client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				h := upgradeHeader(r)
				lie(h)
				return &http.Response{StatusCode: http.StatusSwitchingProtocols, Header: h, Body: near, Request: r,
					ProtoMajor: 1, ProtoMinor: 1}, nil
			})}
			_, _, err := dialSocket(t, websocket.Config{URL: "ws://server.example/mcp", Client: client})
			if err == nil || err.Class != messages.ClassProtocol {
				t.Fatalf("Dial: %v", err)
			}
			if _, err := far.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("the connection stays open: %v", err)
			}
		})
	}
}

// What a server cuts into small pieces costs by its size and not by its square, and pings between them are answered.
func TestWebSocketPiecesAreOneMessage(t *testing.T) {
	const size = 1 << 15
	url := rawServer(t, func(s *rawSocket) {
		var b bytes.Buffer
		b.WriteString("\x01\x01{")
		for range size {
			b.WriteString("\x00\x01 \x00\x00\x89\x01p")
		}
		b.WriteString("\x80\x01}")
		go func() { _, _ = s.Write(b.Bytes()) }()
		for op := byte(1); op != 0; {
			op, _ = s.read()
		}
	})
	_, r, _ := dialSocket(t, websocket.Config{URL: url})
	r.Wait(t, 60*time.Second, "the message", func() bool { return len(r.Messages()) == 1 })
	if got := len(r.Messages()[0]); got != size+2 {
		t.Errorf("%d bytes", got)
	}
}
