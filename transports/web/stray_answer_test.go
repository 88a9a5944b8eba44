package web_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/conntest"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
	"github.com/mcpvisor/mcpvisor/transports/web"
)

// strayServer is a server with a session whose standing stream is written to by say, and ended by cut. What a POST gets, post
// says; the answer to "echo" is given.
type strayServer struct {
	say  chan string
	cut  chan struct{}
	gets atomic.Int32
	post func(w http.ResponseWriter, m conntest.Request)
	// head is written at the beginning of every standing stream, refuse is its status if it is not 0.
	head   func(n int32) string
	refuse func(n int32, lastID string) int
}

func (s *strayServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		m := conntest.ReadRequest(r)
		if m.Method == "echo" {
			conntest.Reply(w, m, `"echo"`)
			return
		}
		s.post(w, m)
		return
	}
	if r.Method != http.MethodGet {
		return
	}
	n := s.gets.Add(1)
	if s.refuse != nil {
		if status := s.refuse(n, r.Header.Get("Last-Event-Id")); status != 0 {
			w.WriteHeader(status)
			return
		}
	}
	begin(w)
	if s.head != nil {
		emit(w, "%s", s.head(n))
	}
	for {
		select {
		case text := <-s.say:
			emit(w, "data: %s\n\n", text)
		case <-s.cut:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func newStray() *strayServer { return &strayServer{say: make(chan string), cut: make(chan struct{})} }

// TestAnswerOnAnotherStream: a server that takes a POST, and answers where it should not. It is clear whose answer it
// is.
func TestAnswerOnAnotherStream(t *testing.T) {
	for name, post := range map[string]func(w http.ResponseWriter, m conntest.Request){
		"after 202":             func(w http.ResponseWriter, _ conntest.Request) { w.WriteHeader(http.StatusAccepted) },
		"after 204":             func(w http.ResponseWriter, _ conntest.Request) { w.WriteHeader(http.StatusNoContent) },
		"after nothing":         func(w http.ResponseWriter, _ conntest.Request) { w.Header().Set("Content-Type", "application/json") },
		"after an empty stream": func(w http.ResponseWriter, _ conntest.Request) { begin(w) },
		"after a notification":  func(w http.ResponseWriter, _ conntest.Request) { begin(w); emit(w, "data: %s\n\n", note) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStray()
			s.post = func(w http.ResponseWriter, m conntest.Request) {
				post(w, m)
				go func() { s.say <- conntest.Result(m, `"late"`) }()
			}
			c := conntest.Dial(t, web.NewHTTP(conntest.ConfigWithSecrets(t, conntest.Serve(t, conntest.WithHandshake("s", s.ServeHTTP)).URL)))
			c.Handshake()
			for range 3 {
				if got := c.Call("tools/call", `{}`); got != `"late"` {
					t.Errorf("the answer is %s", got)
				}
			}
		})
	}
	t.Run("before its own stream ends", func(t *testing.T) {
		s := newStray()
		given := make(chan struct{})
		s.post = func(w http.ResponseWriter, m conntest.Request) {
			begin(w)
			s.say <- conntest.Result(m, `"early"`)
			<-given
		}
		c := conntest.Dial(t, web.NewHTTP(conntest.ConfigWithSecrets(t, conntest.Serve(t, conntest.WithHandshake("s", s.ServeHTTP)).URL)))
		c.Handshake()
		if got := c.Call("tools/call", `{}`); got != `"early"` {
			t.Errorf("the answer is %s", got)
		}
		close(given)
	})
	t.Run("before its own response begins", func(t *testing.T) {
		s := newStray()
		given := make(chan struct{})
		s.post = func(_ http.ResponseWriter, m conntest.Request) {
			s.say <- "[" + note + "," + conntest.Result(m, `"early"`) + "]"
			<-given
		}
		c := conntest.Dial(t, web.NewHTTP(conntest.ConfigWithSecrets(t, conntest.Serve(t, conntest.WithHandshake("s", s.ServeHTTP)).URL)))
		c.Handshake()
		if _, d, err := c.TrySend(t.Context(), "tools/call", `{}`); err != nil || d != transports.Written {
			t.Errorf("%v, %v", d, err)
		}
		close(given)
	})
	t.Run("on another request's stream", func(t *testing.T) {
		s := newStray()
		first, second := make(chan conntest.Request, 1), make(chan struct{})
		s.post = func(w http.ResponseWriter, m conntest.Request) {
			if m.Method == "first" {
				first <- m
				<-second // without another request under way there is no stream that could bring the answer
				w.WriteHeader(http.StatusAccepted)
				return
			}
			begin(w)
			close(second)
			emit(w, "data: %s\n\ndata: %s\n\n", conntest.Result(<-first, `"first"`), conntest.Result(m, `"second"`))
		}
		c := conntest.Dial(t, web.NewHTTP(conntest.ConfigWithSecrets(t, conntest.Serve(t, conntest.WithHandshake("", s.ServeHTTP)).URL)))
		var both sync.WaitGroup
		for _, method := range []string{"first", "second"} {
			both.Add(1)
			go func() {
				defer both.Done()
				if got := c.Call(method, `{}`); got != `"`+method+`"` {
					t.Errorf("%s: %s", method, got)
				}
			}()
		}
		both.Wait()
	})
}

// TestAnswerNowhere: a server that takes a POST and never answers costs the bound and no more, and nothing at all if
// there is no other stream.
func TestAnswerNowhere(t *testing.T) {
	s := newStray()
	s.post = func(w http.ResponseWriter, _ conntest.Request) { w.WriteHeader(http.StatusAccepted) }
	c := conntest.Dial(t, web.NewHTTP(conntest.ConfigWithSecrets(t, conntest.Serve(t, conntest.WithHandshake("s", s.ServeHTTP)).URL)))
	c.Handshake()
	s.say <- note // the stream is open
	ctx, cancel := context.WithTimeout(t.Context(), conntest.Bound)
	defer cancel()
	if _, d, err := c.TrySend(ctx, "tools/call", `{}`); d != transports.Written || err == nil ||
		err.Class != messages.ClassProtocol || !strings.Contains(err.Text, "no answer") {
		t.Errorf("%v, %v", d, err)
	}
	done := make(chan *transports.Error, 1)
	go func() {
		_, _, err := c.TrySend(context.Background(), "tools/call", `{}`)
		done <- err
	}()
	time.Sleep(20 * time.Millisecond)
	c.CloseChecked()
	if err := <-done; err == nil || err.Class != messages.ClassCanceled {
		t.Errorf("after Close: %v", err)
	}
}

// reopenCounter is a sink that counts.
type reopenCounter struct {
	transporttest.Recorder
	times   atomic.Int32
	changed chan struct{}
}

func (r *reopenCounter) StreamReopened() {
	r.times.Add(1)
	r.changed <- struct{}{}
}

// TestStreamReopened checks that StreamReopened is called when notifications may have been lost, and only then.
func TestStreamReopened(t *testing.T) {
	const retry = "retry: 1\n\n"
	for name, c := range map[string]struct {
		head     func(n int32) string
		refuse   func(n int32, lastID string) int
		received int32 // after two cuts
	}{
		"no ids": {head: func(int32) string { return retry }, received: 2},
		"ids":    {head: func(n int32) string { return fmt.Sprintf("id: %d\ndata:\n\n%s", n, retry) }},
		"an id that is forgotten": {
			head: func(n int32) string { return "id: 1\ndata:\n\n" + retry },
			refuse: func(n int32, lastID string) int {
				if lastID != "" && n == 2 {
					return http.StatusBadRequest
				}
				return 0
			}, received: 1},
		"too late": {
			head: func(n int32) string { return "id: 1\ndata:\n\n" + retry },
			refuse: func(n int32, _ string) int {
				if n == 1 {
					return http.StatusConflict
				}
				return 0
			}, received: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStray()
			s.head, s.refuse = c.head, c.refuse
			sink := &reopenCounter{changed: make(chan struct{}, 100)}
			conn, err := web.NewHTTP(conntest.ConfigWithSecrets(t, conntest.Serve(t, conntest.WithHandshake("s", s.ServeHTTP)).URL)).Dial(t.Context(), sink)
			if err != nil {
				t.Fatal(err)
			}
			cn := &conntest.Client{Conn: conn, Recorder: &sink.Recorder, T: t}
			t.Cleanup(cn.CloseChecked)
			cn.Handshake()
			for i := range 2 {
				s.say <- note
				cn.WaitFor(i+1, "note")
				s.cut <- struct{}{}
			}
			s.say <- note
			cn.WaitFor(3, "note")
			if n := sink.times.Load(); n != c.received {
				t.Errorf("told %d times, want %d", n, c.received)
			}
		})
	}
}

