package allocations_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"

	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/web"
)

// TestAllocationsOfACall holds what one call costs its client, net/http included: on a pipe, with a server that allocates
// nothing. net/http alone takes about 50 of them. The bounds have some room, for other versions of Go; who exceeds one has
// added something to each call of each server.
func TestAllocationsOfACall(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hello"}]}}`
	chunk := "event: message\ndata: " + answer + "\n\n"
	head := "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Type: "
	for name, c := range map[string]struct {
		reply []string // each is one write
		most  float64
	}{
		"JSON": {[]string{head + "application/json\r\nContent-Length: " + strconv.Itoa(len(answer)) + "\r\n\r\n" + answer}, 75},
		"a stream": {[]string{head + "text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" +
			strconv.FormatInt(int64(len(chunk)), 16) + "\r\n" + chunk + "\r\n", "0\r\n\r\n"}, 90},
		"a stream whose end is there": {[]string{head + "text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" +
			strconv.FormatInt(int64(len(chunk)), 16) + "\r\n" + chunk + "\r\n0\r\n\r\n"}, 80},
	} {
		t.Run(name, func(t *testing.T) {
			body := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}`)
			client := dialsInto(func(conn net.Conn) {
				defer conn.Close()
				in := make([]byte, 8<<10)
				for {
					n, err := conn.Read(in) // a small message comes in one write
					if err != nil || !bytes.HasSuffix(in[:n], body) {
						return
					}
					for _, reply := range c.reply {
						if _, err := io.WriteString(conn, reply); err != nil {
							return
						}
					}
				}
			})
			defer client.CloseIdleConnections()
			conn, err := web.NewHTTP(web.Config{URL: "http://server.invalid/mcp", Client: client,
				Headers: map[string]string{"Authorization": "Bearer x"}}).Dial(t.Context(), forgetfulSink{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close(context.Background()) }()
			conn.Negotiated("2025-11-25")
			n := testing.AllocsPerRun(500, func() {
				// Callers bring a context of their own, with a deadline as a rule.
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if _, err := conn.Send(ctx, transports.Message{ID: 1, Method: "tools/call", Name: "echo", Body: body}); err != nil {
					t.Fatal(err)
				}
			})
			t.Logf("%v allocations", n)
			if n > c.most {
				t.Errorf("a call takes %v allocations, want at most %v", n, c.most)
			}
		})
	}
}

// dialsInto returns a client whose connections are pipes; serve has their other ends.
func dialsInto(serve func(net.Conn)) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go serve(far)
			return near, nil
		},
	}}
}

// forgetfulSink receives what a connection delivers by itself, which is nothing here.
type forgetfulSink struct{}

func (forgetfulSink) Message([]byte)                 {}
func (forgetfulSink) Oversized(_, _ []byte, _ int64) {}
func (forgetfulSink) Noise([]byte)                   {}
func (forgetfulSink) Down(error)                     {}
