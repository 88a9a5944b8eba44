package web_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/budget"
	"github.com/mcpvisor/mcpvisor/transports/internal/conntest"
	"github.com/mcpvisor/mcpvisor/transports/web"
)

// begin begins an event stream.
func begin(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
}

func emit(w http.ResponseWriter, format string, args ...any) {
	_, _ = fmt.Fprintf(w, format, args...)
	w.(http.Flusher).Flush()
}

const note = `{"jsonrpc":"2.0","method":"note"}`

// TestConnectionsAreReused counts connections. An answer that comes as an event stream is followed by the end of its
// body, which the transport must read, or every call costs a connection and a TLS handshake.
func TestConnectionsAreReused(t *testing.T) {
	seeds.Shows(t, "001.1.pooling", "001.6.tls")
	for _, c := range []struct {
		name         string
		events, late bool
		tls, http2   bool
	}{
		{name: "JSON"}, {name: "JSON over TLS", tls: true}, {name: "JSON over HTTP 2", tls: true, http2: true},
		{name: "events", events: true}, {name: "events over TLS", events: true, tls: true},
		{name: "events with a late end", events: true, late: true},
		{name: "events with a late end over TLS", events: true, late: true, tls: true},
		{name: "events over HTTP 2", events: true, tls: true, http2: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := conntest.SilenceErrorLog(httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				m := conntest.ReadRequest(r)
				switch {
				case m.ID == 0:
					w.WriteHeader(http.StatusAccepted)
				case !c.events:
					conntest.Reply(w, m, `{}`)
				default:
					begin(w)
					emit(w, "data: %s\n\n", conntest.Result(m, `{}`))
					if c.late {
						time.Sleep(time.Millisecond)
						emit(w, ": the end\n\n")
					}
				}
			})))
			var connections atomic.Int32
			s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					connections.Add(1)
				}
			}
			cfg := conntest.ConfigWithSecrets(t, "")
			if s.EnableHTTP2 = c.http2; c.tls {
				s.StartTLS()
				cfg.Client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{
					RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
				cfg.Client.Transport.(*http.Transport).ForceAttemptHTTP2 = c.http2
			} else {
				s.Start()
			}
			t.Cleanup(s.Close)
			cfg.URL = s.URL
			ended := make(chan error, 1)
			cfg.Client = &http.Client{Transport: bodyWatch{cfg.Client.Transport, ended}}
			cn := conntest.Dial(t, web.NewHTTP(cfg))
			const calls = 100
			for range calls {
				ctx, cancel := context.WithCancel(t.Context())
				if _, _, err := cn.TrySend(ctx, "tools/call", `{}`); err != nil {
					t.Fatal(err)
				}
				cancel() // as callers do, and it must not cost the connection
				select {
				case err := <-ended:
					if err != io.EOF {
						t.Fatalf("the body was read up to %v", err)
					}
				case <-time.After(conntest.Bound):
					t.Fatal("the body is not read to its end")
				}
			}
			// net/http itself gives a connection up that has not said within 50 ms that it has written its request.
			if n := connections.Load(); n > calls/10 {
				t.Errorf("%d connections for %d calls one after the other", n, calls)
			}
		})
	}
}

// bodyWatch tells how the reading of each response's body ended. When net/http says EOF, it has taken the connection
// back already.
type bodyWatch struct {
	http.RoundTripper
	ended chan error
}

func (w bodyWatch) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.RoundTripper.RoundTrip(r)
	if err == nil && resp.Body != http.NoBody {
		resp.Body = &watchedBody{ReadCloser: resp.Body, ended: w.ended}
	}
	return resp, err
}

type watchedBody struct {
	io.ReadCloser
	ended chan error
	once  sync.Once
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.once.Do(func() { b.ended <- err })
	}
	return n, err
}

func (b *watchedBody) Close() error {
	b.once.Do(func() { b.ended <- http.ErrBodyReadAfterClose })
	return b.ReadCloser.Close()
}

