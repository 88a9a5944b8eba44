package transports_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
)

const (
	// bound is the longest time that anything which must end may take.
	bound = 15 * time.Second
	// canary stands in every credential of these tests, and must stand in no error.
	canary = "canary5ba04e7d11c9"
)

// client is a connection under test with its sink.
type client struct {
	transports.Conn
	*transporttest.Recorder
	t    testing.TB
	next atomic.Int64
}

// dial opens a connection that is closed at the end of the test.
func dial(t testing.TB, tr transports.Transport) *client {
	t.Helper()
	c := &client{Recorder: &transporttest.Recorder{}, t: t}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	conn, err := tr.Dial(ctx, c.Recorder)
	if err != nil {
		t.Fatalf("Dial: %v", err)
	}
	c.Conn = conn
	t.Cleanup(c.close)
	return c
}

func (c *client) close() {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		c.t.Errorf("Close: %v", err)
	}
	if err := c.Check(); err != nil {
		c.t.Error(err)
	}
	if n := len(c.Downs()); n != 1 {
		c.t.Errorf("Down was called %d times", n)
	}
}

// trySend sends a request and returns what Send returned. The error, if any, has been looked at.
func (c *client) trySend(ctx context.Context, method, params string) (int64, transports.Delivery, *transports.Error) {
	c.t.Helper()
	id := c.next.Add(1)
	body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
	d, err := c.Send(ctx, transports.Message{ID: id, Method: method, Body: body})
	if err == nil {
		return id, d, nil
	}
	return id, d, boundaryError(c.t, err)
}

// boundaryError is err as the error of the boundary. It holds no canary.
func boundaryError(t testing.TB, err error) *transports.Error {
	t.Helper()
	var e *transports.Error
	if !errors.As(err, &e) {
		t.Fatalf("a %T, not a *transports.Error: %v", err, err)
	}
	for err := error(e); err != nil; err = errors.Unwrap(err) {
		if all := fmt.Sprintf("%v %+v %s", err, err, e.Body); strings.Contains(all, canary) {
			t.Errorf("an error holds a secret: %s", all)
		}
	}
	if e.Challenge != nil && strings.Contains(fmt.Sprintf("%+v", *e.Challenge), canary) {
		t.Errorf("a challenge holds a secret: %+v", *e.Challenge)
	}
	return e
}

func (c *client) call(method, params string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	id, d, err := c.trySend(ctx, method, params)
	if err != nil || d != transports.Written {
		c.t.Fatalf("%s: %v, %v", method, d, err)
	}
	return string(c.Answer(c.t, bound, id))
}

