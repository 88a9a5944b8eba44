package web_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/internal/conntest"
	"github.com/mcpvisor/mcpvisor/transports/web"
)

// playListenServer plays a server that opens its stream by open, and writes down what came in which order.
func playListenServer(t *testing.T, open func(w http.ResponseWriter, r *http.Request, note func(string))) (order []string) {
	t.Helper()
	var mu sync.Mutex
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, what)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case r.Method == http.MethodGet:
			open(w, r, note)
		case strings.Contains(string(body), "initialize\""):
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":`+conntest.InitializeResult+`}`)
		case strings.Contains(string(body), "tools/call"):
			note("call")
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":2,"result":{}}`)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	defer srv.Close()
	c := conntest.Dial(t, web.NewHTTP(web.Config{URL: srv.URL}))
	c.Call("initialize", conntest.InitializeParams)
	c.Negotiated("2025-11-25")
	c.Notify("notifications/initialized")
	c.Call("tools/call", `{"name":"t"}`)
	c.CloseChecked()
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(order)
}

// TestACallWaitsForTheStreamOfQuestions: a server that asks something while it works on the first call finds a stream
// to ask it on. Its official TypeScript library drops the question otherwise.
func TestACallWaitsForTheStreamOfQuestions(t *testing.T) {
	var order []string
	for range 5 { // on a machine that stands still for longer than the bound, the order is not ours
		order = playListenServer(t, func(w http.ResponseWriter, r *http.Request, note func(string)) {
			time.Sleep(30 * time.Millisecond)
			note("stream")
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		if slices.Equal(order, []string{"stream", "call"}) {
			return
		}
	}
	t.Errorf("the server saw %v", order)
}

// TestACallDoesNotWaitForAStreamThatDoesNotCome: a refused stream is known at once, and a silent one after a bound.
func TestACallDoesNotWaitForAStreamThatDoesNotCome(t *testing.T) {
	for name, open := range map[string]func(http.ResponseWriter, *http.Request, func(string)){
		"refused": func(w http.ResponseWriter, _ *http.Request, _ func(string)) {
			w.WriteHeader(http.StatusMethodNotAllowed)
		},
		"silent": func(_ http.ResponseWriter, r *http.Request, _ func(string)) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			if order := playListenServer(t, open); !slices.Equal(order, []string{"call"}) {
				t.Errorf("the server saw %v", order)
			}
		})
	}
}