// TestEventAnswer: what stands around an answer in its stream. A stream that goes on after it is given up in the end.
func TestEventAnswer(t *testing.T) {
	givenUp := make(chan struct{})
	s := conntest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		m := conntest.ReadRequest(r)
		begin(w)
		emit(w, ": hello\n\nevent: message\ndata: %s\n\n", note)
		emit(w, "event: ping\ndata: not for us\n\n")
		emit(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"roots/list\"}\n\n", m.ID) // a request with the same id
		emit(w, "data: %s\n\n", conntest.Result(conntest.Request{ID: m.ID + 100}, `"another"`))
		emit(w, "data: {\"jsonrpc\":\"2.0\",\n")
		emit(w, "data: \"id\":%d,\"result\":\"two lines\"}\n\n", m.ID)
		emit(w, "data: %s\n\n", strings.Replace(note, "note", "afterwards", 1))
		<-r.Context().Done() // a server that does not end its stream
		close(givenUp)
	})
	c := conntest.Dial(t, web.NewHTTP(conntest.ConfigWithSecrets(t, s.URL)))
	if got := c.Call("tools/call", `{}`); got != `"two lines"` {
		t.Errorf("the answer is %s", got)
	}
	c.WaitFor(1, "afterwards")
	select {
	case <-givenUp:
	case <-time.After(conntest.Bound):
		t.Error("the stream is open for ever")
	}
	if n := len(c.Messages()); n != 5 {
		t.Errorf("%d messages: %s", n, c.Messages())
	}
}

// TestOversizedEventIsTheAnswer: Send ends at once, although the stream goes on.
func TestOversizedEventIsTheAnswer(t *testing.T) {
	s := conntest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		m := conntest.ReadRequest(r)
		begin(w)
		emit(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"big\",\"params\":\"%s\"}\n\n", strings.Repeat("x", 3000))
		if m.Method == "big" {
			emit(w, "data: %s\n\n", conntest.Result(m, `"`+strings.Repeat("y", 3000)+`"`))
			<-r.Context().Done()
			return
		}
		emit(w, "data: %s\n\n", conntest.Result(m, `"small"`))
	})
	cfg := conntest.ConfigWithSecrets(t, s.URL)
	cfg.MaxMessage = 2000
	c := conntest.Dial(t, web.NewHTTP(cfg))
	if got := c.Call("small", `{}`); got != `"small"` {
		t.Errorf("the answer is %s", got)
	}
	_, d, err := c.TrySend(t.Context(), "big", `{}`)
	if d == transports.NotWritten || err == nil || err.Class != messages.ClassProtocol ||
		!strings.Contains(err.Text, "limit") {
		t.Errorf("%v, %v", d, err)
	}
	if n := len(c.OversizedMessages()); n != 3 {
		t.Errorf("%d messages were reported as over the limit", n)
	}
}

// resumableServer is a server whose answers' streams break, and that keeps what they would have said.
type resumableServer struct {
	mu    sync.Mutex
	gets  []string    // Last-Event-ID of each
	times []time.Time // of the end of the POST, and of the beginning of each GET
	post  func(w http.ResponseWriter, m conntest.Request)
	get   func(w http.ResponseWriter, lastID string, n int)
}

func (s *resumableServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		s.post(w, conntest.ReadRequest(r))
		s.mu.Lock()
		s.times = append(s.times, time.Now())
		s.mu.Unlock()
		panic(http.ErrAbortHandler) // the connection breaks
	}
	id := r.Header.Get("Last-Event-Id")
	s.mu.Lock()
	s.gets, s.times = append(s.gets, id), append(s.times, time.Now())
	n := len(s.gets)
	s.mu.Unlock()
	s.get(w, id, n)
}

