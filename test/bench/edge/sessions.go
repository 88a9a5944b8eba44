package edge

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// heldBytes is what the process holds for its goroutines and on its heap.
func heldBytes() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc + s.StackInuse)
}

// openSilently opens a session without a socket, and returns its id.
func openSilently(ctx context.Context, h http.Handler) string {
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/mcp", strings.NewReader(initialize))
	r.Header.Set("Content-Type", "application/json")
	h.ServeHTTP(w, r)
	return w.Header().Get("Mcp-Session-Id")
}

// sessionBytes returns what a session holds that is idle.
func sessionBytes(ctx context.Context, service serve.Service, n int) (int64, error) {
	h := serve.NewHandler(serve.Options{Service: service})
	before := heldBytes()
	for range n {
		openSilently(ctx, h)
	}
	each := (heldBytes() - before) / int64(n)
	if h.Sessions() != n {
		return 0, fmt.Errorf("of %d sessions there are %d", n, h.Sessions())
	}
	return each, h.Close(ctx)
}

// A crowd is sessions with a stream each, over TCP, as agents have them.
type crowd struct {
	handler *serve.Handler
	server  *httptest.Server
	ids     []string
	streams []net.Conn
	readers []*bufio.Reader
}

// gather opens sessions with their streams, and waits until all streams have begun.
func gather(ctx context.Context, service serve.Service, n int) (c *crowd, err error) {
	c = &crowd{handler: serve.NewHandler(serve.Options{Service: service, KeepAlive: time.Hour})}
	c.server = httptest.NewServer(c.handler)
	defer func() {
		if err != nil {
			c.scatter()
		}
	}()
	address := strings.TrimPrefix(c.server.URL, "http://")
	for range n {
		id := openSilently(ctx, c.handler)
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		c.ids, c.streams = append(c.ids, id), append(c.streams, conn)
		r := bufio.NewReaderSize(conn, 512)
		c.readers = append(c.readers, r)
		if _, err := fmt.Fprintf(conn, "GET /mcp HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\nMcp-Session-Id: %s\r\n\r\n", address, id); err != nil {
			return nil, err
		}
		for line := "x"; line != "\r\n"; { // the end of the head
			if line, err = r.ReadString('\n'); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

// heard waits for the next notification of a stream.
func (c *crowd) heard(i int, method string) error {
	for {
		line, err := c.readers[i].ReadString('\n')
		if err != nil {
			return err
		}
		if strings.Contains(line, method) {
			return nil
		}
	}
}

func (c *crowd) scatter() {
	for _, conn := range c.streams {
		_ = conn.Close()
	}
	c.server.CloseClientConnections()
	c.server.Close()
}

// streamBytes returns what a session with a stream holds, the agent's side of its socket included.
func streamBytes(ctx context.Context, service serve.Service, n int) (int64, error) {
	before := heldBytes()
	c, err := gather(ctx, service, n)
	if err != nil {
		return 0, err
	}
	defer c.scatter()
	return (heldBytes() - before) / int64(n), nil
}

// abandon opens sessions that nobody ends, as agents that are killed do, and returns what is left when their time is over: sessions, and
// bytes more than before.
func abandon(ctx context.Context, service serve.Service, n int) (most, sessions int, bytes int64) {
	h := serve.NewHandler(serve.Options{Service: service, SessionIdle: time.Second})
	openSilently(ctx, h)
	before := heldBytes()
	for range n {
		openSilently(ctx, h)
		most = max(most, h.Sessions())
	}
	for deadline := time.Now().Add(time.Minute); h.Sessions() > 0 && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
	return most, h.Sessions(), heldBytes() - before
}