func (c *client) notify(method string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	body := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q}`, method)
	d, err := c.Send(ctx, transports.Message{Method: method, Body: body})
	if err != nil || d != transports.Written {
		c.t.Fatalf("%s: %v, %v", method, d, err)
	}
}

const initialize = `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`

// handshake does what a session does.
func (c *client) handshake() string {
	c.t.Helper()
	got := c.call("initialize", initialize)
	var result struct{ ProtocolVersion string }
	if err := json.Unmarshal([]byte(got), &result); err != nil || result.ProtocolVersion == "" {
		c.t.Fatalf("initialize: %s", got)
	}
	c.Negotiated(result.ProtocolVersion)
	c.notify("notifications/initialized")
	return result.ProtocolVersion
}

func (c *client) waitFor(n int, text string) {
	c.t.Helper()
	c.Wait(c.t, bound, fmt.Sprintf("%d messages with %s", n, text), func() bool {
		found := 0
		for _, m := range c.Messages() {
			if strings.Contains(string(m), text) {
				found++
			}
		}
		return found >= n
	})
}

// serve starts a server that ends with the test.
func serve(t testing.TB, handler http.HandlerFunc) *httptest.Server {
	s := silenceErrorLog(httptest.NewUnstartedServer(handler))
	s.Start()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// config reaches url with credentials in every place that can hold one.
func config(t *testing.T, url string) transports.HTTPConfig {
	if !strings.Contains(url, "?") {
		url += "/mcp?key=" + canary
	}
	return transports.HTTPConfig{
		URL:     strings.Replace(url, "://", "://user:"+canary+"@", 1),
		Headers: map[string]string{"Authorization": "Bearer " + canary, "X-Api-Key": canary},
		Client:  ownClient(t),
	}
}

// rpc is a request as a server reads it.
type rpc struct {
	ID     int64
	Method string
}

func read(r *http.Request) (m rpc) {
	_ = json.NewDecoder(r.Body).Decode(&m)
	return m
}

func result(m rpc, value string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, m.ID, value)
}

func reply(w http.ResponseWriter, m rpc, value string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, result(m, value))
}

const agreed = `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`

// withHandshake answers the handshake and gives everything else to next.
func withHandshake(session string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, _ := io.ReadAll(r.Body)
			var m rpc
			_ = json.Unmarshal(body, &m)
			switch m.Method {
			case "initialize":
				if session != "" {
					w.Header().Set("Mcp-Session-Id", session)
				}
				reply(w, m, agreed)
				return
			case "notifications/initialized":
				w.WriteHeader(http.StatusAccepted)
				return
			}
			r.Body = io.NopCloser(strings.NewReader(string(body)))
		}
		next(w, r)
	}
}

// TestHeaders: what each request carries, by the specification's sentences.
func TestHeaders(t *testing.T) {
	seeds.Shows(t, "000.2.headers")
	var mu sync.Mutex
	var seen []string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		m := read(r)
		mu.Lock()
		seen = append(seen, fmt.Sprintf("%s %s accept=%s type=%s session=%s version=%s auth=%v key=%v agent=%s", r.Method,
			m.Method, r.Header.Get("Accept"), r.Header.Get("Content-Type"), r.Header.Get("Mcp-Session-Id"),
			r.Header.Get("Mcp-Protocol-Version"), r.Header.Get("Authorization") == "Bearer "+canary,
			r.Header.Get("X-Api-Key") == canary && r.URL.Query().Get("key") == canary, r.UserAgent()))
		mu.Unlock()
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case m.Method == "initialize":
			w.Header().Set("Mcp-Session-Id", "s~1!")
			reply(w, m, agreed)
		case m.ID == 0:
			w.WriteHeader(http.StatusAccepted)
		default:
			w.Header().Set("Mcp-Session-Id", "not this one")
			reply(w, m, `{}`)
		}
	})
	c := dial(t, transports.NewHTTP(config(t, s.URL)))
	c.handshake()
	c.call("tools/list", `{}`)
	if got := c.Info().SessionID; got != "s~1!" {
		t.Errorf("Info.SessionID is %q", got)
	}
	for {
		mu.Lock()
		n := len(seen)
		mu.Unlock()
		if n >= 4 { // the GET too
			break
		}
		time.Sleep(time.Millisecond)
	}
	c.close()

	both := "accept=application/json, text/event-stream type=application/json"
	end := "auth=true key=true agent=mcpvisor"
	want := map[string]bool{
		"POST initialize " + both + " session= version= " + end:                              true,
		"POST notifications/initialized " + both + " session=s~1! version=2025-11-25 " + end: true,
		"POST tools/list " + both + " session=s~1! version=2025-11-25 " + end:                true,
		"GET  accept=text/event-stream type= session=s~1! version=2025-11-25 " + end:         true,
		"DELETE  accept= type= session=s~1! version=2025-11-25 " + end:                       true,
	}
	mu.Lock()
	defer mu.Unlock()
	for _, got := range seen {
		if !want[got] {
			t.Errorf("unexpected: %s", got)
		}
		delete(want, got)
	}
	for w := range want {
		t.Errorf("not seen: %s", w)
	}
}

func TestStatuses(t *testing.T) {
	soon := time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat)
	for name, c := range map[string]struct {
		status int
		header map[string]string
		body   string
		class  messages.Class
		text   string
		after  time.Duration // at least
	}{
		"400 with an error": {status: 400, class: messages.ClassProtocol, text: "Unsupported version",
			body: `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Unsupported version."}}`},
		"401": {status: 401, class: messages.ClassUnauthorized, text: "asks for authorization",
			header: map[string]string{"WWW-Authenticate": `Bearer scope="a b", error_description="bad ` + canary + `"`}},
		"401 with the secret in it": {status: 401, class: messages.ClassUnauthorized, text: "[redacted]",
			header: map[string]string{"Content-Type": "text/plain"}, body: "Bearer " + canary + " is unknown"},
		"403": {status: 403, class: messages.ClassForbidden, text: "forbids",
			header: map[string]string{"WWW-Authenticate": `Bearer error="insufficient_scope", scope="more"`}},
		"404":        {status: 404, class: messages.ClassNetwork, text: "nothing at this address"},
		"404 a page": {status: 404, class: messages.ClassNetwork, body: "<html>" + canary, text: "(404 Not Found)"},
		"405":        {status: 405, class: messages.ClassProtocol, text: `type "sse"`},
		"406":        {status: 406, class: messages.ClassProtocol, text: "refused"},
		"407":        {status: 407, class: messages.ClassNetwork, text: "proxy"},
		"408":        {status: 408, class: messages.ClassNetwork},
		"410":        {status: 410, class: messages.ClassNetwork},
		"413":        {status: 413, class: messages.ClassProtocol, text: "size"},
		"429":        {status: 429, class: messages.ClassThrottled},
		"429 seconds": {status: 429, class: messages.ClassThrottled, text: "wait 30s", after: 30 * time.Second,
			header: map[string]string{"Retry-After": "30"}},
		"429 a date": {status: 429, class: messages.ClassThrottled, after: 80 * time.Second,
			header: map[string]string{"Retry-After": soon}},
		"500": {status: 500, class: messages.ClassNetwork, body: `{"error":"` + canary + `"}`},
		"502": {status: 502, class: messages.ClassNetwork, text: "(502 Bad Gateway)"},
		"503": {status: 503, class: messages.ClassNetwork},
		"503 seconds": {status: 503, class: messages.ClassThrottled, after: 5 * time.Second,
			header: map[string]string{"Retry-After": "5"}},
		"299 an odd one": {status: 299, class: messages.ClassProtocol, text: "no answer"},
		"204":            {status: 204, class: messages.ClassProtocol, text: "no answer"},
		"202":            {status: 202, class: messages.ClassProtocol, text: "no answer"},
		"200 a page": {status: 200, class: messages.ClassProtocol, text: "text/html instead of JSON", body: "<html>",
			header: map[string]string{"Content-Type": "text/html; charset=utf-8"}},
		"200 an empty body": {status: 200, class: messages.ClassProtocol, text: "no answer",
			header: map[string]string{"Content-Type": "application/json"}},
		"200 another answer": {status: 200, class: messages.ClassProtocol, text: "something else",
			header: map[string]string{"Content-Type": "application/json"}, body: `{"jsonrpc":"2.0","id":77,"result":1}`},
		"200 an empty stream": {status: 200, class: messages.ClassNetwork, text: "before the answer",
			header: map[string]string{"Content-Type": "text/event-stream"}, body: ": nothing\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				for k, v := range c.header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			cn := dial(t, transports.NewHTTP(config(t, s.URL)))
			_, d, err := cn.trySend(t.Context(), "tools/call", `{}`)
			if err == nil {
				t.Fatal("no error")
			}
			if err.Class != c.class || !strings.Contains(err.Error(), c.text) || err.RetryAfter < c.after {
				t.Errorf("class %q, %q, retry after %v", err.Class, err.Error(), err.RetryAfter)
			}
			if d == transports.NotWritten {
				t.Error("not written, and the server has answered")
			}
			if host := strings.TrimPrefix(s.URL, "http://"); !strings.Contains(err.Text, host) {
				t.Errorf("%q does not name %s", err.Text, host)
			}
			if (c.status == 401 || c.status == 403) && c.header["WWW-Authenticate"] != "" && err.Challenge == nil {
				t.Error("no challenge")
			}
			if n := len(cn.Downs()); n > 0 {
				t.Errorf("the connection is down: %v", cn.Downs())
			}
		})
	}
}