func TestResume(t *testing.T) {
	answer := "id: %s\ndata: " + conntest.Result(conntest.Request{ID: 1}, `"at last"`) + "\n\n"
	primed := func(w http.ResponseWriter, _ conntest.Request) {
		begin(w)
		emit(w, "id: first\nretry: 20\ndata:\n\n")
	}
	for _, c := range []struct {
		name  string
		post  func(http.ResponseWriter, conntest.Request)
		get   func(w http.ResponseWriter, lastID string, n int)
		gets  string // the ids asked for
		class messages.Class
		pause time.Duration // the least one, 20ms if 0
	}{
		{name: "after the time that the server asks for", gets: "first", pause: 400 * time.Millisecond,
			post: func(w http.ResponseWriter, _ conntest.Request) { begin(w); emit(w, "id: first\nretry: 400\ndata:\n\n") },
			get:  func(w http.ResponseWriter, _ string, _ int) { begin(w); emit(w, answer, "second") }},
		{name: "at once", post: primed, gets: "first",
			get: func(w http.ResponseWriter, _ string, _ int) { begin(w); emit(w, answer, "second") }},
		{name: "over several streams", post: primed, gets: "first second second second",
			get: func(w http.ResponseWriter, _ string, n int) {
				switch n {
				case 1:
					begin(w)
					emit(w, "id: second\ndata: %s\n\n", note)
				case 2:
					begin(w) // and nothing comes
				case 3:
					w.WriteHeader(http.StatusBadGateway)
				default:
					begin(w)
					emit(w, answer, "third")
				}
			}},
		{name: "over more streams than may be in vain", post: primed, gets: "first 1 2 3 4 5 6 7",
			get: func(w http.ResponseWriter, _ string, n int) {
				begin(w)
				if n < 8 {
					emit(w, "id: %d\ndata:\n\n", n)
				} else {
					emit(w, answer, "second")
				}
			}},
		{name: "throttled", post: primed, gets: "first first",
			get: func(w http.ResponseWriter, _ string, n int) {
				if n == 1 {
					w.Header().Set("Retry-After", "1")
					w.WriteHeader(http.StatusTooManyRequests)
					return
				}
				begin(w)
				emit(w, answer, "second")
			}},
		{name: "no ids", gets: "", class: messages.ClassNetwork,
			post: func(w http.ResponseWriter, _ conntest.Request) { begin(w); emit(w, "data: %s\n\n", note) }},
		{name: "an id that was cut off", gets: "", class: messages.ClassNetwork,
			post: func(w http.ResponseWriter, _ conntest.Request) { begin(w); emit(w, "id: 1\ndata: half") }},
		{name: "not supported", post: primed, gets: "first", class: messages.ClassNetwork,
			get: func(w http.ResponseWriter, _ string, _ int) { w.WriteHeader(http.StatusMethodNotAllowed) }},
		{name: "not a stream", post: primed, gets: "first", class: messages.ClassProtocol,
			get: func(w http.ResponseWriter, _ string, _ int) { _, _ = io.WriteString(w, "<html>") }},
		{name: "unauthorized meanwhile", post: primed, gets: "first", class: messages.ClassUnauthorized,
			get: func(w http.ResponseWriter, _ string, _ int) { w.WriteHeader(http.StatusUnauthorized) }},
		{name: "for ever in vain", post: primed, gets: "first first first first first", class: messages.ClassNetwork,
			get: func(w http.ResponseWriter, _ string, _ int) { begin(w) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &resumableServer{post: c.post, get: c.get}
			s := conntest.Serve(t, h.ServeHTTP)
			cn := conntest.Dial(t, web.NewHTTP(conntest.ConfigWithSecrets(t, s.URL)))
			ctx, cancel := context.WithTimeout(t.Context(), conntest.Bound)
			defer cancel()
			id, d, err := cn.TrySend(ctx, "tools/call", `{}`)
			if c.class == "" {
				if err != nil || d != transports.Written || string(cn.Answer(t, conntest.Bound, id)) != `"at last"` {
					t.Errorf("%v, %v", d, err)
				}
			} else if err == nil || err.Class != c.class || d != transports.MaybeWritten {
				t.Errorf("%v, %v: want an error of class %s, maybe written", d, err, c.class)
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			if got := strings.Join(h.gets, " "); got != c.gets {
				t.Errorf("resumed with %q, want %q", got, c.gets)
			}
			for i := 1; i < len(h.times); i++ {
				if gap, least := h.times[i].Sub(h.times[i-1]), max(c.pause, 20*time.Millisecond); gap < least {
					t.Errorf("attempt %d came after %v, and the server asked for %v", i, gap, least)
				}
			}
		})
	}
}

// TestResumeEnds: a Send that waits for its stream to come back ends with its context and with the connection.
func TestResumeEnds(t *testing.T) {
	h := &resumableServer{
		post: func(w http.ResponseWriter, _ conntest.Request) { begin(w); emit(w, "id: 1\nretry: 3600000\ndata:\n\n") },
		get:  func(http.ResponseWriter, string, int) { t.Error("the server asked to wait for an hour") },
	}
	s := conntest.Serve(t, h.ServeHTTP)
	c := conntest.Dial(t, web.NewHTTP(conntest.ConfigWithSecrets(t, s.URL)))
	d, err := sendWithLittleTime(t, c, "tools/call", `{}`)
	if d != transports.MaybeWritten || err == nil || err.Class != messages.ClassTimeout {
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
		t.Errorf("%v", err)
	}
}

// TestListening: the stream for what the server sends unasked. H3 is an idle cut of it.
func TestListening(t *testing.T) {
	var mu sync.Mutex
	var gets []string
	cut := make(chan struct{})
	s := conntest.Serve(t, conntest.WithHandshake("s", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			if m := conntest.ReadRequest(r); m.ID != 0 {
				conntest.Reply(w, m, `{}`)
			}
			return
		}
		mu.Lock()
		gets = append(gets, r.Header.Get("Last-Event-Id"))
		n := len(gets)
		mu.Unlock()
		begin(w)
		emit(w, "id: e%d\nretry: 10\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"unasked-%d\"}\n\n", n, n)
		select {
		case <-cut:
		case <-r.Context().Done():
		}
	}))
	c := conntest.Dial(t, web.NewHTTP(conntest.ConfigWithSecrets(t, s.URL)))
	c.Call("initialize", conntest.InitializeParams)
	c.Notify("notifications/initialized") // before Negotiated: a session that does not, gets no stream
	c.Call("tools/list", `{}`)
	mu.Lock()
	if len(gets) > 0 {
		t.Error("the stream was opened before the version was agreed on")
	}
	mu.Unlock()
	c.Negotiated("2025-11-25")
	c.Notify("notifications/initialized")
	c.Notify("notifications/initialized")
	c.WaitFor(1, "unasked-1")
	for n := 2; n <= 4; n++ {
		cut <- struct{}{}
		c.WaitFor(1, fmt.Sprintf("unasked-%d", n))
		c.Call("tools/list", `{}`)
	}
	if len(c.Downs()) > 0 {
		t.Errorf("the connection is down: %v", c.Downs())
	}
	c.CloseChecked()
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(gets, " "); got != " e1 e2 e3" {
		t.Errorf("Last-Event-ID of the streams: %q", got)
	}
}

