package web_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/conntest"
	"github.com/mcpvisor/mcpvisor/transports/web"
)

// olderServer is an HTTP+SSE server by hand: the stream is what each test makes of it.
type olderServer struct {
	endpoint string // {self} is its URL
	stream   func(w http.ResponseWriter, r *http.Request)
	post     http.HandlerFunc

	mu   sync.Mutex
	seen []string
}

func (s *olderServer) start(t *testing.T) string {
	var self string
	web := conntest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, fmt.Sprintf("%s %s auth=%v key=%v version=%s", r.Method, r.URL.RequestURI(),
			r.Header.Get("Authorization") == "Bearer "+conntest.Canary, r.Header.Get("X-Api-Key") == conntest.Canary,
			r.Header.Get("Mcp-Protocol-Version")))
		s.mu.Unlock()
		if r.Method == http.MethodPost {
			s.post(w, r)
			return
		}
		begin(w)
		emit(w, "event: endpoint\ndata: %s\n\n", strings.ReplaceAll(s.endpoint, "{self}", self))
		s.stream(w, r)
	})
	self = web.URL
	return web.URL
}

func holdOpen(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func accept(w http.ResponseWriter, r *http.Request) {
	_ = conntest.ReadRequest(r)
	w.WriteHeader(http.StatusAccepted)
	_, _ = fmt.Fprint(w, "Accepted")
}

func TestSSEEndpoint(t *testing.T) {
	seeds.Shows(t, "000.2.headers")
	for endpoint, want := range map[string]string{
		"/messages?session=1":           "/messages?session=1",
		"messages":                      "/deep/messages",
		"?session=1":                    "/deep/sse?session=1",
		"{self}/m#fragment":             "/m",
		"  /padded ":                    "/padded",
		"//{host}/m":                    "/m",
		"http://someone:else@{host}/m?": "/m?",
	} {
		t.Run(endpoint, func(t *testing.T) {
			s := &olderServer{stream: holdOpen, post: accept}
			url := s.start(t)
			s.endpoint = strings.ReplaceAll(endpoint, "{host}", strings.TrimPrefix(url, "http://"))
			c := conntest.Dial(t, web.NewSSE(conntest.ConfigWithSecrets(t, url+"/deep/sse?key="+conntest.Canary)))
			c.Notify("before")
			c.Negotiated("2025-06-18")
			c.Notify("after")
			s.mu.Lock()
			defer s.mu.Unlock()
			for i, want := range []string{
				"GET /deep/sse?key=" + conntest.Canary + " auth=true key=true version=",
				"POST " + want + " auth=true key=true version=",
				"POST " + want + " auth=true key=true version=2025-06-18",
			} {
				if s.seen[i] != want {
					t.Errorf("request %d: %s, want %s", i, s.seen[i], want)
				}
			}
		})
	}
}

// TestSSEStreamBreaks: the end of the stream is the end of the connection, at once, also for a message on its way.
func TestSSEStreamBreaks(t *testing.T) {
	posted, cut := make(chan struct{}), make(chan struct{})
	s := &olderServer{endpoint: "/m",
		stream: func(w http.ResponseWriter, _ *http.Request) { <-cut; emit(w, "data: %s\n\ndata: cut off", note) },
		post: func(_ http.ResponseWriter, r *http.Request) {
			close(posted)
			_ = conntest.ReadRequest(r)
			<-r.Context().Done()
		},
	}
	c := conntest.Dial(t, web.NewSSE(conntest.ConfigWithSecrets(t, s.start(t))))
	done := make(chan *transports.Error, 1)
	go func() {
		_, d, err := c.TrySend(context.Background(), "tools/call", `{}`)
		if d != transports.MaybeWritten {
			t.Errorf("delivery %v", d)
		}
		done <- err
	}()
	<-posted
	close(cut)
	if err := <-done; err == nil || err.Class != messages.ClassNetwork ||
		!strings.Contains(err.Text, "closed the event stream") {
		t.Errorf("%v", err)
	}
	<-c.Released()
	if len(c.Downs()) != 1 || len(c.Messages()) != 1 {
		t.Errorf("%d Downs, %d messages", len(c.Downs()), len(c.Messages()))
	}
}

// TestSSERefusals: a refused message costs itself. The session's id stands in the address and in no error.
func TestSSERefusals(t *testing.T) {
	status := http.StatusNotFound
	s := &olderServer{endpoint: "/m?session=only-the-server-knew", stream: holdOpen,
		post: func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "no such session: "+r.URL.Query().Get("session"), status)
		}}
	c := conntest.Dial(t, web.NewSSE(conntest.ConfigWithSecrets(t, s.start(t))))
	for code, class := range map[int]messages.Class{
		404: messages.ClassNetwork, 401: messages.ClassUnauthorized, 500: messages.ClassNetwork, 400: messages.ClassProtocol,
	} {
		status = code
		_, d, err := c.TrySend(t.Context(), "tools/call", `{}`)
		if d != transports.Written || err == nil || err.Class != class || !strings.Contains(err.Text, "[redacted]") ||
			strings.Contains(err.Text+string(err.Body), "only-the-server-knew") {
			t.Errorf("%d: %v, %v", code, d, err)
		}
	}
	if len(c.Downs()) > 0 {
		t.Errorf("down: %v", c.Downs())
	}
}

// TestSSEDialEnds: a server that says nothing, and one that begins and never names its address.
func TestSSEDialEnds(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"silent":     holdOpen,
		"no address": func(w http.ResponseWriter, r *http.Request) { begin(w); emit(w, ": hello\n\n"); <-r.Context().Done() },
		"a slow drip": func(w http.ResponseWriter, r *http.Request) {
			begin(w)
			for r.Context().Err() == nil {
				emit(w, ":")
				time.Sleep(5 * time.Millisecond)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := conntest.Serve(t, handler)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			conn, err := web.NewSSE(conntest.ConfigWithSecrets(t, s.URL)).Dial(ctx, &conntest.DroppingSink{})
			if err == nil {
				t.Fatalf("connected: %v", conn)
			}
			if e := conntest.BoundaryError(t, err); e.Class != messages.ClassTimeout {
				t.Errorf("%v", e)
			}
		})
	}
}