// TestForgottenSession is H1: the server has restarted.
func TestForgottenSession(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		down   bool
	}{
		"404":        {404, "", true},
		"404, stale": {404, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`, true},
		"400, stale": {400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"No valid session ID"}}`, true},
		// The server was upgraded, and speaks another era now. What it refuses is every message of the session.
		"400, modern": {400, `{"jsonrpc":"2.0","id":2,"error":{"code":-32020,"message":"Header mismatch"}}`, true},
		"400, other":  {400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad params"}}`, false},
		"404, method": {404, `{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"Method not found"}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			var deleted atomic.Int32
			waiting := make(chan struct{})
			s := serve(t, withHandshake("sess-"+canary, func(w http.ResponseWriter, r *http.Request) {
				switch m := read(r); {
				case r.Method == http.MethodDelete:
					deleted.Add(1)
				case r.Method == http.MethodGet:
					w.WriteHeader(http.StatusMethodNotAllowed)
				case m.Method == "wait":
					close(waiting)
					<-r.Context().Done()
				default:
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, c.body)
				}
			}))
			cn := dial(t, transports.NewHTTP(config(t, s.URL)))
			cn.handshake()
			other := make(chan *transports.Error, 1)
			go func() {
				_, _, err := cn.trySend(context.Background(), "wait", `{}`)
				other <- err
			}()
			<-waiting
			_, d, err := cn.trySend(t.Context(), "tools/call", `{}`)
			if err == nil || (err.Class == messages.ClassSession) != c.down || d == transports.NotWritten {
				t.Fatalf("%v, %v", d, err)
			}
			if strings.Contains(err.Error(), canary) {
				t.Errorf("the session's id is in %q", err.Error())
			}
			if !c.down {
				cn.close()
				if err := <-other; err == nil || err.Class != messages.ClassCanceled {
					t.Errorf("the call that waited: %v", err)
				}
				if deleted.Load() != 1 {
					t.Errorf("%d DELETEs", deleted.Load())
				}
				return
			}
			cn.Wait(t, bound, "Down", func() bool { return len(cn.Downs()) > 0 })
			if e := boundaryError(t, cn.Downs()[0]); e.Class != messages.ClassSession {
				t.Errorf("Down: %v", e)
			}
			if err := <-other; err == nil || err.Class != messages.ClassSession {
				t.Errorf("the call that waited: %v", err)
			}
			_, d, err = cn.trySend(t.Context(), "tools/call", `{}`)
			if d != transports.NotWritten || err == nil || err.Class != messages.ClassSession {
				t.Errorf("a call afterwards: %v, %v", d, err)
			}
			cn.close()
			if deleted.Load() != 0 {
				t.Error("a session that the server has forgotten was deleted")
			}
		})
	}
}

// TestSilentDelete is H10.
func TestSilentDelete(t *testing.T) {
	asked := make(chan struct{})
	s := serve(t, withHandshake("s", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			close(asked)
			<-r.Context().Done()
			return
		}
		w.WriteHeader(http.StatusMethodNotAllowed)
	}))
	cfg := config(t, s.URL)
	cfg.Grace = 50 * time.Millisecond
	c := dial(t, transports.NewHTTP(cfg))
	c.handshake()
	c.close() // within its bound
	select {
	case <-asked:
	default:
		t.Error("the server was not told")
	}
}

// TestCycles is H12: nothing is left of a thousand connections.
func TestCycles(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	var open atomic.Int32
	s := httptest.NewServer(withHandshake("s", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			return
		}
		open.Add(1)
		defer open.Add(-1)
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	client := &http.Client{Transport: &http.Transport{}}
	defer func() {
		client.CloseIdleConnections()
		s.Close()
	}()
	tr := transports.NewHTTP(transports.HTTPConfig{URL: s.URL, Client: client})
	for range 1000 {
		c := &droppingSink{}
		conn, err := tr.Dial(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []transports.Message{
			{ID: 1, Method: "initialize", Body: []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`)},
			{Method: "notifications/initialized", Body: []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)},
		} {
			if m.ID == 0 {
				conn.Negotiated("2025-11-25")
			}
			if _, err := conn.Send(context.Background(), m); err != nil {
				t.Fatal(err)
			}
		}
		if err := conn.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(bound); open.Load() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d streams are open", open.Load())
		}
	}
}

// droppingSink is a sink that forgets.
type droppingSink struct{}

func (*droppingSink) Message([]byte)                 {}
func (*droppingSink) Oversized(_, _ []byte, _ int64) {}
func (*droppingSink) Noise([]byte)                   {}
func (*droppingSink) Down(error)                     {}
