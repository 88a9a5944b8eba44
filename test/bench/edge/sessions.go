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

// usedEvery says how many of the abandoned sessions there are for one that its agent has used before it went.
const usedEvery = 10

// useSilently has an agent do in its session what most do first: list, set a level of log messages, call.
func useSilently(ctx context.Context, h http.Handler, id string) error {
	for _, request := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`,
		`{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"debug"}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"one__tool_1","arguments":{}}}`,
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/mcp", strings.NewReader(request))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Mcp-Session-Id", id)
		if h.ServeHTTP(w, r); !strings.Contains(w.Body.String(), `"result"`) {
			return fmt.Errorf("%s is answered with %d %.200s", request, w.Code, w.Body)
		}
	}
	return nil
}

// leftover is what abandoned sessions have left when their time is over.
type leftover struct {
	// most is how many there were at once, sessions how many are left.
	most, sessions int
	// before and after are the bytes that the process held.
	before, after int64
}

// abandon opens sessions and leaves them, as agents that are killed do, some of which have used theirs, and returns how many are left.
func abandon(ctx context.Context, service serve.Service, n int) (l leftover, err error) {
	h := serve.NewHandler(serve.Options{Service: service, SessionIdle: time.Second})
	if err := useSilently(ctx, h, openSilently(ctx, h)); err != nil { // it makes everything that is made once
		return l, err
	}
	l.before = heldBytes()
	for i := range n {
		id := openSilently(ctx, h)
		if i%usedEvery == 0 {
			if err := useSilently(ctx, h, id); err != nil {
				return l, err
			}
		}
		l.most = max(l.most, h.Sessions())
	}
	for deadline := time.Now().Add(time.Minute); h.Sessions() > 0 && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
	l.sessions, l.after = h.Sessions(), heldBytes()
	return l, nil
}
