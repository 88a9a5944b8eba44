package web_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/conntest"
	"github.com/mcpvisor/mcpvisor/transports/web"
)

// pipeClient is a client whose connections are pipes, each of them served by a goroutine: the network of tests in virtual time.
func pipeClient(serve func(net.Conn)) (client *http.Client, dialled *atomic.Int32) {
	dialled = new(atomic.Int32)
	return &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 64,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			dialled.Add(1)
			near, far := net.Pipe()
			go serve(far)
			return near, nil
		},
	}}, dialled
}

// streams answers each request on c with a stream of one event, and ends the stream so long after it. A stream that is
// never ended has one more message then.
func streams(c net.Conn, end time.Duration, never bool) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		event := "data: " + conntest.Result(conntest.ReadRequest(r), `{}`) + "\n\n"
		if _, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"+
			"%x\r\n%s\r\n", len(event), event); err != nil {
			return
		}
		time.Sleep(end)
		if never {
			event := "data: " + note + "\n\n"
			if _, err := fmt.Fprintf(c, "%x\r\n%s\r\n", len(event), event); err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, c)
			return
		}
		if _, err := io.WriteString(c, "0\r\n\r\n"); err != nil {
			return
		}
	}
}

// TestACallAfterAStream: a caller who comes again at once finds the connection of the call before, although the end of the
// answer's stream comes after the answer. For a server that ends its streams late, or never, it is waited for three times.
func TestACallAfterAStream(t *testing.T) {
	const calls = 20
	for name, c := range map[string]struct {
		end   time.Duration
		never bool
		most  time.Duration // that 20 calls one after the other take
		dials int32
	}{
		"ends at once":     {end: 0, most: 0, dials: 1},
		"ends after 1 ms":  {end: time.Millisecond, most: calls * time.Millisecond, dials: 1},
		"ends after 80 ms": {end: 80 * time.Millisecond, most: 60 * time.Millisecond, dials: calls},
		"is open for good": {end: time.Second, never: true, most: 60 * time.Millisecond, dials: calls},
		"ends after 1.9 s": {end: 1900 * time.Millisecond, most: 60 * time.Millisecond, dials: calls},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, dialled := pipeClient(func(conn net.Conn) { streams(conn, c.end, c.never) })
				defer client.CloseIdleConnections()
				cn := conntest.Dial(t, web.NewHTTP(web.Config{URL: "http://server.invalid/mcp", Client: client}))
				began := time.Now()
				for range calls {
					cn.Call("tools/call", `{}`)
				}
				if took := time.Since(began); took > c.most {
					t.Errorf("%d calls took %v, want at most %v", calls, took, c.most)
				}
				if n := dialled.Load(); n != c.dials {
					t.Errorf("%d connections for %d calls, want %d", n, calls, c.dials)
				}
				if c.never {
					cn.WaitFor(calls, note) // what comes after an answer comes
				}
				cn.CloseChecked()
				time.Sleep(3 * time.Second) // what is open ends
			})
		})
	}
}

// TestACallerDoesNotWaitForTheEnd when its context ends first: it has its answer.
func TestACallerDoesNotWaitForTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := pipeClient(func(conn net.Conn) { streams(conn, time.Second, false) })
		defer client.CloseIdleConnections()
		cn := conntest.Dial(t, web.NewHTTP(web.Config{URL: "http://server.invalid/mcp", Client: client}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		began := time.Now()
		_, d, err := cn.TrySend(ctx, "tools/call", `{}`)
		if err != nil || d != transports.Written {
			t.Errorf("%v, %v", d, err)
		}
		if took := time.Since(began); took != time.Millisecond {
			t.Errorf("the Send took %v", took)
		}
		cn.CloseChecked()
		time.Sleep(time.Second)
	})
}

// TestASmallMessageIsOneWrite: it leaves together with its headers. A large one does not, and is not copied for it.
func TestASmallMessageIsOneWrite(t *testing.T) {
	for _, c := range []struct {
		size int
		one  bool
	}{{100, true}, {2 << 10, true}, {64 << 10, false}} {
		whole := make(chan bool, 1)
		client, _ := pipeClient(func(conn net.Conn) {
			defer conn.Close()
			b := make([]byte, 1<<20)
			n, _ := conn.Read(b) // one write of a pipe is one read
			whole <- strings.HasSuffix(string(b[:n]), "end")
			_, _ = io.Copy(io.Discard, conn)
		})
		cn := conntest.Dial(t, web.NewHTTP(web.Config{URL: "http://server.invalid/mcp", Client: client}))
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			if got := <-whole; got != c.one {
				t.Errorf("%d bytes: in one write %v, want %v", c.size, got, c.one)
			}
			cancel()
		}()
		body := []byte(strings.Repeat("x", c.size) + "end")
		if _, err := cn.Send(ctx, transports.Message{ID: 1, Method: "x", Body: body}); conntest.BoundaryError(t, err).Class != messages.ClassCanceled {
			t.Errorf("%d bytes: %v", c.size, err)
		}
		cn.CloseChecked()
	}
}
