package serve

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// serveReal serves a handler on a real listener, and returns how to connect to it.
func serveReal(t *testing.T, o Options) (connect func() net.Conn) {
	t.Helper()
	h := NewHandler(o)
	server := h.Server()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is the test's own
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(l) // it ends with Close
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
	return func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", l.Addr().String()) //nolint:noctx // it is the test's own
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
}

func ping(id int) string {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"echo","params":{%s}}`, id, modernMeta)
	return fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMcp-Protocol-Version: 2026-07-28\r\n"+
		"Mcp-Method: echo\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// statusOf reads one answer; 0 if there is none.
func statusOf(c net.Conn) int {
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return res.StatusCode
}

// Whoever opens connections and is silent displaces himself: a stream that is open, a request that runs and a connection that waits for
// its next request stay, and new agents get in.
func TestSilentConnectionsGiveWay(t *testing.T) {
	v := newService()
	connect := serveReal(t, Options{Service: v, MaxConnections: 10})
	running := connect()
	_, _ = io.WriteString(running, strings.ReplaceAll(ping(1), "echo", "hang"))
	<-v.hung
	kept := connect()
	_, _ = io.WriteString(kept, ping(2))
	if got := statusOf(kept); got != 200 {
		t.Fatalf("the first request: %d", got)
	}
	for i := range 100 {
		c := connect()
		if i%2 == 0 {
			_, _ = io.WriteString(c, "POST /mcp HTTP/1.1\r\nHost: loc")
		}
	}
	fresh := connect()
	_, _ = io.WriteString(fresh, ping(3))
	if got := statusOf(fresh); got != 200 {
		t.Errorf("a new agent among silent ones: %d", got)
	}
	_, _ = io.WriteString(kept, ping(4))
	if got := statusOf(kept); got != 200 {
		t.Errorf("a connection that waited for its next request: %d", got)
	}
	// Where all are in use, one more is closed, and nothing else happens. A connection counts as used for a moment after its answer has come.
	for hanging := 0; hanging < 9; {
		c, closed := connect(), make(chan struct{})
		_, _ = io.WriteString(c, strings.ReplaceAll(ping(1), "echo", "hang"))
		go func() {
			defer close(closed)
			statusOf(c)
		}()
		select {
		case <-v.hung:
			hanging++
		case <-closed:
		}
	}
	refused := connect()
	_, _ = io.WriteString(refused, ping(5))
	if got := statusOf(refused); got != 0 {
		t.Errorf("a connection beyond the bound was answered: %d", got)
	}
}

// Connections that were displaced take no place any more, although net/http says of each that it is active when half of a request was read
// from it. Before, many of them at once displaced one that waited for its next request.
func TestDisplacedConnectionsTakeNoPlace(t *testing.T) {
	c := &connections{most: 3}
	pipe := func() net.Conn {
		a, b := net.Pipe()
		t.Cleanup(func() { _ = b.Close() })
		return a
	}
	kept := pipe()
	for _, state := range []http.ConnState{http.StateNew, http.StateActive, http.StateIdle} {
		c.noteState(kept, state)
	}
	var half []net.Conn
	for i := range 20 {
		half = append(half, pipe())
		c.noteState(half[i], http.StateNew)
		if i >= 2 {
			c.noteState(half[i-2], http.StateActive)
		}
	}
	if _, there := c.places[kept]; !there || len(c.places) != 3 {
		t.Errorf("of %d connections one is that which waited: %v", len(c.places), there)
	}
}

// Whoever is not let in displaces himself, too: half of a request without a token takes no place from an agent. Before, each kept its place
// for half a minute.
func TestStrangersGiveWay(t *testing.T) {
	v := newService()
	tokens := NewTokens(map[string]Principal{"one": {Name: "a"}})
	met := make(chan error, 100)
	connect := serveReal(t, Options{Service: v, MaxConnections: 6, Authenticate: func(r *http.Request) (Principal, error) {
		p, err := tokens.Authenticate(r)
		met <- err
		return p, err
	}})
	as := func(request, token string) string {
		return strings.Replace(request, "Host: localhost\r\n", "Host: localhost\r\nAuthorization: Bearer "+token+"\r\n", 1)
	}
	running := connect()
	_, _ = io.WriteString(running, as(strings.ReplaceAll(ping(1), "echo", "hang"), "one"))
	<-v.hung
	kept := connect()
	_, _ = io.WriteString(kept, as(ping(2), "one"))
	if got := statusOf(kept); got != 200 {
		t.Fatalf("the first request: %d", got)
	}
	if err := errors.Join(<-met, <-met); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		_, _ = io.WriteString(connect(), as("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{", "other"))
		select {
		case err := <-met:
			if err == nil {
				t.Fatal("a stranger was let in")
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the places are those of strangers")
		}
	}
	_, _ = io.WriteString(kept, as(ping(3), "one"))
	if got := statusOf(kept); got != 200 {
		t.Errorf("a connection that waited for its next request: %d", got)
	}
}

// The state of connections that have ended or were displaced is forgotten.
func TestConnectionsAreForgotten(t *testing.T) {
	c := &connections{most: 3}
	var all []net.Conn
	for range 100 {
		a, b := net.Pipe()
		defer b.Close()
		all = append(all, a)
		c.noteState(a, http.StateNew)
	}
	if len(c.places) != 3 || c.silent.Len() != 3 {
		t.Fatalf("%d are known, %d silent", len(c.places), c.silent.Len())
	}
	for _, conn := range all {
		c.noteState(conn, http.StateActive) // also those that were displaced meanwhile
		c.noteState(conn, http.StateIdle)
		c.noteState(conn, http.StateClosed)
	}
	if len(c.places)+c.silent.Len()+c.idle.Len() != 0 {
		t.Errorf("%d, %d and %d are left", len(c.places), c.silent.Len(), c.idle.Len())
	}
}

// A request that is refused before it is read, and whose body never comes, does not keep its connection.
func TestHalfRequestsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := NewTokens(map[string]Principal{"one": {Name: "a"}})
		h := NewHandler(Options{Service: newService(), Authenticate: tokens.Authenticate})
		server := h.Server()
		l := &pipeListener{conns: make(chan net.Conn)}
		go func() { _ = server.Serve(l) }()
		defer server.Close()
		for name, head := range map[string]string{
			"no token":    "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{",
			"other host":  "POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 1000\r\n\r\n{",
			"half a body": "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer one\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
			"half a head": "POST /mcp HTTP/1.1\r\nHost: loc",
			"nothing":     "",
		} {
			agent, conn := net.Pipe()
			l.conns <- conn
			_, _ = io.WriteString(agent, head)
			began := time.Now()
			_, _ = io.Copy(io.Discard, agent) // it ends when the server closes the connection
			if took := time.Since(began); took > time.Minute {
				t.Errorf("%s: the connection was kept for %s", name, took)
			}
		}
	})
}

// An agent that reads nothing does not keep its connection, and one that reads slowly gets the whole answer.
func TestSlowReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHandler(Options{Service: newService()})
		server := h.Server()
		l := &pipeListener{conns: make(chan net.Conn)}
		go func() { _ = server.Serve(l) }()
		defer server.Close()
		big := strings.Replace(ping(1), `"params":{`, `"params":{"x":"`+strings.Repeat("y", 4<<20)+`",`, 1)
		head, body, _ := strings.Cut(big, "\r\n\r\n")
		begin, _, _ := strings.Cut(head, "Content-Length")
		big = fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", begin, len(body), body)
		agent, conn := net.Pipe()
		l.conns <- conn
		_, _ = io.WriteString(agent, big)
		var one [64 << 10]byte
		total := 0
		for total < len(body) { // 20 s for each MiB
			n, err := agent.Read(one[:])
			if total += n; err != nil {
				t.Fatalf("a slow reader was cut off after %d bytes: %v", total, err)
			}
			time.Sleep(time.Second)
		}
		_ = agent.Close()
		agent, conn = net.Pipe()
		l.conns <- conn
		_, _ = io.WriteString(agent, big)
		time.Sleep(time.Minute)
		if _, err := agent.Write([]byte("x")); err == nil {
			t.Error("an agent that reads nothing keeps its connection")
		}
	})
}

// pipeListener gives a server connections in memory, whose time is that of the test.
type pipeListener struct{ conns chan net.Conn }

func (l *pipeListener) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l *pipeListener) Close() error {
	close(l.conns)
	return nil
}
func (*pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// The bytes of large messages are bounded by principal; those of others, and small messages, are not touched.
func TestBytesAreBoundedByPrincipal(t *testing.T) {
	v := newService()
	tokens := NewTokens(map[string]Principal{"one": {Name: "a"}, "two": {Name: "b"}})
	h := NewHandler(Options{Service: v, Authenticate: tokens.Authenticate, MaxBytes: 1 << 20})
	defer func() { _ = h.Close(t.Context()) }()
	big := func(method, token string) *http.Request {
		return modern(method, `"x":"`+strings.Repeat("y", 600<<10)+`",`, "Authorization", "Bearer "+token)
	}
	r := big("hang", "one")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		do(h, r)
	}()
	<-v.hung
	if w := do(h, big("echo", "one")); w.Code != 429 {
		t.Errorf("a second large message: %d", w.Code)
	}
	if n, bytes := h.InFlight(); n != 1 || bytes < 600<<10 || bytes > 1<<20 {
		t.Errorf("in flight: %d exchanges, %d bytes", n, bytes)
	}
	if w := do(h, modern("echo", "", "Authorization", "Bearer one")); w.Code != 200 {
		t.Errorf("a small message: %d", w.Code)
	}
	if w := do(h, big("echo", "two")); w.Code != 200 {
		t.Errorf("another principal: %d", w.Code)
	}
	tokens.Set(map[string]Principal{"three": {Name: "a"}})
	<-ended
	if w := do(h, big("echo", "three")); w.Code != 200 || *h.loads["a"] != (load{}) {
		t.Errorf("after the end of the first: %d, %+v held", w.Code, *h.loads["a"])
	}
	if n, bytes := h.InFlight(); n != 0 || bytes != 0 {
		t.Errorf("in flight at the end: %d exchanges, %d bytes", n, bytes)
	}
}