// A server that answers 409, because it has not noticed that the stream before is gone, is asked for the stream once more.
func TestAConflictDoesNotEndListening(t *testing.T) {
	var gets atomic.Int32
	s := conntest.Serve(t, conntest.WithHandshake("s", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet:
			if m := conntest.ReadRequest(r); m.ID != 0 {
				conntest.Reply(w, m, `{}`)
			}
		case gets.Add(1) == 1:
			w.WriteHeader(http.StatusConflict)
		default:
			begin(w)
			emit(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"unasked\"}\n\n")
			<-r.Context().Done()
		}
	}))
	c := conntest.Dial(t, web.NewHTTP(conntest.ConfigWithSecrets(t, s.URL)))
	c.Call("initialize", conntest.InitializeParams)
	c.Negotiated("2025-11-25")
	c.Notify("notifications/initialized")
	c.WaitFor(1, "unasked")
	c.CloseChecked()
}

// A network that is away for a moment ends no listening: the stream is asked for again, which loses notices otherwise for as long as the
// connection lasts.
func TestABrokenNetworkDoesNotEndListening(t *testing.T) {
	var gets atomic.Int32
	s := conntest.Serve(t, conntest.WithHandshake("s", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet:
			if m := conntest.ReadRequest(r); m.ID != 0 {
				conntest.Reply(w, m, `{}`)
			}
		case gets.Add(1) <= 2:
			panic(http.ErrAbortHandler) // the connection ends before any answer
		default:
			begin(w)
			emit(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"unasked\"}\n\n")
			<-r.Context().Done()
		}
	}))
	c := conntest.Dial(t, web.NewHTTP(conntest.ConfigWithSecrets(t, s.URL)))
	c.Call("initialize", conntest.InitializeParams)
	c.Negotiated("2025-11-25")
	c.Notify("notifications/initialized")
	c.WaitFor(1, "unasked")
	if n := gets.Load(); n != 3 || len(c.Downs()) > 0 {
		t.Errorf("%d attempts, down %v", n, c.Downs())
	}
	c.CloseChecked()
}

