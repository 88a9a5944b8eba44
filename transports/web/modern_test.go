package web_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/conntest"
	"github.com/mcpvisor/mcpvisor/transports/web"
)

const modern = "2026-07-28"

// TestModernHeaders: what a POST of the modern era carries, by the specification's sentences.
func TestModernHeaders(t *testing.T) {
	for name, c := range map[string]struct {
		m    transports.Message
		want string // Mcp-Method, Mcp-Name, Mcp-Param-Region
	}{
		"no name":  {transports.Message{Method: "tools/list"}, "tools/list|-|-"},
		"tool":     {transports.Message{Method: "tools/call", Name: "get_weather"}, "tools/call|get_weather|-"},
		"resource": {transports.Message{Method: "resources/read", Name: "file:///a b"}, "resources/read|file:///a b|-"},
		"prompt":   {transports.Message{Method: "prompts/get", Name: "grüß"}, "prompts/get|=?base64?Z3LDvMOf?=|-"},
		"task":     {transports.Message{Method: "tasks/get", Name: "786"}, "tasks/get|786|-"},
		"another":  {transports.Message{Method: "completion/complete", Name: "x"}, "completion/complete|-|-"},
		"with a header": {transports.Message{Method: "tools/call", Name: "t",
			Header: map[string]string{"mcp-param-region": "us"}}, "tools/call|t|us"},
	} {
		t.Run(name, func(t *testing.T) {
			var seen string
			s := conntest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
				headerOf := func(key string) string {
					if v, ok := r.Header[key]; ok {
						return strings.Join(v, ",")
					}
					return "-"
				}
				seen = headerOf("Mcp-Method") + "|" + headerOf("Mcp-Name") + "|" + headerOf("Mcp-Param-Region")
				if got := headerOf("Accept") + " " + headerOf("Content-Type") + " " + headerOf("Mcp-Protocol-Version") + " " +
					headerOf("Mcp-Session-Id"); got != "application/json, text/event-stream application/json 2026-07-28 -" {
					t.Errorf("headers: %s", got)
				}
				w.Header().Set("Mcp-Session-Id", "not-wanted")
				conntest.Reply(w, conntest.ReadRequest(r), `{}`)
			})
			cn := conntest.Dial(t, web.NewHTTP(conntest.ConfigWithSecrets(t, s.URL)))
			cn.Negotiated(modern)
			for range 2 { // the second one has no session either
				if _, d, err := cn.TryModern(t.Context(), c.m); err != nil || d != transports.Written {
					t.Fatalf("%v, %v", d, err)
				}
				if seen != c.want {
					t.Errorf("the server saw %s, want %s", seen, c.want)
				}
			}
			if id := cn.Info().SessionID; id != "" {
				t.Errorf("a session: %s", id)
			}
		})
	}
}

// TestModernHeaderRefused: a header that would take the place of another one, or break the frame, keeps the message
// here.
func TestModernHeaderRefused(t *testing.T) {
	s := conntest.Serve(t, func(http.ResponseWriter, *http.Request) { t.Error("something was sent") })
	cn := conntest.Dial(t, web.NewHTTP(conntest.ConfigWithSecrets(t, s.URL)))
	for name, value := range map[string]string{
		"Authorization": "x", "Mcp-Name": "x", "Mcp-Param-": "x", "Mcp-Param-A B": "x", "Mcp-Param-A": "x\r\nY: z",
		"Mcp-Param-Ä": "x",
	} {
		m := transports.Message{Method: "tools/call", Name: "t", Header: map[string]string{name: value}}
		_, d, err := cn.TryModern(t.Context(), m)
		if d != transports.NotWritten || err == nil || err.Class != messages.ClassInvalid {
			t.Errorf("%s: %v, %v", name, d, err)
		}
	}
}