// TestRequestsFromTheServer: a server asks on the stream of a request, and on the standing one; our answer is a POST
// with the session's headers. A refusal of it costs nothing but itself, unless it says that the session is gone.
func TestRequestsFromTheServer(t *testing.T) {
	const ask = `{"jsonrpc":"2.0","id":"srv-%d","method":"roots/list"}`
	for status, class := range map[int]messages.Class{
		202: "", 400: messages.ClassProtocol, 401: messages.ClassUnauthorized, 403: messages.ClassForbidden,
		422: messages.ClassProtocol, 500: messages.ClassNetwork, 404: messages.ClassSession,
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			s := newStray()
			answered := make(chan string, 10)
			s.post = func(w http.ResponseWriter, m conntest.Request) {
				if m.Method == "" {
					w.WriteHeader(status)
					return
				}
				begin(w)
				emit(w, "data: "+ask+"\n\n", 1)
				got := <-answered
				emit(w, "data: %s\n\n", conntest.Result(m, fmt.Sprintf("%q", got)))
			}
			site := conntest.Serve(t, conntest.WithHandshake("s-1", func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					body, _ := io.ReadAll(r.Body)
					if strings.Contains(string(body), "srv-") {
						answered <- string(body) + r.Header.Get("Mcp-Session-Id") + r.Header.Get("Mcp-Protocol-Version") +
							r.Header.Get("Accept")
					}
					r.Body = io.NopCloser(strings.NewReader(string(body)))
				}
				s.ServeHTTP(w, r)
			}))
			c := conntest.Dial(t, web.NewHTTP(conntest.ConfigWithSecrets(t, site.URL)))
			c.Handshake()
			respond := func(id int) {
				body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"srv-%d","result":{}}`, id)
				d, err := c.Send(t.Context(), transports.Message{Body: body})
				if d != transports.Written || (err == nil) != (class == "") || err != nil && conntest.BoundaryError(t, err).Class != class {
					t.Errorf("the answer to %d: %v, %v", id, d, err)
				}
			}
			want := func(id int) string {
				return fmt.Sprintf(`{"jsonrpc":"2.0","id":"srv-%d","result":{}}`, id) +
					"s-12025-11-25application/json, text/event-stream"
			}
			done := make(chan string, 1)
			go func() {
				id, _, err := c.TrySend(context.Background(), "tools/call", `{}`)
				if err != nil {
					done <- err.Error()
					return
				}
				done <- string(c.Answer(t, conntest.Bound, id))
			}()
			c.WaitFor(1, "srv-1")
			respond(1)
			got := <-done
			if class == messages.ClassSession {
				c.Wait(t, conntest.Bound, "Down", func() bool { return len(c.Downs()) == 1 })
				return
			}
			if got != fmt.Sprintf("%q", want(1)) {
				t.Errorf("the call ended with %s", got)
			}
			s.say <- fmt.Sprintf(ask, 2)
			c.WaitFor(1, "srv-2")
			respond(2)
			if got := <-answered; got != want(2) {
				t.Errorf("the answer was %s", got)
			}
			if got := c.Call("echo", `{}`); got != `"echo"` || len(c.Downs()) > 0 {
				t.Errorf("afterwards: %s, %v", got, c.Downs())
			}
		})
	}
}

// TestRequestsFromAnOlderServer is the same over SSE.
func TestRequestsFromAnOlderServer(t *testing.T) {
	answered := make(chan string, 1)
	p := conntest.NewWebPeer(t, func(p *conntest.WebPeer) http.Handler {
		h := conntest.SSEHandler(p)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				body, _ := io.ReadAll(r.Body)
				if strings.Contains(string(body), "srv-1") {
					answered <- string(body)
					w.WriteHeader(http.StatusBadRequest)
					return
				}
				r.Body = io.NopCloser(strings.NewReader(string(body)))
			}
			h.ServeHTTP(w, r)
		})
	})
	c := conntest.Dial(t, web.NewSSE(conntest.ConfigWithSecrets(t, p.Server.URL+"/sse?key="+conntest.Canary)))
	stream, err := p.AwaitStream("")
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send([]byte(`{"jsonrpc":"2.0","id":"srv-1","method":"ping"}`)); err != nil {
		t.Fatal(err)
	}
	c.WaitFor(1, "srv-1")
	const answer = `{"jsonrpc":"2.0","id":"srv-1","result":{}}`
	d, e := c.Send(t.Context(), transports.Message{Body: []byte(answer)})
	if d != transports.Written || conntest.BoundaryError(t, e).Class != messages.ClassProtocol || <-answered != answer {
		t.Errorf("%v, %v", d, e)
	}
	if got := c.Call("echo", `{"x":1}`); got != `{"x":1}` || len(c.Downs()) > 0 {
		t.Errorf("afterwards: %s, %v", got, c.Downs())
	}
}

// TestConcurrentCallsLoseTheSession: one call returns the refusal. The calls that the server may be working on
// do not return as refused.
func TestConcurrentCallsLoseTheSession(t *testing.T) {
	const callers = 20
	var waiting sync.WaitGroup
	waiting.Add(callers)
	site := conntest.Serve(t, conntest.WithHandshake("s", func(w http.ResponseWriter, r *http.Request) {
		switch m := conntest.ReadRequest(r); {
		case r.Method == http.MethodDelete:
			t.Error("a DELETE of a session that is gone")
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case m.Method == "work":
			if m.ID%2 == 0 {
				begin(w)
			}
			waiting.Done()
			<-r.Context().Done()
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	c := conntest.Dial(t, web.NewHTTP(conntest.ConfigWithSecrets(t, site.URL)))
	c.Handshake()
	type end struct {
		d   transports.Delivery
		err *transports.Error
	}
	ends := make(chan end, callers)
	for range callers {
		go func() {
			_, d, err := c.TrySend(context.Background(), "work", `{}`)
			ends <- end{d, err}
		}()
	}
	waiting.Wait()
	_, d, err := c.TrySend(t.Context(), "last", `{}`)
	if d != transports.Written || err == nil || err.Class != messages.ClassSession || err.Status != 404 {
		t.Errorf("the refused one: %v, %v", d, err)
	}
	for range callers {
		if e := <-ends; e.d != transports.MaybeWritten || e.err == nil || e.err.Class != messages.ClassSession ||
			e.err.Status != 0 {
			t.Errorf("one at work: %v, %v", e.d, e.err)
		}
	}
	_, d, err = c.TrySend(t.Context(), "afterwards", `{}`)
	if d != transports.NotWritten || err == nil || err.Class != messages.ClassSession {
		t.Errorf("afterwards: %v, %v", d, err)
	}
}