// The part of an answer that has come when its stream breaks is held no longer, and the error keeps its cause.
func TestABrokenAnswerHoldsNoMemory(t *testing.T) {
	s := conntest.Serve(t, conntest.WithHandshake("s", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		begin(w)
		emit(w, "data: {\"text\":\"%s", strings.Repeat("x", 1<<20))
		panic(http.ErrAbortHandler)
	}))
	cfg := conntest.ConfigWithSecrets(t, s.URL)
	cfg.Share = budget.New(64 << 20).Open("s")
	c := conntest.Dial(t, web.NewHTTP(cfg))
	c.Handshake()
	for range 3 {
		_, d, err := c.TrySend(t.Context(), "tools/call", `{}`)
		if d != transports.MaybeWritten || err == nil || err.Class != messages.ClassNetwork || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%v, %v", d, err)
		}
		if held := cfg.Share.Held(); held != 0 {
			t.Errorf("%d bytes are held", held)
		}
	}
	c.CloseChecked()
}

func TestNoListening(t *testing.T) {
	for name, c := range map[string]struct {
		version string
		status  int
		gets    int32
		down    bool
	}{
		"405":               {"2025-11-25", 405, 1, false},
		"401":               {"2025-06-18", 401, 1, false},
		"501":               {"2025-03-26", 501, 1, false},
		"a page":            {"2025-11-25", 200, 1, false},
		"forgotten session": {"2025-11-25", 404, 1, true},
		"a version without": {"2026-07-28", 405, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			var gets atomic.Int32
			answered := make(chan struct{}, 10)
			s := conntest.Serve(t, conntest.WithHandshake("s", func(w http.ResponseWriter, r *http.Request) {
				switch r.Method {
				case http.MethodGet:
					gets.Add(1)
					w.WriteHeader(c.status)
					answered <- struct{}{}
				case http.MethodPost:
					conntest.Reply(w, conntest.ReadRequest(r), `{}`)
				}
			}))
			cn := conntest.Dial(t, web.NewHTTP(conntest.ConfigWithSecrets(t, s.URL)))
			cn.Call("initialize", conntest.InitializeParams)
			cn.Negotiated(c.version)
			cn.Notify("notifications/initialized")
			if c.gets > 0 {
				<-answered
			}
			if c.down {
				cn.Wait(t, conntest.Bound, "Down", func() bool { return len(cn.Downs()) > 0 })
				if e := conntest.BoundaryError(t, cn.Downs()[0]); e.Class != messages.ClassSession {
					t.Errorf("Down: %v", e)
				}
				return
			}
			for deadline := time.Now().Add(conntest.Bound); strings.Contains(goroutineStacks(), "keepListening"); time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("there is no stream, and somebody waits to open it again")
				}
			}
			cn.Call("tools/list", `{}`)
			if len(cn.Downs()) > 0 {
				t.Errorf("the connection is down: %v", cn.Downs())
			}
			cn.CloseChecked()
			if n := gets.Load(); n != c.gets {
				t.Errorf("%d GETs, want %d", n, c.gets)
			}
		})
	}
}

// goroutineStacks returns the stacks of all goroutines.
func goroutineStacks() string {
	b := make([]byte, 4<<20)
	return string(b[:runtime.Stack(b, true)])
}

// TestListeningOutlivesTheServer: a server that is away for a while costs no connection, and the stream comes back.
func TestListeningOutlivesTheServer(t *testing.T) {
	var away atomic.Bool
	cut := make(chan struct{})
	s := conntest.Serve(t, conntest.WithHandshake("s", func(w http.ResponseWriter, r *http.Request) {
		if away.Swap(false) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if r.Method != http.MethodGet {
			return
		}
		begin(w)
		emit(w, "data: %s\n\n", note)
		select {
		case <-cut:
		case <-r.Context().Done():
		}
	}))
	c := conntest.Dial(t, web.NewHTTP(conntest.ConfigWithSecrets(t, s.URL)))
	c.Handshake()
	c.WaitFor(1, "note")
	away.Store(true)
	close(cut)
	c.WaitFor(2, "note")
	if away.Load() || len(c.Downs()) > 0 {
		t.Errorf("away %v, down %v", away.Load(), c.Downs())
	}
}