// TestModernLeavesNoTraces: no GET, no DELETE, no resumption, and no notifications/cancelled.
func TestModernLeavesNoTraces(t *testing.T) {
	var requests atomic.Int32
	s := conntest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.Method != http.MethodPost {
			t.Errorf("a %s", r.Method)
			return
		}
		m := conntest.ReadRequest(r)
		if m.Method == "notifications/cancelled" {
			t.Error("a cancellation as a message")
		}
		begin(w)
		emit(w, "id: 1\nretry: 1\ndata: %s\n\n", note)
		panic(http.ErrAbortHandler)
	})
	cn := conntest.Dial(t, web.NewHTTP(conntest.ConfigWithSecrets(t, s.URL)))
	cn.Negotiated(modern)
	_, d, err := cn.TryModern(t.Context(), transports.Message{Method: "tools/call", Name: "t"})
	if d != transports.MaybeWritten || err == nil || err.Class != messages.ClassNetwork {
		t.Errorf("a broken stream: %v, %v", d, err)
	}
	cancelled := transports.Message{Method: "notifications/cancelled", Version: modern, Body: []byte(`{}`)}
	d, e := cn.Send(t.Context(), cancelled)
	if d != transports.Written || e != nil {
		t.Errorf("the cancellation: %v, %v", d, e)
	}
	cn.CloseChecked()
	d, e = cn.Send(t.Context(), cancelled)
	if d != transports.NotWritten || e == nil {
		t.Errorf("the cancellation after the end: %v, %v", d, e)
	}
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// TestModernCancellation: "closing the SSE response stream is itself the cancellation signal". The server sees its
// request end, whatever it has answered until then, and over either version of HTTP.
func TestModernCancellation(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		for name, begun := range map[string]func(http.ResponseWriter){
			"nothing yet": func(http.ResponseWriter) {},
			"a stream":    func(w http.ResponseWriter) { begin(w); emit(w, ": still there\n\n") },
			"half an answer": func(w http.ResponseWriter) {
				w.Header().Set("Content-Type", "application/json")
				emit(w, `{"jsonrpc":"2.0",`)
			},
		} {
			t.Run(fmt.Sprintf("%s, HTTP/2 %v", name, http2), func(t *testing.T) {
				arrived, ended := make(chan struct{}), make(chan struct{})
				s := conntest.SilenceErrorLog(httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					conntest.ReadRequest(r)
					begun(w)
					close(arrived)
					<-r.Context().Done()
					close(ended)
				})))
				cfg := conntest.ConfigWithSecrets(t, "")
				if s.EnableHTTP2 = http2; http2 {
					s.StartTLS()
					tr := cfg.Client.Transport.(*http.Transport)
					tr.ForceAttemptHTTP2 = true
					tr.TLSClientConfig = &tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
				} else {
					s.Start()
				}
				t.Cleanup(s.Close)
				cfg.URL = s.URL
				cn := conntest.Dial(t, web.NewHTTP(cfg))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := make(chan *transports.Error, 1)
				go func() {
					_, _, err := cn.TryModern(ctx, transports.Message{Method: "tools/call", Name: "slow"})
					done <- err
				}()
				<-arrived
				cancel()
				for what, c := range map[string]<-chan struct{}{"the server has not seen the end": ended} {
					select {
					case <-c:
					case <-time.After(conntest.Bound):
						t.Fatal(what)
					}
				}
				if err := <-done; err == nil || err.Class != messages.ClassCanceled {
					t.Errorf("%v", err)
				}
				if len(cn.Downs()) > 0 {
					t.Errorf("the connection is down: %v", cn.Downs())
				}
			})
		}
	}
}

// TestModernListen: a subscription is a request whose answer takes as long as it lasts.
func TestModernListen(t *testing.T) {
	end := make(chan bool)
	s := conntest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		m := conntest.ReadRequest(r)
		begin(w)
		emit(w, ":\r\n\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\"}\n\n")
		emit(w, ": keep-alive\n\n:\n:\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
		select {
		case graceful := <-end:
			if graceful {
				emit(w, "data: %s\n\n", conntest.Result(m, `{}`))
			}
		case <-r.Context().Done():
		}
	})
	cn := conntest.Dial(t, web.NewHTTP(conntest.ConfigWithSecrets(t, s.URL)))
	for i, graceful := range []bool{true, false} {
		done := make(chan *transports.Error, 1)
		var d transports.Delivery
		go func() {
			_, got, err := cn.TryModern(context.Background(), transports.Message{Method: "subscriptions/listen"})
			d = got
			done <- err
		}()
		cn.WaitFor(i+1, "list_changed")
		select {
		case err := <-done:
			t.Fatalf("Send has returned while the stream is open: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
		end <- graceful
		err := <-done
		if graceful && (err != nil || d != transports.Written) {
			t.Errorf("after a graceful end: %v, %v", d, err)
		}
		if !graceful && (err == nil || err.Class != messages.ClassNetwork || d != transports.MaybeWritten) {
			t.Errorf("after a cut: %v, %v", d, err)
		}
	}
	// The context ends it, and Close does.
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, _, err := cn.TryModern(ctx, transports.Message{Method: "subscriptions/listen"}); err == nil ||
		err.Class != messages.ClassCanceled {
		t.Errorf("%v", err)
	}
	done := make(chan *transports.Error, 1)
	go func() {
		_, _, err := cn.TryModern(context.Background(), transports.Message{Method: "subscriptions/listen"})
		done <- err
	}()
	cn.WaitFor(4, "list_changed")
	cn.CloseChecked()
	if err := <-done; err == nil || err.Class != messages.ClassCanceled {
		t.Errorf("%v", err)
	}
}

// TestModernRefusals: a refusal with a JSON-RPC error reaches the caller as it is, and costs its request.
func TestModernRefusals(t *testing.T) {
	long := strings.Repeat("v", 20<<10)
	for name, c := range map[string]struct {
		status int
		body   string
		class  messages.Class
	}{
		"unknown method": {404, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}`, messages.ClassRejected},
		"no such page":   {404, "<html>", messages.ClassNetwork},
		"header":         {400, `{"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"no"}}`, messages.ClassProtocol},
		"capability":     {400, `{"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"no"}}`, messages.ClassProtocol},
		"version": {400, `{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"no","data":{"supported":["` + long +
			`"],"requested":"x"}}}`, messages.ClassProtocol},
		"any other": {400, `{"jsonrpc":"2.0","error":{"code":-1,"message":"no"}}`, messages.ClassProtocol},
		"stale":     {400, `{"jsonrpc":"2.0","error":{"code":-1,"message":"session not found"}}`, messages.ClassProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			s := conntest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
				if m := conntest.ReadRequest(r); m.ID != 1 {
					conntest.Reply(w, m, `{}`)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			})
			cn := conntest.Dial(t, web.NewHTTP(conntest.ConfigWithSecrets(t, s.URL)))
			_, d, err := cn.TryModern(t.Context(), transports.Message{Method: "tools/call", Name: "t"})
			if d != transports.Written || err == nil || err.Class != c.class || err.Status != c.status {
				t.Fatalf("%v, %v", d, err)
			}
			if string(err.Body) != c.body {
				t.Errorf("the body is %.200s", err.Body)
			}
			if _, _, err := cn.TryModern(t.Context(), transports.Message{Method: "tools/list"}); err != nil {
				t.Errorf("afterwards: %v", err)
			}
			if len(cn.Downs()) > 0 {
				t.Errorf("down: %v", cn.Downs())
			}
		})
	}
}

