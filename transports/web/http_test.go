package web_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/conntest"
	"github.com/mcpvisor/mcpvisor/transports/web"
)

// TestHeaders: what each request carries, by the specification's sentences.
func TestHeaders(t *testing.T) {
	seeds.Shows(t, "000.2.headers")
	var mu sync.Mutex
	var seen []string
	s := conntest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		m := conntest.ReadRequest(r)
		mu.Lock()
		seen = append(seen, fmt.Sprintf("%s %s accept=%s type=%s session=%s version=%s auth=%v key=%v agent=%s", r.Method,
			m.Method, r.Header.Get("Accept"), r.Header.Get("Content-Type"), r.Header.Get("Mcp-Session-Id"),
			r.Header.Get("Mcp-Protocol-Version"), r.Header.Get("Authorization") == "Bearer "+conntest.Canary,
			r.Header.Get("X-Api-Key") == conntest.Canary && r.URL.Query().Get("key") == conntest.Canary, r.UserAgent()))
		mu.Unlock()
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case m.Method == "initialize":
			w.Header().Set("Mcp-Session-Id", "s~1!")
			conntest.Reply(w, m, conntest.InitializeResult)
		case m.ID == 0:
			w.WriteHeader(http.StatusAccepted)
		default:
			w.Header().Set("Mcp-Session-Id", "not this one")
			conntest.Reply(w, m, `{}`)
		}
	})
	c := conntest.Dial(t, web.NewHTTP(conntest.ConfigWithSecrets(t, s.URL)))
	c.Handshake()
	c.Call("tools/list", `{}`)
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
	c.CloseChecked()

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
			header: map[string]string{"WWW-Authenticate": `Bearer scope="a b", error_description="bad ` + conntest.Canary + `"`}},
		"401 with the secret in it": {status: 401, class: messages.ClassUnauthorized, text: "[redacted]",
			header: map[string]string{"Content-Type": "text/plain"}, body: "Bearer " + conntest.Canary + " is unknown"},
		"403": {status: 403, class: messages.ClassForbidden, text: "forbids",
			header: map[string]string{"WWW-Authenticate": `Bearer error="insufficient_scope", scope="more"`}},
		"404":        {status: 404, class: messages.ClassNetwork, text: "nothing at this address"},
		"404 a page": {status: 404, class: messages.ClassNetwork, body: "<html>" + conntest.Canary, text: "(404 Not Found)"},
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
		"500": {status: 500, class: messages.ClassNetwork, body: `{"error":"` + conntest.Canary + `"}`},
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
			s := conntest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				for k, v := range c.header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			cn := conntest.Dial(t, web.NewHTTP(conntest.ConfigWithSecrets(t, s.URL)))
			_, d, err := cn.TrySend(t.Context(), "tools/call", `{}`)
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

// TestAServerWithoutSessionsForgetsNone: a request that it refuses ends no connection, because there is no session to begin anew.
func TestAServerWithoutSessionsForgetsNone(t *testing.T) {
	for body, status := range map[string]int{"": 404, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"No valid session ID"}}`: 400} {
		s := conntest.Serve(t, conntest.WithHandshake("", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}))
		cn := conntest.Dial(t, web.NewHTTP(conntest.ConfigWithSecrets(t, s.URL)))
		cn.Handshake()
		for range 2 { // the second one is sent on the same connection
			if _, d, err := cn.TrySend(t.Context(), "tools/call", `{}`); err == nil || err.Class == messages.ClassSession || err.Status != status ||
				d == transports.NotWritten {
				t.Errorf("%d: %v, %v", status, d, err)
			}
		}
	}
}

// TestAnErrorDoesNotQuoteTheSession: the id of a session is as good as a password, also where the server writes it into its error.
func TestAnErrorDoesNotQuoteTheSession(t *testing.T) {
	const id = "sess-8c1d"
	s := conntest.Serve(t, conntest.WithHandshake(id, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, "it broke in "+id)
	}))
	cn := conntest.Dial(t, web.NewHTTP(conntest.ConfigWithSecrets(t, s.URL)))
	cn.Handshake()
	_, _, err := cn.TrySend(t.Context(), "tools/call", `{}`)
	if err == nil || !strings.Contains(string(err.Body), "it broke in") || strings.Contains(err.Error()+string(err.Body), id) {
		t.Errorf("%v, with %q", err, err.Body)
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
			s := conntest.Serve(t, conntest.WithHandshake("sess-"+conntest.Canary, func(w http.ResponseWriter, r *http.Request) {
				switch m := conntest.ReadRequest(r); {
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
			cn := conntest.Dial(t, web.NewHTTP(conntest.ConfigWithSecrets(t, s.URL)))
			cn.Handshake()
			other := make(chan *transports.Error, 1)
			go func() {
				_, _, err := cn.TrySend(context.Background(), "wait", `{}`)
				other <- err
			}()
			<-waiting
			_, d, err := cn.TrySend(t.Context(), "tools/call", `{}`)
			if err == nil || (err.Class == messages.ClassSession) != c.down || d == transports.NotWritten {
				t.Fatalf("%v, %v", d, err)
			}
			if strings.Contains(err.Error(), conntest.Canary) {
				t.Errorf("the session's id is in %q", err.Error())
			}
			if !c.down {
				cn.CloseChecked()
				if err := <-other; err == nil || err.Class != messages.ClassCanceled {
					t.Errorf("the call that waited: %v", err)
				}
				if deleted.Load() != 1 {
					t.Errorf("%d DELETEs", deleted.Load())
				}
				return
			}
			cn.Wait(t, conntest.Bound, "Down", func() bool { return len(cn.Downs()) > 0 })
			if e := conntest.BoundaryError(t, cn.Downs()[0]); e.Class != messages.ClassSession {
				t.Errorf("Down: %v", e)
			}
			if err := <-other; err == nil || err.Class != messages.ClassSession {
				t.Errorf("the call that waited: %v", err)
			}
			_, d, err = cn.TrySend(t.Context(), "tools/call", `{}`)
			if d != transports.NotWritten || err == nil || err.Class != messages.ClassSession {
				t.Errorf("a call afterwards: %v, %v", d, err)
			}
			cn.CloseChecked()
			if deleted.Load() != 0 {
				t.Error("a session that the server has forgotten was deleted")
			}
		})
	}
}

// TestSilentDelete is H10.
func TestSilentDelete(t *testing.T) {
	asked := make(chan struct{})
	s := conntest.Serve(t, conntest.WithHandshake("s", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			close(asked)
			<-r.Context().Done()
			return
		}
		w.WriteHeader(http.StatusMethodNotAllowed)
	}))
	cfg := conntest.ConfigWithSecrets(t, s.URL)
	cfg.Grace = 50 * time.Millisecond
	c := conntest.Dial(t, web.NewHTTP(cfg))
	c.Handshake()
	c.CloseChecked() // within its bound
	select {
	case <-asked:
	default:
		t.Error("the server was not told")
	}
}

// TestCycles is H12: nothing is left of a thousand connections.
func TestCycles(t *testing.T) {
	conntest.CheckLeaks(t)
	var open atomic.Int32
	s := httptest.NewServer(conntest.WithHandshake("s", func(w http.ResponseWriter, r *http.Request) {
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
	tr := web.NewHTTP(web.Config{URL: s.URL, Client: client})
	for range 1000 {
		c := &conntest.DroppingSink{}
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
	for deadline := time.Now().Add(conntest.Bound); open.Load() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d streams are open", open.Load())
		}
	}
}