// TestFallback: an older server behind a URL without a type.
func TestFallback(t *testing.T) {
	for _, status := range []int{400, 404, 405} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			p := conntest.NewWebPeer(t, func(p *conntest.WebPeer) http.Handler {
				h := conntest.SSEHandler(p)
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodPost && r.URL.Path == "/sse" {
						w.WriteHeader(status)
						return
					}
					h.ServeHTTP(w, r)
				})
			})
			cfg := conntest.ConfigWithSecrets(t, p.Server.URL+"/sse?key="+conntest.Canary)
			cfg.FallbackSSE = true
			c := conntest.Dial(t, web.NewHTTP(cfg))
			// The scripted peer knows no initialize: its answer is an error, and it is an answer.
			if _, d, err := c.TrySend(t.Context(), "initialize", conntest.InitializeParams); err != nil || d != transports.Written {
				t.Fatalf("%v, %v", d, err)
			}
			c.WaitFor(1, "no such command")
			c.Negotiated("2024-11-05")
			c.Notify("notifications/initialized")
			if got := c.Call("echo", `{"x":1}`); got != `{"x":1}` {
				t.Errorf("echo: %s", got)
			}
			p.CutConnections()
			c.Wait(t, conntest.Bound, "Down", func() bool { return len(c.Downs()) > 0 })
			if _, d, err := c.TrySend(t.Context(), "echo", `{}`); d != transports.NotWritten || err.Class != messages.ClassNetwork {
				t.Errorf("after the end: %v, %v", d, err)
			}
		})
	}
}

func TestNoFallback(t *testing.T) {
	var gets atomic.Int32
	at := func(post, get int) string {
		return conntest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				gets.Add(1)
				w.WriteHeader(get)
				return
			}
			w.WriteHeader(post)
		}).URL
	}
	for _, c := range []struct {
		name      string
		url       string
		fallback  bool
		method    string
		class     messages.Class
		text      string
		gets      int32
		twiceGets int32
	}{
		{"not asked for", at(404, 404), false, "initialize", messages.ClassNetwork, "(404 Not Found)", 0, 0},
		{"another method", at(404, 404), true, "tools/list", messages.ClassNetwork, "(404 Not Found)", 0, 0},
		{"another status", at(500, 404), true, "initialize", messages.ClassNetwork, "(500", 0, 0},
		// The first refusal is the error, as it is about the address that was configured, unless the second says more.
		{"neither", at(405, 404), true, "initialize", messages.ClassProtocol, "as HTTP+SSE", 1, 1},
		{"a door", at(404, 401), true, "initialize", messages.ClassUnauthorized, "authorization", 1, 1},
		{"a queue", at(404, 429), true, "initialize", messages.ClassThrottled, "asks to wait", 1, 1},
		{"a server that is down", at(404, 503), true, "initialize", messages.ClassNetwork, "as HTTP+SSE", 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			gets.Store(0)
			cfg := conntest.ConfigWithSecrets(t, c.url)
			cfg.FallbackSSE = c.fallback
			cn := conntest.Dial(t, web.NewHTTP(cfg))
			for i, want := range []int32{c.gets, c.twiceGets} {
				_, d, err := cn.TrySend(t.Context(), c.method, `{}`)
				if err == nil || d != transports.Written {
					t.Fatalf("%v, %v", d, err)
				}
				if n := gets.Load(); n != want {
					t.Errorf("%d GETs, want %d", n, want)
				}
				if i == 0 && (err.Class != c.class || !strings.Contains(err.Text, c.text)) {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

// TestFallbackEnds: an older server that never names its address.
func TestFallbackEnds(t *testing.T) {
	s := conntest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		begin(w)
		<-r.Context().Done()
	})
	cfg := conntest.ConfigWithSecrets(t, s.URL)
	cfg.FallbackSSE = true
	c := conntest.Dial(t, web.NewHTTP(cfg))
	d, err := sendWithLittleTime(t, c, "initialize", conntest.InitializeParams)
	if d == transports.NotWritten || err == nil || err.Class != messages.ClassTimeout {
		t.Errorf("%v, %v", d, err)
	}
	c2 := conntest.Dial(t, web.NewHTTP(cfg))
	done := make(chan *transports.Error, 1)
	go func() {
		_, _, err := c2.TrySend(context.Background(), "initialize", conntest.InitializeParams)
		done <- err
	}()
	time.Sleep(20 * time.Millisecond)
	c2.CloseChecked()
	if err := <-done; err == nil || err.Class != messages.ClassCanceled {
		t.Errorf("%v", err)
	}
}
