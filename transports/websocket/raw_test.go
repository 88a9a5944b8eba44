package websocket_test

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/mcpvisor/mcpvisor/transports/websocket"
)

// rawSocket is the server's end of a WebSocket without a library: it can do what a library would not.
type rawSocket struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

const (
	frameText  = 0x1
	frameClose = 0x8
	framePing  = 0x9
	framePong  = 0xa
	frameFinal = 0x80
)

// write sends a frame that claims to have size bytes of payload.
func (s *rawSocket) write(first byte, size int, payload string) {
	s.t.Helper()
	head := []byte{first, byte(size)}
	if size > 125 {
		head = binary.BigEndian.AppendUint64([]byte{first, 127}, uint64(size))
	}
	if _, err := s.Write(append(head, payload...)); err != nil {
		s.t.Errorf("the server cannot write: %v", err)
	}
}

func (s *rawSocket) text(msg string) { s.write(frameFinal|frameText, len(msg), msg) }

// read is the next frame, unmasked; op is 0 at the end.
func (s *rawSocket) read() (op byte, payload string) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(s.r, head); err != nil {
		return 0, ""
	}
	if head[1]&0x80 == 0 {
		s.t.Error("a client sent a frame without a mask")
	}
	size := uint64(head[1] & 0x7f)
	switch size {
	case 126:
		b := make([]byte, 2)
		_, _ = io.ReadFull(s.r, b)
		size = uint64(binary.BigEndian.Uint16(b))
	case 127:
		b := make([]byte, 8)
		_, _ = io.ReadFull(s.r, b)
		size = binary.BigEndian.Uint64(b)
	}
	body := make([]byte, size+4)
	if _, err := io.ReadFull(s.r, body); err != nil {
		return 0, ""
	}
	mask, body := body[:4], body[4:]
	for i := range body {
		body[i] ^= mask[i%4]
	}
	return head[0] & 0xf, string(body)
}

// upgradeHeader is the answer of a server that takes the handshake.
func upgradeHeader(r *http.Request) http.Header {
	sum := sha1.Sum([]byte(r.Header.Get("Sec-Websocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Protocol": {"mcp"},
		"Sec-Websocket-Accept": {base64.StdEncoding.EncodeToString(sum[:])},
	}
}

// pipeSocket is a transport whose connection is a pipe in memory, and its other end: there is no real time in it. The
// pipe has no buffer: a write waits for its reader.
func pipeSocket(t *testing.T, cfg websocket.Config) (*websocket.Transport, *rawSocket) {
	near, far := net.Pipe()
	cfg.URL = "ws://server.example/mcp"
	cfg.Client = &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: http.StatusSwitchingProtocols, Header: upgradeHeader(r), Body: near, Request: r, ProtoMajor: 1, ProtoMinor: 1,
		}, nil
	})}
	t.Cleanup(func() { _ = far.Close() })
	return websocket.New(cfg), &rawSocket{t: t, Conn: far, r: bufio.NewReader(far)}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