// TestDiscoverThenInitialize: however an older server refuses the question for the era, the same connection goes on
// with initialize.
func TestDiscoverThenInitialize(t *testing.T) {
	refusals := map[string]http.HandlerFunc{
		"a page": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<html>"))
		},
		"text":       func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) },
		"nothing":    func(http.ResponseWriter, *http.Request) {},
		"202":        func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) },
		"cut":        func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"an error":   func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"error":"no"}`)) },
		"no session": nil,
	}
	for _, status := range []int{400, 401, 403, 404, 405, 406, 415, 422, 500} {
		refusals[fmt.Sprint(status)] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
	}
	refusals["no session"] = func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"No valid session ID provided"}}`))
	}
	for name, refuse := range refusals {
		t.Run("streamable/"+name, func(t *testing.T) {
			var gets sync.WaitGroup
			gets.Add(1)
			s := conntest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
				switch r.Header.Get("Mcp-Method") {
				case "server/discover":
					refuse(w, r)
				case "":
					conntest.WithHandshake("s", func(w http.ResponseWriter, r *http.Request) {
						if r.Header.Get("Mcp-Session-Id") != "s" {
							t.Error("without the session")
						}
						if r.Method == http.MethodGet {
							gets.Done()
							w.WriteHeader(http.StatusMethodNotAllowed)
							return
						}
						conntest.Reply(w, conntest.ReadRequest(r), `{}`)
					})(w, r)
				}
			})
			cfg := conntest.ConfigWithSecrets(t, s.URL)
			cfg.FallbackSSE = true
			cn := conntest.Dial(t, web.NewHTTP(cfg))
			if _, _, err := cn.TryModern(t.Context(), transports.Message{Method: "server/discover"}); err == nil {
				t.Error("no error")
			}
			if len(cn.Downs()) > 0 {
				t.Fatalf("down: %v", cn.Downs())
			}
			cn.Handshake()
			cn.Call("tools/list", `{}`)
			gets.Wait()
		})
		t.Run("SSE/"+name, func(t *testing.T) {
			p := conntest.NewWebPeer(t, func(p *conntest.WebPeer) http.Handler {
				h := conntest.SSEHandler(p)
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					switch {
					case r.Method == http.MethodPost && r.Header.Get("Mcp-Method") != "":
						refuse(w, r)
					case r.Method == http.MethodPost && r.URL.Path == "/sse":
						w.WriteHeader(http.StatusMethodNotAllowed)
					default:
						h.ServeHTTP(w, r)
					}
				})
			})
			cfg := conntest.ConfigWithSecrets(t, p.Server.URL+"/sse?key="+conntest.Canary)
			cfg.FallbackSSE = true
			cn := conntest.Dial(t, web.NewHTTP(cfg))
			if _, _, err := cn.TryModern(t.Context(), transports.Message{Method: "server/discover"}); err == nil {
				t.Error("no error")
			}
			if _, d, err := cn.TrySend(t.Context(), "initialize", conntest.InitializeParams); err != nil || d != transports.Written {
				t.Fatalf("%v, %v", d, err)
			}
			cn.WaitFor(1, "no such command")
			if got := cn.Call("echo", `{"x":1}`); got != `{"x":1}` {
				t.Errorf("echo: %s", got)
			}
		})
	}
}

// TestNoFallbackFromModern: a server that refuses initialize as only a modern one does has no older kind behind it.
func TestNoFallbackFromModern(t *testing.T) {
	for body, status := range map[string]int{
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}`: 404,
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"no"}}`: 400,
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"no"}}`: 400,
	} {
		s := conntest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost {
				t.Errorf("a %s", r.Method)
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		})
		cfg := conntest.ConfigWithSecrets(t, s.URL)
		cfg.FallbackSSE = true
		if _, _, err := conntest.Dial(t, web.NewHTTP(cfg)).TrySend(t.Context(), "initialize", conntest.InitializeParams); err == nil ||
			err.Status != status || strings.Contains(err.Text, "HTTP+SSE") {
			t.Errorf("%v", err)
		}
	}
}
